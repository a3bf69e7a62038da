// SPDX-License-Identifier: Apache-2.0
// Making and checking the block in front of a checkpoint.
#include "framework/io/checkpoint_frame.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "framework/base/crc32c.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

// As PNG's: a byte above ASCII, both kinds of line end and DOS's end of file, which careless
// transfers change.
constexpr unsigned char kMagic[8] = {0x89, 'T', 'N', 'C', '\r', '\n', 0x1a, '\n'};
constexpr unsigned char kHdf5Magic[8] = {0x89, 'H', 'D', 'F', '\r', '\n', 0x1a, '\n'};
constexpr uint32_t kFormat = 1;
constexpr size_t kCrcAt = 508;
constexpr size_t kPieceBytes = size_t{1} << 20;

struct Block {
  unsigned char bytes[kFrameBytes] = {};

  void put(size_t at, uint64_t value, int size) {
    for (int i = 0; i < size; ++i)
      bytes[at + static_cast<size_t>(i)] = static_cast<unsigned char>(value >> (8 * i));
  }
  uint64_t get(size_t at, int size) const {
    uint64_t value = 0;
    for (int i = size - 1; i >= 0; --i) value = value << 8 | bytes[at + static_cast<size_t>(i)];
    return value;
  }
  uint32_t crc() const { return crc32c(bytes, kCrcAt); }
};

uint32_t crc_of_rest(const FileDescriptor& file, int64_t size, const std::string& path) {
  const std::unique_ptr<unsigned char[]> piece(new unsigned char[kPieceBytes]);
  uint32_t crc = 0;
  for (int64_t at = kFrameBytes; at < size;) {
    const auto wanted = static_cast<size_t>(std::min<int64_t>(kPieceBytes, size - at));
    const size_t got = read_at(file, at, piece.get(), wanted, path);
    if (got != wanted) throw data_loss(path, " became shorter while it was read");
    crc = crc32c(piece.get(), got, crc);
    at += static_cast<int64_t>(got);
  }
  return crc;
}

// HDF5 looks for its own signature at 0, 512, 1024, 2048, ...
bool is_hdf5(const FileDescriptor& file, int64_t size, const std::string& path) {
  for (int64_t at = 0; at + 8 <= size && at <= int64_t{1} << 30; at = at == 0 ? 512 : 2 * at) {
    unsigned char found[8];
    if (read_at(file, at, found, 8, path) == 8 && std::memcmp(found, kHdf5Magic, 8) == 0)
      return true;
  }
  return false;
}

// A checkpoint's first bytes with one or two of them damaged are no other kind of file.
bool nearly_magic(const Block& block) {
  int equal = 0;
  for (size_t i = 0; i < sizeof kMagic; ++i) equal += block.bytes[i] == kMagic[i];
  return equal >= 6 && std::memcmp(block.bytes, kHdf5Magic, sizeof kHdf5Magic) != 0;
}

// The signature of a graph file differs in one byte: a checkpoint with that byte damaged still has
// the checksum of its first block.
bool is_graph_file(Block block) {
  constexpr int kLetter = 3;
  if (block.bytes[kLetter] != 'G') return false;
  block.bytes[kLetter] = kMagic[kLetter];
  return std::memcmp(block.bytes, kMagic, sizeof kMagic) == 0 &&
         block.get(kCrcAt, 4) != block.crc();
}

}  // namespace

void seal_frame(const FileDescriptor& file, const std::string& path, FrameKind kind) {
  const int64_t size = file_size(file, path);
  Block block;
  std::copy(std::begin(kMagic), std::end(kMagic), block.bytes);
  block.put(8, kFormat, 4);
  block.put(12, static_cast<uint64_t>(kind), 4);
  block.put(16, static_cast<uint64_t>(size - kFrameBytes), 8);
  block.put(24, crc_of_rest(file, size, path), 4);
  block.put(kCrcAt, block.crc(), 4);
  write_at(file, 0, block.bytes, sizeof block.bytes, path);
}

std::optional<Frame> read_frame(const FileDescriptor& file, const std::string& path,
                                bool allow_foreign) {
  const int64_t size = file_size(file, path);
  Block block;
  const size_t got = read_at(file, 0, block.bytes, sizeof block.bytes, path);
  if (got == 0) throw data_loss(path, " is empty; needed is a checkpoint");
  if (is_graph_file(block)) {
    throw invalid_argument(path, " is a graph file, no checkpoint: tn.load_graph reads it");
  }
  const bool begins = std::memcmp(block.bytes, kMagic, std::min(got, sizeof kMagic)) == 0;
  if (!begins && !nearly_magic(block)) {
    if (!is_hdf5(file, size, path)) {
      throw data_loss(path,
                      " is no checkpoint: it is no HDF5 file and does not begin as Treenail's do");
    }
    if (allow_foreign) return std::nullopt;
    throw invalid_argument(
        path, " is an HDF5 file that Treenail did not write; allow_foreign reads it, which is ",
        "safe only for files you trust: libhdf5 can crash on a damaged one");
  }
  if (got < sizeof block.bytes) {
    throw data_loss(path, " is truncated: it has ", size, " bytes, the first block alone has ",
                    kFrameBytes);
  }
  if (block.get(kCrcAt, 4) != block.crc() || !begins) {
    throw data_loss(path, " is damaged: the checksum of its first ", kFrameBytes,
                    " bytes is wrong");
  }
  if (const uint64_t format = block.get(8, 4); format != kFormat) {
    throw failed_precondition(path, " has checkpoint format ", format,
                              "; this version of Treenail reads format ", kFormat);
  }
  const uint64_t kind = block.get(12, 4);
  if (kind > static_cast<uint64_t>(FrameKind::kIndex)) {
    throw failed_precondition(path, " is a checkpoint of kind ", kind,
                              "; this version of Treenail reads kinds 0 and 1");
  }
  const uint64_t length = block.get(16, 8);
  if (length != static_cast<uint64_t>(size - kFrameBytes)) {
    const bool shorter = static_cast<uint64_t>(size - kFrameBytes) < length;
    throw data_loss(path, shorter ? " is truncated" : " is damaged", ": it has ", size,
                    " bytes, written were ", length + kFrameBytes);
  }
  return Frame{static_cast<FrameKind>(kind), length, static_cast<uint32_t>(block.get(24, 4))};
}

std::optional<Frame> check_frame(const FileDescriptor& file, const std::string& path,
                                 bool allow_foreign) {
  const std::optional<Frame> frame = read_frame(file, path, allow_foreign);
  if (!frame) return frame;
  const int64_t size = file_size(file, path);
  if (frame->checksum != crc_of_rest(file, size, path)) {
    throw data_loss(path, " is damaged: the checksum of its ", size, " bytes is wrong");
  }
  return frame;
}

}  // namespace treenail
