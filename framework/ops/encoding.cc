// SPDX-License-Identifier: Apache-2.0
// Ops between tensors and bytes: raw memory, serialized tensors, base64.
#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

void decode_raw_shape(ShapeContext& c) {
  c.set_output(0, c.input(0).concatenated(PartialShape{kUnknown}));
}

void parse_tensor_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, PartialShape());
}

void register_bytes(OpRegistry& r) {
  r.op("DecodeRaw", HostAccess::kNone)
      .input("bytes: string")
      .output("output: out_type")
      .attr(
          "out_type: {half, float, double, int32, uint16, uint8, int16, int8, int64, complex64, "
          "complex128, bool, bfloat16, uint32, uint64}")
      .attr("little_endian: bool = true")
      .data_dependent_shape()
      .shape(decode_raw_shape)
      .not_differentiable()
      .doc(
          "Bytes as numbers. The strings, all of one length, become the last axis: shape of "
          "`bytes` "
          "+ [length / size of out_type].\nlittle_endian: the order of bytes in each number. Of "
          "bool any byte but 0 is true.\n\n"
          "Errors: InvalidArgument for lengths that differ or are no multiple of the size.");
  r.op("EncodeBase64", HostAccess::kNone)
      .input("input: string")
      .output("output: string")
      .attr("pad: bool = false")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "Each string in web-safe base64 (RFC 4648 section 5: - and _ instead of + and /). pad: "
          "to "
          "a multiple of 4 characters, with =.");
  r.op("DecodeBase64", HostAccess::kNone)
      .input("input: string")
      .output("output: string")
      .shape(unchanged_shape)
      .not_differentiable()
      .doc(
          "The bytes of each string of web-safe base64, padded or not.\n\nErrors: InvalidArgument "
          "for "
          "other characters and lengths that cannot be.");
}

void register_serialized(OpRegistry& r) {
  r.op("SerializeTensor", HostAccess::kNone)
      .input("tensor: T")
      .output("serialized: string")
      .attr("T: type")
      .shape(scalar_shape)
      .not_differentiable()
      .doc(
          "The tensor as a TensorProto message, TensorFlow's, in a scalar string.\n\nErrors: "
          "InvalidArgument for resources and variants and beyond 2 GiB.");
  r.op("ParseTensor", HostAccess::kNone)
      .input("serialized: string")
      .output("output: out_type")
      .attr("out_type: type")
      .data_dependent_shape()
      .shape(parse_tensor_shape)
      .not_differentiable()
      .doc(
          "The tensor in a TensorProto message, a scalar string. Where it lists fewer values than "
          "its "
          "shape has elements, the\nlast one is repeated, up to 1 GiB.\n\nErrors: InvalidArgument "
          "for "
          "bytes that are no such message, values that do not fit the shape, and a dtype other "
          "than "
          "out_type.");
}

}  // namespace

void register_encoding_ops(OpRegistry& r) {
  register_bytes(r);
  register_serialized(r);
  r.finish("encoding");
}

}  // namespace treenail
