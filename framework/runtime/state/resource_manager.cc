// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/resource_manager.h"

namespace treenail {
namespace {

std::string described(std::string_view container, std::string_view name) {
  return container.empty() ? concat("\"", name, "\"")
                           : concat("\"", name, "\" in container \"", container, "\"");
}

}  // namespace

ResourceManager& ResourceManager::process() {
  static ResourceManager* manager = new ResourceManager;
  return *manager;
}

IntrusivePtr<Resource> ResourceManager::find(std::string_view container,
                                             std::string_view name) const {
  const std::shared_lock lock(state_->mutex);
  const auto it = state_->resources.find(Less::View(container, name));
  return it == state_->resources.end() ? nullptr : it->second;
}

IntrusivePtr<Resource> ResourceManager::find_or_insert(std::string_view container,
                                                       std::string_view name,
                                                       FunctionRef<IntrusivePtr<Resource>()> make) {
  if (IntrusivePtr<Resource> there = find(container, name)) return there;
  const std::unique_lock lock(state_->mutex);
  const auto it = state_->resources.find(Less::View(container, name));
  if (it != state_->resources.end()) return it->second;
  IntrusivePtr<Resource> made = make();
  state_->resources.emplace(Key(container, name), made);
  return made;
}

bool ResourceManager::remove(std::string_view container, std::string_view name) {
  IntrusivePtr<Resource> last;  // released after the lock
  const std::unique_lock lock(state_->mutex);
  const auto it = state_->resources.find(Less::View(container, name));
  if (it == state_->resources.end()) return false;
  last = std::move(it->second);
  state_->resources.erase(it);
  return true;
}

void ResourceManager::remove_all(std::string_view container, std::string_view prefix) {
  std::vector<IntrusivePtr<Resource>> last;  // released after the lock
  const std::unique_lock lock(state_->mutex);
  auto it = state_->resources.lower_bound(Less::View(container, prefix));
  while (it != state_->resources.end() && it->first.first == container &&
         it->first.second.starts_with(prefix)) {
    last.push_back(std::move(it->second));
    it = state_->resources.erase(it);
  }
}

std::vector<ResourceEntry> ResourceManager::list() const {
  const std::shared_lock lock(state_->mutex);
  std::vector<ResourceEntry> entries;
  entries.reserve(state_->resources.size());
  for (const auto& [key, resource] : state_->resources)
    entries.push_back({key.first, key.second, resource});
  return entries;
}

void ResourceManager::clear() {
  std::map<Key, IntrusivePtr<Resource>, Less> last;
  const std::unique_lock lock(state_->mutex);
  last.swap(state_->resources);
}

void ResourceManager::detach() {
  if (state_->users.fetch_sub(1, std::memory_order_acq_rel) == 1) clear();
}

void ResourceManager::throw_not_found(std::string_view container, std::string_view name) {
  throw not_found("there is no resource ", described(container, name));
}

void ResourceManager::throw_other_kind(std::string_view container, std::string_view name,
                                       const Resource& found) {
  throw invalid_argument("resource ", described(container, name), " is a ", found.kind(),
                         "; it was asked for as something else");
}

}  // namespace treenail
