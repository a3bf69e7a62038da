// SPDX-License-Identifier: Apache-2.0
// See checkpoint_index.h.
#include "framework/io/checkpoint_index.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_parts.h"
#include "framework/io/file.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

// The tensors of an index, by name.
constexpr std::string_view kFiles = "files";          // string [shards]
constexpr std::string_view kBytes = "bytes";          // uint64 [shards]: behind the block
constexpr std::string_view kChecksums = "checksums";  // uint32 [shards]: of these
constexpr std::string_view kTensors = "tensors";      // string [parts]
constexpr std::string_view kDtypes = "dtypes";        // string [parts]
constexpr std::string_view kSlices = "slices";        // string [parts]: "10 20 0,5:-", "" a scalar
constexpr std::string_view kShards = "shards";        // int32 [parts]

std::string_view directory_of(std::string_view path) {
  const size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? "" : path.substr(0, slash + 1);
}

template <class T>
Tensor column(DType dtype, size_t count, T&& value) {
  Tensor tensor(dtype, Shape({static_cast<int64_t>(count)}));
  using Element = decltype(value(size_t{0}));
  for (size_t i = 0; i < count; ++i) tensor.data<Element>()[i] = value(i);
  return tensor;
}

void write_index(const CheckpointIndex& index, const std::string& path) {
  const auto& shards = index.shards;
  const auto& parts = index.parts;
  const auto text = [](std::string_view view) { return StringElement(view); };
  CheckpointWriter writer(path);
  writer.add(kFiles,
             column(DType::kString, shards.size(), [&](size_t i) { return text(shards[i].file); }));
  writer.add(kBytes, column(DType::kUInt64, shards.size(),
                            [&](size_t i) { return uint64_t{shards[i].frame.bytes}; }));
  writer.add(kChecksums, column(DType::kUInt32, shards.size(),
                                [&](size_t i) { return uint32_t{shards[i].frame.checksum}; }));
  writer.add(kTensors,
             column(DType::kString, parts.size(), [&](size_t i) { return text(parts[i].tensor); }));
  writer.add(kDtypes, column(DType::kString, parts.size(),
                             [&](size_t i) { return text(dtype_name(parts[i].dtype)); }));
  writer.add(kSlices, column(DType::kString, parts.size(),
                             [&](size_t i) { return text(parts[i].slice.text()); }));
  writer.add(kShards, column(DType::kInt32, parts.size(),
                             [&](size_t i) { return int32_t{parts[i].shard}; }));
  writer.finish_index();
}

void add_parts(const CheckpointFile& file, int32_t shard, SavedParts* saved,
               CheckpointIndex* index) {
  for (const CheckpointReader::Entry& entry : file.entries()) {
    std::vector<TensorSlice> slices = entry.slices;
    if (slices.empty()) slices.push_back(TensorSlice::whole(entry.shape));
    for (TensorSlice& slice : slices) {
      saved->add(entry.name, entry.dtype, slice);
      index->parts.push_back({entry.name, entry.dtype, std::move(slice), shard});
    }
  }
}

class IndexReader {
 public:
  IndexReader(const CheckpointFile& file, const std::string& path) : file_(file), path_(path) {}

  [[noreturn]] void refuse(std::string_view why) const {
    throw data_loss(path_, " is no index of a checkpoint: ", why);
  }
  // Vector `name`, of `count` elements where that is not negative.
  Tensor read(std::string_view name, DType dtype, int64_t count) const {
    const int64_t at = entry_position(file_.entries(), name);
    if (at < 0) refuse(concat("there is no \"", name, "\""));
    const CheckpointReader::Entry& entry = file_.entries()[static_cast<size_t>(at)];
    if (entry.dtype != dtype || entry.shape.rank() != 1 || !entry.slices.empty() ||
        (count >= 0 && entry.shape[0] != count)) {
      refuse(concat("\"", name, "\" is ", entry.dtype, entry.shape));
    }
    Tensor result(dtype, entry.shape);
    file_.read(name, TensorSlice::whole(entry.shape), &result);
    return result;
  }

  void read_shards(CheckpointIndex* index) const {
    const Tensor files = read(kFiles, DType::kString, -1);
    const int64_t count = files.num_elements();
    const Tensor bytes = read(kBytes, DType::kUInt64, count);
    const Tensor checksums = read(kChecksums, DType::kUInt32, count);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const std::string name(element(files, i));
      if (name.empty() || name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
        refuse(concat("\"", name, "\" is no name of a shard"));
      index->shards.push_back(
          {name, {FrameKind::kTensors, bytes.data<uint64_t>()[i], checksums.data<uint32_t>()[i]}});
    }
  }

  // Needs the shards.
  void read_parts(CheckpointIndex* index) const {
    const Tensor tensors = read(kTensors, DType::kString, -1);
    const int64_t count = tensors.num_elements();
    const Tensor dtypes = read(kDtypes, DType::kString, count);
    const Tensor slices = read(kSlices, DType::kString, count);
    const Tensor places = read(kShards, DType::kInt32, count);
    for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
      const int32_t shard = places.data<int32_t>()[i];
      if (shard < 0 || static_cast<size_t>(shard) >= index->shards.size())
        refuse(concat("there is no shard ", shard));
      const std::string_view slice = element(slices, i);
      index->parts.push_back(
          {std::string(element(tensors, i)), dtype_from_name(element(dtypes, i)),
           slice.empty() ? TensorSlice::whole(Shape()) : TensorSlice::parse(slice), shard});
    }
  }

 private:
  static std::string_view element(const Tensor& tensor, size_t i) {
    return tensor.data<StringElement>()[i].view();
  }

  const CheckpointFile& file_;
  const std::string& path_;
};

}  // namespace

CheckpointIndex read_checkpoint_index(const CheckpointFile& file, const std::string& path) {
  const IndexReader reader(file, path);
  CheckpointIndex index;
  try {
    reader.read_shards(&index);
    reader.read_parts(&index);
  } catch (const Error& error) {
    if (error.code() != Code::kInvalidArgument) throw;
    reader.refuse(error.message());
  }
  return index;
}

void index_checkpoints(std::span<const std::string> shards, const std::string& path,
                       FunctionRef<void()> poll) {
  if (shards.empty())
    throw invalid_argument("there are no shards to make checkpoint ", path, " of");
  CheckpointIndex index;
  SavedParts saved;
  for (const std::string& shard : shards) {
    poll();
    if (directory_of(shard) != directory_of(path)) {
      throw invalid_argument("shard ", shard, " must lie in the directory of the checkpoint ",
                             path);
    }
    const CheckpointFile file(open_for_reading(shard), shard, false);
    if (file.frame()->kind != FrameKind::kTensors)
      throw invalid_argument(shard, " is an index itself; needed is a shard");
    add_parts(file, static_cast<int32_t>(index.shards.size()), &saved, &index);
    index.shards.push_back({shard.substr(directory_of(shard).size()), *file.frame()});
  }
  std::stable_sort(index.parts.begin(), index.parts.end(),
                   [](const auto& a, const auto& b) { return a.tensor < b.tensor; });
  poll();
  write_index(index, path);
}

}  // namespace treenail
