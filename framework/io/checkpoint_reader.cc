// SPDX-License-Identifier: Apache-2.0
// Reading checkpoints: the frame is checked, the datasets are listed once, tensors are read
// straight into their memory.
#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_frame.h"
#include "framework/io/file.h"
#include "framework/io/hdf5_file.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/truth_values.h"

namespace treenail {
namespace {

constexpr std::string_view kDoing = "read checkpoint";
constexpr size_t kNamesShown = 10;

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

FileDescriptor open_checked(const std::string& path, bool allow_foreign) {
  FileDescriptor file = open_for_reading(path);
  check_frame(file, path, allow_foreign);
  return file;
}

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

struct CheckpointReader::Impl {
  Impl(const std::string& path, bool allow_foreign)
      : path(path), file(open_checked(path, allow_foreign)), hdf5(open(file, path)) {
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
  Hdf5Handle hdf5;
  std::vector<Entry> entries;
  std::vector<Stored> tensors;  // of the same index

  // Index of the tensor, or -1.
  int64_t position(std::string_view name) const {
    const auto at = std::lower_bound(
        entries.begin(), entries.end(), name,
        [](const Entry& entry, std::string_view wanted) { return entry.name < wanted; });
    return at != entries.end() && at->name == name ? at - entries.begin() : -1;
  }

  size_t position_or_throw(std::string_view name) const {
    const int64_t found = position(name);
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

  Tensor read(const Stored& stored, const TensorSlice& wanted) const {
    if (stored.entry.dtype == DType::kInvalid) {
      throw unimplemented("tensor \"", stored.entry.name, "\" of ", path, " is a ",
                          stored.type_text, ", which no dtype stands for");
    }
    Tensor result(stored.entry.dtype, wanted.extent);
    int64_t filled = 0;
    for (const Part& part : stored.parts) filled += read_part(stored, part, wanted, &result);
    if (filled != result.num_elements()) {
      throw not_found("of tensor \"", stored.entry.name, "\", part \"", wanted.text(),
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
  const int64_t at = impl_->position(name);
  return at < 0 ? nullptr : &impl_->entries[static_cast<size_t>(at)];
}

const CheckpointReader::Entry& CheckpointReader::get(std::string_view name) const {
  return impl_->entries[impl_->position_or_throw(name)];
}

Tensor CheckpointReader::read(std::string_view name) const {
  const Stored& stored = impl_->tensors[impl_->position_or_throw(name)];
  return impl_->read(stored, TensorSlice::whole(stored.entry.shape));
}

Tensor CheckpointReader::read_rows(std::string_view name, int64_t begin, int64_t end) const {
  const Stored& stored = impl_->tensors[impl_->position_or_throw(name)];
  const Shape& shape = stored.entry.shape;
  if (shape.rank() < 1 || begin < 0 || begin > end || end > shape[0]) {
    throw invalid_argument("rows [", begin, ", ", end, ") do not lie in tensor \"", name,
                           "\" of shape ", shape);
  }
  TensorSlice slice = TensorSlice::whole(shape);
  slice.start[0] = begin;
  slice.extent = shape.with_dim(0, end - begin);
  return impl_->read(stored, slice);
}

Tensor CheckpointReader::read_slice(std::string_view name, const TensorSlice& slice) const {
  const Stored& stored = impl_->tensors[impl_->position_or_throw(name)];
  if (!(slice.full == stored.entry.shape)) {
    throw invalid_argument("slice \"", slice.text(), "\" is of a tensor of shape ", slice.full,
                           "; \"", name, "\" in checkpoint ", impl_->path, " has shape ",
                           stored.entry.shape);
  }
  return impl_->read(stored, slice);
}

}  // namespace treenail
