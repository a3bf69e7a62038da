// SPDX-License-Identifier: Apache-2.0
// libpng behind png_api.h. An error leaves libpng by longjmp: between a setjmp and what may jump
// there is no object with a destructor, and no local that changes; all state is the caller's.
#include <bit>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <png.h>

#include "build_info.h"
#include "framework/io/png_api.h"

extern "C" const void* treenail_adapter(void);

namespace treenail {
namespace {

struct Failure {
  char* why;
  uint64_t size;
};

extern "C" [[noreturn]] void png_fail(png_structp png, png_const_charp text) {
  const auto* const failure = static_cast<const Failure*>(png_get_error_ptr(png));
  std::snprintf(failure->why, failure->size, "%s", text);
  png_longjmp(png, 1);
}
extern "C" void png_silent(png_structp, png_const_charp) {}

// --- Reading
// --------------------------------------------------------------------------------------

struct Reader {
  Failure failure;
  const uint8_t* data;
  uint64_t left;
  png_structp png;
  png_infop info;
};

extern "C" void png_take(png_structp png, png_bytep to, size_t count) {
  auto* const r = static_cast<Reader*>(png_get_io_ptr(png));
  if (count > r->left) png_error(png, "the file ends early");
  std::memcpy(to, r->data, count);
  r->data += count;
  r->left -= count;
}

int32_t begin(Reader& r, const uint8_t* data, uint64_t bytes, char* why, uint64_t size) {
  r.failure = {why, size};
  r.data = data;
  r.left = bytes;
  r.info = nullptr;
  r.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &r.failure, png_fail, png_silent);
  if (r.png != nullptr) r.info = png_create_info_struct(r.png);
  if (r.info != nullptr) return 0;
  std::snprintf(why, size, "libpng could not be started");
  return 1;
}

void finish(Reader& r) {
  if (r.png != nullptr) png_destroy_read_struct(&r.png, &r.info, nullptr);
}

// Bounds on what a small file may make libpng allocate: text and profiles that nobody asks for.
void read_info(Reader& r) {
  constexpr png_alloc_size_t kMostChunk = 8000000;
  constexpr png_uint_32 kMostChunks = 128;
  png_set_read_fn(r.png, &r, png_take);
#ifdef PNG_SET_USER_LIMITS_SUPPORTED
  png_set_user_limits(r.png, 0x7fffffff, 0x7fffffff);  // the caller asks for memory, and is refused
  png_set_chunk_malloc_max(r.png, kMostChunk);
  png_set_chunk_cache_max(r.png, kMostChunks);
#endif
  png_read_info(r.png, r.info);
}

int32_t header_of(Reader& r, PngHeader& header) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return 1;
  read_info(r);
  header.height = png_get_image_height(r.png, r.info);
  header.width = png_get_image_width(r.png, r.info);
  const bool palette = png_get_color_type(r.png, r.info) == PNG_COLOR_TYPE_PALETTE;
  const bool transparent = png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0;
  header.channels = palette ? (transparent ? 4 : 3) : png_get_channels(r.png, r.info);
  header.raw_bytes =
      static_cast<uint64_t>(png_get_rowbytes(r.png, r.info)) * static_cast<uint64_t>(header.height);
  return 0;
}

// Channels as asked: colors, then alpha.
void transform(Reader& r, const PngPixels& form) {
  const int color = png_get_color_type(r.png, r.info), depth = png_get_bit_depth(r.png, r.info);
  const bool transparent = png_get_valid(r.png, r.info, PNG_INFO_tRNS) != 0;
  const bool alpha = (color & PNG_COLOR_MASK_ALPHA) != 0;
  const bool gray = (color & PNG_COLOR_MASK_COLOR) == 0;
  if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r.png);
  if (gray && depth < 8) png_set_expand_gray_1_2_4_to_8(r.png);
  if (form.channels % 2 == 0) {
    if (transparent) {
      png_set_tRNS_to_alpha(r.png);
    } else if (!alpha) {
      png_set_add_alpha(r.png, depth > 8 ? 0xffff : 0xff, PNG_FILLER_AFTER);
    }
  } else if (alpha || transparent) {
    png_set_strip_alpha(r.png);
  }
  if (gray && form.channels > 2) png_set_gray_to_rgb(r.png);
  // The weights of ITU-R BT.601; libpng takes errors above 1 as "no message".
  if (!gray && form.channels < 3) png_set_rgb_to_gray(r.png, 1, 0.299, 0.587);
  if (depth > 8 && form.depth == 8) png_set_strip_16(r.png);
  if (depth > 8 && form.depth == 16 && std::endian::native == std::endian::little)
    png_set_swap(r.png);
}

int32_t decode_rows(Reader& r, const PngPixels& form, uint8_t* pixels) {
  if (setjmp(png_jmpbuf(r.png)) != 0) return 1;
  read_info(r);
  transform(r, form);
  const int passes = png_set_interlace_handling(r.png);
  png_read_update_info(r.png, r.info);
  // 8-bit rows are spread out afterwards, from the front half of their place.
  const bool narrow = png_get_bit_depth(r.png, r.info) == 8;
  const int64_t samples = form.width * form.channels, wanted = narrow ? samples : 2 * samples;
  if (png_get_image_height(r.png, r.info) != form.height ||
      static_cast<int64_t>(png_get_rowbytes(r.png, r.info)) != wanted) {
    png_error(r.png, "rows of an unexpected size");
  }
  const int64_t line = samples * (form.depth / 8);
  for (int pass = 0; pass < passes; ++pass) {
    for (int64_t y = 0; y < form.height; ++y) png_read_row(r.png, pixels + y * line, nullptr);
  }
  png_read_end(r.png, nullptr);
  if (!narrow || form.depth == 8) return 0;
  for (int64_t y = 0; y < form.height; ++y) {
    uint8_t* const row = pixels + y * line;
    for (int64_t i = samples - 1; i >= 0; --i) row[2 * i] = row[2 * i + 1] = row[i];
  }
  return 0;
}

int32_t read_header(const uint8_t* data, uint64_t bytes, PngHeader* header, char* why,
                    uint64_t size) {
  Reader r;
  int32_t failed = begin(r, data, bytes, why, size);
  if (failed == 0) failed = header_of(r, *header);
  finish(r);
  return failed;
}

int32_t decode(const uint8_t* data, uint64_t bytes, const PngPixels* form, void* pixels, char* why,
               uint64_t size) {
  Reader r;
  int32_t failed = begin(r, data, bytes, why, size);
  if (failed == 0) failed = decode_rows(r, *form, static_cast<uint8_t*>(pixels));
  finish(r);
  return failed;
}

// --- Writing
// --------------------------------------------------------------------------------------

struct Writer {
  Failure failure;
  uint8_t* file;
  size_t used, capacity;
  png_structp png;
  png_infop info;
};

extern "C" void png_put(png_structp png, png_bytep from, size_t count) {
  auto* const w = static_cast<Writer*>(png_get_io_ptr(png));
  if (count > w->capacity - w->used) {
    size_t capacity = w->capacity == 0 ? size_t{1} << 16 : w->capacity;
    while (capacity - w->used < count) capacity *= 2;
    auto* const file = static_cast<uint8_t*>(std::realloc(w->file, capacity));
    if (file == nullptr) png_error(png, "out of memory");
    w->file = file;
    w->capacity = capacity;
  }
  std::memcpy(w->file + w->used, from, count);
  w->used += count;
}
extern "C" void png_flushed(png_structp) {}

int32_t encode_rows(Writer& w, const uint8_t* pixels, const PngPixels& form, int32_t compression) {
  static const int colors[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                               PNG_COLOR_TYPE_RGB_ALPHA};
  if (setjmp(png_jmpbuf(w.png)) != 0) return 1;
  png_set_write_fn(w.png, &w, png_put, png_flushed);
#ifdef PNG_SET_USER_LIMITS_SUPPORTED
  png_set_user_limits(w.png, 0x7fffffff, 0x7fffffff);
#endif
  png_set_compression_level(w.png, compression);
  png_set_IHDR(w.png, w.info, static_cast<png_uint_32>(form.width),
               static_cast<png_uint_32>(form.height), form.depth, colors[form.channels - 1],
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w.png, w.info);
  if (form.depth == 16 && std::endian::native == std::endian::little) png_set_swap(w.png);
  const int64_t line = form.width * form.channels * (form.depth / 8);
  for (int64_t y = 0; y < form.height; ++y) png_write_row(w.png, pixels + y * line);
  png_write_end(w.png, nullptr);
  return 0;
}

int32_t encode(const void* pixels, const PngPixels* form, int32_t compression, uint8_t** file,
               uint64_t* bytes, char* why, uint64_t size) {
  Writer w = {};
  w.failure = {why, size};
  int32_t failed = 1;
  w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w.failure, png_fail, png_silent);
  if (w.png != nullptr) w.info = png_create_info_struct(w.png);
  if (w.info != nullptr) {
    failed = encode_rows(w, static_cast<const uint8_t*>(pixels), *form, compression);
  } else {
    std::snprintf(why, size, "libpng could not be started");
  }
  if (w.png != nullptr) png_destroy_write_struct(&w.png, &w.info);
  if (failed != 0) {
    std::free(w.file);
    w.file = nullptr;
  }
  *file = w.file;
  *bytes = w.used;
  return failed;
}

void release(uint8_t* file) { std::free(file); }

constexpr PngApi kApi = {{sizeof(PngApi), build_info::kVersion},
                         [] { return png_get_libpng_ver(nullptr); },
                         read_header,
                         decode,
                         encode,
                         release};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
