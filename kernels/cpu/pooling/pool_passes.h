// SPDX-License-Identifier: Apache-2.0
// Pooling over images and volumes of float or double with channels last: the passes that
// pool_passes.cc computes. Layouts, other dtypes and registration: pooling.cc.
#pragma once

#include <cstdint>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/host/pooling/pool.h"

namespace treenail::cpu {

using host::Pool;
using host::WindowRange;

template <class C>
void max_pool(const RunContext& c, const Pool& p, const C* x, C* y);
template <class C>
void average_pool(const RunContext& c, const Pool& p, const C* x, C* y);
// taps[...]: the number of the first maximum's tap, rows first, counted over the part of the window
// that lies inside the image.
template <class C>
void max_pool_taps(const RunContext& c, const Pool& p, const C* x, C* y, int32_t* taps);
template <class C>
void max_pool_gradient(const RunContext& c, const Pool& p, const C* x, const C* y, const C* dy,
                       C* dx);
// out = g, of the input's size, at the first maximum of each window.
template <class C>
void max_pool_second_gradient(const RunContext& c, const Pool& p, const C* x, const C* y,
                              const C* g, C* out);
template <class C>
void average_pool_gradient(const RunContext& c, const Pool& p, const C* dy, C* dx);

}  // namespace treenail::cpu
