// SPDX-License-Identifier: Apache-2.0
// The state of one session (task, process): (container, name) → resource. Plans resolve handles
// here once, so a name keeps its object until it is removed. All members may be called from any
// thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/function_ref.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/resource.h"

namespace treenail {

class FileRoots;  // io/file_place.h

struct ResourceEntry {
  std::string container;
  std::string name;
  IntrusivePtr<Resource> resource;
};

class ResourceManager {
 public:
  ResourceManager() : state_(std::make_shared<State>()) {}
  // The state of `other`, for sessions that name files below `file_roots` alone, which outlives it.
  ResourceManager(const ResourceManager& other, const FileRoots* file_roots)
      : state_(other.state_), file_roots_(file_roots) {}
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // The state of immediate execution in this process. Never destroyed.
  static ResourceManager& process();

  // Null when absent.
  IntrusivePtr<Resource> find(std::string_view container, std::string_view name) const;

  // Errors: NotFound, InvalidArgument when the name belongs to a resource of another kind.
  template <class T>
  IntrusivePtr<T> lookup(std::string_view container, std::string_view name) const {
    IntrusivePtr<Resource> found = find(container, name);
    if (!found) throw_not_found(container, name);
    return as<T>(found, container, name);
  }

  // The resource of that name, made by `make` when absent. `make` runs under the manager's lock: it
  // must not call back. Errors: InvalidArgument as above; whatever `make` throws, and then nothing
  // is stored.
  template <class T>
  IntrusivePtr<T> lookup_or_create(std::string_view container, std::string_view name,
                                   FunctionRef<IntrusivePtr<T>()> make) {
    auto make_any = [&make]() -> IntrusivePtr<Resource> { return make(); };
    return as<T>(find_or_insert(container, name, make_any), container, name);
  }

  // False when absent. Shares held elsewhere stay valid.
  bool remove(std::string_view container, std::string_view name);
  // Those whose names begin so.
  void remove_all(std::string_view container, std::string_view prefix);
  // Sorted by container and name.
  std::vector<ResourceEntry> list() const;
  void clear();
  // Null: files may be named anywhere.
  const FileRoots* file_roots() const { return file_roots_; }

  // The sessions whose state this is; when the last is closed, its state goes.
  void attach() { state_->users.fetch_add(1, std::memory_order_relaxed); }
  void detach();

 private:
  using Key = std::pair<std::string, std::string>;
  struct Less {
    using is_transparent = void;
    using View = std::pair<std::string_view, std::string_view>;
    bool operator()(const View& a, const View& b) const { return a < b; }
  };

  IntrusivePtr<Resource> find_or_insert(std::string_view container, std::string_view name,
                                        FunctionRef<IntrusivePtr<Resource>()> make);
  [[noreturn]] static void throw_not_found(std::string_view container, std::string_view name);
  [[noreturn]] static void throw_other_kind(std::string_view container, std::string_view name,
                                            const Resource& found);

  template <class T>
  static IntrusivePtr<T> as(const IntrusivePtr<Resource>& found, std::string_view container,
                            std::string_view name) {
    T* typed = dynamic_cast<T*>(found.get());
    if (typed == nullptr) throw_other_kind(container, name, *found);
    return IntrusivePtr<T>(typed);
  }

  struct State {
    ForkSharedMutex mutex;
    std::map<Key, IntrusivePtr<Resource>, Less> resources;
    std::atomic<int> users{0};
  };
  const std::shared_ptr<State> state_;
  const FileRoots* const file_roots_ = nullptr;
};

// The counter of the stateful random op whose original node has that name, made at first use.
IntrusivePtr<RandomCounter> random_counter_of(ResourceManager& resources,
                                              std::string_view node_name);
// Those of nodes whose names begin with `path`.
void forget_random_counters(ResourceManager& resources, std::string_view path);

}  // namespace treenail
