// SPDX-License-Identifier: Apache-2.0
// libjpeg behind jpeg_api.h. An error leaves libjpeg by longjmp: between a setjmp and what may jump
// there is no object with a destructor, and no local that changes; all state is the caller's.
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "build_info.h"
#include "framework/io/jpeg_api.h"

extern "C" const void* treenail_adapter(void);

namespace treenail {
namespace {

struct Failure {
  jpeg_error_mgr base;
  jmp_buf jump;
  char* why;
  uint64_t size;

  void say(const char* text) const { std::snprintf(why, size, "%s", text); }
};

extern "C" [[noreturn]] void jpeg_fail(j_common_ptr c) {
  auto* const failure = reinterpret_cast<Failure*>(c->err);
  char text[JMSG_LENGTH_MAX];
  (*c->err->format_message)(c, text);
  failure->say(text);
  longjmp(failure->jump, 1);
}
extern "C" void jpeg_silent(j_common_ptr) {}

jpeg_error_mgr* prepare(Failure& f, char* why, uint64_t size) {
  f.why = why;
  f.size = size;
  jpeg_std_error(&f.base);
  f.base.error_exit = jpeg_fail;
  f.base.output_message = jpeg_silent;
  return &f.base;
}

// --- Reading
// --------------------------------------------------------------------------------------

// A file in memory. Past its end stands an end-of-image marker, and `ended` is set.
struct Source {
  jpeg_source_mgr base;
  bool ended;
};

struct Decoder {
  jpeg_decompress_struct c;
  Failure failure;
  Source source;
  jpeg_progress_mgr progress;
  bool created;
};

extern "C" void jpeg_source_nothing(j_decompress_ptr) {}

extern "C" boolean jpeg_source_fill(j_decompress_ptr c) {
  static const JOCTET end[] = {0xff, JPEG_EOI};
  auto* const source = reinterpret_cast<Source*>(c->src);
  source->ended = true;
  source->base.next_input_byte = end;
  source->base.bytes_in_buffer = sizeof end;
  return TRUE;
}

extern "C" void jpeg_source_skip(j_decompress_ptr c, long count) {
  if (count <= 0) return;
  if (static_cast<size_t>(count) > c->src->bytes_in_buffer) {
    jpeg_source_fill(c);
    return;
  }
  c->src->next_input_byte += count;
  c->src->bytes_in_buffer -= static_cast<size_t>(count);
}

// Thousands of scans over one image are an attack on time; files have some ten.
extern "C" void jpeg_watch_scans(j_common_ptr c) {
  constexpr int kMostScans = 200;
  if (reinterpret_cast<j_decompress_ptr>(c)->input_scan_number <= kMostScans) return;
  auto* const failure = reinterpret_cast<Failure*>(c->err);
  failure->say("the image has more than 200 scans");
  longjmp(failure->jump, 1);
}

void begin(Decoder& d, const uint8_t* data, uint64_t bytes, char* why, uint64_t size) {
  d.created = false;
  d.c.err = prepare(d.failure, why, size);
  d.source.ended = false;
  d.source.base = {};
  d.source.base.next_input_byte = data;
  d.source.base.bytes_in_buffer = bytes;
  d.source.base.init_source = jpeg_source_nothing;
  d.source.base.fill_input_buffer = jpeg_source_fill;
  d.source.base.skip_input_data = jpeg_source_skip;
  d.source.base.resync_to_restart = jpeg_resync_to_restart;
  d.source.base.term_source = jpeg_source_nothing;
  d.progress = {};
  d.progress.progress_monitor = jpeg_watch_scans;
}

void read_start(Decoder& d, int32_t ratio) {
  jpeg_create_decompress(&d.c);
  d.created = true;
  d.c.src = &d.source.base;
  d.c.progress = &d.progress;
  jpeg_read_header(&d.c, TRUE);
  d.c.scale_num = 1;
  d.c.scale_denom = static_cast<unsigned>(ratio);
  jpeg_calc_output_dimensions(&d.c);
}

int32_t header_of(Decoder& d, int32_t ratio, JpegHeader& header) {
  if (setjmp(d.failure.jump) != 0) return 1;
  read_start(d, ratio);
  header.height = d.c.output_height;
  header.width = d.c.output_width;
  header.components = d.c.num_components;
  header.arithmetic = d.c.arith_code ? 1 : 0;
  return 0;
}

// Adobe's files hold inverted inks.
void cmyk_to_rgb(const JSAMPLE* from, int64_t width, bool inverted, uint8_t* to) {
  for (int64_t x = 0; x < width; ++x, from += 4, to += 3) {
    const int k = inverted ? from[3] : 255 - from[3];
    for (int i = 0; i < 3; ++i)
      to[i] = static_cast<uint8_t>(k * (inverted ? from[i] : 255 - from[i]) / 255);
  }
}

void set_up(Decoder& d, const JpegDecoding& o) {
  read_start(d, o.ratio);
  d.c.do_fancy_upsampling = o.fancy != 0 ? TRUE : FALSE;
  if (o.dct != 0) d.c.dct_method = o.dct == 1 ? JDCT_IFAST : JDCT_ISLOW;
  d.c.out_color_space = o.channels == 1           ? JCS_GRAYSCALE
                        : d.c.num_components == 4 ? JCS_CMYK
                                                  : JCS_RGB;
  jpeg_start_decompress(&d.c);
}

// Rows that were there before the file ended.
int32_t decode_rows(Decoder& d, const JpegDecoding& o, uint8_t* pixels, int64_t& rows) {
  if (setjmp(d.failure.jump) != 0) return 1;
  set_up(d, o);
  if (d.c.output_height != o.height || d.c.output_width != o.width ||
      d.c.output_components != (d.c.out_color_space == JCS_CMYK ? 4 : o.channels)) {
    d.failure.say("the file changed while it was read");
    return 1;
  }
  const int64_t line = o.width * o.channels;
  JSAMPARRAY inks = nullptr;
  if (d.c.out_color_space == JCS_CMYK) {
    inks = (*d.c.mem->alloc_sarray)(reinterpret_cast<j_common_ptr>(&d.c), JPOOL_IMAGE,
                                    d.c.output_width * 4, 1);
  }
  // Scans that build on each other leave an image of less detail, whole.
  const bool whole = jpeg_has_multiple_scans(&d.c) != FALSE;
  while (d.c.output_scanline < d.c.output_height) {
    uint8_t* const to = pixels + d.c.output_scanline * line;
    JSAMPROW row = inks != nullptr ? inks[0] : to;
    jpeg_read_scanlines(&d.c, &row, 1);
    if (inks != nullptr) cmyk_to_rgb(inks[0], o.width, d.c.saw_Adobe_marker != FALSE, to);
    if (whole || !d.source.ended) rows = d.c.output_scanline;
  }
  return 0;
}

void finish(Decoder& d) {
  if (d.created) jpeg_destroy_decompress(&d.c);
}

int32_t read_header(const uint8_t* data, uint64_t bytes, int32_t ratio, JpegHeader* header,
                    char* why, uint64_t size) {
  Decoder d;
  begin(d, data, bytes, why, size);
  const int32_t failed = header_of(d, ratio, *header);
  finish(d);
  return failed;
}

int32_t decode(const uint8_t* data, uint64_t bytes, const JpegDecoding* o, uint8_t* pixels,
               char* why, uint64_t size) {
  Decoder d;
  begin(d, data, bytes, why, size);
  int64_t rows = 0;
  int32_t failed = decode_rows(d, *o, pixels, rows);
  const bool ended = d.source.ended && (rows < o->height || jpeg_has_multiple_scans(&d.c) != FALSE);
  finish(d);
  if (failed != 0 || !ended) return failed;
  if (o->recover == 0 || static_cast<double>(rows) < o->fraction * static_cast<double>(o->height)) {
    std::snprintf(why, size, "the file ends after %lld of %lld rows", static_cast<long long>(rows),
                  static_cast<long long>(o->height));
    return 1;
  }
  const int64_t line = o->width * o->channels;
  std::memset(pixels + rows * line, 0, static_cast<size_t>((o->height - rows) * line));
  return 0;
}

// --- Writing
// --------------------------------------------------------------------------------------

struct Destination {
  jpeg_destination_mgr base;
  uint8_t* file;
  size_t capacity;
};

struct Encoder {
  jpeg_compress_struct c;
  Failure failure;
  Destination to;
  bool created;
};

void grow(j_compress_ptr c, size_t used) {
  auto* const to = reinterpret_cast<Destination*>(c->dest);
  const size_t capacity = to->capacity == 0 ? size_t{1} << 16 : 2 * to->capacity;
  auto* const file = static_cast<uint8_t*>(std::realloc(to->file, capacity));
  if (file == nullptr) ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
  to->file = file;
  to->capacity = capacity;
  to->base.next_output_byte = file + used;
  to->base.free_in_buffer = capacity - used;
}
extern "C" void jpeg_to_begin(j_compress_ptr c) { grow(c, 0); }
extern "C" boolean jpeg_to_full(j_compress_ptr c) {
  grow(c, reinterpret_cast<Destination*>(c->dest)->capacity);
  return TRUE;
}
extern "C" void jpeg_to_end(j_compress_ptr) {}

void describe(Encoder& e, const JpegEncoding& o) {
  jpeg_create_compress(&e.c);
  e.created = true;
  e.c.dest = &e.to.base;
  e.c.image_width = static_cast<JDIMENSION>(o.width);
  e.c.image_height = static_cast<JDIMENSION>(o.height);
  e.c.input_components = o.channels;
  e.c.in_color_space = o.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&e.c);
  jpeg_set_quality(&e.c, o.quality, TRUE);
  if (o.optimize != 0) e.c.optimize_coding = TRUE;
  if (o.progressive != 0) jpeg_simple_progression(&e.c);
  if (o.downsample == 0) e.c.comp_info[0].h_samp_factor = e.c.comp_info[0].v_samp_factor = 1;
  e.c.density_unit = static_cast<UINT8>(o.density_unit);
  e.c.X_density = static_cast<UINT16>(o.x_density);
  e.c.Y_density = static_cast<UINT16>(o.y_density);
}

int32_t encode_rows(Encoder& e, const uint8_t* pixels, const JpegEncoding& o, const JOCTET* xmp) {
  if (setjmp(e.failure.jump) != 0) return 1;
  describe(e, o);
  jpeg_start_compress(&e.c, TRUE);
  if (o.xmp_size > 0)
    jpeg_write_marker(&e.c, JPEG_APP0 + 1, xmp, static_cast<unsigned>(o.xmp_size));
  while (e.c.next_scanline < e.c.image_height) {
    // libjpeg reads rows through a pointer that is not const.
    JSAMPROW row = const_cast<JSAMPROW>(pixels + static_cast<int64_t>(e.c.next_scanline) * o.width *
                                                     o.channels);
    jpeg_write_scanlines(&e.c, &row, 1);
  }
  jpeg_finish_compress(&e.c);
  return 0;
}

int32_t encode(const uint8_t* pixels, const JpegEncoding* o, uint8_t** file, uint64_t* bytes,
               char* why, uint64_t size) {
  Encoder e;
  e.created = false;
  e.c.err = prepare(e.failure, why, size);
  e.to = {};
  e.to.base.init_destination = jpeg_to_begin;
  e.to.base.empty_output_buffer = jpeg_to_full;
  e.to.base.term_destination = jpeg_to_end;
  const int32_t failed = encode_rows(e, pixels, *o, reinterpret_cast<const JOCTET*>(o->xmp));
  *bytes = e.to.capacity - e.to.base.free_in_buffer;
  *file = e.to.file;
  if (e.created) jpeg_destroy_compress(&e.c);
  if (failed != 0) {
    std::free(e.to.file);
    *file = nullptr;
  }
  return failed;
}

void release(uint8_t* file) { std::free(file); }

#define TREENAIL_TEXT(x) #x
#define TREENAIL_NUMBER(x) TREENAIL_TEXT(x)
const char* version() { return "libjpeg API " TREENAIL_NUMBER(JPEG_LIB_VERSION); }

constexpr JpegApi kApi = {
    {sizeof(JpegApi), build_info::kVersion}, version, read_header, decode, encode, release};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
