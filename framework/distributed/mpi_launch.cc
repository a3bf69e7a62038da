// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/mpi_launch.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "framework/base/detached_thread.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/logging.h"
#include "framework/distributed/collectives/mpi_adapter.h"
#include "framework/distributed/neighbour_packets.h"
#include "framework/distributed/say_error.h"

namespace treenail {
namespace {

constexpr auto kBegin = std::chrono::seconds(30);
constexpr auto kPoll = std::chrono::milliseconds(50);

struct Launch {
  int processes = 0;  // 0: none of MPI's
  bool one_host = false;
};

int number(const char* name) {
  return static_cast<int>(env_int(name, 0, std::numeric_limits<int32_t>::max()).value_or(0));
}

// As distributed/_launcher.py; innermost first.
Launch launch() {
  if (const int all = number("OMPI_COMM_WORLD_SIZE"); all > 0)
    return {all, number("OMPI_COMM_WORLD_LOCAL_SIZE") == all};
  if (env_text("PMIX_RANK") || env_text("PMI_RANK")) {
    if (const int all = number("SLURM_STEP_NUM_TASKS"); all > 0)
      return {all, number("SLURM_STEP_NUM_NODES") == 1};
    if (const int all = number("PMI_SIZE"); all > 0) return {all, number("MPI_LOCALNRANKS") == all};
  }
  return {};
}

enum class Wish : uint8_t { kNo, kYes };

std::optional<Wish> wish() {
  static constexpr std::array<std::string_view, 2> kWishes = {"no", "yes"};
  const std::optional<int> found = env_choice("TREENAIL_MPI_VALUES", kWishes);
  return found ? std::optional(static_cast<Wish>(*found)) : std::nullopt;
}

// Empty: they go over MPI.
std::string why_not(const Launch& launch, size_t tasks, bool encrypted) {
  const std::optional<Wish> wanted = wish();
  if (wanted == Wish::kNo) return "TREENAIL_MPI_VALUES is \"no\"";
  if (static_cast<size_t>(launch.processes) != tasks)
    return concat("the launcher has started ", launch.processes, " processes, and the cluster has ",
                  tasks, " tasks");
  if (wanted == Wish::kYes) return "";
  if (encrypted)
    return "it does not encrypt, as this cluster does; TREENAIL_MPI_VALUES=yes allows it";
  if (launch.one_host && !neighbour_directory().empty())
    return "all tasks are on one host; TREENAIL_MPI_VALUES=yes has it nevertheless";
  return "";
}

// The process's; never freed, for threads may use it until the process ends.
struct Begun {
  std::mutex mutex;  // guards what follows
  std::condition_variable changed;
  bool begun = false, over = false;
  MpiChoice choice;
};
Begun& begun() {
  static auto* const kBegun = new Begun;
  return *kBegun;
}
std::shared_ptr<MpiValues>& replacement() {
  static auto* const kReplacement = new std::shared_ptr<MpiValues>;
  return *kReplacement;
}

// The process ends. Where it fails the others are not waited for: the launcher ends them.
[[maybe_unused]] void finish(int status) {
  std::shared_ptr<MpiValues> values;
  {
    const std::lock_guard lock(begun().mutex);
    values = begun().choice.values;
  }
  if (values == nullptr || status != 0) return;
  sigset_t ends;  // which treenail-worker waits for; it does no more
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
  values->finish();
}

void finish_at_exit() {
#if defined(__GLIBC__)
  ::on_exit([](int status, void*) { finish(status); }, nullptr);
#else
  ::atexit([] { finish(0); });
#endif
}

// On a thread of its own, for MPI waits for as long as it likes.
void begin(int processes) {
  MpiChoice made;
  try {
    const MpiWorld world = begin_mpi(processes, MpiUse::kBesideOthers);
    made.values = MpiValues::make(*world.api, world.place);
    finish_at_exit();
  } catch (...) {
    made.why_not = text_of(std::current_exception());
  }
  {
    const std::lock_guard lock(begun().mutex);
    begun().choice = std::move(made);
    begun().over = true;
  }
  begun().changed.notify_all();
}

// With the lock held.
void start(int processes) {
  const auto entry = [](void* count) -> void* {
    begin(static_cast<int>(reinterpret_cast<intptr_t>(count)));
    return nullptr;
  };
  const auto count = static_cast<intptr_t>(processes);
  if (start_detached_thread(entry, reinterpret_cast<void*>(count)) == 0) return;
  begun().choice.why_not = "no thread is left to begin it";
  begun().over = true;
}

MpiChoice begun_choice(int processes) {
  Begun& all = begun();
  const auto until = std::chrono::steady_clock::now() + kBegin;
  std::unique_lock lock(all.mutex);
  if (!std::exchange(all.begun, true)) start(processes);
  while (!all.over && std::chrono::steady_clock::now() < until) {
    all.changed.wait_for(lock, kPoll);
    lock.unlock();
    poll_interrupt();
    lock.lock();
  }
  if (all.over) return all.choice;
  return {nullptr, "MPI has not begun within 30 s: not all ranks have called MPI_Init"};
}

}  // namespace

MpiChoice mpi_of_process(size_t tasks, bool encrypted) {
  if (replacement() != nullptr) return {replacement(), ""};
  const Launch found = launch();
  if (found.processes < 2) return {};
  std::string why = why_not(found, tasks, encrypted);
  MpiChoice choice = why.empty() ? begun_choice(found.processes) : MpiChoice{nullptr, why};
  log(LogLevel::kInfo, "values between tasks over MPI: ",
      choice.values != nullptr ? choice.values->version() : concat("no, ", choice.why_not));
  return choice;
}

void set_mpi_values(std::shared_ptr<MpiValues> values) { replacement() = std::move(values); }

}  // namespace treenail
