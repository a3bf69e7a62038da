// SPDX-License-Identifier: Apache-2.0
// Elements of a queue from batches and into batches: a batch is a tensor whose rows are elements.
#pragma once

#include <cstdint>
#include <span>

#include "framework/runtime/state/queue_elements.h"

namespace treenail {

// Row `row` of each batch, in memory of its own. Errors: ResourceExhausted.
QueueElement element_of(std::span<const Tensor> batches, int64_t row);

// Component `component` of all elements as rows of one tensor: they have the shape, or, where its
// extents are partly unknown, at least its rank; then each is filled up with zeros, or empty
// strings, to the largest. No elements: unknown extents are 0. Errors: ResourceExhausted.
Tensor batch_of(std::span<const QueueElement> elements, size_t component, DType dtype,
                const PartialShape& shape);

}  // namespace treenail
