// SPDX-License-Identifier: Apache-2.0
// All-reduce between processes of this host, beside what it cannot beat: memcpy by all of them at
// once. `collectives_bench RANKS` forks the ranks, which share memory; `collectives_bench
// RANKS mpi`, started by mpirun, goes over MPI. Rank 0 prints a line of JSON per figure: name,
// bytes, and the median of seconds. Values are float32; each execution begins together.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/spin.h"
#include "framework/distributed/collectives/mpi_exchange.h"
#include "framework/distributed/collectives/shared_memory_communicator.h"

namespace treenail {
namespace {

class Waited final : public Collective {
 public:
  void ended(std::exception_ptr error) noexcept override {
    failed = error != nullptr;
    over.store(1, std::memory_order_release);
    futex_wake(&over, 1);
  }
  void wait() {
    while (over.load(std::memory_order_acquire) == 0) futex_wait(&over, 0);
    if (failed) std::abort();
  }
  std::atomic<uint32_t> over{0};
  bool failed = false;
};

Tensor all_reduce(Communicator& group, const Tensor& value) {
  const auto wanted = make_counted<Waited>();
  wanted->kind = CollectiveKind::kAllReduce;
  wanted->dtype = value.dtype();
  wanted->key = "bench";
  wanted->inputs.push_back(value);
  group.submit(wanted);
  wanted->wait();
  return wanted->outputs[0];
}

void barrier(Communicator& group) {
  const auto wanted = make_counted<Waited>();
  wanted->key = "barrier";
  group.submit(wanted);
  wanted->wait();
}

template <class Work>
double median_of(Communicator& group, int rounds, const Work& work) {
  std::vector<double> seconds;
  for (int i = 0; i < rounds; ++i) {
    barrier(group);
    const int64_t begin = monotonic_ns();
    work();
    seconds.push_back(static_cast<double>(monotonic_ns() - begin) * 1e-9);
  }
  std::nth_element(seconds.begin(), seconds.begin() + rounds / 2, seconds.end());
  return seconds[static_cast<size_t>(rounds / 2)];
}

void report(const Communicator& group, const char* name, size_t bytes, double seconds) {
  if (group.rank() != 0) return;
  std::printf("{\"name\": \"%s\", \"bytes\": %zu, \"seconds\": %.9f}\n", name, bytes, seconds);
  std::fflush(stdout);
}

void measure(Communicator& group, size_t bytes) {
  const Shape shape({static_cast<int64_t>(bytes / sizeof(float))});
  const int rounds = bytes <= (64 << 10) ? 1001 : bytes <= (1 << 20) ? 201 : 21;
  Tensor own(DType::kFloat32, shape);
  Tensor planned = group.allocate(DType::kFloat32, shape);
  ::memset(own.raw(), 1, bytes);
  ::memset(planned.raw(), 1, bytes);
  Tensor copy(DType::kFloat32, shape);
  report(group, "memcpy", bytes,
         median_of(group, rounds, [&] { ::memcpy(copy.raw(), own.raw(), bytes); }));
  report(group, "planned", bytes, median_of(group, rounds, [&] { all_reduce(group, planned); }));
  report(group, "all_reduce", bytes, median_of(group, rounds, [&] { all_reduce(group, own); }));
}

void run(const std::string& directory, int rank, int size) {
  SharedMemoryGroup where;
  where.directory = directory;
  where.rank = rank;
  where.size = size;
  const std::shared_ptr<Communicator> group = join_shared_memory(where);
  for (const size_t bytes : {size_t{1} << 10, size_t{16} << 10, size_t{64} << 10, size_t{256} << 10,
                             size_t{1} << 20, size_t{16} << 20, size_t{64} << 20})
    measure(*group, bytes);
  group->close();
}

void run_over_mpi(int size) {
  MpiGroup where;
  where.announced = size;
  where.prefer_shared_memory = false;
  const std::shared_ptr<Communicator> group = join_mpi(where).communicator;
  for (const size_t bytes : {size_t{1} << 10, size_t{1} << 20, size_t{16} << 20, size_t{64} << 20})
    measure(*group, bytes);
  group->close();
}

}  // namespace
}  // namespace treenail

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 2;
  if (argc > 2 && std::string_view(argv[2]) == "mpi") {
    treenail::run_over_mpi(size);
    return 0;
  }
  std::string directory = (std::filesystem::temp_directory_path() / "treenail-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) return 1;
  int rank = 0;
  while (rank + 1 < size && ::fork() == 0) ++rank;
  treenail::run(directory, rank, size);
  if (rank + 1 < size) ::wait(nullptr);
  if (rank == 0) std::filesystem::remove_all(directory);
  return 0;
}
