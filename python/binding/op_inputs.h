// SPDX-License-Identifier: Apache-2.0
// The inputs of one op call, flattened and typed; see op_call.h.
#pragma once

#include <vector>

#include "framework/eager/immediate_tensor.h"
#include "python/binding/op_call.h"

namespace treenail::python {

class OpInputs {
 public:
  // Flattens list arguments, resolves objects that stand for tensors, packs lists that contain
  // tensors. Errors: TypeError.
  explicit OpInputs(const OpCall& call);

  // The one graph of the symbolic inputs, or null.
  GraphObject* graph() const { return graph_; }
  const std::vector<int>& arg_sizes() const { return arg_sizes_; }

  // Values of this graph; constants are added under "<op name>/<input name>". Errors: as conversion
  // and Graph::add.
  std::vector<Output> outputs(GraphObject* graph) const;
  // For immediate execution; what is converted is put into `made`. Errors: TypeError for a symbolic
  // input.
  std::vector<const ImmediateTensor*> immediate(std::vector<ImmediateTensor>& made) const;

 private:
  struct Item {
    Ref object;
    int arg = 0;
  };
  void add(PyObject* object, int arg);
  void add_list(PyObject* object, int arg);
  Ref captured(Ref tensor) const;
  Ref tensor_or_same(PyObject* object, const ArgDef& def) const;
  std::string input_prefix(const ArgDef& def) const;
  DType wanted_dtype(const Item& item, const std::vector<DType>& by_attr) const;
  DType given_type(int attr) const;
  std::vector<DType> known_types() const;
  Tensor convert(const Item& item, std::vector<DType>& by_attr) const;

  const OpCall& call_;
  std::vector<Item> items_;
  std::vector<int> arg_sizes_;
  GraphObject* graph_ = nullptr;
};

}  // namespace treenail::python
