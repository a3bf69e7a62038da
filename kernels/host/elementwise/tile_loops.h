// SPDX-License-Identifier: Apache-2.0
// The loops of element-wise ops: what a level library (or the baseline, for u64, bool and complex)
// offers per op and compute type. A loop sees contiguous elements of one compute type and nothing
// else; broadcasting, strides, conversion and chunking are the tile engine's (tile_engine.h). A
// fused program looks its steps up in the same table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "framework/tensor/dtype.h"

namespace treenail {
class KernelRegistry;
class OpInstance;
}  // namespace treenail

namespace treenail::host {

// Numbers a loop takes from the op's attributes.
struct LoopParams {
  double value[2] = {0, 0};
};

// y[i] = f(a[i], b[i], c[i]) for i in [0, n); operands the op lacks are null. y may be exactly an
// operand of the same element size, and overlaps none otherwise. Element i's bits depend on the
// operands' elements i and params alone.
using LoopFn = void (*)(void* y, const void* a, const void* b, const void* c, int64_t n,
                        const LoopParams& params);

// The same op as a step on values in vector registers (register_machine.h), made from the
// definition that its loops are made from.
struct RegisterForms {
  const void* forms = nullptr;  // the level's table of steps by where operands are; null: none
  int lane = 0;                 // bytes of a lane; 0: any, where lanes are ones or zeros
  bool commutes = false;        // the first two operands may change places
};

// Variant m reads one element for every operand whose bit is set in m (bit 0: a). Variant 0 is
// always there; the engine spreads the element over a tile where another is absent.
struct Loops {
  LoopFn variants[8] = {};
  RegisterForms registers = {};
};

inline constexpr int kMaxOperands = 3;

// How one op is computed on operands whose last one has compute type `key`.
struct TileOp {
  std::string_view op;
  DType key;
  Loops loops;
  float ns;  // per element, one thread, operands in cache
  void (*read_params)(const OpInstance& op, LoopParams& params) = nullptr;
};

// A change of type, one element to one element. Between compute types it is the op Cast; from and
// to a storage type it widens exactly or narrows (floats: to nearest even; integers: modulo
// 2^bits).
struct Conversion {
  DType from;
  DType to;
  LoopFn loop;
  float ns;
  RegisterForms registers = {};
};

// The type in which elements stored as `storage` are computed: float for half and bfloat16, int32
// for i8…u16, int64 for uint32, itself otherwise.
constexpr DType compute_type(DType storage) {
  switch (storage) {
    case DType::kFloat16:
    case DType::kBFloat16:
      return DType::kFloat32;
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
      return DType::kInt32;
    case DType::kUInt32:
      return DType::kInt64;
    default:
      return storage;
  }
}

// Adds the loops, and a kernel for each op on all storage types it allows whose compute type is
// `key`. Errors: Internal when a kernel for one of them is registered already.
void add_tile_ops(KernelRegistry& registry, std::span<const TileOp> ops);
void add_conversions(std::span<const Conversion> conversions);

const TileOp* find_tile_op(std::string_view op, DType key);  // nullptr when there is none
const TileOp* find_tile_op(const OpInstance& op);            // by the type of its last input
const Conversion* find_conversion(DType from, DType to);     // nullptr when there is none

}  // namespace treenail::host
