// SPDX-License-Identifier: Apache-2.0
// The part of a graph that depends on one of its values, for a function of that value: what is
// computed from it is made again elsewhere, and all else that it reads is handed over.
#pragma once

#include <span>
#include <vector>

#include "framework/graph/graph.h"

namespace treenail {

class Dependents {
 public:
  // What `results` need of what depends on `value`. The caller holds the graph's mutex.
  Dependents(Output value, std::span<const Output> results);

  // What these read besides, and which of the results are no such: values of the graph.
  const std::vector<Output>& read() const { return read_; }

  // The results in another graph, `value` and read() having these counterparts there. The caller
  // holds its mutex. Errors: as Graph::add.
  std::vector<Output> copied_to(Graph& graph, Output value, std::span<const Output> read) const;

 private:
  const Output value_;
  const std::vector<Output> results_;
  std::vector<const Node*> nodes_;  // inputs first
  std::vector<Output> read_;
};

}  // namespace treenail
