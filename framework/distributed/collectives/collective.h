// SPDX-License-Identifier: Apache-2.0
// One execution of a collective operation, as a rank asks for it, and what it tells the others of
// it (Descriptor). Ranks may ask in any order: executions belong together by key and by how often
// the key was used before. What ranks must agree on is compared by each of them, from the same
// descriptors, so that all of them report one error.
#pragma once

#include <cstdint>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/distributed/shared_memory/shared_pool.h"
#include "framework/tensor/tensor.h"

namespace treenail {

enum class CollectiveKind : uint8_t {
  kAllReduce,      // all ranks' values, reduced; several tensors of one dtype at once
  kBroadcast,      // the root's value
  kAllGather,      // all ranks' values, one after another along the first axis
  kReduceScatter,  // of the reduced value the rank's part of the first axis
  kAllToAll,       // part r of the first axis goes to rank r
  kBarrier,        // nothing, once all ranks are there
};
enum class Reduction : uint8_t { kSum, kMean, kMin, kMax, kProduct };

// "all_reduce", "sum": as the ops' attributes and messages have them.
std::string_view kind_name(CollectiveKind kind);
std::string_view reduction_name(Reduction reduction);
// Errors: InvalidArgument.
Reduction reduction_from_name(std::string_view name);

// What one rank tells the others. Plain bytes, which are copied before they are looked at.
struct Descriptor {
  uint64_t key_hash = 0;
  uint64_t instance = 0;  // how many executions of the key came before
  CollectiveKind kind = CollectiveKind::kBarrier;
  Reduction reduction = Reduction::kSum;
  DType dtype = DType::kInvalid;
  uint8_t rank = 0;      // of the first tensor's shape
  uint8_t in_place = 0;  // in shared memory: the bytes are a tensor's own, and no block to release
  uint8_t error = 0;     // a Code: this rank could not take part
  uint16_t unused = 0;
  int32_t root = 0;
  uint32_t tensors = 0;
  uint64_t shapes_hash = 0;  // of all tensors' shapes; of kAllGather without the first axis
  int64_t elements = 0;      // of all tensors
  int64_t dims[8] = {};      // of the first tensor, as far as they fit
  char key[96] = {};         // its beginning, ended by 0
  SharedAddress data;        // in shared memory: the tensors one after another
  SharedAddress result;      // in shared memory: where the reduced value goes
};

class Collective : public RefCounted {
 public:
  CollectiveKind kind = CollectiveKind::kBarrier;
  Reduction reduction = Reduction::kSum;
  DType dtype = DType::kInvalid;
  int32_t root = 0;
  std::string key;              // empty: the next execution without a key
  std::vector<Tensor> inputs;   // may be short-lived memory: it is copied in submit()
  std::vector<Tensor> outputs;  // set at the end

  size_t input_bytes() const;

  // The end, told once, from any thread, with no lock held; outputs are set where `error` is null.
  virtual void ended(std::exception_ptr error) noexcept = 0;
};

Descriptor describe(const Collective& collective, uint64_t instance);

// The error of all ranks where their descriptors (by rank) do not go together; kOk where they do.
struct Disagreement {
  Code code = Code::kOk;
  std::string text;
};
Disagreement disagreement(std::span<const Descriptor> by_rank);

// "all_reduce 'loss' (execution 3)".
std::string called(const Descriptor& descriptor);

}  // namespace treenail
