// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/immediate_options.h"

#include <atomic>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/placement/device_choice.h"
#include "framework/runtime/kernel/installed_devices.h"

namespace treenail {
namespace {

struct Holder {
  ForkMutex mutex;
  std::shared_ptr<const ImmediateOptions> options = std::make_shared<const ImmediateOptions>();
  std::atomic<uint64_t> generation{0};

  static Holder& instance() {
    static auto* const holder = new Holder();
    return *holder;
  }
};

Device* found_now(const std::string& request, bool& met) {
  const std::shared_ptr<const ImmediateOptions> options = immediate_options();
  const DeviceName wanted = parse_device_name(request);
  open_installed_devices();
  const std::vector<Device*> devices = session_devices(options->device_count);
  const std::vector<PlacementDevice> described = placement_devices(devices);
  const auto number = choose_device(described, wanted, options->allow_soft_placement);
  if (!number) throw invalid_argument(no_such_device(request, "this process", described));
  Device* const device = devices[static_cast<size_t>(*number)];
  met = satisfies(device->name(), wanted);
  return device->is_host() ? nullptr : device;
}

// A thread's answers. Devices only come, and behind those that are there: what was met stays so.
struct Answers {
  uint64_t generation = 0;
  std::unordered_map<std::string, Device*> by_request;
};

}  // namespace

std::shared_ptr<const ImmediateOptions> immediate_options() {
  Holder& holder = Holder::instance();
  const std::lock_guard lock(holder.mutex);
  return holder.options;
}

void set_immediate_options(ImmediateOptions options) {
  Holder& holder = Holder::instance();
  auto made = std::make_shared<const ImmediateOptions>(std::move(options));
  const std::lock_guard lock(holder.mutex);
  holder.options = std::move(made);
  holder.generation.fetch_add(1, std::memory_order_release);
}

Device* requested_device(std::string_view request) {
  static thread_local Answers answers;
  const uint64_t now = Holder::instance().generation.load(std::memory_order_acquire);
  if (answers.generation != now) {
    answers.by_request.clear();
    answers.generation = now;
  }
  const std::string text(request);
  const auto known = answers.by_request.find(text);
  if (known != answers.by_request.end()) return known->second;
  bool met = false;
  Device* const device = found_now(text, met);
  if (met) answers.by_request.emplace(text, device);
  return device;
}

}  // namespace treenail
