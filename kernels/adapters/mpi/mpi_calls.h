// SPDX-License-Identifier: Apache-2.0
// The table of an MPI adapter, compiled once per implementation (openmpi.cc, mpich.cc): an
// implementation's mpi.h fits that one alone. MPI-3 calls only, and none that reduces: the order of
// MPI_Allreduce is the implementation's business. A request is kept in the caller's 64 bits, which
// hold Open MPI's pointer as well as MPICH's int. One call at a time, whoever calls, so that no
// more than MPI_THREAD_SERIALIZED is needed of an MPI that has no other users.
#pragma once

// The C interface alone: Open MPI's for C++ would be a second library.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1

#include <mpi.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "build_info.h"
#include "framework/distributed/collectives/mpi_api.h"

namespace treenail {
namespace {

static_assert(sizeof(MPI_Request) <= sizeof(uint64_t));

std::mutex calls;                // held by each call
MPI_Comm world = MPI_COMM_NULL;  // a duplicate: our messages meet nobody else's
bool initialized_here = false;
int users = 0;
MpiPlace known{};
std::vector<uint8_t> tokens;  // of all ranks

MPI_Request request_of(uint64_t kept) {
  MPI_Request request;
  ::memcpy(&request, &kept, sizeof(request));
  return request;
}
uint64_t kept(MPI_Request request) {
  uint64_t bits = 0;
  ::memcpy(&bits, &request, sizeof(request));
  return bits;
}

int32_t on_this_host(MpiPlace* place) {
  MPI_Comm host = MPI_COMM_NULL;
  int result = MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host);
  if (result != MPI_SUCCESS) return result;
  MPI_Comm_rank(host, &place->local_rank);
  MPI_Comm_size(host, &place->local_size);
  return MPI_Comm_free(&host);
}

bool ended() {
  int over = 0;
  MPI_Finalized(&over);
  return over != 0;
}

// MPI itself; `wanted`: threads of all its users in this process.
int32_t begin(int wanted) {
  int there = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&there);
  if (ended()) return kMpiEnded;
  if (there == 0) {
    const int result = MPI_Init_thread(nullptr, nullptr, wanted, &level);
    if (result != MPI_SUCCESS) return result;
    initialized_here = true;
  }
  MPI_Query_thread(&level);
  return level < (initialized_here ? MPI_THREAD_SERIALIZED : wanted) ? kMpiThreads : MPI_SUCCESS;
}

void describe(MpiPlace* place) {
  MPI_Comm_rank(world, &place->rank);
  MPI_Comm_size(world, &place->size);
  void* limit = nullptr;
  int there = 0;
  MPI_Comm_get_attr(world, MPI_TAG_UB, static_cast<void*>(&limit), &there);
  place->tag_limit = there != 0 ? *static_cast<int*>(limit) : kMpiGroupTags - 1;
  char version[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(version, &length);
  const size_t line = std::min(strcspn(version, ",\n"), sizeof(place->version) - 1);
  ::memcpy(place->version, version, line);
  place->version[line] = 0;
  std::replace(place->version, place->version + line, '\t', ' ');  // "MPICH Version:      4.0.2"
}

// The same collective calls in the same order on every rank, whichever its first user is.
int32_t join(const uint8_t* token) {
  int result = MPI_Comm_dup(MPI_COMM_WORLD, &world);
  if (result != MPI_SUCCESS) return result;
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  describe(&known);
  result = on_this_host(&known);
  if (result != MPI_SUCCESS) return result;
  tokens.resize(static_cast<size_t>(known.size) * kMpiTokenBytes);
  known.begun_here = initialized_here ? 1 : 0;
  return MPI_Allgather(token, kMpiTokenBytes, MPI_BYTE, tokens.data(), kMpiTokenBytes, MPI_BYTE,
                       world);
}

int32_t initialize(const uint8_t* token, int32_t beside_others, MpiPlace* place) {
  const std::lock_guard lock(calls);
  int result = begin(beside_others != 0 ? MPI_THREAD_MULTIPLE : MPI_THREAD_SERIALIZED);
  if (result == MPI_SUCCESS && world == MPI_COMM_NULL) result = join(token);
  if (result != MPI_SUCCESS) return result;
  ++users;
  *place = known;
  return MPI_SUCCESS;
}

void token_of(int32_t rank, uint8_t* token) {
  ::memcpy(token, tokens.data() + static_cast<size_t>(rank) * kMpiTokenBytes, kMpiTokenBytes);
}

int32_t send(const void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  MPI_Request request = MPI_REQUEST_NULL;
  const int result = MPI_Isend(bytes, count, MPI_BYTE, peer, tag, world, &request);
  *ticket = kept(request);
  return result;
}

int32_t receive(void* bytes, int32_t count, int32_t peer, int32_t tag, uint64_t* ticket) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  MPI_Request request = MPI_REQUEST_NULL;
  const int result = MPI_Irecv(bytes, count, MPI_BYTE, peer, tag, world, &request);
  *ticket = kept(request);
  return result;
}

int32_t test(uint64_t* ticket, int32_t* done, int32_t* received) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  MPI_Request request = request_of(*ticket);
  int over = 0;
  MPI_Status status;
  const int result = MPI_Test(&request, &over, &status);
  *ticket = kept(request);
  *done = over;
  if (result == MPI_SUCCESS && over != 0 && received != nullptr)
    return MPI_Get_count(&status, MPI_BYTE, received);
  return result;
}

int32_t cancel(uint64_t* ticket) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  MPI_Request request = request_of(*ticket);
  const int result = MPI_Cancel(&request);
  *ticket = kept(request);
  return result;
}

int32_t probe(int32_t from, int32_t tag, int32_t* peer, int32_t* count) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  int there = 0;
  MPI_Status status;
  const int result = MPI_Iprobe(from < 0 ? MPI_ANY_SOURCE : from, tag, world, &there, &status);
  *peer = -1;
  if (result != MPI_SUCCESS || there == 0) return result;
  *peer = status.MPI_SOURCE;
  return MPI_Get_count(&status, MPI_BYTE, count);
}

int32_t meet(uint64_t* ticket) {
  const std::lock_guard lock(calls);
  if (ended()) return kMpiEnded;
  MPI_Request request = MPI_REQUEST_NULL;
  const int result = MPI_Ibarrier(world, &request);
  *ticket = kept(request);
  return result;
}

int32_t finalize() {
  const std::lock_guard lock(calls);
  if (ended() || world == MPI_COMM_NULL || --users > 0) return MPI_SUCCESS;
  MPI_Comm_free(&world);
  return initialized_here ? MPI_Finalize() : MPI_SUCCESS;
}

void say(int32_t error, char* text, int32_t room) {
  char whole[MPI_MAX_ERROR_STRING] = "it was ended in this process";
  int length = 0;
  if (error != kMpiEnded && (error < 0 || MPI_Error_string(error, whole, &length) != MPI_SUCCESS))
    whole[0] = 0;
  ::strncpy(text, whole, static_cast<size_t>(room) - 1);
  text[room - 1] = 0;
}

constexpr MpiApi kApi = {{sizeof(MpiApi), build_info::kVersion},
                         initialize,
                         token_of,
                         send,
                         receive,
                         test,
                         cancel,
                         probe,
                         meet,
                         finalize,
                         say};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter() { return &treenail::kApi; }
