// SPDX-License-Identifier: Apache-2.0
// What is known of the functions of a graph before any is planned.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/graph/function.h"
#include "framework/op/attribute.h"
#include "framework/op/op_def.h"

namespace treenail {

class FunctionFacts {
 public:
  using Library = std::map<std::string, std::shared_ptr<const Function>, std::less<>>;
  // `queues`: a body's nodes may run on a device with a queue.
  FunctionFacts(Library library, bool queues) : library_(std::move(library)), queues_(queues) {}
  // Those of `graph`, and what it gets later: gradients give a body other functions to call. Asked
  // for where nobody holds the graph's lock.
  FunctionFacts(std::shared_ptr<const Graph> graph, bool queues)
      : growing_(std::move(graph)), queues_(queues) {}

  // Errors: NotFound.
  const Function& function(std::string_view name) const;
  // Null where there is none of that name with a body.
  const Function* find(std::string_view name) const;
  // As FunctionCaller has it.
  std::vector<bool> arguments_read(const FunctionAttr& function,
                                   const std::vector<bool>& wanted) const;
  Access argument_access(const OpInstance& op, int argument) const;
  bool waits(const OpInstance& op) const;
  // Whether something in it may have to wait, or it calls itself, or it stands on too many calls
  // for one thread's stack.
  bool waits(const Function& function) const;
  bool calls_itself(const Function& function) const;

 private:
  // Of one body, without what it calls.
  struct Body {
    bool waits = false;
    std::vector<const Function*> calls;  // each once
  };
  // What the calls below a function come to.
  struct Below {
    bool waits = false;
    int height = 0;  // of calls within calls
  };
  std::vector<const Function*> called_by(const OpInstance& op) const;
  // With mutex_ held.
  void forget() const;
  Access access_by(const OpInstance& op, int argument) const;
  Access access_in(const Function& function, int argument) const;
  Access access_behind(const Output& value) const;
  const Body& body_of(const Function& function) const;
  const Below& below(const Function& function) const;

  const Library library_;
  const std::shared_ptr<const Graph> growing_;  // null: library_ is all
  const bool queues_;
  mutable ForkMutex mutex_;  // guards what follows
  mutable std::map<std::pair<const Function*, int>, Access> accesses_;
  mutable std::map<const Function*, Body> bodies_;
  mutable std::map<const Function*, Below> below_;
};

}  // namespace treenail
