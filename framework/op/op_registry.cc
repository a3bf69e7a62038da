// SPDX-License-Identifier: Apache-2.0
// The table of ops. A declaration is open from op() to finish(): only then does look-up see it,
// complete and checked.
#include "framework/op/op_registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/nearest_name.h"

namespace treenail {

struct OpRegistry::Impl {
  mutable ForkSharedMutex mutex;
  std::deque<OpDef> defs;  // a deque: definitions never move
  std::vector<OpDef*> open;
  std::unordered_map<std::string_view, const OpDef*> by_name;  // keys lie in the definitions
};

namespace {

void check_arg(const OpDef& def, const ArgDef& arg) {
  const int attr = arg.type_attr >= 0        ? arg.type_attr
                   : arg.type_list_attr >= 0 ? arg.type_list_attr
                                             : -1;
  for (int position : {attr, arg.number_attr}) {
    if (position >= 0 && def.attrs[position].kind == AttrKind::kNone) {
      throw internal_error("op \"", def.name, "\": \"", arg.name, "\" names attribute \"",
                           def.attrs[position].name,
                           "\", which is not declared (nor is it a type)");
    }
  }
}

void check_complete(const OpDef& def) {
  for (const ArgDef& arg : def.inputs) check_arg(def, arg);
  for (const ArgDef& arg : def.outputs) check_arg(def, arg);
  const auto fail = [&def](std::string_view what) {
    throw internal_error("op \"", def.name, "\": ", what);
  };
  if (def.shape_fn == nullptr) fail("it has no shape rule");
  if (def.gradient_fn == nullptr && !def.non_differentiable) {
    fail("it states no gradient; say not_differentiable() if it has none by nature");
  }
  if (def.gradient_fn != nullptr && def.non_differentiable)
    fail("it has a gradient and is not differentiable");
  if (def.version < 1 || static_cast<int>(def.upgrades.size()) != def.version - 1) {
    fail(concat("version ", def.version, " needs ", def.version - 1, " upgrades, ",
                def.upgrades.size(), " are given"));
  }
  if (def.view_of >= 0 && def.outputs.size() != 1) fail("a view has one output");
}

}  // namespace

OpRegistry::OpRegistry() : impl_(std::make_unique<Impl>()) {}
OpRegistry::~OpRegistry() = default;

OpRegistry& OpRegistry::instance() {
  static std::atomic<OpRegistry*> registry{nullptr};
  return made_once(registry, [] {
    auto fresh = std::make_unique<OpRegistry>();
    register_all_ops(*fresh);
    return fresh.release();
  });
}

OpDeclaration OpRegistry::op(std::string_view name, HostAccess access) {
  std::unique_lock lock(impl_->mutex);
  const bool is_open = std::any_of(impl_->open.begin(), impl_->open.end(),
                                   [name](const OpDef* def) { return def->name == name; });
  if (is_open || impl_->by_name.contains(name)) {
    throw already_exists("op \"", name, "\" is registered already");
  }
  OpDef& def = impl_->defs.emplace_back();
  def.name = name;
  def.host_access = access;
  impl_->open.push_back(&def);
  return OpDeclaration(def);
}

void OpRegistry::finish(std::string_view family) {
  std::unique_lock lock(impl_->mutex);
  const std::vector<OpDef*> finished = std::exchange(impl_->open, {});
  for (OpDef* def : finished) {
    def->family = family;
    check_complete(*def);
  }
  for (const OpDef* def : finished) impl_->by_name.emplace(def->name, def);
}

void OpRegistry::abandon() {
  std::unique_lock lock(impl_->mutex);
  impl_->open.clear();
}

const OpDef* OpRegistry::find(std::string_view name) const {
  std::shared_lock lock(impl_->mutex);
  const auto at = impl_->by_name.find(name);
  return at == impl_->by_name.end() ? nullptr : at->second;
}

const OpDef& OpRegistry::get(std::string_view name) const {
  if (const OpDef* def = find(name)) return *def;
  std::vector<std::string_view> names;
  for (const OpDef* def : all()) names.push_back(def->name);
  throw not_found("no op \"", name, "\" is registered", did_you_mean(name, names));
}

std::vector<const OpDef*> OpRegistry::all() const {
  std::vector<const OpDef*> defs;
  {
    std::shared_lock lock(impl_->mutex);
    for (const auto& [name, def] : impl_->by_name) defs.push_back(def);
  }
  std::sort(defs.begin(), defs.end(),
            [](const OpDef* a, const OpDef* b) { return a->name < b->name; });
  return defs;
}

}  // namespace treenail
