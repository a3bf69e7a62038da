// SPDX-License-Identifier: Apache-2.0
// OpDeclaration: parsed declarations bound to positions. An input may name an attribute before it
// is declared: the attribute gets its position at the first mention and its kind later;
// OpRegistry::finish() refuses what was never declared.
#include <algorithm>

#include "framework/base/error.h"
#include "framework/op/op_def.h"
#include "framework/op/spec_parser.h"

namespace treenail {
namespace {

// Runs `body`, completing an error with the op and the text at fault.
template <class F>
void declaring(const OpDef& def, std::string_view what, std::string_view spec, F body) {
  try {
    body();
  } catch (const Error& error) {
    throw internal_error("op \"", def.name, "\": ", what, " \"", spec, "\": ", error.message());
  }
}

int mention(OpDef& def, const std::string& name) {
  const int position = def.attr_index(name);
  if (position >= 0) return position;
  def.attrs.emplace_back().name = name;
  return static_cast<int>(def.attrs.size()) - 1;
}

// Settles which of its roles attribute `position`, now of known kind, plays in `arg`.
void settle(ArgDef& arg, const AttrDef& attr, int position) {
  if (arg.number_attr == position && attr.kind != AttrKind::kInt) {
    throw internal_error("\"", attr.name, "\" counts \"", arg.name, "\" and must be an int");
  }
  if (arg.type_attr != position) return;
  if (attr.kind == AttrKind::kTypeList) {
    if (arg.number_attr >= 0)
      throw internal_error("\"", attr.name, "\" is a list(type) and cannot be counted");
    arg.type_attr = -1;
    arg.type_list_attr = position;
  } else if (attr.kind != AttrKind::kType) {
    throw internal_error("\"", attr.name, "\" is the dtype of \"", arg.name,
                         "\" and must be a type or list(type)");
  }
}

void check_default(const AttrDef& attr) {
  if (!attr.has_default) return;
  const auto allowed = [&attr](const auto& list, const auto& value) {
    if (list.empty() || std::find(list.begin(), list.end(), value) != list.end()) return;
    throw internal_error("the default ", attr.default_value, " is not allowed");
  };
  if (attr.kind == AttrKind::kType) allowed(attr.allowed_types, attr.default_value.get<DType>());
  if (attr.kind == AttrKind::kString)
    allowed(attr.allowed_strings, attr.default_value.get<std::string>());
  if (attr.kind == AttrKind::kTypeList) {
    for (DType type : attr.default_value.get<std::vector<DType>>())
      allowed(attr.allowed_types, type);
  }
  if (attr.kind == AttrKind::kStringList) {
    for (const auto& text : attr.default_value.get<std::vector<std::string>>())
      allowed(attr.allowed_strings, text);
  }
  if (attr.kind == AttrKind::kInt && attr.default_value.get<int64_t>() < attr.minimum) {
    throw internal_error("the default ", attr.default_value, " is less than ", attr.minimum);
  }
}

ArgDef bind(OpDef& def, const ArgSpec& spec) {
  if (def.input_index(spec.name) >= 0 || def.output_index(spec.name) >= 0) {
    throw internal_error("the name \"", spec.name, "\" is taken");
  }
  ArgDef arg;
  arg.name = spec.name;
  arg.dtype = grammar_dtype(spec.type);
  if (!spec.number.empty()) {
    arg.number_attr = mention(def, spec.number);
    const AttrDef& attr = def.attrs[arg.number_attr];
    if (attr.kind != AttrKind::kNone) settle(arg, attr, arg.number_attr);
  }
  if (arg.dtype == DType::kInvalid) {
    arg.type_attr = mention(def, spec.type);
    const AttrDef& attr = def.attrs[arg.type_attr];
    if (attr.kind != AttrKind::kNone) settle(arg, attr, arg.type_attr);
  }
  return arg;
}

int input_named(const OpDef& def, std::string_view name) {
  const int i = def.input_index(name);
  if (i < 0) throw internal_error("op \"", def.name, "\" has no input \"", name, "\"");
  return i;
}

// Properties that name a flat position (view_of, in_place) need arguments that are single tensors
// up to there.
int flat_position(const OpDef& def, const std::vector<ArgDef>& args, std::string_view name,
                  std::string_view what) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].name == name) return static_cast<int>(i);
    if (args[i].is_list()) break;
  }
  throw internal_error("op \"", def.name, "\": ", what, " needs \"", name,
                       "\" as a single argument before any list");
}

}  // namespace

OpDeclaration& OpDeclaration::input(std::string_view spec) {
  declaring(def_, "input", spec, [&] { def_.inputs.push_back(bind(def_, parse_arg_spec(spec))); });
  return *this;
}

OpDeclaration& OpDeclaration::output(std::string_view spec) {
  declaring(def_, "output", spec,
            [&] { def_.outputs.push_back(bind(def_, parse_arg_spec(spec))); });
  return *this;
}

OpDeclaration& OpDeclaration::attr(std::string_view spec) {
  declaring(def_, "attr", spec, [&] {
    AttrDef parsed = parse_attr_spec(spec);
    check_default(parsed);
    const int position = mention(def_, parsed.name);
    if (def_.attrs[position].kind != AttrKind::kNone) throw internal_error("it is declared twice");
    for (ArgDef& arg : def_.inputs) settle(arg, parsed, position);
    for (ArgDef& arg : def_.outputs) settle(arg, parsed, position);
    def_.attrs[position] = std::move(parsed);
  });
  return *this;
}

OpDeclaration& OpDeclaration::shape(ShapeFn fn) {
  def_.shape_fn = fn;
  return *this;
}

OpDeclaration& OpDeclaration::gradient(GradientFn fn,
                                       std::initializer_list<std::string_view> reads) {
  def_.gradient_fn = fn;
  for (std::string_view name : reads) {
    const int in = def_.input_index(name);
    const int out = def_.output_index(name);
    if (in < 0 && out < 0) {
      throw internal_error("op \"", def_.name, "\": the gradient reads \"", name,
                           "\", which is no input or output");
    }
    (in >= 0 ? def_.inputs[in] : def_.outputs[out]).gradient_reads = true;
  }
  return *this;
}

OpDeclaration& OpDeclaration::not_differentiable() {
  def_.non_differentiable = true;
  return *this;
}

OpDeclaration& OpDeclaration::flops(FlopsFn fn) {
  def_.flops_fn = fn;
  return *this;
}

OpDeclaration& OpDeclaration::host(std::string_view input_or_output) {
  if (const int output = def_.output_index(input_or_output); output >= 0) {
    def_.outputs[static_cast<size_t>(output)].host = true;
  } else {
    def_.inputs[input_named(def_, input_or_output)].host = true;
  }
  return *this;
}

OpDeclaration& OpDeclaration::anywhere(std::string_view input) {
  def_.inputs[input_named(def_, input)].anywhere = true;
  return *this;
}

OpDeclaration& OpDeclaration::access(std::string_view input, Access access) {
  def_.inputs[input_named(def_, input)].access = access;
  return *this;
}

OpDeclaration& OpDeclaration::stored(std::string_view input) {
  def_.inputs[input_named(def_, input)].stored = true;
  return *this;
}

OpDeclaration& OpDeclaration::stateful() {
  def_.stateful = true;
  return *this;
}

OpDeclaration& OpDeclaration::random() {
  def_.random = true;
  def_.stateful = true;
  return *this;
}

OpDeclaration& OpDeclaration::commutative() {
  def_.commutative = true;
  return *this;
}

OpDeclaration& OpDeclaration::reduction() {
  def_.reduction = true;
  return *this;
}

OpDeclaration& OpDeclaration::elementwise() {
  def_.elementwise = true;
  return *this;
}

OpDeclaration& OpDeclaration::data_dependent_shape() {
  def_.data_dependent_shape = true;
  def_.allocates_outputs = true;
  return *this;
}

OpDeclaration& OpDeclaration::any_device() {
  def_.any_device = true;
  return *this;
}

OpDeclaration& OpDeclaration::computes_sizes() {
  def_.computes_sizes = true;
  return *this;
}

OpDeclaration& OpDeclaration::asynchronous() {
  def_.asynchronous = true;
  def_.allocates_outputs = true;
  return *this;
}

OpDeclaration& OpDeclaration::allocates_outputs() {
  def_.allocates_outputs = true;
  return *this;
}

OpDeclaration& OpDeclaration::view_of(std::string_view input) {
  def_.view_of = flat_position(def_, def_.inputs, input, "view_of");
  return *this;
}

OpDeclaration& OpDeclaration::in_place(std::string_view input, std::string_view output) {
  def_.in_place.emplace_back(flat_position(def_, def_.inputs, input, "in_place"),
                             flat_position(def_, def_.outputs, output, "in_place"));
  return *this;
}

OpDeclaration& OpDeclaration::version(int version, std::initializer_list<UpgradeFn> upgrades) {
  def_.version = version;
  def_.upgrades = upgrades;
  return *this;
}

OpDeclaration& OpDeclaration::doc(std::string_view text) {
  def_.doc = text;
  return *this;
}

}  // namespace treenail
