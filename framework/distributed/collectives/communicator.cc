// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/communicator.h"

#include <mutex>
#include <utility>

#include "framework/base/fork.h"
#include "framework/distributed/collectives/parts.h"
#include "framework/distributed/collectives/rank_order.h"

namespace treenail {
namespace {

class Single final : public Communicator {
 public:
  Single() : Communicator(0, 1) {}
  const char* transport() const override { return "none"; }
  void submit(IntrusivePtr<Collective> collective) override {
    Collective& c = *collective;
    const Descriptor own = describe(c, 0);
    const Disagreement problem = disagreement({&own, 1});
    if (problem.code != Code::kOk) throw Error(problem.code, problem.text);
    Tensor packed(DType::kUInt8, Shape({static_cast<int64_t>(c.input_bytes())}));
    pack_inputs(c, static_cast<std::byte*>(packed.raw()));
    const std::byte* const from = static_cast<std::byte*>(packed.raw());
    set_outputs(c, {&own, 1}, {&from, 1});
    c.ended(nullptr);
  }
  void close() noexcept override {}
};

struct Current {
  ForkMutex mutex;
  std::shared_ptr<Communicator> communicator;
};
// Never destroyed: threads may still use it when the process ends.
Current& current() {
  static auto* const instance = new Current;
  return *instance;
}

}  // namespace

Communicator::~Communicator() = default;

std::shared_ptr<Communicator> single_communicator() { return std::make_shared<Single>(); }

std::shared_ptr<Communicator> find_communicator() {
  const std::unique_lock lock(current().mutex);
  return current().communicator;
}

std::shared_ptr<Communicator> current_communicator() {
  if (std::shared_ptr<Communicator> found = find_communicator()) return found;
  throw failed_precondition(
      "this process belongs to no group of processes; join one by tn.distributed.init() first");
}

void set_communicator(std::shared_ptr<Communicator> communicator) {
  {
    const std::unique_lock lock(current().mutex);
    std::swap(communicator, current().communicator);
  }
  if (communicator != nullptr) communicator->close();
}

}  // namespace treenail
