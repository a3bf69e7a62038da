// SPDX-License-Identifier: Apache-2.0
// Loops over string elements. Strings differ in length, so a piece is a fixed number of elements
// and long ones may make it last; a run is cancelled between pieces.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {

inline constexpr int64_t kStringGrain = 512;

inline std::string_view string_at(const Tensor& tensor, int64_t i) {
  return tensor.data<StringElement>()[i].view();
}

// body(i) for each of `n` elements, about `each_ns` long.
template <class F>
void each_element(const RunContext& c, int64_t n, double each_ns, F&& body) {
  c.parallel_for(n, kStringGrain, each_ns, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) body(i);
  });
}

// The kernel of an op that makes a string of each string of input 0: f(bytes, i) gives what the
// constructor of a StringElement takes.
template <class F>
std::unique_ptr<Kernel> map_strings(const PrepareContext& p, double each_ns, F f) {
  const int64_t n = p.input_shape(0).num_elements();
  return make_kernel(
      [n, each_ns, f = std::move(f)](RunContext& c) {
        const auto* in = c.input(0).data<StringElement>();
        auto* out = c.output(0).data<StringElement>();
        each_element(c, n, each_ns, [&](int64_t i) { out[i] = StringElement(f(in[i].view(), i)); });
      },
      100 + each_ns * static_cast<double>(n));
}

}  // namespace treenail::host
