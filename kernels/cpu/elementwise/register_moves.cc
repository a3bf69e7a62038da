// SPDX-License-Identifier: Apache-2.0
// The steps that move values between memory and registers, and the loop over blocks: the level's
// machine for programs of register_steps.h.
#include "kernels/cpu/elementwise/register_steps.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/cpu/simd/stream.h"
#include "kernels/cpu/simd/vec_fma.h"
#include "kernels/host/elementwise/register_machine.h"

namespace treenail {
class KernelRegistry;
}

namespace treenail::cpu {
namespace {

void load_step(TN_STEP_ARGUMENTS) {
  const RegisterMemory m(c, i->memory[0]);
  a0 = m[0], a1 = m[1], a2 = m[2], a3 = m[3];
  TN_NEXT_STEP;
}
void push_step(TN_STEP_ARGUMENTS) {
  b0 = a0, b1 = a1, b2 = a2, b3 = a3;
  const RegisterMemory m(c, i->memory[0]);
  a0 = m[0], a1 = m[1], a2 = m[2], a3 = m[3];
  TN_NEXT_STEP;
}
void copy_step(TN_STEP_ARGUMENTS) {
  b0 = a0, b1 = a1, b2 = a2, b3 = a3;
  TN_NEXT_STEP;
}
void exchange_step(TN_STEP_ARGUMENTS) {
  TN_TAIL_CALL return reinterpret_cast<StepFn>(i[1].step)(i + 1, c, b0, b1, b2, b3, a0, a1, a2, a3);
}

TN_INLINE void save(std::byte* to, Reg r0, Reg r1, Reg r2, Reg r3) {
  store(to, r0);
  store(to + kVecBytes, r1);
  store(to + 2 * kVecBytes, r2);
  store(to + 3 * kVecBytes, r3);
}
void save_a_step(TN_STEP_ARGUMENTS) {
  save(c->waiting[i->memory[0]], a0, a1, a2, a3);
  TN_NEXT_STEP;
}
void save_b_step(TN_STEP_ARGUMENTS) {
  save(c->waiting[i->memory[0]], b0, b1, b2, b3);
  TN_NEXT_STEP;
}

// Elements of type From, widened to lanes: truth values to ones, others exactly.
template <class From, class Lane>
void widening_load_step(TN_STEP_ARGUMENTS) {
  constexpr int kL = kLanes<Lane>;
  const auto* from = reinterpret_cast<const From*>(RegisterMemory(c, i->memory[0]).at);
  Lane lane[4 * kL];
  for (int k = 0; k < 4 * kL; ++k) {
    if constexpr (std::is_same_v<From, bool>) {
      lane[k] = static_cast<Lane>(-static_cast<Lane>(from[k]));
    } else {
      lane[k] = static_cast<Lane>(from[k]);
    }
  }
  a0 = load<Reg>(lane), a1 = load<Reg>(lane + kL);
  a2 = load<Reg>(lane + 2 * kL), a3 = load<Reg>(lane + 3 * kL);
  TN_NEXT_STEP;
}

template <int kSize>
void store_step(TN_STEP_ARGUMENTS) {
  std::byte* const to = c->output + c->at * kSize;
  if (c->streaming) {
    stream(to, a0);
    stream(to + kVecBytes, a1);
    stream(to + 2 * kVecBytes, a2);
    stream(to + 3 * kVecBytes, a3);
  } else {
    save(to, a0, a1, a2, a3);
  }
}
// The low bits of a lane; of truth values one.
template <class Lane, class To>
void narrowing_store_step(TN_STEP_ARGUMENTS) {
  constexpr int kL = kLanes<Lane>;
  Lane lane[4 * kL];
  store(lane, a0), store(lane + kL, a1);
  store(lane + 2 * kL, a2), store(lane + 3 * kL, a3);
  auto* const to = reinterpret_cast<To*>(c->output) + c->at;
  for (int k = 0; k < 4 * kL; ++k) {
    if constexpr (std::is_same_v<To, bool>) {
      to[k] = (lane[k] & 1) != 0;
    } else {
      to[k] = static_cast<To>(lane[k]);
    }
  }
}

host::RegisterStep erased(StepFn step) { return reinterpret_cast<host::RegisterStep>(step); }

host::RegisterStep widening_load(DType dtype, int lane) {
  const bool narrow = lane == 4;
  switch (dtype) {
    case DType::kBool:
      return erased(narrow ? widening_load_step<bool, int32_t> : widening_load_step<bool, int64_t>);
    case DType::kInt8:
      return narrow ? erased(widening_load_step<int8_t, int32_t>) : nullptr;
    case DType::kUInt8:
      return narrow ? erased(widening_load_step<uint8_t, int32_t>) : nullptr;
    case DType::kInt16:
      return narrow ? erased(widening_load_step<int16_t, int32_t>) : nullptr;
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return narrow ? erased(widening_load_step<uint16_t, int32_t>) : nullptr;
    case DType::kUInt32:
      return narrow ? nullptr : erased(widening_load_step<uint32_t, int64_t>);
    default:
      return nullptr;
  }
}

host::RegisterStep last_store(DType dtype, int lane) {
  const bool narrow = lane == 4;
  switch (dtype) {
    case DType::kBool:
      return erased(narrow ? narrowing_store_step<int32_t, bool>
                           : narrowing_store_step<int64_t, bool>);
    case DType::kInt8:
    case DType::kUInt8:
      return narrow ? erased(narrowing_store_step<int32_t, uint8_t>) : nullptr;
    case DType::kInt16:
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return narrow ? erased(narrowing_store_step<int32_t, uint16_t>) : nullptr;
    case DType::kUInt32:
      return narrow ? nullptr : erased(narrowing_store_step<int64_t, uint32_t>);
    default:
      return erased(narrow ? store_step<4> : store_step<8>);
  }
}

template <int kLane>
host::RegisterStep widening_load_of(DType dtype) {
  return widening_load(dtype, kLane);
}
template <int kLane>
host::RegisterStep store_of(DType dtype) {
  return last_store(dtype, kLane);
}

host::RegisterStep pick(const void* forms, int form) {
  return erased(static_cast<const StepFn*>(forms)[form]);
}

template <int kLane>
void run(const host::RegisterInstruction* code, host::RegisterContext& context, int64_t n) {
  constexpr int64_t kBlock = host::kRegisterVectors * kVecBytes / kLane;
  const auto first = reinterpret_cast<StepFn>(code->step);
  const Reg none{};
  for (context.at = 0; context.at < n; context.at += kBlock)
    first(code, &context, none, none, none, none, none, none, none, none);
}

template <int kLane>
host::RegisterMoves moves() {
  return {erased(load_step),       erased(push_step),   erased(copy_step),
          erased(exchange_step),   erased(save_a_step), erased(save_b_step),
          widening_load_of<kLane>, store_of<kLane>,     run<kLane>};
}

}  // namespace

void register_register_moves_kernels(KernelRegistry&) {
  host::set_register_machine({kVecBytes, pick, moves<4>(), moves<8>(), end_stream});
}

}  // namespace treenail::cpu
