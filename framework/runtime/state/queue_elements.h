// SPDX-License-Identifier: Apache-2.0
// The elements in a queue, and the order in which they leave it. Whoever uses them holds the
// queue's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "framework/tensor/tensor.h"

namespace treenail {

struct QueueElement {
  std::vector<Tensor> values;  // one per component
  uint64_t number = 0;         // of elements that came before it
};

class QueueElements {
 public:
  virtual ~QueueElements();
  virtual int64_t size() const = 0;
  virtual void put(QueueElement element) = 0;
  // Requires size() > 0.
  virtual QueueElement take() = 0;
  // Of the elements taken last, and not yet given back, the last one.
  virtual void give_back(QueueElement element) = 0;
};

// As they came.
std::unique_ptr<QueueElements> fifo_elements();
// Any, as numbers of TensorFlow 1's stream of the two seeds say; both 0: as nobody can tell.
std::unique_ptr<QueueElements> shuffled_elements(int64_t seed, int64_t seed2);
// The lowest first component, an int64 scalar; of equal ones the one that came first.
std::unique_ptr<QueueElements> priority_elements();

}  // namespace treenail
