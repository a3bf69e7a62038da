// SPDX-License-Identifier: Apache-2.0
// CRC-32C eight bytes at a time: tables made at compile time, and the instructions of SSE4.2 and of
// AArch64's crc extension, chosen when first used.
#include "framework/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

#include "framework/base/cpu_features.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace treenail {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78u;  // reflected

// tables[k][b]: what byte b does to the CRC when k zero bytes follow it.
using Tables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Tables make_tables() {
  Tables tables{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? kPolynomial : 0u);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xffu];
    }
  }
  return tables;
}

constexpr Tables kTables = make_tables();

// Eight bytes as a little-endian number on every host.
uint64_t load_le64(const unsigned char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
  return word;
}

uint32_t by_tables(const unsigned char* at, size_t bytes, uint32_t crc) {
  for (; bytes >= 8; bytes -= 8, at += 8) {
    const uint64_t word = load_le64(at) ^ crc;
    crc = kTables[7][word & 0xff] ^ kTables[6][(word >> 8) & 0xff] ^
          kTables[5][(word >> 16) & 0xff] ^ kTables[4][(word >> 24) & 0xff] ^
          kTables[3][(word >> 32) & 0xff] ^ kTables[2][(word >> 40) & 0xff] ^
          kTables[1][(word >> 48) & 0xff] ^ kTables[0][word >> 56];
  }
  for (; bytes > 0; --bytes, ++at) crc = (crc >> 8) ^ kTables[0][(crc ^ *at) & 0xffu];
  return crc;
}

using Update = uint32_t (*)(const unsigned char*, size_t, uint32_t);

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) uint32_t by_instruction(const unsigned char* at, size_t bytes,
                                                          uint32_t crc) {
  uint64_t wide = crc;
  for (; bytes >= 8; bytes -= 8, at += 8) wide = __builtin_ia32_crc32di(wide, load_le64(at));
  crc = static_cast<uint32_t>(wide);
  for (; bytes > 0; --bytes, ++at) crc = __builtin_ia32_crc32qi(crc, *at);
  return crc;
}

Update choose() { return cpu_runs("x86-64-v2") ? by_instruction : by_tables; }

#elif defined(__aarch64__)

// As assembly: the builtin's name differs between compilers and needs the extension enabled for the
// file.
uint32_t by_instruction(const unsigned char* at, size_t bytes, uint32_t crc) {
  for (; bytes >= 8; bytes -= 8, at += 8) {
    __asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(load_le64(at)));
  }
  for (; bytes > 0; --bytes, ++at) {
    __asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"(uint32_t{*at}));
  }
  return crc;
}

Update choose() {
  constexpr unsigned long kHwcapCrc32 = 1ul << 7;
  return (getauxval(AT_HWCAP) & kHwcapCrc32) != 0 ? by_instruction : by_tables;
}

#else

Update choose() { return by_tables; }

#endif

}  // namespace

uint32_t crc32c(const void* data, size_t bytes, uint32_t crc) {
  static const Update update = choose();
  return ~update(static_cast<const unsigned char*>(data), bytes, ~crc);
}

uint32_t crc32c_portable(const void* data, size_t bytes, uint32_t crc) {
  return ~by_tables(static_cast<const unsigned char*>(data), bytes, ~crc);
}

}  // namespace treenail
