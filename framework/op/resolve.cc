// SPDX-License-Identifier: Apache-2.0
// resolve_op: from a definition, input dtypes and named attributes to an OpInstance. What inputs
// tell about attributes (T from a dtype, N from a list's length) is noted with the input that told
// it, so that a contradiction names both.
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/op/op_def.h"

namespace treenail {
namespace {

// Keeps a hostile count (of a file, say) from becoming a huge allocation.
constexpr int64_t kMaxArgs = int64_t{1} << 20;

constexpr int kGiven = -1;       // told by the caller as an attribute
constexpr int kUnknownArg = -2;  // not told yet

std::string join(const std::vector<std::string>& parts) {
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : ", ") + part;
  return out;
}

std::string type_names(const std::vector<DType>& types) {
  std::vector<std::string> names;
  for (DType type : types) names.push_back(to_text(type));
  return join(names);
}

std::string string_names(const std::vector<std::string>& strings) {
  std::vector<std::string> names;
  for (const std::string& text : strings) names.push_back(to_text(AttrValue(text)));
  return join(names);
}

template <class T>
bool contains(const std::vector<T>& values, const T& value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

int64_t list_length(const AttrValue& value) {
  switch (value.kind()) {
    case AttrKind::kIntList:
      return static_cast<int64_t>(value.get<std::vector<int64_t>>().size());
    case AttrKind::kFloatList:
      return static_cast<int64_t>(value.get<std::vector<double>>().size());
    case AttrKind::kBoolList:
      return static_cast<int64_t>(value.get<std::vector<bool>>().size());
    case AttrKind::kStringList:
      return static_cast<int64_t>(value.get<std::vector<std::string>>().size());
    case AttrKind::kTypeList:
      return static_cast<int64_t>(value.get<std::vector<DType>>().size());
    case AttrKind::kShapeList:
      return static_cast<int64_t>(value.get<std::vector<PartialShape>>().size());
    case AttrKind::kTensorList:
      return static_cast<int64_t>(value.get<std::vector<Tensor>>().size());
    case AttrKind::kFunctionList:
      return static_cast<int64_t>(value.get<std::vector<FunctionAttr>>().size());
    default:
      return 0;
  }
}

class Resolver {
 public:
  Resolver(const OpDef& def, std::span<const DType> input_types)
      : def_(def),
        types_(input_types),
        attrs(def.attrs.size()),
        told_by_(def.attrs.size(), kUnknownArg) {}

  void take_attributes(std::span<const NamedAttr> given);
  void divide_inputs(std::span<const int> arg_sizes);
  void infer_from_inputs();
  void fill_defaults();
  void check_values() const;
  void build_outputs();

 private:
  const OpDef& def_;
  std::span<const DType> types_;

 public:
  std::vector<AttrValue> attrs;
  std::vector<int> input_begin{0};
  std::vector<DType> output_types;
  std::vector<int> output_begin{0};

 private:
  bool known(int attr) const { return attrs[attr].defined(); }
  std::string input_name(int flat) const;
  // "input "a" has", or "attribute "T" is" for one given by the caller.
  void infer_type(int attr, int flat);
  void infer_number(int attr, int arg, int64_t size);
  void infer_type_list(int attr, int arg, std::vector<DType> types);
  // Attribute that gives the length of list argument `arg`.
  int length_attr(const ArgDef& arg) const {
    return arg.number_attr >= 0 ? arg.number_attr : arg.type_list_attr;
  }
  int64_t known_length(const ArgDef& arg) const;
  void derive_sizes(std::vector<int64_t>& sizes) const;
  void check_types(int attr, std::span<const DType> types) const;
  [[noreturn]] void throw_count(int64_t least, bool open) const;

  std::vector<int>
      told_by_;  // per attribute: the flat input (type), or declared input (lists), that told it
};

std::string Resolver::input_name(int flat) const {
  int arg = 0;
  while (input_begin[arg + 1] <= flat) ++arg;
  const ArgDef& def = def_.inputs[arg];
  return def.is_list() ? concat(def.name, "[", flat - input_begin[arg], "]") : def.name;
}

void Resolver::take_attributes(std::span<const NamedAttr> given) {
  for (const auto& [name, value] : given) {
    const int position = def_.attr_index(name);
    if (position < 0) {
      std::vector<std::string_view> names;
      for (const AttrDef& attr : def_.attrs) names.push_back(attr.name);
      throw invalid_argument("no attribute \"", name, "\"", did_you_mean(name, names));
    }
    if (known(position)) throw invalid_argument("attribute \"", name, "\" is given twice");
    try {
      attrs[position] = value.converted(def_.attrs[position].kind);
    } catch (const Error& error) {
      throw error.with_prefix(concat("attribute \"", name, "\": "));
    }
    told_by_[position] = kGiven;
  }
}

int64_t Resolver::known_length(const ArgDef& arg) const {
  const int attr = length_attr(arg);
  if (!known(attr)) return kUnknown;
  if (arg.number_attr < 0) return list_length(attrs[attr]);
  const int64_t n = attrs[attr].get<int64_t>();
  if (n < 0 || n > kMaxArgs) {
    throw invalid_argument("attribute \"", def_.attrs[attr].name, "\" = ", n, " is not in [0, ",
                           kMaxArgs, "]");
  }
  return n;
}

void Resolver::throw_count(int64_t least, bool open) const {
  throw invalid_argument("expects ", open ? "at least " : "", least,
                         least == 1 ? " input" : " inputs", ", got ", types_.size());
}

// Lists whose length no attribute tells share what the others leave; those of one attribute share
// it evenly.
void Resolver::derive_sizes(std::vector<int64_t>& sizes) const {
  int open_attr = -1;
  std::vector<size_t> open;
  int64_t taken = 0;
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const ArgDef& arg = def_.inputs[i];
    sizes[i] = arg.is_list() ? known_length(arg) : 1;
    if (sizes[i] != kUnknown) {
      taken += sizes[i];
      continue;
    }
    if (open_attr >= 0 && open_attr != length_attr(arg)) {
      throw invalid_argument("cannot tell how many inputs belong to \"", def_.inputs[open[0]].name,
                             "\" and how many to \"", arg.name, "\"; the caller must say");
    }
    open_attr = length_attr(arg);
    open.push_back(i);
  }
  const int64_t left = static_cast<int64_t>(types_.size()) - taken;
  if (left < 0 || (open.empty() && left > 0)) throw_count(taken, !open.empty());
  if (open.empty()) return;
  const int64_t lists = static_cast<int64_t>(open.size());
  if (left % lists != 0) {
    throw invalid_argument("got ", types_.size(), " inputs: ", left,
                           " of them cannot be shared evenly by ", lists, " lists of length ",
                           def_.attrs[open_attr].name);
  }
  for (size_t i : open) sizes[i] = left / lists;
}

void Resolver::divide_inputs(std::span<const int> arg_sizes) {
  std::vector<int64_t> sizes(def_.inputs.size(), 1);
  if (arg_sizes.empty()) {
    derive_sizes(sizes);
  } else {
    if (arg_sizes.size() != def_.inputs.size()) {
      throw invalid_argument("expects sizes for ", def_.inputs.size(), " arguments, got ",
                             arg_sizes.size());
    }
    for (size_t i = 0; i < sizes.size(); ++i) {
      sizes[i] = arg_sizes[i];
      if (sizes[i] < 0 || (!def_.inputs[i].is_list() && sizes[i] != 1)) {
        throw invalid_argument("input \"", def_.inputs[i].name, "\" is given as ", sizes[i],
                               " tensors, needed is ", def_.inputs[i].is_list() ? "a list" : "one");
      }
    }
    const int64_t sum = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    if (sum != static_cast<int64_t>(types_.size())) throw_count(sum, false);
  }
  for (int64_t size : sizes) input_begin.push_back(input_begin.back() + static_cast<int>(size));
}

void Resolver::infer_type(int attr, int flat) {
  const std::string& name = def_.attrs[attr].name;
  const DType type = types_[flat];
  if (!known(attr)) {
    attrs[attr] = type;
    told_by_[attr] = flat;
    return;
  }
  const DType wanted = attrs[attr].get<DType>();
  if (wanted == type) return;
  if (told_by_[attr] == kGiven) {
    throw invalid_argument("input \"", input_name(flat), "\" has dtype ", type,
                           ", but attribute \"", name, "\" = ", wanted);
  }
  throw invalid_argument("input \"", input_name(flat), "\" has dtype ", type, ", but input \"",
                         input_name(told_by_[attr]), "\" has ", wanted, "; both are ", name);
}

void Resolver::infer_number(int attr, int arg, int64_t size) {
  if (!known(attr)) {
    attrs[attr] = size;
    told_by_[attr] = arg;
    return;
  }
  const int64_t wanted = attrs[attr].get<int64_t>();
  if (wanted == size) return;
  const std::string& name = def_.attrs[attr].name;
  if (told_by_[attr] == kGiven) {
    throw invalid_argument("input \"", def_.inputs[arg].name, "\" has ", size,
                           " tensors, but attribute \"", name, "\" = ", wanted);
  }
  throw invalid_argument("input \"", def_.inputs[arg].name, "\" has ", size,
                         " tensors, but input \"", def_.inputs[told_by_[attr]].name, "\" has ",
                         wanted, "; both are of length ", name);
}

void Resolver::infer_type_list(int attr, int arg, std::vector<DType> types) {
  if (!known(attr)) {
    attrs[attr] = std::move(types);
    told_by_[attr] = arg;
    return;
  }
  const auto& wanted = attrs[attr].get<std::vector<DType>>();
  if (wanted == types) return;
  const std::string text =
      concat("input \"", def_.inputs[arg].name, "\" has dtypes ", AttrValue(std::move(types)));
  if (told_by_[attr] == kGiven) {
    throw invalid_argument(text, ", but attribute \"", def_.attrs[attr].name, "\" = ", attrs[attr]);
  }
  throw invalid_argument(text, ", but input \"", def_.inputs[told_by_[attr]].name, "\" has ",
                         attrs[attr], "; both are ", def_.attrs[attr].name);
}

void Resolver::infer_from_inputs() {
  for (size_t i = 0; i < def_.inputs.size(); ++i) {
    const ArgDef& arg = def_.inputs[i];
    const int begin = input_begin[i];
    const int end = input_begin[i + 1];
    if (arg.number_attr >= 0) infer_number(arg.number_attr, static_cast<int>(i), end - begin);
    if (arg.type_list_attr >= 0) {
      infer_type_list(arg.type_list_attr, static_cast<int>(i),
                      std::vector<DType>(types_.begin() + begin, types_.begin() + end));
    }
    for (int flat = begin; flat < end; ++flat) {
      if (arg.type_attr >= 0) {
        infer_type(arg.type_attr, flat);
      } else if (arg.dtype != DType::kInvalid && types_[flat] != arg.dtype) {
        throw invalid_argument("input \"", input_name(flat), "\" has dtype ", types_[flat],
                               ", needed is ", arg.dtype);
      }
    }
  }
}

void Resolver::fill_defaults() {
  for (size_t i = 0; i < attrs.size(); ++i) {
    if (known(static_cast<int>(i))) continue;
    const AttrDef& attr = def_.attrs[i];
    if (!attr.has_default) throw invalid_argument("attribute \"", attr.name, "\" is missing");
    attrs[i] = attr.default_value;
    told_by_[i] = kGiven;
  }
}

void Resolver::check_types(int attr, std::span<const DType> types) const {
  const AttrDef& def = def_.attrs[attr];
  for (size_t i = 0; i < types.size(); ++i) {
    const DType type = types[i];
    const bool valid = dtype_is_valid(static_cast<int>(type));
    if (valid && (def.allowed_types.empty() || contains(def.allowed_types, type))) continue;
    const std::string needed =
        def.allowed_types.empty() ? "a dtype" : concat("one of ", type_names(def.allowed_types));
    const int told = told_by_[attr];
    if (told < 0) {
      throw invalid_argument("attribute \"", def.name, "\" = ", attrs[attr], " is not ", needed);
    }
    const int flat = def.kind == AttrKind::kType ? told : input_begin[told] + static_cast<int>(i);
    throw invalid_argument("input \"", input_name(flat), "\" has dtype ", type, ", needed is ",
                           needed);
  }
}

void Resolver::check_values() const {
  for (size_t i = 0; i < attrs.size(); ++i) {
    const AttrDef& def = def_.attrs[i];
    const AttrValue& value = attrs[i];
    if (def.kind == AttrKind::kType)
      check_types(static_cast<int>(i), std::span(&value.get<DType>(), 1));
    if (def.kind == AttrKind::kTypeList)
      check_types(static_cast<int>(i), value.get<std::vector<DType>>());
    if (!def.allowed_strings.empty()) {
      const bool list = is_list(def.kind);
      const auto texts = list ? value.get<std::vector<std::string>>()
                              : std::vector<std::string>{value.get<std::string>()};
      for (const std::string& text : texts) {
        if (contains(def.allowed_strings, text)) continue;
        throw invalid_argument("attribute \"", def.name, "\" = ", AttrValue(text),
                               " is not one of ", string_names(def.allowed_strings));
      }
    }
    if (def.kind == AttrKind::kInt && value.get<int64_t>() < def.minimum) {
      const int told = told_by_[i];
      if (told >= 0) {
        throw invalid_argument("input \"", def_.inputs[told].name, "\" has ", value,
                               " tensors, at least ", def.minimum,
                               def.minimum == 1 ? " is needed" : " are needed");
      }
      throw invalid_argument("attribute \"", def.name, "\" = ", value, " is less than ",
                             def.minimum);
    }
    if (is_list(def.kind) && list_length(value) < def.minimum) {
      throw invalid_argument("attribute \"", def.name, "\" = ", value, " has ", list_length(value),
                             " elements, at least ", def.minimum,
                             def.minimum == 1 ? " is needed" : " are needed");
    }
  }
}

void Resolver::build_outputs() {
  for (const ArgDef& arg : def_.outputs) {
    if (arg.type_list_attr >= 0) {
      const auto& types = attrs[arg.type_list_attr].get<std::vector<DType>>();
      output_types.insert(output_types.end(), types.begin(), types.end());
    } else {
      const int64_t count = arg.number_attr >= 0 ? known_length(arg) : 1;
      const DType type = arg.type_attr >= 0 ? attrs[arg.type_attr].get<DType>() : arg.dtype;
      output_types.insert(output_types.end(), static_cast<size_t>(count), type);
    }
    output_begin.push_back(static_cast<int>(output_types.size()));
  }
}

}  // namespace

OpInstance resolve_op(const OpDef& def, std::span<const DType> input_types,
                      std::span<const NamedAttr> attrs, std::span<const int> arg_sizes) {
  Resolver resolver(def, input_types);
  resolver.take_attributes(attrs);
  resolver.divide_inputs(arg_sizes);
  resolver.infer_from_inputs();
  resolver.fill_defaults();
  resolver.check_values();
  resolver.build_outputs();
  auto resolved = std::make_shared<OpInstance::Resolved>();
  resolved->def = &def;
  resolved->attrs = std::move(resolver.attrs);
  resolved->input_types.assign(input_types.begin(), input_types.end());
  resolved->output_types = std::move(resolver.output_types);
  resolved->input_begin = std::move(resolver.input_begin);
  resolved->output_begin = std::move(resolver.output_begin);
  OpInstance op;
  op.resolved_ = std::move(resolved);
  return op;
}

}  // namespace treenail
