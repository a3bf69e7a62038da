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
  const std::shared_lock lock(mutex_);
  const auto it = resources_.find(Less::View(container, name));
  return it == resources_.end() ? nullptr : it->second;
}

IntrusivePtr<Resource> ResourceManager::find_or_insert(std::string_view container,
                                                       std::string_view name,
                                                       FunctionRef<IntrusivePtr<Resource>()> make) {
  if (IntrusivePtr<Resource> there = find(container, name)) return there;
  const std::unique_lock lock(mutex_);
  const auto it = resources_.find(Less::View(container, name));
  if (it != resources_.end()) return it->second;
  IntrusivePtr<Resource> made = make();
  resources_.emplace(Key(container, name), made);
  return made;
}

bool ResourceManager::remove(std::string_view container, std::string_view name) {
  IntrusivePtr<Resource> last;  // released after the lock
  const std::unique_lock lock(mutex_);
  const auto it = resources_.find(Less::View(container, name));
  if (it == resources_.end()) return false;
  last = std::move(it->second);
  resources_.erase(it);
  return true;
}

void ResourceManager::remove_all(std::string_view container, std::string_view prefix) {
  std::vector<IntrusivePtr<Resource>> last;  // released after the lock
  const std::unique_lock lock(mutex_);
  auto it = resources_.lower_bound(Less::View(container, prefix));
  while (it != resources_.end() && it->first.first == container &&
         it->first.second.starts_with(prefix)) {
    last.push_back(std::move(it->second));
    it = resources_.erase(it);
  }
}

std::vector<ResourceEntry> ResourceManager::list() const {
  const std::shared_lock lock(mutex_);
  std::vector<ResourceEntry> entries;
  entries.reserve(resources_.size());
  for (const auto& [key, resource] : resources_)
    entries.push_back({key.first, key.second, resource});
  return entries;
}

void ResourceManager::clear() {
  std::map<Key, IntrusivePtr<Resource>, Less> last;
  const std::unique_lock lock(mutex_);
  last.swap(resources_);
}

void ResourceManager::detach() {
  if (users_.fetch_sub(1, std::memory_order_acq_rel) == 1) clear();
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
