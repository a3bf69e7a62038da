// SPDX-License-Identifier: Apache-2.0
// Reading checkpoints: one file, or an index and its shards, which are opened when it is and
// checked as a whole when the first of their tensors is read.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_file.h"
#include "framework/io/checkpoint_frame.h"
#include "framework/io/checkpoint_index.h"
#include "framework/io/checkpoint_parts.h"
#include "framework/io/file.h"
#include "framework/tensor/truth_values.h"

namespace treenail {
namespace {

constexpr size_t kNamesShown = 10;

// A shard of a checkpoint that is open, and may have been read.
struct Shard {
  std::string path;
  FileDescriptor descriptor;  // until it is read
  std::unique_ptr<CheckpointFile> file;
};

Shard open_shard(const CheckpointIndex::Shard& wanted, const std::string& index) {
  Shard shard;
  shard.path = index.substr(0, index.rfind('/') + 1) + wanted.file;  // npos + 1 is 0
  try {
    shard.descriptor = open_for_reading(shard.path);
  } catch (const Error& error) {
    if (error.code() != Code::kNotFound) throw;
    throw data_loss("checkpoint ", index, " is incomplete: its shard ", shard.path, " is missing");
  }
  if (read_frame(shard.descriptor, shard.path, false) != wanted.frame) {
    throw data_loss("checkpoint ", index, " is incomplete: ", shard.path,
                    " is not the shard that was saved with it, but of another save");
  }
  return shard;
}

// Where a tensor lies: the shards that have parts of it.
struct Source {
  TensorSlice slice;
  size_t shard;
};

}  // namespace

struct CheckpointReader::Impl {
  Impl(const std::string& path, bool allow_foreign) : path(path) {
    auto file = std::make_unique<CheckpointFile>(open_for_reading(path), path, allow_foreign);
    if (file->frame() && file->frame()->kind == FrameKind::kIndex) {
      take(read_checkpoint_index(*file, path));
      return;
    }
    entries = file->entries();
    for (const Entry& entry : entries) sources.push_back({{TensorSlice::whole(entry.shape), 0}});
    shards.push_back({path, FileDescriptor(), std::move(file)});
  }

  // The entries of all shards.
  void take(const CheckpointIndex& index) {
    SavedParts saved;
    for (const CheckpointIndex::Part& part : index.parts) {
      if (entries.empty() || entries.back().name != part.tensor) {
        entries.push_back({part.tensor, part.dtype, part.slice.full, {}});
        sources.emplace_back();
      }
      saved.add(part.tensor, part.dtype, part.slice);
      if (!part.slice.is_whole()) entries.back().slices.push_back(part.slice);
      sources.back().push_back({part.slice, static_cast<size_t>(part.shard)});
    }
    for (const CheckpointIndex::Shard& shard : index.shards)
      shards.push_back(open_shard(shard, path));
  }

  std::string path;
  std::vector<Entry> entries;
  std::vector<std::vector<Source>> sources;  // of the same index
  std::mutex mutex;                          // of the reading of shards
  std::vector<Shard> shards;

  const CheckpointFile& file(size_t number) {
    const std::lock_guard<std::mutex> lock(mutex);
    Shard& shard = shards[number];
    if (!shard.file) {
      shard.file = std::make_unique<CheckpointFile>(std::move(shard.descriptor), shard.path, false);
    }
    return *shard.file;
  }

  size_t position_or_throw(std::string_view name) const {
    const int64_t found = entry_position(entries, name);
    if (found >= 0) return static_cast<size_t>(found);
    std::vector<std::string_view> names;
    std::string shown;
    for (const Entry& entry : entries) {
      names.push_back(entry.name);
      if (names.size() <= kNamesShown) shown += concat(names.size() > 1 ? ", " : "", entry.name);
    }
    if (names.size() > kNamesShown) shown += ", ...";
    throw not_found("tensor \"", name, "\" is not in checkpoint ", path, did_you_mean(name, names),
                    "; it holds ", names.size(), names.empty() ? " tensors" : " tensors: ", shown);
  }

  Tensor read(size_t at, const TensorSlice& wanted) {
    const Entry& entry = entries[at];
    if (entry.dtype == DType::kInvalid) file(sources[at][0].shard).check_dtype(entry.name);
    Tensor result(entry.dtype, wanted.extent);
    int64_t filled = 0;
    std::vector<size_t> done;
    for (const Source& source : sources[at]) {
      TensorSlice common;
      if (std::find(done.begin(), done.end(), source.shard) != done.end() ||
          (!source.slice.is_whole() && !TensorSlice::intersection(source.slice, wanted, &common)))
        continue;
      done.push_back(source.shard);
      filled += file(source.shard).read(entry.name, wanted, &result);
    }
    if (filled != result.num_elements()) {
      throw not_found("of tensor \"", entry.name, "\", part \"", wanted.text(),
                      "\" is not wholly in checkpoint ", path);
    }
    if (result.dtype() == DType::kBool) make_truth_values(result.raw(), result.bytes());
    return result;
  }
};

CheckpointReader::CheckpointReader(const std::string& path, bool allow_foreign)
    : impl_(new Impl(path, allow_foreign)) {}

CheckpointReader::~CheckpointReader() = default;

const std::string& CheckpointReader::path() const { return impl_->path; }

const std::vector<CheckpointReader::Entry>& CheckpointReader::entries() const {
  return impl_->entries;
}

const CheckpointReader::Entry* CheckpointReader::find(std::string_view name) const {
  const int64_t at = entry_position(impl_->entries, name);
  return at < 0 ? nullptr : &impl_->entries[static_cast<size_t>(at)];
}

const CheckpointReader::Entry& CheckpointReader::get(std::string_view name) const {
  return impl_->entries[impl_->position_or_throw(name)];
}

Tensor CheckpointReader::read(std::string_view name) const {
  const size_t at = impl_->position_or_throw(name);
  return impl_->read(at, TensorSlice::whole(impl_->entries[at].shape));
}

Tensor CheckpointReader::read_rows(std::string_view name, int64_t begin, int64_t end) const {
  const size_t at = impl_->position_or_throw(name);
  const Shape& shape = impl_->entries[at].shape;
  if (shape.rank() < 1 || begin < 0 || begin > end || end > shape[0]) {
    throw invalid_argument("rows [", begin, ", ", end, ") do not lie in tensor \"", name,
                           "\" of shape ", shape);
  }
  TensorSlice slice = TensorSlice::whole(shape);
  slice.start[0] = begin;
  slice.extent = shape.with_dim(0, end - begin);
  return impl_->read(at, slice);
}

Tensor CheckpointReader::read_slice(std::string_view name, const TensorSlice& slice) const {
  const size_t at = impl_->position_or_throw(name);
  const Shape& shape = impl_->entries[at].shape;
  if (!(slice.full == shape)) {
    throw invalid_argument("slice \"", slice.text(), "\" is of a tensor of shape ", slice.full,
                           "; \"", name, "\" in checkpoint ", impl_->path, " has shape ", shape);
  }
  return impl_->read(at, slice);
}

}  // namespace treenail
