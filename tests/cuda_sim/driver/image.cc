// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/driver/image.h"

#include <cstdint>
#include <cstring>

namespace treenail::cuda_sim {
namespace {

constexpr std::string_view kSection = ".text.";  // of a cubin, an ELF file, for each kernel

// What a fat binary begins with.
struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // after the header
};

constexpr uint32_t kMagic = 0xba55ed50;

Header header_of(const void* code) {
  Header header;
  std::memcpy(&header, code, sizeof(header));
  return header;
}

}  // namespace

bool Image::is_fat_binary(const void* code) {
  uint32_t magic = 0;
  std::memcpy(&magic, code, sizeof(magic));
  return magic == kMagic;
}

Image::Image(const void* code) {
  const Header header = header_of(code);
  const std::string_view all(static_cast<const char*>(code), header.header_bytes + header.bytes);
  for (size_t at = all.find(kSection); at != all.npos; at = all.find(kSection, at)) {
    at += kSection.size();
    const size_t end = all.find('\0', at);
    if (end != all.npos) kernels_.emplace(all.substr(at, end - at));
  }
}

bool Image::may_have(std::string_view kernel) const {
  return kernels_.empty() || kernels_.contains(kernel);
}

}  // namespace treenail::cuda_sim
