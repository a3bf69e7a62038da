// SPDX-License-Identifier: Apache-2.0
// A collective that a test waits for, and groups whose ranks are threads of this process.
#pragma once

#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "framework/distributed/collectives/shared_memory_communicator.h"

namespace treenail::test {

// The end crosses threads as a copy: ThreadSanitizer does not see how an exception_ptr is counted.
class Waited final : public Collective {
 public:
  void ended(std::exception_ptr error) noexcept override {
    std::optional<Error> copy;
    try {
      if (error != nullptr) std::rethrow_exception(error);
    } catch (const Error& thrown) {
      copy = Error(thrown.code(), thrown.message());
    }
    end_.set_value(std::move(copy));
  }
  // The first output. Errors: what it ended with.
  const Tensor& wait() {
    std::future<std::optional<Error>> future = end_.get_future();
    if (future.wait_for(std::chrono::seconds(60)) != std::future_status::ready)
      throw deadline_exceeded("a test has waited for a minute");
    if (const std::optional<Error> error = future.get()) throw Error(*error);
    static const Tensor kNone;
    return outputs.empty() ? kNone : outputs[0];
  }

 private:
  std::promise<std::optional<Error>> end_;
};

inline IntrusivePtr<Waited> all_reduce(Communicator& group, std::string key, Tensor value,
                                       Reduction reduction = Reduction::kSum) {
  auto wanted = make_counted<Waited>();
  wanted->kind = CollectiveKind::kAllReduce;
  wanted->reduction = reduction;
  wanted->dtype = value.dtype();
  wanted->key = std::move(key);
  wanted->inputs.push_back(std::move(value));
  group.submit(wanted);
  return wanted;
}

// body(group) of each rank on a thread of its own.
template <class Body>
void as_group(const std::string& directory, int size, const Body& body, int64_t timeout_ns = 0) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank) {
    threads.emplace_back([&, rank] {
      SharedMemoryGroup where;
      where.rank = rank;
      where.size = size;
      where.directory = directory;
      where.timeout_ns = timeout_ns;
      const std::shared_ptr<Communicator> group = join_shared_memory(where);
      body(*group);
      group->close();
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace treenail::test
