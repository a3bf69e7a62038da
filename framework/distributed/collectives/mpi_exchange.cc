// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/mpi_exchange.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <list>
#include <map>
#include <string>
#include <string_view>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/loaded_libraries.h"
#include "framework/distributed/collectives/exchange_communicator.h"
#include "framework/distributed/collectives/mpi_api.h"
#include "framework/distributed/collectives/on_one_host.h"

namespace treenail {
namespace {

constexpr int kNoteTag = 0;
constexpr size_t kMostAtOnce = size_t{1} << 30;  // counts are int

constexpr std::array<std::string_view, 2> kNames = {"openmpi", "mpich"};
constexpr AdapterRequest kRequests[] = {
    {"mpi-openmpi", sizeof(MpiApi), "groups of processes over Open MPI",
     "Open MPI (Debian: libopenmpi3, Fedora: openmpi)", "openmpi"},
    {"mpi-mpich", sizeof(MpiApi), "groups of processes over MPICH",
     "MPICH (Debian: libmpich12, Fedora: mpich)", "mpich"},
};

bool loaded(std::initializer_list<std::string_view> sonames) {
  const std::vector<LoadedLibrary> libraries = loaded_libraries();
  return std::any_of(libraries.begin(), libraries.end(), [&](const LoadedLibrary& library) {
    return std::find(sonames.begin(), sonames.end(), library.soname) != sonames.end();
  });
}

// The numbers in Open MPI's sonames go on with its versions; MPICH's interface has one.
int chosen() {
  if (const std::optional<int> wish = env_choice("TREENAIL_MPI", kNames)) return *wish;
  if (loaded({"libmpi.so.40", "libmpi.so.20", "libmpi.so.80"})) return 0;
  if (loaded({"libmpich.so.12", "libmpi.so.12"})) return 1;
  if (env_text("OMPI_COMM_WORLD_SIZE") || env_text("PMIX_RANK")) return 0;
  if (env_text("PMI_RANK")) return 1;
  return try_open_adapter(kRequests[0]) != nullptr || try_open_adapter(kRequests[1]) == nullptr ? 0
                                                                                                : 1;
}

class MpiExchange final : public ByteExchange {
 public:
  MpiExchange(const MpiApi& api, const MpiPlace& place)
      : ByteExchange(place.rank, place.size), api_(api) {}
  const char* name() const override { return "mpi"; }

  Ticket send(int peer, int tag, std::span<const std::byte> bytes,
              const IntrusivePtr<Buffer>& /*memory*/) override {
    return begin(bytes.size(), [&](size_t at, int32_t count, uint64_t* ticket) {
      return api_.send(bytes.data() + at, count, peer, tag, ticket);
    });
  }
  Ticket receive(int peer, int tag, std::span<std::byte> bytes,
                 const IntrusivePtr<Buffer>& /*memory*/) override {
    return begin(bytes.size(), [&](size_t at, int32_t count, uint64_t* ticket) {
      return api_.receive(bytes.data() + at, count, peer, tag, ticket);
    });
  }
  bool done(Ticket& ticket) override {
    const auto found = transfers_.find(ticket);
    if (found == transfers_.end()) return true;
    std::vector<uint64_t>& parts = found->second;
    while (!parts.empty()) {
      if (!tested(&parts.back())) return false;
      parts.pop_back();
    }
    transfers_.erase(found);
    return true;
  }

  void send_note(int peer, std::span<const std::byte> bytes) override {
    drop_sent();
    notes_.push_back({{bytes.begin(), bytes.end()}, 0});
    Sent& sent = notes_.back();
    check(api_.send(sent.bytes.data(), static_cast<int32_t>(bytes.size()), peer, kNoteTag,
                    &sent.ticket));
  }
  bool take_note(int* peer, std::vector<std::byte>* bytes) override {
    int32_t from = -1, count = 0;
    check(api_.probe(kNoteTag, &from, &count));
    if (from < 0) return false;
    bytes->resize(static_cast<size_t>(count));
    uint64_t ticket = 0;
    check(api_.receive(bytes->data(), count, from, kNoteTag, &ticket));
    while (!tested(&ticket)) {  // it is there: only its copy is waited for
    }
    *peer = from;
    return true;
  }

  void close() noexcept override {
    if (generation_ != fork_generation()) return;
    api_.finalize();
  }

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    uint64_t ticket;
  };

  template <class Begin>
  Ticket begin(size_t bytes, const Begin& part) {
    std::vector<uint64_t>& parts = transfers_[++last_];
    for (size_t at = 0; at < bytes; at += kMostAtOnce) {
      parts.push_back(0);
      check(part(at, static_cast<int32_t>(std::min(kMostAtOnce, bytes - at)), &parts.back()));
    }
    return last_;
  }
  bool tested(uint64_t* ticket) const {
    int32_t over = 0;
    check(api_.test(ticket, &over));
    return over != 0;
  }
  void drop_sent() {
    for (auto at = notes_.begin(); at != notes_.end() && tested(&at->ticket);)
      at = notes_.erase(at);
  }
  void check(int32_t error) const {
    if (error == 0) return;
    char text[256];
    api_.say(error, text, sizeof(text));
    throw Error(Code::kUnavailable, concat("MPI cannot go on: ", text));
  }

  const MpiApi& api_;
  const uint32_t generation_ = fork_generation();
  std::map<Ticket, std::vector<uint64_t>> transfers_;
  Ticket last_ = 0;
  std::list<Sent> notes_;
};

[[noreturn]] void refuse(const MpiApi& api, int32_t error) {
  if (error == kMpiEnded)
    throw failed_precondition("MPI was ended in this process; it cannot begin again");
  if (error == kMpiThreads) {
    throw failed_precondition(
        "MPI was initialised in this process for one thread alone; needed is "
        "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  }
  char text[256];
  api.say(error, text, sizeof(text));
  throw Error(Code::kUnavailable, concat("MPI cannot begin: ", text));
}

void check_size(const MpiGroup& group, const MpiPlace& place, int which) {
  if (place.size == group.announced) return;
  throw failed_precondition(
      "the launcher announces ", group.announced, " processes, but ", place.version, " sees ",
      place.size, ": it was started by the launcher of another MPI. Choose by TREENAIL_MPI=",
      kNames[which == 0 ? 1 : 0], ", or start by ",
      which == 0 ? "Open MPI's mpirun or srun --mpi=pmix" : "MPICH's mpirun or srun --mpi=pmi2");
}

}  // namespace

MpiJoined join_mpi(const MpiGroup& group) {
  const int which = chosen();
  const auto& api = *static_cast<const MpiApi*>(open_adapter(kRequests[which]));
  MpiPlace place{};
  if (const int32_t error = api.initialize(&place); error != 0) refuse(api, error);
  check_size(group, place, which);
  MpiJoined joined;
  joined.local_rank = place.local_rank;
  joined.local_size = place.local_size;
  std::unique_ptr<ByteExchange> exchange = std::make_unique<MpiExchange>(api, place);
  if (group.prefer_shared_memory && place.size > 1 && place.local_size == place.size) {
    joined.communicator = try_on_one_host(&exchange, {group.join_timeout_ns, group.timeout_ns});
    if (joined.communicator != nullptr) return joined;
  }
  joined.communicator = exchange_communicator(std::move(exchange), group.timeout_ns);
  return joined;
}

}  // namespace treenail
