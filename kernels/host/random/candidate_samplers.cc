// SPDX-License-Identifier: Apache-2.0
// The distributions of candidate_samplers.h, drawn as TensorFlow 1 draws them.
#include "kernels/host/random/candidate_samplers.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "framework/base/error.h"
#include "framework/io/file.h"

namespace treenail::host {
namespace {

class UniformSampler final : public CandidateSampler {
 public:
  explicit UniformSampler(int64_t range) : range_(range) {}
  int64_t sample(RandomWords& words) const override {
    return static_cast<int64_t>(words.wide_below(static_cast<uint64_t>(range_)));
  }
  double probability(int64_t) const override { return 1.0 / static_cast<double>(range_); }
  int64_t choices() const override { return range_; }

 private:
  int64_t range_;
};

class LogUniformSampler final : public CandidateSampler {
 public:
  explicit LogUniformSampler(int64_t range)
      : range_(range), log_range_(std::log1p(static_cast<double>(range))) {}
  int64_t sample(RandomWords& words) const override {
    const double drawn = std::exp(words.unit_double() * log_range_);
    // Rounding may lead to range + 1, and in the largest ranges beyond what an integer holds.
    constexpr double kLimit = 9223372036854775807.0;
    const int64_t value = drawn < kLimit ? static_cast<int64_t>(drawn) - 1 : range_ - 1;
    return value % range_;
  }
  double probability(int64_t value) const override {
    const auto c = static_cast<double>(value);
    return std::log((c + 2) / (c + 1)) / log_range_;
  }
  int64_t choices() const override { return range_; }

 private:
  int64_t range_;
  double log_range_;
};

// --- Given weights
// --------------------------------------------------------------------------------

// The alias method of Walker (1977): each class keeps part of its place and lends the rest to one
// other, so that a draw is one place and one comparison.
class FixedUnigramSampler final : public CandidateSampler {
 public:
  // weights: float, [range]. Errors: InvalidArgument, ResourceExhausted.
  explicit FixedUnigramSampler(Tensor weights)
      : weights_(std::move(weights)),
        own_(DType::kFloat32, weights_.shape()),
        other_(DType::kUInt32, weights_.shape()) {
    for (const float weight : weights_.values<float>()) {
      total_ += weight;
      choices_ += weight > 0 ? 1 : 0;
    }
    if (choices_ == 0 || !std::isfinite(total_)) {
      throw invalid_argument("the sum of all weights is ", total_, ", needed is a positive number");
    }
    make_places();
  }
  int64_t sample(RandomWords& words) const override {
    const float part = words.unit_float();
    const auto place = static_cast<uint32_t>(words.below(static_cast<uint64_t>(own_.dim(0))));
    return part < own_.data<float>()[place] ? place : other_.data<uint32_t>()[place];
  }
  double probability(int64_t value) const override {
    return weights_.data<float>()[value] / total_;
  }
  int64_t choices() const override { return choices_; }

 private:
  // A stack in memory of its own.
  struct Stack {
    Tensor places;
    int64_t size = 0;
    explicit Stack(const Shape& shape) : places(DType::kUInt32, shape) {}
    void push(uint32_t place) { places.data<uint32_t>()[size++] = place; }
    uint32_t pop() { return places.data<uint32_t>()[--size]; }
  };

  void make_places() {
    const std::span<const float> weights = weights_.values<float>();
    auto* const own = own_.data<float>();
    auto* const other = other_.data<uint32_t>();
    Tensor remaining(DType::kFloat64, weights_.shape());
    auto* const left = remaining.data<double>();
    Stack high(weights_.shape()), low(weights_.shape());
    for (size_t i = 0; i < weights.size(); ++i) {
      left[i] = static_cast<double>(weights[i]) * static_cast<double>(weights.size()) / total_;
      (left[i] < 1.0 ? low : high).push(static_cast<uint32_t>(i));
    }
    while (high.size > 0 && low.size > 0) {
      const uint32_t from = high.pop(), to = low.pop();
      own[to] = static_cast<float>(left[to]);
      other[to] = from;
      left[from] -= 1.0 - left[to];
      (left[from] < 1.0 ? low : high).push(from);
    }
    // What is left over is full but for rounding, unless it has no weight at all: then whoever has
    // most lends it all.
    const auto most =
        static_cast<uint32_t>(std::max_element(weights.begin(), weights.end()) - weights.begin());
    for (Stack* stack : {&high, &low}) {
      while (stack->size > 0) {
        const uint32_t place = stack->pop();
        own[place] = weights[place] == 0 ? 0.0F : 1.0F;
        other[place] = weights[place] == 0 ? most : place;
      }
    }
  }

  Tensor weights_, own_, other_;
  int64_t choices_ = 0;
  double total_ = 0;
};

// The last field of each line.
std::vector<double> file_weights(const std::string& path) {
  const FileDescriptor file = open_for_reading(path);
  Tensor bytes(DType::kUInt8, Shape({file_size(file, path)}));  // checked against the limit
  auto* const data = static_cast<char*>(bytes.raw());
  const std::string_view text(data, read_at(file, 0, data, bytes.bytes(), path));
  std::vector<double> weights;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    std::string_view field = line.substr(line.rfind(',') + 1);
    while (!field.empty() && field.front() == ' ') field.remove_prefix(1);
    while (!field.empty() && field.back() == ' ') field.remove_suffix(1);
    double weight = 0;
    const auto [last, error] = std::from_chars(field.data(), field.data() + field.size(), weight);
    if (error != std::errc() || last != field.data() + field.size()) {
      throw invalid_argument("line ", weights.size() + 1, " of ", path,
                             " does not end with a number");
    }
    weights.push_back(weight);
    begin = end + 1;
  }
  return weights;
}

}  // namespace

std::unique_ptr<CandidateSampler> uniform_sampler(int64_t range) {
  return std::make_unique<UniformSampler>(range);
}

std::unique_ptr<CandidateSampler> log_uniform_sampler(int64_t range) {
  return std::make_unique<LogUniformSampler>(range);
}

std::unique_ptr<CandidateSampler> fixed_unigram_sampler(const FixedUnigram& what) {
  if (what.vocab_file.empty() == what.unigrams.empty())
    throw invalid_argument("one of vocab_file and unigrams must be given, and only one");
  if (what.shard >= what.num_shards) {
    throw invalid_argument("shard = ", what.shard, " is not in [0, ", what.num_shards, ")");
  }
  std::vector<double> from_file;
  std::span<const double> given = what.unigrams;
  if (!what.vocab_file.empty()) given = from_file = file_weights(what.vocab_file);
  // Of the reserved classes a shard has its share; the others are numbered on from there, as in
  // TensorFlow.
  const int64_t reserved =
      what.reserved > what.shard ? (what.reserved - what.shard - 1) / what.num_shards + 1 : 0;
  std::vector<float> weights;
  for (size_t i = 0; i < given.size(); ++i) {
    const uint64_t id = static_cast<uint64_t>(reserved) + i;
    if (id % static_cast<uint64_t>(what.num_shards) != static_cast<uint64_t>(what.shard)) continue;
    const auto weight = static_cast<float>(std::pow(given[i], what.distortion));
    if (!(given[i] >= 0) || !std::isfinite(weight) || weight < 0) {
      throw invalid_argument("weight ", i, " is ", given[i], ", to the power of ", what.distortion,
                             " it is ", weight, "; needed is a number that is not negative");
    }
    weights.push_back(weight);
  }
  const auto own = static_cast<int64_t>(weights.size());
  if (what.range > UINT32_MAX || what.range < reserved || what.range - reserved != own) {
    throw invalid_argument("range_max = ", what.range, ", needed are ", reserved,
                           " reserved classes and ", own, " weights, fewer than 2^32");
  }
  Tensor all = Tensor::zeros(DType::kFloat32, Shape({what.range}));
  std::copy(weights.begin(), weights.end(), all.data<float>() + reserved);
  return std::make_unique<FixedUnigramSampler>(std::move(all));
}

// --- Learned weights
// ------------------------------------------------------------------------------

LearnedUnigram::LearnedUnigram(int64_t range)
    : range_(range), total_(range), sums_(DType::kInt64, Shape({range})) {
  auto* sums = sums_.data<int64_t>();
  for (int64_t i = 1; i <= range; ++i) sums[i - 1] = i & -i;  // counts of 1
}

int64_t LearnedUnigram::sample(RandomWords& words) const {
  auto left = static_cast<int64_t>(words.below(static_cast<uint64_t>(total_)));
  const auto* sums = sums_.data<int64_t>();
  int64_t place = 0;
  const auto highest = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(range_)));
  for (int64_t step = highest; step > 0; step /= 2) {
    if (step <= range_ - place && sums[place + step - 1] <= left) {
      place += step;
      left -= sums[place - 1];
    }
  }
  return place;
}

double LearnedUnigram::probability(int64_t value) const {
  const auto* sums = sums_.data<int64_t>();
  const int64_t end = value + 1;
  int64_t count = sums[value];
  for (int64_t i = value; i > end - (end & -end); i -= i & -i) count -= sums[i - 1];
  return static_cast<double>(count) / static_cast<double>(total_);
}

void LearnedUnigram::count(int64_t value) {
  auto* sums = sums_.data<int64_t>();
  for (int64_t i = value + 1; i > 0 && i <= range_;) {
    ++sums[i - 1];
    if ((i & -i) > range_ - i) break;
    i += i & -i;
  }
  ++total_;
}

}  // namespace treenail::host
