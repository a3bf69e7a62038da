// SPDX-License-Identifier: Apache-2.0
// Saving and restoring tensors. What a checkpoint file is: io/checkpoint.h.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor_slice.h"

namespace treenail {
namespace {

// `tensor_names` and `shape_and_slices` (inputs 1 and 2) are vectors with one element per tensor.
void check_names(const ShapeContext& c, int64_t tensors) {
  c.with_rank(0, 0);
  for (int i = 1; i <= 2; ++i) {
    const int64_t given = c.with_rank(i, 1)[0];
    if (given != kUnknown && given != tensors) {
      throw invalid_argument(c.op().input_name(i), " has ", given, " elements, there are ", tensors,
                             " tensors");
    }
  }
}

void save_shape(ShapeContext& c) { check_names(c, c.num_inputs() - 3); }

void restore_shape(ShapeContext& c) {
  check_names(c, c.num_outputs());
  const Tensor* slices = c.constant(2);
  for (int i = 0; i < c.num_outputs(); ++i) {
    const std::string_view text = slices == nullptr ? "" : slices->data<StringElement>()[i].view();
    c.set_output(i, text.empty() ? PartialShape() : PartialShape(TensorSlice::parse(text).extent));
  }
}

void merge_shape(ShapeContext& c) {
  c.with_rank(0, 1);
  c.with_rank(1, 0);
}

void sharded_filename_shape(ShapeContext& c) {
  for (int i = 0; i < 3; ++i) c.with_rank(i, 0);
  c.set_output(0, Shape());
}

}  // namespace

void register_io_ops(OpRegistry& r) {
  r.op("Save", HostAccess::kFiles)
      .input("prefix: string")
      .input("tensor_names: string")
      .input("shape_and_slices: string")
      .input("tensors: dtypes")
      .attr("dtypes: list(type) >= 1")
      .stateful()
      .shape(save_shape)
      .not_differentiable()
      .doc(
          "Writes tensors to the checkpoint file `prefix`, all or nothing.\n\n"
          "tensor_names: their names there. shape_and_slices: \"\" for a whole tensor, or which "
          "part of a larger one a\n"
          "tensor is, like \"10 20 0,5:-\": rows [0, 5) of shape [10, 20]. The file is HDF5; it "
          "replaces what is there when\n"
          "it is complete and on disk.\n\n"
          "Errors: NotFound (no such directory), PermissionDenied, ResourceExhausted (disk full), "
          "InvalidArgument (a name\n"
          "twice, parts that overlap, dtype resource or variant), Unimplemented (built without "
          "HDF5).");
  r.op("Restore", HostAccess::kFiles)
      .input("prefix: string")
      .input("tensor_names: string")
      .input("shape_and_slices: string")
      .output("tensors: dtypes")
      .attr("dtypes: list(type) >= 1")
      .attr("allow_foreign: bool = false")
      .stateful()
      .data_dependent_shape()
      .shape(restore_shape)
      .not_differentiable()
      .doc(
          "Reads tensors from the checkpoint file `prefix`.\n\n"
          "tensor_names: their names there. shape_and_slices: \"\" for a whole tensor, or a part, "
          "as in Save.\n"
          "allow_foreign: also read HDF5 files without Treenail's length and checksum; only for "
          "files you trust.\n\n"
          "Errors: NotFound (file, tensor or part), InvalidArgument (dtypes or shapes that differ "
          "from the file's, foreign\n"
          "file), DataLoss (truncated or damaged), PermissionDenied, Unimplemented (built without "
          "HDF5).");
  r.op("MergeCheckpoints", HostAccess::kFiles)
      .input("checkpoint_prefixes: string")
      .input("destination_prefix: string")
      .attr("delete_old_dirs: bool = true")
      .attr("by_reference: bool = false")
      .stateful()
      .shape(merge_shape)
      .not_differentiable()
      .doc(
          "Puts the tensors of several checkpoint files, and the parts of tensors, into one file "
          "`destination_prefix`.\n\n"
          "delete_old_dirs: afterwards remove the files merged, and their directories where these "
          "are then empty.\n"
          "by_reference: instead check the files, leave them where they are, in the directory of "
          "`destination_prefix`, and\n"
          "write an index of them under that name, which Restore reads as one checkpoint: no "
          "tensor is copied.\n\n"
          "Errors: as Restore and Save; InvalidArgument when a tensor is in more than one file, "
          "and "
          "by_reference when a\n"
          "file is in another directory.");
  r.op("ShardedFilename", HostAccess::kNone)
      .input("basename: string")
      .input("shard: int32")
      .input("num_shards: int32")
      .output("filename: string")
      .shape(sharded_filename_shape)
      .not_differentiable()
      .doc(
          "The name of one of several files: \"basename-00001-of-00005\" for shard 1 of 5. All are "
          "scalars.");
  r.finish("io");
}

}  // namespace treenail
