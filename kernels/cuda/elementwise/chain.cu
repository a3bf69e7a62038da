// SPDX-License-Identifier: Apache-2.0
// The kernel that reads chains. What a step decides by is the same for all threads; results that
// wait for a later step lie in shared memory, of which each thread has its own part.
#include "kernels/cuda/elementwise/kernels.h"

#include "kernels/cuda/elementwise/chain.h"

namespace treenail::gpu {
namespace {

constexpr int kN = kChainGroup;

struct alignas(sizeof(float) * kN) Floats {
  float x[kN];
};

// Of elements i to i + count - 1 of the result; what is beyond them is zero.
template <class T>
TN_DEVICE Floats load_as(const Chain& chain, int input, int64_t i, int count) {
  const T* const from = static_cast<const T*>(chain.input[input].at);
  Floats floats = {};
  if (count == kN && chain.input[input].together) {
    const int64_t at = place(chain.how, input, i);
    const auto group = load_group<kN>(from + at, chain.how.stride[input][0]);
    for (int k = 0; k < kN; ++k) floats.x[k] = Stored<T>::widen(group.element[k]);
  } else {
    for (int k = 0; k < kN; ++k)
      if (k < count) floats.x[k] = Stored<T>::widen(from[place(chain.how, input, i + k)]);
  }
  return floats;
}

TN_DEVICE Floats load(const Chain& chain, int input, int64_t i, int count) {
  switch (chain.input[input].type) {
    case ChainType::kFloat16:
      return load_as<Float16>(chain, input, i, count);
    case ChainType::kBFloat16:
      return load_as<BFloat16>(chain, input, i, count);
    case ChainType::kBool:
      return load_as<bool>(chain, input, i, count);
    case ChainType::kFloat32:
      break;
  }
  return load_as<float>(chain, input, i, count);
}

template <class T>
TN_DEVICE void store_as(const Chain& chain, void* y, int64_t i, int count, const Floats& floats) {
  T* const to = static_cast<T*>(y) + i;
  Group<T, kN> group;
  for (int k = 0; k < kN; ++k) group.element[k] = Stored<T>::narrow(floats.x[k]);
  if (count == kN && chain.output_together) return store_group(to, group);
  for (int k = 0; k < kN; ++k)
    if (k < count) to[k] = group.element[k];
}

TN_DEVICE void store(const Chain& chain, void* y, int64_t i, int count, const Floats& floats) {
  switch (chain.step[chain.steps - 1].type) {
    case ChainType::kFloat16:
      return store_as<Float16>(chain, y, i, count, floats);
    case ChainType::kBFloat16:
      return store_as<BFloat16>(chain, y, i, count, floats);
    case ChainType::kBool:
      return store_as<bool>(chain, y, i, count, floats);
    case ChainType::kFloat32:
      store_as<float>(chain, y, i, count, floats);
  }
}

template <class T>
TN_DEVICE void round_to(Floats& floats) {
  for (int k = 0; k < kN; ++k) floats.x[k] = Stored<T>::widen(Stored<T>::narrow(floats.x[k]));
}

// A definition on one element; T: float, or bool for truth values.
template <class Op, class T, class... F>
TN_DEVICE float result_of(float value, F... x) {
  if constexpr (TakesValue<Op>) {
    return Op::apply(static_cast<T>(x)..., value);
  } else {
    return Op::apply(static_cast<T>(x)...);
  }
}

template <class Op, class T, int kOperands>
TN_DEVICE Floats apply(const Floats* from, float value) {
  Floats result;
  for (int k = 0; k < kN; ++k) {
    if constexpr (kOperands == 1) {
      result.x[k] = result_of<Op, T>(value, from[0].x[k]);
    } else if constexpr (kOperands == 2) {
      result.x[k] = result_of<Op, T>(value, from[0].x[k], from[1].x[k]);
    } else {
      result.x[k] = result_of<Op, T>(value, from[0].x[k], from[1].x[k], from[2].x[k]);
    }
  }
  return result;
}

struct IsTrue {
  TN_DEVICE static float apply(float x) { return x != 0 ? 1.0f : 0.0f; }
};
struct Choose {
  TN_DEVICE static float apply(float condition, float a, float b) { return condition != 0 ? a : b; }
};

TN_DEVICE Floats compute(const ChainStep& step, const Floats* from) {
  switch (step.code) {
#define TN_CHAIN_ROW(code, op, T, operands, ...) \
  case ChainCode::k##code:                       \
    return apply<__VA_ARGS__, T, operands>(from, step.value);
    TN_CHAIN_OPS
#undef TN_CHAIN_ROW
    case ChainCode::kIsTrue:
      return apply<IsTrue, float, 1>(from, 0);
    case ChainCode::kSelect:
      return apply<Choose, float, 3>(from, 0);
    case ChainCode::kCopy:
      break;
  }
  return from[0];
}

TN_DEVICE void round_result(ChainType type, Floats& floats) {
  if (type == ChainType::kFloat16) round_to<Float16>(floats);
  if (type == ChainType::kBFloat16) round_to<BFloat16>(floats);
}

}  // namespace

TN_KERNEL(chain, int64_t n, void* y, Chain chain) {
  TN_DYNAMIC_SHARED(Floats, slots);
  const auto own_slot = [&](int slot) -> Floats& { return slots[slot * threads() + thread()]; };
  TN_NO_UNROLL
  for (int64_t i = first() * kN; i < n; i += stride() * kN) {
    const int count = n - i < kN ? static_cast<int>(n - i) : kN;
    Floats last = {};
    TN_NO_UNROLL
    for (int s = 0; s < chain.steps; ++s) {
      const ChainStep& step = chain.step[s];
      const auto operand = [&](int number) {
        if (number == kChainLast) return last;
        return number < kChainLast ? load(chain, number, i, count)
                                   : own_slot(number - kFirstChainSlot);
      };
      Floats from[3] = {};
      from[0] = operand(step.from[0]);
      if (step.operands > 1) from[1] = operand(step.from[1]);
      if (step.operands > 2) from[2] = operand(step.from[2]);
      last = compute(step, from);
      round_result(step.type, last);
      if (step.slot != kNoChainSlot) own_slot(step.slot) = last;
    }
    store(chain, y, i, count, last);
  }
}

}  // namespace treenail::gpu
