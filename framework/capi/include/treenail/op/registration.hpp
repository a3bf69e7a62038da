// SPDX-License-Identifier: Apache-2.0
// Declarations: TREENAIL_REGISTER_OP, TREENAIL_REGISTER_KERNEL_BUILDER, TREENAIL_REGISTER_KERNELS
// and, once per plugin, TREENAIL_PLUGIN. They are kept while the library is opened and handed over
// by its tn_plugin_init; what is wrong with one of them is then said, and nothing of the plugin
// stays.
#ifndef TREENAIL_OP_REGISTRATION_HPP_
#define TREENAIL_OP_REGISTRATION_HPP_

#include <cstdint>
#include <deque>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "treenail/op/async_kernel.hpp"
#include "treenail/op/gradient.hpp"
#include "treenail/op/shape.hpp"

namespace tn {
namespace op {

constexpr const char* DEVICE_CPU = "CPU";

struct OpDeclaration {
  std::string name, doc;
  std::vector<std::string> inputs, outputs, attrs, host_inputs, gradient_reads, in_place;
  uint32_t flags = 0;
  ShapeFn shape = nullptr;
  GradientFn gradient = nullptr;
};

// As of the grammar of ops: "x: T", "values: N * T", "T: {float, double} = float", "L: int >= 0".
class OpDefBuilder {
 public:
  explicit OpDefBuilder(const char* name) { op_.name = name; }
  OpDefBuilder& Input(const char* spec) { return Add(op_.inputs, spec); }
  OpDefBuilder& Output(const char* spec) { return Add(op_.outputs, spec); }
  OpDefBuilder& Attr(const char* spec) { return Add(op_.attrs, spec); }
  OpDefBuilder& Doc(const char* text) {
    op_.doc = text;
    return *this;
  }
  OpDefBuilder& SetShapeFn(ShapeFn function) {
    op_.shape = function;
    return *this;
  }
  // `reads`: the inputs and outputs whose values the rule reads.
  OpDefBuilder& SetGradientFn(GradientFn function, std::vector<std::string> reads = {}) {
    op_.gradient = function;
    op_.gradient_reads = std::move(reads);
    return *this;
  }
  // It has no gradient by nature; or one that is given in Python, by tn.RegisterGradient.
  OpDefBuilder& NotDifferentiable() { return Flag(TN_OP_NOT_DIFFERENTIABLE); }
  // Never folded, merged or duplicated.
  OpDefBuilder& SetIsStateful() { return Flag(TN_OP_STATEFUL); }
  OpDefBuilder& SetIsCommutative() { return Flag(TN_OP_COMMUTATIVE); }
  // The shape of outputs follows from values; the kernel allocates them.
  OpDefBuilder& DataDependentShape() { return Flag(TN_OP_DATA_DEPENDENT_SHAPE); }
  OpDefBuilder& AllocatesOutputs() { return Flag(TN_OP_ALLOCATES_OUTPUTS); }
  // The kernel's constructor needs the value of this input.
  OpDefBuilder& HostInput(const char* input) { return Add(op_.host_inputs, input); }
  // The output may take the memory of the input when that value dies here.
  OpDefBuilder& InPlace(const char* input, const char* output) {
    return Add(op_.in_place, input).Add(op_.in_place, output);
  }
  const OpDeclaration& declaration() const { return op_; }

 private:
  OpDefBuilder& Add(std::vector<std::string>& list, const char* text) {
    list.emplace_back(text);
    return *this;
  }
  OpDefBuilder& Flag(uint32_t flag) {
    op_.flags |= flag;
    return *this;
  }
  OpDeclaration op_;
};

struct KernelDeclaration {
  std::string op;
  std::vector<std::string> types;  // "T: {float}"
  OpKernel* (*make)(OpKernelConstruction*) = nullptr;
  bool waits = false;
};

namespace detail {

// The word of op declarations for a dtype.
inline const char* TypeWord(DataType dtype) {
  switch (dtype) {
    case DT_FLOAT:
      return "float";
    case DT_DOUBLE:
      return "double";
    case DT_INT8:
      return "int8";
    case DT_INT16:
      return "int16";
    case DT_INT32:
      return "int32";
    case DT_INT64:
      return "int64";
    case DT_UINT8:
      return "uint8";
    case DT_UINT16:
      return "uint16";
    case DT_UINT32:
      return "uint32";
    case DT_UINT64:
      return "uint64";
    case DT_BOOL:
      return "bool";
    case DT_COMPLEX64:
      return "complex64";
    case DT_COMPLEX128:
      return "complex128";
    case DT_HALF:
      return "half";
    case DT_BFLOAT16:
      return "bfloat16";
    case DT_STRING:
      return "string";
    default:
      return "invalid";
  }
}

}  // namespace detail

// Of TREENAIL_REGISTER_KERNEL_BUILDER: Name("Cube").Device(DEVICE_CPU).TypeConstraint<float>("T")
class Name {
 public:
  explicit Name(const char* op) { kernel_.op = op; }
  // Kernels of plugins run on the CPU.
  Name& Device(const char*) { return *this; }
  template <class T>
  Name& TypeConstraint(const char* attr) {
    return TypeConstraint(attr, {DataTypeToEnum<T>::value});
  }
  Name& TypeConstraint(const char* attr, const std::vector<DataType>& types) {
    std::string text = std::string(attr) + ": {";
    for (const DataType type : types)
      text += (text.back() == '{' ? "" : ", ") + std::string(detail::TypeWord(type));
    kernel_.types.push_back(text + "}");
    return *this;
  }
  const KernelDeclaration& declaration() const { return kernel_; }

 private:
  KernelDeclaration kernel_;
};

namespace detail {

// Of this library alone, though several with this header be in one process; never destroyed, for
// threads may be running a kernel while the process ends.
struct Registry {
  std::deque<OpDeclaration> ops;
  std::deque<KernelDeclaration> kernels;
  bool out_of_memory = false;
};
TREENAIL_OP_HIDDEN inline Registry& registry() {
  static Registry* const made = new Registry;
  return *made;
}

// An exception that left a static constructor would end the process.
template <class Body>
void Registering(const Body& body) noexcept {
  try {
    body(registry());
  } catch (...) {
    registry().out_of_memory = true;
  }
}

struct RegisteredOp {
  RegisteredOp(const OpDefBuilder& op) noexcept {  // NOLINT(google-explicit-constructor)
    Registering([&](Registry& r) { r.ops.push_back(op.declaration()); });
  }
};

template <class Kernel>
OpKernel* Make(OpKernelConstruction* context) {
  return new Kernel(context);
}

template <class Kernel>
struct RegisteredKernel {
  explicit RegisteredKernel(const Name& name) noexcept {
    static_assert(std::is_base_of_v<OpKernel, Kernel>, "a kernel derives from OpKernel");
    Registering([&](Registry& r) {
      KernelDeclaration kernel = name.declaration();
      kernel.make = Make<Kernel>;
      kernel.waits = std::is_base_of_v<AsyncOpKernel, Kernel>;
      r.kernels.push_back(std::move(kernel));
    });
  }
};

// One kernel per element type.
template <template <class> class Kernel, class... Types>
struct RegisteredKernels {
  RegisteredKernels(const char* op, const char* attr) noexcept {
    ((void)RegisteredKernel<Kernel<Types>>(Name(op).template TypeConstraint<Types>(attr)), ...);
  }
};

inline void ShapeRule(const tn_host*, tn_shape_context* context, void* data,
                      tn_status* status) noexcept {
  Store(Guarded("the shape rule",
                [&] {
                  InferenceContext c(context);
                  return static_cast<const OpDeclaration*>(data)->shape(&c);
                }),
        status);
}

inline void GradientRule(const tn_host*, tn_gradient_context* context, void* data,
                         tn_status* status) noexcept {
  Store(Guarded("the gradient rule",
                [&] {
                  GradientContext c(context);
                  return static_cast<const OpDeclaration*>(data)->gradient(&c);
                }),
        status);
}

inline void* Prepare(const tn_host*, tn_prepare_context* context, void* data,
                     tn_status* status) noexcept {
  OpKernel* kernel = nullptr;
  Store(Guarded("the kernel's constructor",
                [&] {
                  OpKernelConstruction c(context);
                  kernel = static_cast<const KernelDeclaration*>(data)->make(&c);
                  return c.status();
                }),
        status);
  return kernel;
}

inline void Run(const tn_host*, tn_run_context* context, const void* state,
                tn_status* status) noexcept {
  auto* kernel = static_cast<OpKernel*>(const_cast<void*>(state));
  Store(Guarded("the kernel",
                [&] {
                  OpKernelContext c(context);
                  kernel->Compute(&c);
                  return c.status();
                }),
        status);
}

inline void Start(const tn_host*, tn_run_context* context, const void* state) noexcept {
  static_cast<AsyncOpKernel*>(static_cast<OpKernel*>(const_cast<void*>(state)))->Start(context);
}

inline void Destroy(const tn_host*, void* state) noexcept { delete static_cast<OpKernel*>(state); }

// A list that C reads, ended by NULL.
class CList {
 public:
  explicit CList(const std::vector<std::string>& texts) {
    for (const std::string& text : texts) pointers_.push_back(text.c_str());
    pointers_.push_back(nullptr);
  }
  const char* const* get() const { return pointers_.data(); }

 private:
  std::vector<const char*> pointers_;
};

inline void HandOver(tn_plugin* plugin, OpDeclaration& op) {
  const CList inputs(op.inputs), outputs(op.outputs), attrs(op.attrs), hosts(op.host_inputs),
      reads(op.gradient_reads), in_place(op.in_place);
  tn_op_spec spec = {};
  spec.struct_size = sizeof(spec);
  spec.name = op.name.c_str();
  spec.inputs = inputs.get();
  spec.outputs = outputs.get();
  spec.attrs = attrs.get();
  spec.doc = op.doc.c_str();
  spec.flags = op.flags;
  for (const KernelDeclaration& kernel : registry().kernels)
    if (kernel.op == op.name && kernel.waits) spec.flags |= TN_OP_ASYNCHRONOUS;
  spec.host_inputs = hosts.get();
  spec.gradient_reads = reads.get();
  spec.in_place = in_place.get();
  spec.shape = op.shape == nullptr ? nullptr : ShapeRule;
  spec.gradient = op.gradient == nullptr ? nullptr : GradientRule;
  spec.data = &op;
  host()->register_op(plugin, &spec);
}

inline void HandOver(tn_plugin* plugin, KernelDeclaration& kernel) {
  const CList types(kernel.types);
  tn_kernel_spec spec = {};
  spec.struct_size = sizeof(spec);
  spec.op = kernel.op.c_str();
  spec.types = kernel.types.empty() ? nullptr : types.get();
  spec.prepare = Prepare;
  if (kernel.waits)
    spec.start = Start;
  else
    spec.run = Run;
  spec.destroy = Destroy;
  spec.data = &kernel;
  host()->register_kernel(plugin, &spec);
}

inline void Initialise(const tn_host* given, tn_plugin* plugin, const char* name,
                       const char* version) noexcept {
  if (!tn_plugin_begin(given, plugin, name, version)) return;
  host_slot() = given;
  Store(Guarded("the plugin's set-up",
                [&] {
                  if (registry().out_of_memory)
                    return errors::ResourceExhausted("the plugin's set-up ran out of memory");
                  for (OpDeclaration& op : registry().ops) HandOver(plugin, op);
                  for (KernelDeclaration& kernel : registry().kernels) HandOver(plugin, kernel);
                  return Status();
                }),
        plugin->status);
}

}  // namespace detail
}  // namespace op
}  // namespace tn

#define TREENAIL_OP_JOIN_2_(a, b) a##b
#define TREENAIL_OP_JOIN_(a, b) TREENAIL_OP_JOIN_2_(a, b)
#define TREENAIL_OP_FRESH_ TREENAIL_OP_JOIN_(treenail_registered_, __COUNTER__)

// TREENAIL_REGISTER_OP("Cube").Input("x: T").Output("y: T").Attr("T: {float, double}")...;
#define TREENAIL_REGISTER_OP(name)                                                  \
  [[maybe_unused]] static const ::tn::op::detail::RegisteredOp TREENAIL_OP_FRESH_ = \
      ::tn::op::OpDefBuilder(name)
// TREENAIL_REGISTER_KERNEL_BUILDER(Name("Cube").Device(DEVICE_CPU), CubeOp);
#define TREENAIL_REGISTER_KERNEL_BUILDER(builder, ...)                          \
  [[maybe_unused]] static const ::tn::op::detail::RegisteredKernel<__VA_ARGS__> \
      TREENAIL_OP_FRESH_([] {                                                   \
        using namespace ::tn::op; /* NOLINT */                                  \
        return builder;                                                         \
      }())
// One kernel Class<type> for each type of attribute `attr`:
// TREENAIL_REGISTER_KERNELS("Cube", "T", CubeOp, float, double);
#define TREENAIL_REGISTER_KERNELS(of, attr, ...)                                 \
  [[maybe_unused]] static const ::tn::op::detail::RegisteredKernels<__VA_ARGS__> \
  TREENAIL_OP_FRESH_(of, attr)
// Once, in one file of the plugin: TREENAIL_PLUGIN("example", "1.0");
#define TREENAIL_PLUGIN(name, version)                                                     \
  extern "C" TN_PLUGIN_ENTRY void tn_plugin_init(const tn_host* host, tn_plugin* plugin) { \
    ::tn::op::detail::Initialise(host, plugin, name, version);                             \
  }                                                                                        \
  static_assert(true, "")

#endif  // TREENAIL_OP_REGISTRATION_HPP_
