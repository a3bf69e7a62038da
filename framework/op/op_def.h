// SPDX-License-Identifier: Apache-2.0
// What an op means, stated once: inputs, outputs, attributes, type constraints, shape rule,
// gradient, properties, doc. An OpDef is parsed from TensorFlow's declaration grammar into
// positions; at run time everything is by index. How it is computed: runtime/kernel/kernel.h. Where
// ops register: op_registry.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/attribute.h"
#include "framework/tensor/dtype.h"

namespace treenail {

class ShapeContext;
class GradientContext;
class OpInstance;

using ShapeFn = void (*)(ShapeContext&);
using GradientFn = void (*)(GradientContext&);
// Floating-point operations of one run, a multiply-add being two; all shapes are known.
using FlopsFn = double (*)(const OpInstance& op, std::span<const Shape> inputs,
                           std::span<const Shape> outputs);
// Rewrites the attributes of a node stored with version n to those of version n + 1.
using UpgradeFn = void (*)(NamedAttrs& attrs);

enum class Access : uint8_t { kNone, kRead, kWrite, kOpaque };

// What a kernel may reach besides its inputs and the state of the session: nothing; files that its
// inputs or attributes name; this process and its surroundings (its standard error, code that is
// not ours); other processes; the Python interpreter. What others may have a server run depends on
// it (distributed/access.h).
enum class HostAccess : uint8_t { kNone, kFiles, kProcess, kNetwork, kPython };
// "files"
std::string_view to_text(HostAccess access);

// One input or output declaration: "x: T", "values: N * T", "args: Targs", "handle: resource".
struct ArgDef {
  std::string name;
  DType dtype = DType::kInvalid;  // fixed dtype, or kInvalid when an attribute gives it
  int type_attr = -1;             // position of the attribute of kind type
  int type_list_attr = -1;  // position of the attribute of kind list(type): one value per entry
  int number_attr = -1;     // position of the int attribute N of "N * T"
  // Of an input: the value is needed in host memory, when the kernel is prepared. Of an output: it
  // lies in host memory, whatever device runs the op; the op is any_device or allocates its
  // outputs.
  bool host = false;
  bool anywhere = false;  // an input of which the kernel touches no element: any memory will do
  Access access = Access::kNone;  // what the op does with the state behind this resource input
  bool gradient_reads = false;    // the gradient rule reads this value
  bool stored = false;  // the op keeps the value: it is computed in the memory it will live in
  bool is_list() const { return number_attr >= 0 || type_list_attr >= 0; }
};

struct AttrDef {
  std::string name;
  AttrKind kind = AttrKind::kNone;
  bool has_default = false;
  AttrValue default_value;
  std::vector<DType> allowed_types;                       // empty: any
  std::vector<std::string> allowed_strings;               // empty: any
  int64_t minimum = std::numeric_limits<int64_t>::min();  // of an int, or of a list's length
};

struct OpDef {
  std::string name;
  std::string family;  // the file framework/ops/<family>.cc
  std::string doc;
  std::vector<ArgDef> inputs;
  std::vector<ArgDef> outputs;
  std::vector<AttrDef> attrs;
  HostAccess host_access = HostAccess::kNone;
  int version = 1;
  ShapeFn shape_fn = nullptr;
  GradientFn gradient_fn = nullptr;
  FlopsFn flops_fn = nullptr;  // null: one per element of the outputs if elementwise, else unknown
  std::vector<UpgradeFn> upgrades;  // [n - 1]: version n to n + 1
  bool non_differentiable = false;  // no gradient by nature: asking for one gives none
  bool stateful = false;            // never folded, merged, duplicated
  bool commutative = false;
  bool elementwise = false;
  bool reduction = false;  // of input 0 along the axes in input 1, kept with extent 1 if keep_dims
  bool data_dependent_shape =
      false;  // the shape rule may leave output shapes unknown even with all inputs known
  bool allocates_outputs = false;  // the kernel provides its outputs (RunContext::set_output)
  bool random = false;             // owns a random counter named after its original node
  bool asynchronous = false;    // its result may have to wait for what others do: its kernel is an
                                // AsyncKernel (runtime/kernel/async_kernel.h)
  bool any_device = false;      // the kernel touches elements in host memory alone: the one that is
                                // registered serves devices of every kind
  bool computes_sizes = false;  // sizes and axes, which other ops take on the host: it runs there
                                // where a device has no kernel for it, whatever it asks for
  int view_of =
      -1;  // output 0 is another shape over the bytes of this input: executed without a kernel
  // Output `second` may reuse the memory of input `first` when that value dies here and sizes
  // agree.
  std::vector<std::pair<int, int>> in_place;

  int input_index(std::string_view arg) const;   // -1 when absent
  int output_index(std::string_view arg) const;  // -1 when absent
  int attr_index(std::string_view attr) const;   // -1 when absent
};

// A call of an op: the definition with all attributes set and types resolved. Shared by graph
// nodes, immediate execution and kernels.
class OpInstance {
 public:
  const OpDef& def() const { return *resolved_->def; }
  const std::string& name() const { return resolved_->def->name; }
  std::span<const DType> input_types() const { return resolved_->input_types; }
  std::span<const DType> output_types() const { return resolved_->output_types; }
  int num_inputs() const { return static_cast<int>(resolved_->input_types.size()); }
  int num_outputs() const { return static_cast<int>(resolved_->output_types.size()); }
  DType input_type(int i) const { return resolved_->input_types[i]; }
  DType output_type(int i) const { return resolved_->output_types[i]; }

  const AttrValue& attr(int position) const { return resolved_->attrs[position]; }
  // Errors: Internal when the op has no such attribute (our own mistake), InvalidArgument for
  // another kind.
  const AttrValue& attr(std::string_view name) const;
  template <class T>
  const T& get(std::string_view name) const {
    return attr(name).get<T>();
  }
  int64_t get_int(std::string_view name) const { return get<int64_t>(name); }
  double get_float(std::string_view name) const { return get<double>(name); }
  bool get_bool(std::string_view name) const { return get<bool>(name); }
  const std::string& get_string(std::string_view name) const { return get<std::string>(name); }
  DType get_type(std::string_view name) const { return get<DType>(name); }
  const std::vector<int64_t>& get_ints(std::string_view name) const {
    return get<std::vector<int64_t>>(name);
  }
  std::span<const AttrValue> attrs() const { return resolved_->attrs; }

  // The flat inputs [first, second) of declared input `arg`; the declared input of flat input i.
  std::pair<int, int> input_range(int arg) const {
    return {resolved_->input_begin[arg], resolved_->input_begin[arg + 1]};
  }
  std::pair<int, int> output_range(int arg) const {
    return {resolved_->output_begin[arg], resolved_->output_begin[arg + 1]};
  }
  int input_arg(int i) const;
  int output_arg(int i) const;
  // "a", or "values[2]" for an element of a list argument.
  std::string input_name(int i) const;
  const ArgDef& input_def(int i) const { return def().inputs[input_arg(i)]; }
  const ArgDef& output_def(int i) const { return def().outputs[output_arg(i)]; }

 private:
  friend OpInstance resolve_op(const OpDef&, std::span<const DType>, std::span<const NamedAttr>,
                               std::span<const int>);
  struct Resolved {
    const OpDef* def = nullptr;
    std::vector<AttrValue> attrs;
    std::vector<DType> input_types;
    std::vector<DType> output_types;
    std::vector<int> input_begin;
    std::vector<int> output_begin;
  };
  std::shared_ptr<const Resolved> resolved_;  // copies of a node share it, for it never changes
};

// Checks input types and attributes against `def`, infers type and number attributes from the
// inputs, fills in defaults. `arg_sizes` gives the number of flat inputs per declared input; empty:
// derived, which needs at most one unknown list length. Errors: InvalidArgument (count, dtype,
// unknown attribute, kind, value not allowed, missing attribute).
OpInstance resolve_op(const OpDef& def, std::span<const DType> input_types,
                      std::span<const NamedAttr> attrs, std::span<const int> arg_sizes = {});

// Declares one op:
//   r.op("MatMul", HostAccess::kNone)
//       .input("a: T").input("b: T").output("product: T")
//       .attr("transpose_a: bool = false").attr("T: {half, bfloat16, float, double}")
//       .shape(matmul_shape).gradient(matmul_gradient, {"a", "b"}).doc("...");
// Grammar of TensorFlow: "x: N * T", "T: {float, double} = float", "N: int >= 2", "axes: list(int)
// = [0, 1]", "padding: {'SAME', 'VALID'}", "dtype: type", "T: numbertype", "T: realnumbertype".
// Names of inputs and outputs of one op are distinct. A mistake in a declaration throws Internal at
// registration.
class OpDeclaration {
 public:
  explicit OpDeclaration(OpDef& def) : def_(def) {}
  OpDeclaration& input(std::string_view spec);
  OpDeclaration& output(std::string_view spec);
  OpDeclaration& attr(std::string_view spec);
  OpDeclaration& shape(ShapeFn fn);
  // `reads`: names of the inputs and outputs whose values the rule reads; reading another is an
  // error.
  OpDeclaration& gradient(GradientFn fn, std::initializer_list<std::string_view> reads = {});
  OpDeclaration& not_differentiable();
  OpDeclaration& flops(FlopsFn fn);
  OpDeclaration& host(std::string_view input_or_output);
  OpDeclaration& anywhere(std::string_view input);
  OpDeclaration& access(std::string_view input, Access access);
  OpDeclaration& stored(std::string_view input);
  OpDeclaration& stateful();
  OpDeclaration& random();        // also stateful
  OpDeclaration& asynchronous();  // also allocates_outputs
  OpDeclaration& any_device();
  OpDeclaration& computes_sizes();
  OpDeclaration& commutative();
  OpDeclaration& elementwise();
  OpDeclaration& reduction();
  OpDeclaration& data_dependent_shape();  // also allocates_outputs
  OpDeclaration& allocates_outputs();
  OpDeclaration& view_of(std::string_view input);
  OpDeclaration& in_place(std::string_view input, std::string_view output);
  OpDeclaration& version(int version, std::initializer_list<UpgradeFn> upgrades);
  OpDeclaration& doc(std::string_view text);

 private:
  OpDef& def_;
};

}  // namespace treenail
