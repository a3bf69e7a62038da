// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/collectives/mpi_adapter.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/loaded_libraries.h"
#include "framework/base/random_token.h"

namespace treenail {
namespace {

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

[[noreturn]] void refuse(const MpiApi& api, MpiUse use, int32_t error) {
  if (error == kMpiEnded)
    throw failed_precondition("MPI was ended in this process; it cannot begin again");
  if (error == kMpiThreads) {
    throw failed_precondition("MPI was initialised in this process for fewer threads; needed is ",
                              use == MpiUse::kBesideOthers
                                  ? "MPI_THREAD_MULTIPLE"
                                  : "MPI_THREAD_SERIALIZED or MPI_THREAD_MULTIPLE");
  }
  throw Error(Code::kUnavailable, concat("MPI cannot begin: ", mpi_error_text(api, error)));
}

void check_size(int announced, const MpiPlace& place, int which) {
  if (place.size == announced) return;
  throw failed_precondition(
      "the launcher announces ", announced, " processes, but ", place.version, " sees ", place.size,
      ": it was started by the launcher of another MPI. Choose by TREENAIL_MPI=",
      kNames[which == 0 ? 1 : 0], ", or start by ",
      which == 0 ? "Open MPI's mpirun or srun --mpi=pmix" : "MPICH's mpirun or srun --mpi=pmi2");
}

}  // namespace

MpiWorld begin_mpi(int announced, MpiUse use) {
  const int which = chosen();
  const auto& api = *static_cast<const MpiApi*>(open_adapter(kRequests[which]));
  MpiWorld world{&api, {}};
  const std::string token = random_token();
  const auto* const bytes = reinterpret_cast<const uint8_t*>(token.data());
  const int32_t beside = use == MpiUse::kBesideOthers ? 1 : 0;
  if (const int32_t error = api.initialize(bytes, beside, &world.place); error != 0)
    refuse(api, use, error);
  check_size(announced, world.place, which);
  return world;
}

std::string mpi_error_text(const MpiApi& api, int32_t error) {
  char text[256];
  api.say(error, text, sizeof(text));
  return text;
}

}  // namespace treenail
