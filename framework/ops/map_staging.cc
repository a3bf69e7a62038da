// SPDX-License-Identifier: Apache-2.0
// Staging areas whose tuples have keys, ordered or not; what an area is: staging.cc.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/staging_rules.h"

namespace treenail {
namespace {

constexpr char kDoc[] =
    "\n\nindices: [n], the places of these tensors in a tuple, which ascend. capacity: how many "
    "complete tuples fit, memory_limit: how many bytes; 0 for any number. container and "
    "shared_name: the staging area, shared_name being the operation's own name when it is empty; "
    "it is made at first use.\n"
    "Errors: InvalidArgument for other dtypes, capacity or memory_limit than the area's.";

// The key, a scalar, and the places.
void keyed_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  const PartialShape indices = c.with_rank(1, 1);
  const int64_t tensors = c.num_outputs() > 0 ? c.num_outputs() : c.num_inputs() - 2;
  ShapeContext::merge_dim(indices.dim(0), tensors, "the numbers of indices and of tensors");
}

void any_key_shape(ShapeContext& c) {
  const PartialShape indices = c.with_rank(0, 1);
  ShapeContext::merge_dim(indices.dim(0), c.num_outputs() - 1,
                          "the numbers of indices and of tensors");
  c.set_output(0, Shape());
}

std::string documented(const std::string& text) { return text + kDoc; }

void register_putting(OpRegistry& r, const std::string& prefix) {
  with_area(r.op(prefix + "Stage", HostAccess::kNone)
                .input("key: int64")
                .input("indices: int32")
                .input("values: fake_dtypes"),
            kStagedTypes)
      .attr("fake_dtypes: list(type) >= 1")
      .stored("values")
      .asynchronous()
      .stateful()
      .shape(keyed_shape)
      .doc(documented(
          "Puts a tuple of tensors, or a part of one, under a key, a scalar, into a staging area, "
          "once there is room.\n\n"
          "It is there to be taken when all of it was put. dtypes: of a whole tuple.\n"
          "Errors also: InvalidArgument for what was put already, ResourceExhausted for more than "
          "memory_limit."));
}

void register_taking(OpRegistry& r, const std::string& prefix, const std::string& any) {
  with_area(r.op(prefix + "Peek", HostAccess::kNone)
                .input("key: int64")
                .input("indices: int32")
                .output("values: dtypes"),
            kStagedTypes)
      .asynchronous()
      .stateful()
      .shape(keyed_shape)
      .doc(documented("Tensors of the tuple of a key, a scalar, in a staging area, where they "
                      "stay, once it is there."));
  with_area(r.op(prefix + "Unstage", HostAccess::kNone)
                .input("key: int64")
                .input("indices: int32")
                .output("values: dtypes"),
            kStagedTypes)
      .asynchronous()
      .stateful()
      .shape(keyed_shape)
      .doc(documented("Takes tensors of the tuple of a key, a scalar, out of a staging area, once "
                      "it is there.\n\n"
                      "Errors also: InvalidArgument for what was taken already."));
  with_area(r.op(prefix + "UnstageNoKey", HostAccess::kNone)
                .input("indices: int32")
                .output("key: int64")
                .output("values: dtypes"),
            kStagedTypes)
      .asynchronous()
      .stateful()
      .shape(any_key_shape)
      .doc(documented("Takes tensors of " + any +
                      " out of a staging area, once there is one; and "
                      "its key, a scalar.\n\n"
                      "Errors also: InvalidArgument for what was taken already."));
}

void register_the_rest(OpRegistry& r, const std::string& prefix) {
  with_area(r.op(prefix + "Size", HostAccess::kNone).output("size: int32"), kAnyStagedTypes)
      .stateful()
      .shape(scalar_shape)
      .doc("How many complete tuples a staging area with keys holds, a scalar.");
  with_area(r.op(prefix + "IncompleteSize", HostAccess::kNone).output("size: int32"),
            kAnyStagedTypes)
      .stateful()
      .shape(scalar_shape)
      .doc("How many tuples of a staging area with keys lack a part, a scalar.");
  auto clear = r.op(prefix + "Clear", HostAccess::kNone);
  with_area(clear, kAnyStagedTypes)
      .stateful()
      .shape(no_outputs_shape)
      .doc("Empties a staging area with keys.");
}

}  // namespace

void register_map_staging_ops(OpRegistry& r) {
  for (const bool ordered : {false, true}) {
    const std::string prefix = ordered ? "OrderedMap" : "Map";
    register_putting(r, prefix);
    register_taking(r, prefix, ordered ? "the tuple of the lowest key" : "any tuple");
    register_the_rest(r, prefix);
  }
  r.finish("map_staging");
}

}  // namespace treenail
