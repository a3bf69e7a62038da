// SPDX-License-Identifier: Apache-2.0
// The table of kernels, by op name. Look-ups happen when a plan or an eager call is prepared, never
// per run.
#include "framework/runtime/kernel/kernel_registry.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/runtime/kernel/kernel_library.h"

namespace treenail {

// Generated from the file names of kernels/host.
void register_host_kernels(KernelRegistry& registry);

namespace {

struct Entry {
  std::vector<TypeConstraint> constraints;
  PrepareFn prepare;
  std::string kind;
};

bool contains(const std::vector<DType>& dtypes, DType dtype) {
  return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
}

// One kind of device, and some dtypes satisfy both: every attribute that both constrain has a dtype
// in common.
bool overlap(const Entry& a, const Entry& b) {
  if (a.kind != b.kind) return false;
  for (const TypeConstraint& x : a.constraints) {
    for (const TypeConstraint& y : b.constraints) {
      if (x.attr != y.attr) continue;
      const bool common = std::any_of(x.dtypes.begin(), x.dtypes.end(),
                                      [&y](DType dtype) { return contains(y.dtypes, dtype); });
      if (!common) return false;
    }
  }
  return true;
}

bool serves_types(const Entry& entry, const OpInstance& op) {
  return std::all_of(
      entry.constraints.begin(), entry.constraints.end(), [&op](const TypeConstraint& constraint) {
        const AttrValue& value = op.attr(constraint.attr);
        if (value.kind() != AttrKind::kTypeList)
          return contains(constraint.dtypes, value.get<DType>());
        const auto& types = value.get<std::vector<DType>>();
        return std::all_of(types.begin(), types.end(),
                           [&](DType type) { return contains(constraint.dtypes, type); });
      });
}

std::string constraint_text(const Entry& entry) {
  std::string out;
  for (const TypeConstraint& constraint : entry.constraints) {
    out += concat(out.empty() ? "" : ", ", constraint.attr, " in {");
    for (size_t i = 0; i < constraint.dtypes.size(); ++i)
      out += concat(i == 0 ? "" : ", ", constraint.dtypes[i]);
    out += "}";
  }
  return out.empty() ? "any dtypes" : out;
}

std::string type_attrs_text(const OpInstance& op) {
  std::string out;
  for (size_t i = 0; i < op.def().attrs.size(); ++i) {
    const AttrDef& attr = op.def().attrs[i];
    if (element_kind(attr.kind) != AttrKind::kType) continue;
    out += concat(out.empty() ? " with " : ", ", attr.name, " = ", op.attr(static_cast<int>(i)));
  }
  return out;
}

}  // namespace

struct KernelRegistry::Impl {
  mutable ForkSharedMutex mutex;
  std::unordered_map<std::string, std::vector<Entry>> by_op;
  std::map<std::string, Fuser, std::less<>> fusers;  // by kind; an entry never changes

  // Null where there is none; the caller holds the mutex.
  PrepareFn find(const OpInstance& op, std::string_view kind) const {
    const auto at = by_op.find(op.name());
    if (at == by_op.end()) return nullptr;
    if (op.def().any_device) kind = Device::kHostKind;
    for (const Entry& entry : at->second) {
      if (entry.kind == kind && serves_types(entry, op)) return entry.prepare;
    }
    return nullptr;
  }
};

KernelRegistry::KernelRegistry() : impl_(std::make_unique<Impl>()) {}
KernelRegistry::~KernelRegistry() = default;

KernelRegistry& KernelRegistry::instance() {
  static std::atomic<KernelRegistry*> registry{nullptr};
  return made_once(registry, [] {
    auto fresh = std::make_unique<KernelRegistry>();
    register_host_kernels(*fresh);
    kernel_library().register_kernels(*fresh);
    return fresh.release();
  });
}

void KernelRegistry::add(std::string_view op, std::vector<TypeConstraint> constraints,
                         PrepareFn prepare, std::string_view kind) {
  if (prepare == nullptr)
    throw internal_error("a kernel for op \"", op, "\" has no prepare function");
  Entry entry{std::move(constraints), prepare, std::string(kind)};
  const std::unique_lock lock(impl_->mutex);
  std::vector<Entry>& entries = impl_->by_op[std::string(op)];
  for (const Entry& other : entries) {
    if (!overlap(entry, other)) continue;
    throw internal_error("two kernels for op \"", op, "\": one for ", constraint_text(other),
                         ", one for ", constraint_text(entry));
  }
  entries.push_back(std::move(entry));
}

void KernelRegistry::add_all(std::vector<KernelRegistration> kernels) {
  const std::unique_lock lock(impl_->mutex);
  std::unordered_map<std::string, std::vector<Entry>> by_op;  // what the ops concerned will have
  for (KernelRegistration& kernel : kernels) {
    const auto there = impl_->by_op.find(kernel.op);
    auto [at, fresh] = by_op.try_emplace(kernel.op);
    if (fresh && there != impl_->by_op.end()) at->second = there->second;
    Entry entry{std::move(kernel.constraints), kernel.prepare, std::move(kernel.kind)};
    for (const Entry& other : at->second) {
      if (!overlap(entry, other)) continue;
      throw already_exists("op \"", kernel.op, "\" has a kernel for ", constraint_text(other),
                           " already; another one is for ", constraint_text(entry));
    }
    at->second.push_back(std::move(entry));
  }
  impl_->by_op.reserve(impl_->by_op.size() + by_op.size());
  for (auto& [op, entries] : by_op) impl_->by_op[op] = std::move(entries);
}

void KernelRegistry::set_fuser(const Fuser& fuser, std::string_view kind) {
  const std::unique_lock lock(impl_->mutex);
  impl_->fusers.emplace(kind, fuser);
}

const Fuser& KernelRegistry::fuser(std::string_view kind) const {
  static constexpr Fuser kNone;
  const std::shared_lock lock(impl_->mutex);
  const auto found = impl_->fusers.find(kind);
  return found == impl_->fusers.end() ? kNone : found->second;
}

PrepareFn KernelRegistry::find(const OpInstance& op, std::string_view kind) const {
  const std::shared_lock lock(impl_->mutex);
  if (const PrepareFn prepare = impl_->find(op, kind)) return prepare;
  const auto at = impl_->by_op.find(op.name());
  if (at == impl_->by_op.end())
    throw unimplemented("no kernel is registered for op \"", op.name(), "\"");
  std::string registered;
  for (const Entry& entry : at->second) {
    registered += concat(registered.empty() ? "" : "; ", constraint_text(entry),
                         entry.kind == Device::kHostKind ? "" : " on ",
                         entry.kind == Device::kHostKind ? "" : entry.kind);
  }
  const bool elsewhere = kind != Device::kHostKind;
  throw unimplemented("no kernel for op \"", op.name(), "\"", type_attrs_text(op),
                      elsewhere ? " on " : "", elsewhere ? kind : "",
                      "; registered are kernels for ", registered);
}

bool KernelRegistry::serves(const OpInstance& op, std::string_view kind) const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->find(op, kind) != nullptr;
}

bool KernelRegistry::has(std::string_view op) const {
  const std::shared_lock lock(impl_->mutex);
  return impl_->by_op.contains(std::string(op));
}

std::vector<std::string> KernelRegistry::describe(std::string_view op) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<std::string> out;
  if (const auto at = impl_->by_op.find(std::string(op)); at != impl_->by_op.end()) {
    for (const Entry& entry : at->second) {
      if (entry.kind == Device::kHostKind) out.push_back(constraint_text(entry));
    }
  }
  return out;
}

std::vector<KernelRegistration> KernelRegistry::registered(std::string_view kind) const {
  const std::shared_lock lock(impl_->mutex);
  std::vector<KernelRegistration> all;
  for (const auto& [op, entries] : impl_->by_op) {
    for (const Entry& entry : entries) {
      if (entry.kind == kind) all.push_back({op, entry.constraints, entry.prepare, entry.kind});
    }
  }
  std::ranges::sort(all, {}, &KernelRegistration::op);
  return all;
}

}  // namespace treenail
