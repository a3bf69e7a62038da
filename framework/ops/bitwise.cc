// SPDX-License-Identifier: Apache-2.0
// Operations on the bits of integers. Loops: kernels/cpu/elementwise/bitwise.cc, and
// kernels/host/elementwise/elementwise.cc for uint64.
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

constexpr char kIntegers[] = "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}";

OpDeclaration binary(OpRegistry& r, const char* name) {
  OpDeclaration d = r.op(name, HostAccess::kNone);
  d.input("x: T")
      .input("y: T")
      .output("z: T")
      .attr(kIntegers)
      .shape(broadcast_binary_shape)
      .elementwise()
      .not_differentiable();
  d.in_place("x", "z").in_place("y", "z");
  return d;
}

void declare_shifts(OpRegistry& r) {
  binary(r, "LeftShift")
      .doc(
          "x with its bits moved y places to higher values, modulo 2^bits.\n\n"
          "Shapes broadcast as in NumPy. A shift below 0 is one of 0, one beyond bits - 1 is one "
          "of bits - 1, as in TensorFlow.");
  binary(r, "RightShift")
      .doc(
          "x with its bits moved y places to lower values: x / 2^y rounded toward minus "
          "infinity.\n\n"
          "Shapes broadcast as in NumPy. A shift below 0 is one of 0, one beyond bits - 1 is one "
          "of bits - 1, as in TensorFlow.");
}

}  // namespace

void register_bitwise_ops(OpRegistry& r) {
  binary(r, "BitwiseAnd")
      .commutative()
      .doc("The bits that are set in both x and y.\n\nShapes broadcast as in NumPy.");
  binary(r, "BitwiseOr")
      .commutative()
      .doc("The bits that are set in x, y or both.\n\nShapes broadcast as in NumPy.");
  binary(r, "BitwiseXor")
      .commutative()
      .doc("The bits that are set in exactly one of x and y.\n\nShapes broadcast as in NumPy.");
  declare_shifts(r);
  OpDeclaration invert = r.op("Invert", HostAccess::kNone);
  invert.input("x: T").output("y: T").attr(kIntegers).shape(unchanged_shape).elementwise();
  invert.in_place("x", "y").not_differentiable().doc("Every bit of x the other way.");
  r.op("PopulationCount", HostAccess::kNone)
      .input("x: T")
      .output("y: uint8")
      .attr(kIntegers)
      .shape(unchanged_shape)
      .not_differentiable()
      .doc("How many bits of each element are set.");
  r.finish("bitwise");
}

}  // namespace treenail
