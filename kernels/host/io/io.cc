// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/io.cc: one checkpoint file per run, tensors moved one at a time.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/logging.h"
#include "framework/io/checkpoint.h"
#include "framework/io/checkpoint_index.h"
#include "framework/io/file.h"
#include "framework/io/file_place.h"
#include "framework/runtime/kernel/kernel_files.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor_slice.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr double kFileCostNs =
    1e6;  // files are slow: such a kernel is never run between two others

std::string text(const Tensor& tensor, int64_t i = 0) {
  return std::string(tensor.data<StringElement>()[i].view());
}

// The part of a tensor of shape `shape` that `spec` names. `what` the spec speaks of must fit.
TensorSlice checked_slice(const std::string& spec, const std::string& name, const Shape& full) {
  if (spec.empty()) return TensorSlice::whole(full);
  const TensorSlice slice = TensorSlice::parse(spec);
  if (!(slice.full == full)) {
    throw invalid_argument("shape_and_slice \"", spec, "\" is of a tensor of shape ", slice.full,
                           "; tensor \"", name, "\" in the checkpoint has shape ", full);
  }
  return slice;
}

void save(RunContext& c, int tensors) {
  CheckpointWriter writer(text(c.input(0)));
  for (int i = 0; i < tensors; ++i) {
    poll(c);
    const std::string name = text(c.input(1), i);
    const std::string spec = text(c.input(2), i);
    const Tensor& tensor = c.input(3 + i);
    if (spec.empty()) {
      writer.add(name, tensor);
    } else {
      writer.add_slice(name, tensor, TensorSlice::parse(spec));
    }
  }
  poll(c);
  writer.finish();
}

void restore(RunContext& c, const std::vector<DType>& dtypes, bool allow_foreign) {
  const CheckpointReader reader(text(c.input(0)), allow_foreign);
  const int count = static_cast<int>(dtypes.size());
  // What does not fit is said before anything is read.
  std::vector<TensorSlice> slices;
  for (int i = 0; i < count; ++i) {
    const std::string name = text(c.input(1), i);
    const CheckpointReader::Entry& entry = reader.get(name);
    const DType wanted = dtypes[static_cast<size_t>(i)];
    if (entry.dtype != wanted && entry.dtype != DType::kInvalid) {
      throw invalid_argument("tensor \"", name, "\" in checkpoint ", reader.path(), " is ",
                             entry.dtype, entry.shape, "; wanted is ", wanted);
    }
    slices.push_back(checked_slice(text(c.input(2), i), name, entry.shape));
  }
  for (int i = 0; i < count; ++i) {
    poll(c);
    c.set_output(i, reader.read_slice(text(c.input(1), i), slices[static_cast<size_t>(i)]));
  }
}

void copy_tensors(RunContext& c, const CheckpointReader& reader, CheckpointWriter* writer) {
  for (const CheckpointReader::Entry& entry : reader.entries()) {
    poll(c);
    if (entry.slices.empty()) {
      writer->add(entry.name, reader.read(entry.name));
      continue;
    }
    for (const TensorSlice& slice : entry.slices) {
      writer->add_slice(entry.name, reader.read_slice(entry.name, slice), slice);
    }
  }
}

// The merged checkpoint is complete: what cannot be removed is no failure of the merge.
void remove_source(const std::string& path) {
  try {
    remove_file(path);
  } catch (const Error& error) {
    log(LogLevel::kWarning, "the merged checkpoint stays: ", error.message());
    return;
  }
  const size_t slash = path.rfind('/');
  if (slash != std::string::npos && slash > 0) remove_empty_directory(path.substr(0, slash));
}

// The files stay where they are: what is written says where their tensors are.
void index(RunContext& c) {
  std::vector<std::string> shards;
  for (int64_t i = 0; i < c.input(0).num_elements(); ++i) shards.push_back(text(c.input(0), i));
  index_checkpoints(shards, text(c.input(1)), [&] { poll(c); });
}

void merge(RunContext& c, bool remove_sources) {
  const std::string destination = text(c.input(1));
  const int64_t count = c.input(0).num_elements();
  CheckpointWriter writer(destination);
  for (int64_t i = 0; i < count; ++i)
    copy_tensors(c, CheckpointReader(text(c.input(0), i)), &writer);
  writer.finish();
  for (int64_t i = 0; i < count && remove_sources; ++i) {
    if (!same_file(text(c.input(0), i), destination)) remove_source(text(c.input(0), i));
  }
}

void sharded_filename(RunContext& c) {
  char suffix[64];
  std::snprintf(suffix, sizeof suffix, "-%05d-of-%05d", c.input(1).data<int32_t>()[0],
                c.input(2).data<int32_t>()[0]);
  *c.output(0).data<StringElement>() = StringElement(text(c.input(0)) + suffix);
}

// Where the session may name files.
template <class Run>
KernelPtr make_file_kernel(const PrepareContext& p, Run run) {
  return make_kernel(
      [roots = file_roots_of(p), run](RunContext& c) {
        const FileScope scope(roots);
        run(c);
      },
      kFileCostNs);
}

KernelPtr prepare_save(const PrepareContext& p) {
  return make_file_kernel(p, [tensors = p.num_inputs() - 3](RunContext& c) { save(c, tensors); });
}

KernelPtr prepare_restore(const PrepareContext& p) {
  const std::span<const DType> types = p.op().output_types();
  return make_file_kernel(p, [dtypes = std::vector<DType>(types.begin(), types.end()),
                              foreign = p.op().get_bool("allow_foreign")](RunContext& c) {
    restore(c, dtypes, foreign);
  });
}

KernelPtr prepare_merge(const PrepareContext& p) {
  if (p.op().get_bool("by_reference")) return make_file_kernel(p, index);
  return make_file_kernel(
      p, [remove = p.op().get_bool("delete_old_dirs")](RunContext& c) { merge(c, remove); });
}

KernelPtr prepare_sharded_filename(const PrepareContext&) {
  return make_kernel(sharded_filename, 200);
}

}  // namespace

void register_io_kernels(KernelRegistry& r) {
  r.add("Save", {}, prepare_save);
  r.add("Restore", {}, prepare_restore);
  r.add("MergeCheckpoints", {}, prepare_merge);
  r.add("ShardedFilename", {}, prepare_sharded_filename);
}

}  // namespace treenail::host
