// SPDX-License-Identifier: Apache-2.0
// See precision.h. The kinds of ops follow Micikevicius and others 2018 (arXiv:1710.03740) and the
// lists of TensorFlow's auto_mixed_precision and PyTorch's autocast; docs/decisions/mixed-precision
// says where they differ.
#include "python/binding/precision.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>

#include "framework/op/op_registry.h"
#include "python/binding/dtypes.h"
#include "python/binding/module.h"
#include "python/binding/quick_call.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

// --- Scopes --------------------------------------------------------------------------------------

// Graph, node, output, device.
using CastKey = std::tuple<uint64_t, const Node*, int, std::string>;

struct Scope {
  DType narrow = DType::kInvalid;
  // What float32 values were cast to, and narrow ones to float32.
  std::map<CastKey, Output> casts;
};

// Innermost last. No Python objects: a thread may end when nobody may touch one any more.
thread_local std::vector<std::unique_ptr<Scope>> scopes;

bool casts(const Scope& scope) { return scope.narrow != DType::kInvalid; }

// --- Kinds of ops --------------------------------------------------------------------------------

enum class Kind : uint8_t {
  kFollows,  // as its inputs; of two kinds the wider one
  kNarrow,   // gains from narrow inputs
  kJoins,    // as its inputs; of two kinds the narrow one
  kWide,     // needs the range or the precision of float32
};

Kind kind_of(const OpDef& def) {
  static const auto* const kinds = [] {
    auto* made = new std::unordered_map<std::string_view, Kind>();
    for (const std::string_view op :
         {"MatMul", "BatchMatMul", "Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput",
          "Conv3D", "Conv3DBackpropFilter", "Conv3DBackpropInput", "DepthwiseConv2dNative",
          "DepthwiseConv2dNativeBackpropFilter", "DepthwiseConv2dNativeBackpropInput", "BlockLSTM",
          "LSTMBlockCell", "BlockGRU", "GRUBlockCell"})
      made->emplace(op, Kind::kNarrow);
    made->emplace("BiasAdd", Kind::kJoins);
    for (const std::string_view op :
         {// Sums, and what they are sums of.
          "Sum", "Mean", "Prod", "L2Loss", "EuclideanNorm", "Cumsum", "Cumprod",
          "CumulativeLogsumexp", "LinearRecurrence", "SegmentSum", "SegmentMean", "SegmentProd",
          "UnsortedSegmentSum", "UnsortedSegmentProd", "SparseSegmentSum", "SparseSegmentMean",
          "SparseSegmentSqrtN", "Square", "SquaredDifference",
          // Losses and norms.
          "Softmax", "LogSoftmax", "SoftmaxCrossEntropyWithLogits",
          "SparseSoftmaxCrossEntropyWithLogits", "CTCLoss", "LayerNorm", "LRN",
          // Exponentials, logarithms, powers, and what has poles.
          "Exp", "Expm1", "Log", "Log1p", "Pow", "Reciprocal", "Rsqrt", "Softplus", "Cosh", "Sinh",
          "Tan", "Acos", "Acosh", "Asin", "Asinh", "Atanh", "Erfinv", "Xlogy", "Xdivy", "Lgamma",
          "Digamma", "Ndtri", "BesselI0e", "BesselI1e", "Multinomial"})
      made->emplace(op, Kind::kWide);
    return made;
  }();
  const auto found = kinds->find(def.name);
  return found == kinds->end() ? Kind::kFollows : found->second;
}

// --- Which dtypes inputs are to have -------------------------------------------------------------

bool allows(const AttrDef& attr, DType dtype) {
  return attr.allowed_types.empty() ||
         std::ranges::find(attr.allowed_types, dtype) != attr.allowed_types.end();
}

// The type, or the types, that the call states for an attribute; null: none.
const AttrValue* stated(const OpCall& call, int attr) {
  const std::string& name = call.def->attrs[static_cast<size_t>(attr)].name;
  const auto found = std::ranges::find(call.attrs, name, &NamedAttr::first);
  return found == call.attrs.end() ? nullptr : &found->second;
}

// What the inputs of one type attribute are.
struct Shared {
  bool narrow = false, wide = false, other = false;
};

// The common dtype of inputs that share a type attribute; kInvalid: they stay as they are.
DType common_type(const OpCall& call, int attr, const Shared& given, DType narrow) {
  const AttrDef& def = call.def->attrs[static_cast<size_t>(attr)];
  if (given.other) return DType::kInvalid;
  const AttrValue* const said = stated(call, attr);
  if (said != nullptr && said->kind() == AttrKind::kType) return said->get<DType>();
  if (!allows(def, narrow)) return DType::kFloat32;
  switch (kind_of(*call.def)) {
    case Kind::kNarrow:
      return narrow;
    case Kind::kJoins:
      return given.narrow ? narrow : DType::kFloat32;
    case Kind::kWide:
      return DType::kFloat32;
    case Kind::kFollows:
      break;
  }
  return given.wide ? DType::kFloat32 : narrow;
}

// Per flat input the dtype that it is to have; kInvalid: as it is.
class WantedTypes {
 public:
  WantedTypes(const OpCall& call, std::span<const int> arg_sizes, std::span<const DType> given,
              DType narrow)
      : call_(call), given_(given), narrow_(narrow), wanted_(given.size(), DType::kInvalid) {
    std::vector<Shared> by_attr(call.def->attrs.size());
    each(arg_sizes, [&](const ArgDef& arg, size_t, size_t i) {
      if (arg.type_attr < 0) return;
      Shared& shared = by_attr[static_cast<size_t>(arg.type_attr)];
      shared.narrow = shared.narrow || given_[i] == narrow_;
      shared.wide = shared.wide || given_[i] == DType::kFloat32;
      shared.other = shared.other || !is_of_scope(given_[i]);
    });
    each(arg_sizes, [&](const ArgDef& arg, size_t place, size_t i) {
      if (!is_of_scope(given_[i])) return;
      DType wanted = arg.dtype;
      if (arg.type_attr >= 0)
        wanted =
            common_type(call_, arg.type_attr, by_attr[static_cast<size_t>(arg.type_attr)], narrow_);
      if (arg.type_list_attr >= 0) wanted = stated_in_list(arg.type_list_attr, place);
      if (is_of_scope(wanted) && wanted != given_[i]) wanted_[i] = wanted;
    });
  }
  const std::vector<DType>& wanted() const { return wanted_; }

 private:
  bool is_of_scope(DType dtype) const { return dtype == narrow_ || dtype == DType::kFloat32; }
  DType stated_in_list(int attr, size_t place) const {
    const AttrValue* const said = stated(call_, attr);
    if (said == nullptr || said->kind() != AttrKind::kTypeList) return DType::kInvalid;
    const auto& types = said->get<std::vector<DType>>();
    return place < types.size() ? types[place] : DType::kInvalid;
  }
  // visit(input, number within it, number of the flat value)
  template <class F>
  void each(std::span<const int> arg_sizes, F&& visit) const {
    size_t next = 0;
    for (size_t arg = 0; arg < call_.def->inputs.size(); ++arg) {
      const auto count = arg_sizes.empty() ? size_t{1} : static_cast<size_t>(arg_sizes[arg]);
      for (size_t i = 0; i < count; ++i) visit(call_.def->inputs[arg], i, next++);
    }
  }

  const OpCall& call_;
  std::span<const DType> given_;
  const DType narrow_;
  std::vector<DType> wanted_;
};

// --- Casts ---------------------------------------------------------------------------------------

const OpDef& cast_op() {
  static const OpDef& def = OpRegistry::instance().get("Cast");
  return def;
}

// Nothing waits for a cast but by its value, so that all may share it.
class WithoutControllers {
 public:
  explicit WithoutControllers(const GraphState& graph) : graph_(graph) { exchange(); }
  ~WithoutControllers() { exchange(); }
  WithoutControllers(const WithoutControllers&) = delete;
  WithoutControllers& operator=(const WithoutControllers&) = delete;

 private:
  void exchange() { std::swap(controllers_, graph_.context().controllers); }
  const GraphState& graph_;
  std::vector<Controller> controllers_;
};

Output cast_in_graph(GraphObject* graph, Output value, DType dtype) {
  const GraphState& s = *graph->state;
  CastKey key{s.context_id, value.node, value.index, s.context().device};
  const auto known = scopes.back()->casts.find(key);
  if (known != scopes.back()->casts.end()) return known->second;
  const NamedAttr attrs[] = {{"DstT", dtype}};
  const std::string name = concat(value.node->name(), "/Cast");
  NewNode node;
  node.def = &cast_op();
  node.inputs = {&value, 1};
  node.attrs = attrs;
  node.name = name;
  node.absolute = true;
  const WithoutControllers independent(s);
  const Output made{&add_node(graph, node), 0};
  scopes.back()->casts.emplace(std::move(key), made);
  return made;
}

// --- For the package -----------------------------------------------------------------------------

// enter_precision(dtype or None): a scope; None: one that casts nothing.
PyObject* enter_precision(PyObject*, PyObject* dtype) {
  return guarded([&] {
    auto scope = std::make_unique<Scope>();
    scope->narrow = optional_dtype_from(dtype);
    scopes_that_cast += static_cast<int>(casts(*scope));
    scopes.push_back(std::move(scope));
    return none();
  });
}

PyObject* leave_precision(PyObject*, PyObject*) {
  return guarded([&] {
    if (scopes.empty())
      throw_python(PyExc_AssertionError, "no scope of mixed precision is open on this thread");
    scopes_that_cast -= static_cast<int>(casts(*scopes.back()));
    scopes.pop_back();
    return none();
  });
}

// cast_in_scope(tensor, dtype): as casts of inputs are made.
PyObject* cast_in_scope(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !is_tensor(args[0])) throw_type_error("cast_in_scope(tensor, dtype)");
    const DType dtype = dtype_from(args[1]);
    GraphObject* const graph = default_graph();
    if (graph_of_tensor(args[0]) == graph && current_precision() != DType::kInvalid)
      return tensor_view(graph, cast_in_graph(graph, output_of(args[0]), dtype)).release();
    OpCall call;
    call.def = &cast_op();
    call.inputs = {args[0]};
    call.attrs = {{"DstT", dtype}};
    return call_op(call).release();
  });
}

PyObject* precision(PyObject*, PyObject*) {
  return guarded([&] {
    const DType narrow = current_precision();
    return narrow == DType::kInvalid ? none() : dtype_ref(narrow).release();
  });
}

}  // namespace

DType innermost_precision() { return scopes.empty() ? DType::kInvalid : scopes.back()->narrow; }

void cast_inputs(GraphObject* graph, const OpCall& call, std::span<const int> arg_sizes,
                 std::vector<Output>& values) {
  const DType narrow = current_precision();
  if (narrow == DType::kInvalid || call.def == &cast_op()) return;
  std::vector<DType> given;
  given.reserve(values.size());
  for (const Output& value : values) given.push_back(value.node->op().output_type(value.index));
  const std::vector<DType> wanted = WantedTypes(call, arg_sizes, given, narrow).wanted();
  for (size_t i = 0; i < values.size(); ++i) {
    if (wanted[i] != DType::kInvalid) values[i] = cast_in_graph(graph, values[i], wanted[i]);
  }
}

void cast_inputs(const OpCall& call, std::span<const int> arg_sizes,
                 std::vector<const ImmediateTensor*>& values, HeldCasts& held) {
  const DType narrow = current_precision();
  if (narrow == DType::kInvalid || call.def == &cast_op()) return;
  std::vector<DType> given;
  given.reserve(values.size());
  for (const ImmediateTensor* value : values) given.push_back(value->tensor.dtype());
  const std::vector<DType> wanted = WantedTypes(call, arg_sizes, given, narrow).wanted();
  for (size_t i = 0; i < values.size(); ++i) {
    if (wanted[i] == DType::kInvalid) continue;
    held.push_back(quick_call(cast_op(), {&values[i], 1}, {{"DstT", wanted[i]}}));
    values[i] = immediate_value(held.back().get());
  }
}

void add_precision(PyObject* module) {
  static PyMethodDef functions[] = {
      {"enter_precision", enter_precision, METH_O, nullptr},
      {"leave_precision", leave_precision, METH_NOARGS, nullptr},
      {"cast_in_scope", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(cast_in_scope)),
       METH_FASTCALL, nullptr},
      {"precision", precision, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, functions);
}

}  // namespace treenail::python
