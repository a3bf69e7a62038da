// SPDX-License-Identifier: Apache-2.0
// Writing checkpoints: HDF5 into a file beside the target, then checksum, sync and rename. Tensors
// go from their own memory to the file; nothing is collected.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_frame.h"
#include "framework/io/checkpoint_names.h"
#include "framework/io/checkpoint_parts.h"
#include "framework/io/file.h"
#include "framework/io/hdf5_file.h"
#include "framework/tensor/string_element.h"

namespace treenail {
namespace {

constexpr std::string_view kDoing = "write checkpoint";

Hdf5File* create(const AtomicFile& file) {
  Hdf5Status status;
  Hdf5File* hdf5 =
      hdf5_api().create(file.file().get(), static_cast<uint64_t>(kFrameBytes), &status);
  check_hdf5(status, kDoing, file.path());
  return hdf5;
}

void check_slice(std::string_view name, const Tensor& tensor, const TensorSlice& slice) {
  if (tensor.shape() == slice.extent) return;
  throw invalid_argument("tensor \"", name, "\" is ", tensor, ", the slice \"", slice.text(),
                         "\" has shape ", slice.extent);
}

}  // namespace

struct CheckpointWriter::Impl {
  explicit Impl(const std::string& path) : api(hdf5_api()), file(path), hdf5(create(file)) {}

  const Hdf5Api& api;
  AtomicFile file;
  Hdf5Handle hdf5;
  CheckpointNames names;
  SavedParts saved;

  void finish(FrameKind kind) {
    Hdf5Status status;
    hdf5.close(&status);
    check_hdf5(status, kDoing, file.path());
    seal_frame(file.file(), file.path(), kind);
    file.commit();
  }

  // Remembers the tensor, and gives its place in the file.
  std::string enter(std::string_view name, DType dtype, const TensorSlice& slice) {
    saved.add(name, dtype, slice);
    return names.place(slice.is_whole()
                           ? std::string(name)
                           : concat(name, "+", slice.text().substr(slice.text().rfind(' ') + 1)));
  }

  void write(std::string_view name, const Tensor& tensor, const TensorSlice& slice) {
    const DType dtype = tensor.dtype();
    if (!is_plain(dtype) && dtype != DType::kString) {
      throw invalid_argument("tensor \"", name, "\" is ", tensor, "; this dtype cannot be saved");
    }
    const std::string path = enter(name, dtype, slice);
    const std::string type_text(dtype_name(dtype));
    const std::string full_name(name);
    const std::string slice_text = slice.is_whole() ? "" : slice.text();
    Hdf5Dataset dataset = {};
    dataset.path = path.c_str();
    dataset.dtype = static_cast<int32_t>(dtype);
    dataset.rank = tensor.rank();
    std::copy(tensor.shape().dims().begin(), tensor.shape().dims().end(), dataset.dims);
    dataset.type_text = type_text.c_str();
    dataset.name = path == name ? nullptr : full_name.c_str();
    dataset.slice = slice_text.empty() ? nullptr : slice_text.c_str();
    Hdf5Status status;
    if (dtype == DType::kString) {
      std::vector<Hdf5Bytes> strings;
      strings.reserve(static_cast<size_t>(tensor.num_elements()));
      for (const StringElement& element : tensor.values<StringElement>()) {
        strings.push_back({element.view().data(), element.view().size()});
      }
      api.write(hdf5.get(), &dataset, strings.data(), &status);
    } else {
      api.write(hdf5.get(), &dataset, tensor.raw(), &status);
    }
    check_hdf5(status, kDoing, file.path());
  }
};

CheckpointWriter::CheckpointWriter(const std::string& path) : impl_(new Impl(path)) {}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::add(std::string_view name, const Tensor& tensor) {
  impl_->write(name, tensor, TensorSlice::whole(tensor.shape()));
}

void CheckpointWriter::add_slice(std::string_view name, const Tensor& tensor,
                                 const TensorSlice& slice) {
  check_slice(name, tensor, slice);
  impl_->write(name, tensor, slice);
}

void CheckpointWriter::finish() { impl_->finish(FrameKind::kTensors); }

void CheckpointWriter::finish_index() { impl_->finish(FrameKind::kIndex); }

void write_checkpoint(const std::string& path,
                      std::span<const std::pair<std::string, Tensor>> tensors) {
  std::vector<const std::pair<std::string, Tensor>*> order;
  order.reserve(tensors.size());
  for (const auto& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return a->first < b->first; });
  CheckpointWriter writer(path);
  for (const auto* tensor : order) writer.add(tensor->first, tensor->second);
  writer.finish();
}

}  // namespace treenail
