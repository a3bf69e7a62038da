// SPDX-License-Identifier: Apache-2.0
// See checkpoint_file.h.
#include "framework/io/checkpoint_file.h"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/hdf5_file.h"
#include "framework/tensor/string_element.h"

namespace treenail {
namespace {

constexpr std::string_view kDoing = "read checkpoint";

// One dataset: a whole tensor or a part of one.
struct Part {
  std::string path;
  TensorSlice slice;
};

struct Stored {
  CheckpointReader::Entry entry;
  std::vector<Part> parts;
  std::string type_text;  // where the dtype is invalid
};

Hdf5File* open(const FileDescriptor& file, const std::string& path) {
  Hdf5Status status;
  Hdf5File* hdf5 = hdf5_api().open(file.get(), &status);
  check_hdf5(status, kDoing, path);
  return hdf5;
}

// Collects what the adapter lists. Exceptions wait until HDF5 is done.
struct Listing {
  std::map<std::string, Stored> tensors;
  std::exception_ptr error;

  static void visit(void* argument, const Hdf5Dataset* dataset) {
    auto* listing = static_cast<Listing*>(argument);
    if (listing->error) return;
    try {
      listing->add(*dataset);
    } catch (...) {
      listing->error = std::current_exception();
    }
  }

  void add(const Hdf5Dataset& dataset) {
    const std::string name = dataset.name != nullptr ? dataset.name : dataset.path;
    const auto dtype = static_cast<DType>(dataset.dtype);
    const Shape shape = dtype == DType::kInvalid
                            ? Shape()
                            : Shape({dataset.dims, static_cast<size_t>(dataset.rank)});
    TensorSlice slice = TensorSlice::whole(shape);
    if (dataset.slice != nullptr) {
      slice = TensorSlice::parse(dataset.slice);
      if (!(slice.extent == shape)) {
        throw data_loss("dataset ", dataset.path, " has shape ", shape, " and is called part \"",
                        dataset.slice, "\"");
      }
    }
    Stored& stored = tensors[name];
    if (stored.parts.empty()) {
      stored.entry = {name, dtype, slice.full, {}};
      stored.type_text = dataset.type_text;
    } else if (dataset.slice == nullptr || stored.entry.slices.empty() ||
               stored.entry.dtype != dtype || !(stored.entry.shape == slice.full)) {
      throw data_loss("datasets ", stored.parts[0].path, " and ", dataset.path,
                      " are both called tensor \"", name, "\"");
    }
    if (dataset.slice != nullptr) stored.entry.slices.push_back(slice);
    stored.parts.push_back({dataset.path, slice});
  }
};

// Where the strings of a box go: the box's elements in row-major order, into a tensor of `memory`
// extents.
struct StringSink {
  StringElement* elements;
  const TensorSlice* box;  // in coordinates of the tensor in memory
  std::exception_ptr error;

  int64_t offset(int64_t index) const {
    int64_t at = 0;
    int64_t stride = 1;
    for (int i = box->full.rank() - 1; i >= 0; --i) {
      at += (box->start[i] + index % box->extent[i]) * stride;
      index /= box->extent[i];
      stride *= box->full[i];
    }
    return at;
  }

  static void visit(void* argument, int64_t index, const char* bytes, size_t size) {
    auto* sink = static_cast<StringSink*>(argument);
    if (sink->error) return;
    try {
      sink->elements[sink->offset(index)] = StringElement({bytes, size});
    } catch (...) {
      sink->error = std::current_exception();
    }
  }
};

}  // namespace

struct CheckpointFile::Impl {
  Impl(FileDescriptor opened, const std::string& path, bool allow_foreign)
      : path(path),
        file(std::move(opened)),
        frame(check_frame(file, path, allow_foreign)),
        hdf5(open(file, path)) {
    Listing listing;
    Hdf5Status status;
    hdf5_api().list(hdf5.get(), Listing::visit, &listing, &status);
    try {
      if (listing.error) std::rethrow_exception(listing.error);
    } catch (const Error& error) {
      throw error.with_prefix(concat("cannot ", kDoing, " ", path, ": "));
    }
    check_hdf5(status, kDoing, path);
    for (auto& [name, stored] : listing.tensors) {
      entries.push_back(stored.entry);
      tensors.push_back(std::move(stored));
    }
  }

  std::string path;
  FileDescriptor file;  // outlives hdf5
  std::optional<Frame> frame;
  Hdf5Handle hdf5;
  std::vector<CheckpointReader::Entry> entries;
  std::vector<Stored> tensors;  // of the same index

  // Copies what `part` has of `wanted` into `result`; the number of elements.
  int64_t read_part(const Stored& stored, const Part& part, const TensorSlice& wanted,
                    Tensor* result) const {
    TensorSlice common;
    if (!TensorSlice::intersection(part.slice, wanted, &common)) return 0;
    Extents start(common.start.size());
    TensorSlice memory = TensorSlice::whole(wanted.extent);  // where it lies in `result`
    memory.extent = common.extent;
    for (size_t i = 0; i < start.size(); ++i) {
      start[i] = common.start[i] - part.slice.start[i];
      memory.start[i] = common.start[i] - wanted.start[i];
    }
    const Hdf5Box box = {common.full.rank(), start.data(), common.extent.dims().data(),
                         memory.full.dims().data(), memory.start.data()};
    Hdf5Status status;
    if (stored.entry.dtype == DType::kString) {
      StringSink sink{result->data<StringElement>(), &memory, nullptr};
      hdf5_api().read_strings(hdf5.get(), part.path.c_str(), &box, StringSink::visit, &sink,
                              &status);
      if (sink.error) std::rethrow_exception(sink.error);
    } else {
      hdf5_api().read(hdf5.get(), part.path.c_str(), static_cast<int32_t>(stored.entry.dtype), &box,
                      result->raw(), &status);
    }
    check_hdf5(status, kDoing, path);
    return common.extent.num_elements();
  }
};

CheckpointFile::CheckpointFile(FileDescriptor file, const std::string& path, bool allow_foreign)
    : impl_(new Impl(std::move(file), path, allow_foreign)) {}

CheckpointFile::~CheckpointFile() = default;

const std::optional<Frame>& CheckpointFile::frame() const { return impl_->frame; }

const std::vector<CheckpointReader::Entry>& CheckpointFile::entries() const {
  return impl_->entries;
}

int64_t CheckpointFile::read(std::string_view name, const TensorSlice& wanted,
                             Tensor* result) const {
  const int64_t at = entry_position(impl_->entries, name);
  if (at < 0) return 0;
  const Stored& stored = impl_->tensors[static_cast<size_t>(at)];
  int64_t filled = 0;
  for (const Part& part : stored.parts) filled += impl_->read_part(stored, part, wanted, result);
  return filled;
}

void CheckpointFile::check_dtype(std::string_view name) const {
  const int64_t at = entry_position(impl_->entries, name);
  if (at < 0) return;
  const Stored& stored = impl_->tensors[static_cast<size_t>(at)];
  if (stored.entry.dtype != DType::kInvalid) return;
  throw unimplemented("tensor \"", stored.entry.name, "\" of ", impl_->path, " is a ",
                      stored.type_text, ", which no dtype stands for");
}

int64_t entry_position(const std::vector<CheckpointReader::Entry>& entries, std::string_view name) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), name,
                                   [](const CheckpointReader::Entry& entry,
                                      std::string_view wanted) { return entry.name < wanted; });
  return at != entries.end() && at->name == name ? at - entries.begin() : -1;
}

}  // namespace treenail
