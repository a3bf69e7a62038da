// SPDX-License-Identifier: Apache-2.0
// From a plugin's structs to op definitions and kernels. Everything that can be refused is refused
// before anything is visible: the declarations are tried in a registry of their own first.
#include "framework/capi/plugin_registration.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>
#include <utility>

#include "framework/base/fork.h"
#include "framework/capi/guard.h"
#include "framework/op/op_registry.h"
#include "framework/op/spec_parser.h"

namespace treenail::capi {
namespace {

constexpr uint32_t kKnownFlags = TN_OP_STATEFUL | TN_OP_COMMUTATIVE | TN_OP_DATA_DEPENDENT_SHAPE |
                                 TN_OP_NOT_DIFFERENTIABLE | TN_OP_ALLOCATES_OUTPUTS |
                                 TN_OP_ASYNCHRONOUS;

struct Tables {
  ForkSharedMutex mutex;
  std::unordered_map<std::string, std::unique_ptr<const PluginOp>> ops;
  std::unordered_map<std::string, std::vector<std::unique_ptr<const PluginKernel>>> kernels;
};

Tables& tables() {
  static auto* const made = new Tables;
  return *made;
}

std::vector<std::string> strings(const char* const* list) {
  std::vector<std::string> out;
  for (; list != nullptr && *list != nullptr; ++list) out.emplace_back(*list);
  return out;
}

// Mistakes in a declaration are Internal in our own ops, and the plugin's author's to mend here.
template <class F>
void declaring(F&& body) {
  try {
    body();
  } catch (const Error& error) {
    if (error.code() != Code::kInternal) throw;
    throw Error(Code::kInvalidArgument, error.message());
  }
}

void declare(OpRegistry& registry, const PluginOp& op) {
  // What a plugin's code does in this process nobody can know.
  OpDeclaration d = registry.op(op.name, HostAccess::kProcess);
  for (const std::string& spec : op.inputs) d.input(spec);
  for (const std::string& spec : op.outputs) d.output(spec);
  for (const std::string& spec : op.attrs) d.attr(spec);
  d.shape(plugin_shape).doc(op.doc);
  if (op.gradient != nullptr) d.gradient(plugin_gradient);
  for (const std::string& name : op.gradient_reads) d.gradient(plugin_gradient, {name});
  for (const std::string& name : op.host_inputs) d.host(name);
  for (size_t i = 0; i + 1 < op.in_place.size(); i += 2)
    d.in_place(op.in_place[i], op.in_place[i + 1]);
  if (op.flags & TN_OP_STATEFUL) d.stateful();
  if (op.flags & TN_OP_COMMUTATIVE) d.commutative();
  if (op.flags & TN_OP_DATA_DEPENDENT_SHAPE) d.data_dependent_shape();
  if (op.flags & TN_OP_ALLOCATES_OUTPUTS) d.allocates_outputs();
  if (op.flags & TN_OP_ASYNCHRONOUS) d.asynchronous();
  if (op.flags & TN_OP_NOT_DIFFERENTIABLE) d.not_differentiable();
}

void check_no_resources(const OpDef& def) {
  for (const auto* args : {&def.inputs, &def.outputs}) {
    for (const ArgDef& arg : *args) {
      if (arg.dtype != DType::kResource && arg.dtype != DType::kVariant) continue;
      throw invalid_argument("op \"", def.name, "\": \"", arg.name, "\" is a ", arg.dtype,
                             ", which plugins of ABI version ", TN_PLUGIN_ABI_VERSION,
                             " cannot handle");
    }
  }
}

// All declarations in a registry that nobody sees.
void declare_for_trial(OpRegistry& trial, const std::vector<PluginOp>& ops) {
  for (const PluginOp& op : ops) {
    if (const OpDef* there = OpRegistry::instance().find(op.name)) {
      throw already_exists("op \"", op.name, "\" is registered already, by \"", there->family,
                           "\"");
    }
    declaring([&] { declare(trial, op); });
  }
  declaring([&] { trial.finish("plugin"); });
  for (const OpDef* def : trial.all()) check_no_resources(*def);
}

void check_kernel(const OpRegistry& trial, const PluginKernel& kernel) {
  const OpDef* own = trial.find(kernel.op);
  const OpDef& def = own != nullptr ? *own : OpRegistry::instance().get(kernel.op);
  if (def.asynchronous != (kernel.start != nullptr)) {
    throw invalid_argument("op \"", kernel.op, "\" is ",
                           def.asynchronous ? "asynchronous, but a kernel for it has no start"
                                            : "not asynchronous, but a kernel for it has a start",
                           " function");
  }
  for (const TypeConstraint& constraint : kernel.constraints) {
    const int position = def.attr_index(constraint.attr);
    if (position >= 0 &&
        element_kind(def.attrs[static_cast<size_t>(position)].kind) == AttrKind::kType) {
      continue;
    }
    throw invalid_argument("a kernel for op \"", kernel.op, "\" constrains \"", constraint.attr,
                           "\", which is no type attribute of it");
  }
}

bool serves(const PluginKernel& kernel, const OpInstance& op) {
  const auto allowed = [](const TypeConstraint& constraint, DType dtype) {
    return std::find(constraint.dtypes.begin(), constraint.dtypes.end(), dtype) !=
           constraint.dtypes.end();
  };
  return std::all_of(kernel.constraints.begin(), kernel.constraints.end(), [&](const auto& c) {
    const AttrValue& value = op.attr(c.attr);
    if (value.kind() == AttrKind::kType) return allowed(c, value.get<DType>());
    const auto& types = value.get<std::vector<DType>>();
    return std::all_of(types.begin(), types.end(), [&](DType type) { return allowed(c, type); });
  });
}

// Entries of the tables made for a registration, taken out again unless it succeeds.
class Entries {
 public:
  explicit Entries(const PluginRegistration& registration) {
    const std::unique_lock lock(tables().mutex);
    for (const PluginOp& op : registration.ops) {
      tables().ops.insert_or_assign(op.name, std::make_unique<const PluginOp>(op));
      ops_.push_back(op.name);
    }
    for (const PluginKernel& kernel : registration.kernels) {
      auto& list = tables().kernels[kernel.op];
      list.push_back(std::make_unique<const PluginKernel>(kernel));
      kernels_.push_back(list.back().get());
    }
  }
  ~Entries() {
    const std::unique_lock lock(tables().mutex);
    for (const std::string& op : ops_) tables().ops.erase(op);
    for (const PluginKernel* kernel : kernels_) {
      std::erase_if(tables().kernels[kernel->op],
                    [kernel](const auto& entry) { return entry.get() == kernel; });
    }
  }
  Entries(const Entries&) = delete;
  Entries& operator=(const Entries&) = delete;
  void keep() {
    ops_.clear();
    kernels_.clear();
  }

 private:
  std::vector<std::string> ops_;
  std::vector<const PluginKernel*> kernels_;
};

// Declares the ops for good, unless it is destroyed before finish().
class Declarations {
 public:
  explicit Declarations(const std::vector<PluginOp>& ops) {
    try {
      for (const PluginOp& op : ops) declare(OpRegistry::instance(), op);
    } catch (...) {
      OpRegistry::instance().abandon();
      throw;
    }
  }
  ~Declarations() {
    if (!finished_) OpRegistry::instance().abandon();
  }
  Declarations(const Declarations&) = delete;
  Declarations& operator=(const Declarations&) = delete;
  void finish(std::string_view family) {
    finished_ = true;
    OpRegistry::instance().finish(family);
  }

 private:
  bool finished_ = false;
};

}  // namespace

PluginOp plugin_op_from(const tn_op_spec* spec) {
  required(spec, "the op's description");
  const tn_op_spec given = versioned(spec, tn_op_spec{}, "tn_op_spec");
  PluginOp op;
  op.name = text(given.name, "the op's name");
  const auto fail = [&](std::string_view what) {
    throw invalid_argument("op \"", op.name, "\": ", what);
  };
  if (given.shape == nullptr) fail("it has no shape rule");
  if ((given.flags & ~kKnownFlags) != 0) fail("a flag is not known to this version of Treenail");
  op.doc = given.doc == nullptr ? "" : given.doc;
  op.inputs = strings(given.inputs);
  op.outputs = strings(given.outputs);
  op.attrs = strings(given.attrs);
  op.host_inputs = strings(given.host_inputs);
  op.gradient_reads = strings(given.gradient_reads);
  op.in_place = strings(given.in_place);
  op.flags = given.flags;
  op.shape = given.shape;
  op.gradient = given.gradient;
  op.data = given.data;
  if (op.gradient == nullptr && (op.flags & TN_OP_NOT_DIFFERENTIABLE) == 0) {
    fail("it has no gradient rule; if it has no gradient by nature, flag TN_OP_NOT_DIFFERENTIABLE");
  }
  if (op.gradient == nullptr && !op.gradient_reads.empty()) {
    fail("it says what its gradient rule reads, but has none");
  }
  if (op.in_place.size() % 2 != 0) fail("in_place lists pairs of an input and an output");
  return op;
}

PluginKernel plugin_kernel_from(const tn_kernel_spec* spec) {
  required(spec, "the kernel's description");
  const tn_kernel_spec given = versioned(spec, tn_kernel_spec{}, "tn_kernel_spec");
  PluginKernel kernel;
  kernel.op = text(given.op, "the kernel's op");
  if (given.run == nullptr && given.start == nullptr) {
    throw invalid_argument("a kernel for op \"", kernel.op, "\" has no run function");
  }
  if (given.run != nullptr && given.start != nullptr) {
    throw invalid_argument("a kernel for op \"", kernel.op,
                           "\" has both a run and a start function");
  }
  for (const std::string& types : strings(given.types)) {
    AttrDef parsed;
    declaring([&] {
      try {
        parsed = parse_attr_spec(types);
      } catch (const Error& error) {
        throw error.with_prefix(concat("a kernel for op \"", kernel.op, "\": "));
      }
    });
    if (parsed.allowed_types.empty()) {
      throw invalid_argument("a kernel for op \"", kernel.op, "\" constrains types by \"", types,
                             "\"; needed is, for example, \"T: {float, double}\"");
    }
    kernel.constraints.push_back({parsed.name, parsed.allowed_types});
  }
  kernel.prepare = given.prepare;
  kernel.run = given.run;
  kernel.start = given.start;
  kernel.destroy = given.destroy;
  kernel.data = given.data;
  return kernel;
}

void commit(const PluginRegistration& registration, std::string_view plugin) {
  OpRegistry trial;
  declare_for_trial(trial, registration.ops);
  for (const PluginKernel& kernel : registration.kernels) check_kernel(trial, kernel);
  Entries entries(registration);
  Declarations declarations(registration.ops);
  if (!registration.kernels.empty()) {
    std::vector<KernelRegistration> kernels;
    for (const PluginKernel& kernel : registration.kernels) {
      kernels.push_back({kernel.op, kernel.constraints, plugin_prepare});
    }
    KernelRegistry::instance().add_all(std::move(kernels));
  }
  declarations.finish(plugin);
  entries.keep();
}

const PluginOp& plugin_op(const OpInstance& op) {
  const std::shared_lock lock(tables().mutex);
  return *tables().ops.at(op.name());
}

const PluginKernel& plugin_kernel(const OpInstance& op) {
  const std::shared_lock lock(tables().mutex);
  for (const auto& kernel : tables().kernels.at(op.name())) {
    if (serves(*kernel, op)) return *kernel;
  }
  throw internal_error("no plugin kernel serves op \"", op.name(), "\"");
}

}  // namespace treenail::capi
