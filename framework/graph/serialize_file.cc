// SPDX-License-Identifier: Apache-2.0
// Where graph files come from and go to: memory and disk. The format: serialize_write.cc and
// serialize_read.cc.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/serialize.h"
#include "framework/io/file.h"

namespace treenail {
namespace {

constexpr size_t kWriteBytes = size_t{1} << 20;
constexpr size_t kReadBytes = size_t{1} << 16;

class StringSink final : public ByteSink {
 public:
  void write(const void* data, size_t size) override {
    bytes.append(static_cast<const char*>(data), size);
  }
  std::string bytes;
};

// Gathers small pieces into large writes.
class FileSink final : public ByteSink {
 public:
  explicit FileSink(AtomicFile& file) : file_(file) {}
  void write(const void* data, size_t bytes) override {
    if (pending_.size() + bytes > kWriteBytes) flush();
    if (bytes > kWriteBytes) {
      write_at(file_.file(), offset_, data, bytes, file_.path());
      offset_ += static_cast<int64_t>(bytes);
    } else {
      pending_.append(static_cast<const char*>(data), bytes);
    }
  }
  void flush() {
    write_at(file_.file(), offset_, pending_.data(), pending_.size(), file_.path());
    offset_ += static_cast<int64_t>(pending_.size());
    pending_.clear();
  }

 private:
  AtomicFile& file_;
  int64_t offset_ = 0;
  std::string pending_;
};

class MemorySource final : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  void read(void* data, size_t bytes) override {
    if (bytes > bytes_.size()) throw data_loss("it is truncated");
    if (bytes > 0) std::memcpy(data, bytes_.data(), bytes);
    bytes_.remove_prefix(bytes);
  }
  uint64_t remaining() const override { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

class FileSource final : public ByteSource {
 public:
  FileSource(const FileDescriptor& file, const std::string& path)
      : file_(file), path_(path), size_(file_size(file, path)) {}

  void read(void* data, size_t bytes) override {
    auto* out = static_cast<char*>(data);
    const size_t buffered = std::min(bytes, buffer_.size() - at_);
    std::copy_n(buffer_.data() + at_, buffered, out);
    at_ += buffered;
    bytes -= buffered;
    out += buffered;
    if (bytes == 0) return;
    if (bytes >= kReadBytes) {
      fill(out, bytes);
      return;
    }
    buffer_.resize(
        static_cast<size_t>(std::min<int64_t>(static_cast<int64_t>(kReadBytes), size_ - offset_)));
    at_ = 0;
    if (bytes > buffer_.size()) throw data_loss("it is truncated");
    fill(buffer_.data(), buffer_.size());
    std::copy_n(buffer_.data(), bytes, out);
    at_ = bytes;
  }
  uint64_t remaining() const override {
    return static_cast<uint64_t>(size_ - offset_) + (buffer_.size() - at_);
  }

 private:
  void fill(char* data, size_t bytes) {
    if (read_at(file_, offset_, data, bytes, path_) != bytes)
      throw data_loss("it became shorter while it was read");
    offset_ += static_cast<int64_t>(bytes);
  }

  const FileDescriptor& file_;
  const std::string& path_;
  const int64_t size_;
  int64_t offset_ = 0;  // of the file, behind the buffer
  std::string buffer_;
  size_t at_ = 0;
};

}  // namespace

ByteSink::~ByteSink() = default;
ByteSource::~ByteSource() = default;

std::string graph_to_bytes(const Graph& graph, Exchanges exchanges) {
  StringSink sink;
  write_graph(graph, sink, exchanges);
  return std::move(sink.bytes);
}

std::unique_ptr<Graph> graph_from_bytes(std::string_view bytes, Exchanges exchanges) {
  MemorySource source(bytes);
  return read_graph(source, exchanges);
}

void save_graph(const Graph& graph, const std::string& path) {
  AtomicFile file(path);
  FileSink sink(file);
  write_graph(graph, sink);
  sink.flush();
  file.commit();
}

std::unique_ptr<Graph> load_graph(const std::string& path) {
  const FileDescriptor file = open_for_reading(path);
  FileSource source(file, path);
  try {
    return read_graph(source);
  } catch (const Error& error) {
    throw error.with_prefix(concat("graph file \"", path, "\": "));
  }
}

}  // namespace treenail
