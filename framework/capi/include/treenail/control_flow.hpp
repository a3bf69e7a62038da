// SPDX-License-Identifier: Apache-2.0
// Functions, branches and loops for C++17 programs, over treenail.hpp. A body is a function of C++
// that adds operations to the graph it is given; what it reads of the graphs around becomes an
// argument by itself. All of them can be differentiated and saved with their graph.
//
//   tn::Values last = tn::while_loop(
//       graph, {i, x},
//       [&](tn::Graph& g, const tn::Values& v) { return tn::Values{g.add("Less", {v[0], n})}; },
//       [&](tn::Graph& g, const tn::Values& v) {
//         return tn::Values{g.add("Add", {v[0], one}), g.add("Tanh", {g.add("MatMul", {v[1],
//         w})})};
//       });
#ifndef TREENAIL_CONTROL_FLOW_HPP_
#define TREENAIL_CONTROL_FLOW_HPP_

#include <string>
#include <vector>

#include "treenail/treenail.hpp"

namespace tn {

using Values = std::vector<Output>;

namespace detail {

// The body that `function` builds: Values function(Graph& body, const Values& arguments). Arguments
// are of the dtypes of `like` and of `shapes`, where these are given, or of its shapes.
template <class Function>
Graph body_of(const Graph& around, const char* name, const Values& like,
              const std::vector<Shape>& shapes, const Function& function) {
  Graph body =
      Graph::adopt(checked([&](tn_status* s) { return tn_body_new(around.get(), name, s); }));
  Values arguments;
  for (size_t i = 0; i < like.size(); ++i) {
    const bool known = !shapes.empty() || like[i].rank() >= 0;
    const Shape shape = !shapes.empty() ? shapes.at(i) : known ? like[i].shape() : Shape();
    arguments.emplace_back(checked([&](tn_status* s) {
      return tn_body_add_argument(body.get(), nullptr, static_cast<tn_dtype>(like[i].dtype()),
                                  shape.data(), known ? static_cast<int32_t>(shape.size()) : -1, s);
    }));
  }
  const auto results = handles_of(function(body, arguments));
  checked(
      [&](tn_status* s) { tn_body_set_results(body.get(), results.data(), results.size(), s); });
  return body;
}

inline Values outputs_of(const Operation& operation, size_t count) {
  Values values;
  for (size_t i = 0; i < count; ++i) values.push_back(operation.output(static_cast<int>(i)));
  return values;
}

inline const char* name_or_null(const std::string& name) {
  return name.empty() ? nullptr : name.c_str();
}

}  // namespace detail

// What `function` makes of the inputs, as one operation.
template <class Function>
Values call(Graph& graph, const Values& inputs, const Function& function,
            const std::string& name = {}) {
  const Graph body = detail::body_of(graph, "function", inputs, {}, function);
  const auto given = detail::handles_of(inputs);
  const Operation made = detail::checked([&](tn_status* s) {
    return tn_graph_add_call(graph.get(), detail::name_or_null(name), body.get(), given.data(),
                             given.size(), s);
  });
  return detail::outputs_of(made, static_cast<size_t>(made.num_outputs()));
}

// What `yes` gives where `condition`, a bool scalar, is true, else what `no` does: functions
// Values(Graph& body), with as many results, of the same dtypes.
template <class Yes, class No>
Values cond(Graph& graph, Output condition, const Yes& yes, const No& no,
            const std::string& name = {}) {
  const Graph first =
      detail::body_of(graph, "yes", {}, {}, [&](Graph& body, const Values&) { return yes(body); });
  const Graph second =
      detail::body_of(graph, "no", {}, {}, [&](Graph& body, const Values&) { return no(body); });
  const Operation made = detail::checked([&](tn_status* s) {
    return tn_graph_add_if(graph.get(), detail::name_or_null(name), condition.get(), first.get(),
                           second.get(), nullptr, 0, s);
  });
  return detail::outputs_of(made, static_cast<size_t>(made.num_outputs()));
}

// The values after the last iteration: `body` makes the next of them as long as `condition` is true
// of them. `shapes`: what holds for each in every iteration, where that is less than what is known
// of `first`.
template <class Condition, class Step>
Values while_loop(Graph& graph, const Values& first, const Condition& condition, const Step& body,
                  const std::vector<Shape>& shapes = {}, const std::string& name = {}) {
  if (!shapes.empty() && shapes.size() != first.size())
    throw Error(Code::kInvalidArgument, std::to_string(shapes.size()) + " shapes for " +
                                            std::to_string(first.size()) + " values of a loop");
  const Graph goes_on = detail::body_of(graph, "cond", first, shapes, condition);
  const Graph step = detail::body_of(graph, "body", first, shapes, body);
  const auto given = detail::handles_of(first);
  const Operation made = detail::checked([&](tn_status* s) {
    return tn_graph_add_while(graph.get(), detail::name_or_null(name), goes_on.get(), step.get(),
                              given.data(), given.size(), s);
  });
  return detail::outputs_of(made, first.size());
}

}  // namespace tn

#endif  // TREENAIL_CONTROL_FLOW_HPP_
