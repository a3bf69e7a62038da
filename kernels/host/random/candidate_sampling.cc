// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/candidate_sampling.cc. A run's numbers are drawn one after the other:
// whether one is kept depends on those before. The distributions: candidate_samplers.h.
#include <cmath>
#include <limits>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "framework/base/error.h"
#include "framework/io/file_place.h"
#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_files.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_random.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/kernel/kernel_state.h"
#include "kernels/host/random/candidate_samplers.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// Blocks of the stream that a run takes for each number, however many it draws: as TensorFlow.
constexpr uint64_t kBlocksPerNumber = 512;

struct Request {
  int64_t num_sampled;
  bool unique;
  CountedStream stream;
  explicit Request(const PrepareContext& p)
      : num_sampled(p.op().get_int("num_sampled")), unique(p.op().get_bool("unique")), stream(p) {}
};

// Draws until all places are filled. Returns how many numbers that took.
int64_t draw(RunContext& c, const Request& request, const CandidateSampler& sampler) {
  if (request.unique && request.num_sampled > sampler.choices()) {
    throw invalid_argument("Sampler's range is too small: num_sampled = ", request.num_sampled,
                           " different classes are wanted, ", sampler.choices(),
                           " have a probability");
  }
  constexpr int64_t kMostTries = std::numeric_limits<int32_t>::max(), kTriesPerPoll = 1 << 16;
  RandomWords words(
      request.stream.next(static_cast<uint64_t>(request.num_sampled) * kBlocksPerNumber));
  auto* out = c.output(0).data<int64_t>();
  std::unordered_set<int64_t> seen;
  int64_t tries = 0;
  for (int64_t filled = 0; filled < request.num_sampled;) {
    if (tries % kTriesPerPoll == 0) poll(c);
    ++tries;
    const int64_t value = sampler.sample(words);
    if (request.unique) {
      if (tries > kMostTries) {
        throw resource_exhausted(filled, " different classes were found in ", kMostTries,
                                 " tries, wanted are ", request.num_sampled);
      }
      if (!seen.insert(value).second) continue;
    }
    out[filled++] = value;
  }
  return tries;
}

// How often a class of probability p is expected among n numbers drawn in so many tries.
float expected(double p, int64_t n, int64_t tries) {
  if (n == tries) return static_cast<float>(p * static_cast<double>(n));
  return static_cast<float>(-std::expm1(static_cast<double>(tries) * std::log1p(-p)));
}

void run_sampler(RunContext& c, const Request& request, const CandidateSampler& sampler) {
  const int64_t tries = draw(c, request, sampler);
  auto fill = [&](const Tensor& classes, Tensor& counts) {
    const auto* from = classes.data<int64_t>();
    auto* to = counts.data<float>();
    for (int64_t i = 0; i < classes.num_elements(); ++i)
      to[i] = expected(sampler.probability(from[i]), request.num_sampled, tries);
  };
  fill(c.input(0), c.output(1));
  fill(c.output(0), c.output(2));
}

double sampler_cost(const PrepareContext& p) {
  return 100 + 60.0 * static_cast<double>(p.op().get_int("num_sampled")) +
         30.0 * static_cast<double>(p.input_shape(0).num_elements());
}

KernelPtr fixed_kernel(const PrepareContext& p, std::shared_ptr<const CandidateSampler> sampler) {
  const int64_t range = p.op().get_int("range_max");
  return make_kernel(
      [request = Request(p), range, sampler = std::move(sampler)](RunContext& c) {
        check_indices("true_classes", c.input(0), range);
        run_sampler(c, request, *sampler);
      },
      sampler_cost(p));
}

KernelPtr prepare_uniform(const PrepareContext& p) {
  return fixed_kernel(p, uniform_sampler(p.op().get_int("range_max")));
}

KernelPtr prepare_log_uniform(const PrepareContext& p) {
  return fixed_kernel(p, log_uniform_sampler(p.op().get_int("range_max")));
}

KernelPtr prepare_fixed_unigram(const PrepareContext& p) {
  const FileScope scope(file_roots_of(p));
  const OpInstance& op = p.op();
  const auto& unigrams = op.get<std::vector<double>>("unigrams");
  return fixed_kernel(
      p, fixed_unigram_sampler({op.get_int("range_max"), op.get_string("vocab_file"), unigrams,
                                op.get_float("distortion"), op.get_int("num_reserved_ids"),
                                op.get_int("num_shards"), op.get_int("shard")}));
}

KernelPtr prepare_learned_unigram(const PrepareContext& p) {
  const int64_t range = p.op().get_int("range_max");
  auto make = [range]() -> IntrusivePtr<Resource> {
    return IntrusivePtr<Resource>(new LearnedUnigram(range));
  };
  IntrusivePtr<LearnedUnigram> state;
  if (!p.node_name().empty()) {
    const IntrusivePtr<Resource> found = node_state(p.resources(), p.node_name(), make);
    state = IntrusivePtr<LearnedUnigram>(dynamic_cast<LearnedUnigram*>(found.get()));
    if (!state || state->choices() != range) {
      throw failed_precondition("the session keeps ", found->kind(),
                                " of another operation under this name");
    }
  }
  return make_kernel(
      [request = Request(p), range, state](RunContext& c) {
        check_indices("true_classes", c.input(0), range);
        IntrusivePtr<LearnedUnigram> counts = state;
        if (!counts) counts = IntrusivePtr<LearnedUnigram>(new LearnedUnigram(range));
        const std::lock_guard lock(counts->mutex());
        run_sampler(c, request, *counts);
        for (const int64_t value : c.input(0).values<int64_t>()) counts->count(value);
      },
      sampler_cost(p));
}

KernelPtr prepare_all(const PrepareContext& p) {
  return make_kernel(
      [n = p.op().get_int("num_sampled")](RunContext& c) {
        check_indices("true_classes", c.input(0), n);
        for (int64_t i = 0; i < n; ++i) c.output(0).data<int64_t>()[i] = i;
        for (const int output : {1, 2}) {
          Tensor& counts = c.output(output);
          std::fill_n(counts.data<float>(), counts.num_elements(), 1.0F);
        }
      },
      sampler_cost(p));
}

// --- ComputeAccidentalHits
// ------------------------------------------------------------------------

void find_hits(RunContext& c) {
  const std::span<const int64_t> sampled = c.input(1).values<int64_t>();
  // The places of a class form a chain, the first of them here.
  std::unordered_map<int64_t, int64_t> first;
  std::vector<int64_t> next(sampled.size(), -1);
  for (auto i = static_cast<int64_t>(sampled.size()) - 1; i >= 0; --i) {
    const auto [found, fresh] = first.try_emplace(sampled[static_cast<size_t>(i)], i);
    if (fresh) continue;
    next[static_cast<size_t>(i)] = found->second;
    found->second = i;
  }
  const int64_t rows = c.input(0).dim(0), columns = c.input(0).dim(1);
  if (rows > std::numeric_limits<int32_t>::max() && columns > 0)
    throw invalid_argument("true_classes has ", rows, " rows; indices are 32 bits wide");
  const std::span<const int64_t> classes = c.input(0).values<int64_t>();
  std::vector<int32_t> indices;
  std::vector<int64_t> ids;
  for (size_t i = 0; i < classes.size(); ++i) {
    if (i % 65536 == 0) poll(c);
    const auto found = first.find(classes[i]);
    if (found == first.end()) continue;
    for (int64_t at = found->second; at >= 0; at = next[static_cast<size_t>(at)]) {
      indices.push_back(static_cast<int32_t>(static_cast<int64_t>(i) / columns));
      ids.push_back(at);
    }
  }
  const std::vector<float> weights(ids.size(), std::numeric_limits<float>::lowest());
  c.set_output(0, Tensor::vector<int32_t>(indices));
  c.set_output(1, Tensor::vector<int64_t>(ids));
  c.set_output(2, Tensor::vector<float>(weights));
}

KernelPtr prepare_hits(const PrepareContext& p) {
  return make_kernel(find_hits, 100 + 40.0 * static_cast<double>(p.input_shape(0).num_elements() +
                                                                 p.input_shape(1).num_elements()));
}

}  // namespace

void register_candidate_sampling_kernels(KernelRegistry& r) {
  r.add("UniformCandidateSampler", {}, prepare_uniform);
  r.add("LogUniformCandidateSampler", {}, prepare_log_uniform);
  r.add("FixedUnigramCandidateSampler", {}, prepare_fixed_unigram);
  r.add("LearnedUnigramCandidateSampler", {}, prepare_learned_unigram);
  r.add("AllCandidateSampler", {}, prepare_all);
  r.add("ComputeAccidentalHits", {}, prepare_hits);
}

}  // namespace treenail::host
