// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/prepared_call.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <string>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/base/hash.h"
#include "framework/device/device.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/state/random_counter.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/variable.h"

namespace treenail {
namespace {

std::atomic<uint64_t> random_generation{1};

// Values that are read in preparing are part of the key up to this size.
constexpr size_t kKeyBytes = 256;

bool same_value(const Tensor& a, const Tensor& b) {
  return std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

uint64_t hash_of(const ImmediateCall& call) {
  uint64_t hash = reinterpret_cast<uintptr_t>(&call.def) + reinterpret_cast<uintptr_t>(call.device);
  const bool by_argument = call.def.inputs.size() == call.inputs.size();
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    hash = hash_combine(hash, static_cast<uint64_t>(input.dtype()));
    for (const int64_t extent : input.shape().dims())
      hash = hash_combine(hash, static_cast<uint64_t>(extent));
    if (by_argument && call.def.inputs[i].host && is_plain(input.dtype()) &&
        input.bytes() <= kKeyBytes)
      hash = hash_bytes(input.raw(), input.bytes(), hash);
  }
  for (const NamedAttr& attr : call.attrs) hash = hash_combine(hash, attr.second.hash());
  return hash_combine(hash, call.arg_sizes.size());
}

std::vector<Tensor> tensors_of(std::span<const Tensor* const> inputs) {
  std::vector<Tensor> tensors;
  tensors.reserve(inputs.size());
  for (const Tensor* input : inputs) tensors.push_back(*input);
  return tensors;
}

OpInstance resolved(const ImmediateCall& call) {
  std::vector<DType> types;
  types.reserve(call.inputs.size());
  for (const Tensor* input : call.inputs) types.push_back(input->dtype());
  return resolve_op(call.def, types, call.attrs, call.arg_sizes);
}

}  // namespace

// Immediate calls have no node to name a random counter after: op type and seeds stand in, and
// with seeds of its own an op draws from one stream for each dtype.
std::string immediate_counter_name(const OpInstance& op) {
  std::string name = concat("immediate/", random_generation.load(), "/", op.name());
  for (std::string_view part : {"seed", "seed2", "dtype"}) {
    const int position = op.def().attr_index(part);
    if (position >= 0) name += concat("/", op.attr(position));
  }
  return name;
}

PreparedCall::PreparedCall(const ImmediateCall& call) : op_(resolved(call)) {
  const std::string counter = call.def.random ? immediate_counter_name(op_) : std::string();
  const NodeServices services{
      call.resources != nullptr ? call.resources : &ResourceManager::process(), "", counter,
      call.device};
  const std::vector<Tensor> inputs = tensors_of(call.inputs);
  prepared_ = prepare_immediately(op_, inputs, services);
}

bool PreparedCall::may_wait() const {
  return op_.def().asynchronous || (prepared_.device != nullptr && !prepared_.device->is_host());
}

double PreparedCall::cost_ns() const {
  if (may_wait()) return std::numeric_limits<double>::infinity();
  return prepared_.kernel != nullptr ? prepared_.kernel->cost_ns : 0;
}

bool PreparedCall::may_be_kept(const ImmediateCall& call) const {
  // Tensors in attributes would be read at every call, and stay.
  for (const NamedAttr& attr : call.attrs) {
    const AttrKind kind = attr.second.kind();
    if (kind == AttrKind::kTensor || kind == AttrKind::kTensorList) return false;
  }
  bool variables = false;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    variables = variables || variable_behind(input) != nullptr;
    if (const Variable* const variable = variable_behind(input)) {
      if (!variable->known_shape()) return false;  // its shape is part of the key
      continue;
    }
    if (!is_plain(input.dtype())) return false;
    if (op_.input_def(static_cast<int>(i)).host && input.bytes() > kKeyBytes) return false;
  }
  // State that no input names was found in preparing; that of a manager may end with it.
  return !call.def.stateful || variables || (call.def.random && call.resources == nullptr);
}

void PreparedCall::keep_key(const ImmediateCall& call) {
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    const Variable* const variable = variable_behind(input);
    shapes_.push_back(variable != nullptr ? variable->known_shape().value_or(Shape())
                                          : input.shape());
    state_.push_back(variable != nullptr ? variable->dtype() : DType::kInvalid);
    const bool read = variable == nullptr && op_.input_def(static_cast<int>(i)).host;
    values_.push_back(read ? input.deep_copy() : Tensor());
  }
  attrs_.assign(call.attrs.begin(), call.attrs.end());
  arg_sizes_.assign(call.arg_sizes.begin(), call.arg_sizes.end());
  resources_ = call.resources;
  device_ = call.device;
  random_generation_ = random_generation.load(std::memory_order_relaxed);
}

bool PreparedCall::answers(const ImmediateCall& call) const {
  if (&op_.def() != &call.def || shapes_.size() != call.inputs.size() ||
      resources_ != call.resources || device_ != call.device)
    return false;
  for (size_t i = 0; i < shapes_.size(); ++i) {
    const Tensor& input = *call.inputs[i];
    if (op_.input_type(static_cast<int>(i)) != input.dtype()) return false;
    if (state_[i] != DType::kInvalid) {
      const Variable* const variable = variable_behind(input);
      if (variable == nullptr || variable->dtype() != state_[i] ||
          variable->known_shape() != shapes_[i])
        return false;
      continue;
    }
    if (!(shapes_[i] == input.shape())) return false;
    if (values_[i].defined() && !same_value(values_[i], input)) return false;
  }
  return (!call.def.random ||
          random_generation_ == random_generation.load(std::memory_order_relaxed)) &&
         std::ranges::equal(attrs_, call.attrs) && std::ranges::equal(arg_sizes_, call.arg_sizes);
}

class PreparedCalls {
 public:
  static std::shared_ptr<const PreparedCall> get(const ImmediateCall& call) {
    static thread_local PreparedCalls calls;
    std::shared_ptr<const PreparedCall>& place = calls.places_[hash_of(call) >> 54];
    if (place != nullptr && place->answers(call)) return place;
    const std::shared_ptr<PreparedCall> made(new PreparedCall(call));
    if (made->may_be_kept(call)) {
      made->keep_key(call);
      place = made;
    }
    return made;
  }

 private:
  static constexpr size_t kPlaces = 1024;
  std::array<std::shared_ptr<const PreparedCall>, kPlaces> places_;
};

std::shared_ptr<const PreparedCall> prepare_call(const ImmediateCall& call) {
  return PreparedCalls::get(call);
}

void restart_random_counters() {
  const uint64_t before = random_generation.fetch_add(1);
  ResourceManager& state = ResourceManager::process();
  const std::string prefix = concat("immediate/", before, "/");
  for (const ResourceEntry& entry : state.list()) {
    if (entry.name.starts_with(prefix)) {
      state.remove(entry.container, entry.name);
    } else if (auto* const counter = dynamic_cast<SessionRandomCounter*>(entry.resource.get())) {
      counter->restart();  // of a called function, whose plans hold it
    }
  }
}

CallRun::CallRun(const PreparedCall& call, std::span<const Tensor* const> inputs,
                 const CancellationToken* token)
    : call_(call),
      token_(token),
      inputs_(inputs.size()),
      outputs_(static_cast<size_t>(call.op().num_outputs())) {
  const size_t count = inputs_ + outputs_;
  void* const place =
      count <= kInline ? static_cast<void*>(inline_) : ::operator new(count * sizeof(Tensor));
  values_ = static_cast<Tensor*>(place);
  for (size_t i = 0; i < inputs_; ++i) new (values_ + i) Tensor(*inputs[i]);
  std::uninitialized_default_construct_n(values_ + inputs_, outputs_);
}

CallRun::~CallRun() {
  const size_t count = inputs_ + outputs_;
  std::destroy_n(values_, count);
  if (count > kInline) ::operator delete(values_);
}

void CallRun::provide_outputs() {
  const OpInstance& op = call_.op();
  Device* const device = call_.prepared_.device;
  for (size_t i = 0; i < outputs_; ++i) {
    const auto number = static_cast<int>(i);
    Device* const memory = op.output_def(number).host ? nullptr : device;
    output(i) = Tensor(op.output_type(number), call_.prepared_.output_shapes[i], memory);
  }
}

void CallRun::check_outputs() const {
  const OpInstance& op = call_.op();
  for (size_t i = 0; i < outputs_; ++i) {
    const Tensor& output = values_[inputs_ + i];
    const auto& shapes = call_.prepared_.output_shapes;
    if (output.defined() && output.dtype() == op.output_type(static_cast<int>(i)) &&
        (shapes.empty() || shapes[i] == output.shape()))
      continue;
    throw internal_error("the kernel gave output ", i, " as ", output, ", its op says ",
                         op.output_type(static_cast<int>(i)),
                         shapes.empty() ? std::string() : to_text(shapes[i]));
  }
}

void CallRun::run() {
  const OpInstance& op = call_.op();
  const PreparedKernel& prepared = call_.prepared_;
  if (prepared.kernel == nullptr) {
    output(0) = view_as(values_[op.def().view_of], op.output_type(0), prepared.output_shapes[0]);
    return;
  }
  const FpEnvironment environment;
  const Scratch scratch(prepared.kernel->scratch_bytes, *prepared.device);
  if (!op.def().allocates_outputs) provide_outputs();
  std::array<int32_t, kInline> few;
  std::vector<int32_t> many;
  int32_t* slots = few.data();
  if (inputs_ > kInline) {
    many.resize(inputs_);
    slots = many.data();
  }
  std::iota(slots, slots + inputs_, 0);
  RunContext context;
  context.values_ = values_;
  context.input_slots_ = slots;
  context.output_slot_ = static_cast<int32_t>(inputs_);
  context.scratch_ = scratch.data();
  context.token_ = token_;
  prepared.kernel->run(context);
  if (op.def().allocates_outputs) check_outputs();
}

}  // namespace treenail
