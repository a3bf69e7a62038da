// SPDX-License-Identifier: Apache-2.0
// Batches of products of a few elements each, where a call of the general product for every entry
// costs more than its multiply-adds. Each element is summed in the order of k, with the bits that
// the general product gives it.
#pragma once

#include <cstdint>

#include "kernels/cpu/products/batch_product.h"

namespace treenail::cpu {

// Whether entries of this shape are small enough to gain.
bool is_tiny(const BatchProduct& g);

// Entries [begin, end) of the batch.
void multiply_tiny(const BatchProduct& g, int64_t begin, int64_t end, const float* a,
                   const float* b, float* c);
void multiply_tiny(const BatchProduct& g, int64_t begin, int64_t end, const double* a,
                   const double* b, double* c);

}  // namespace treenail::cpu
