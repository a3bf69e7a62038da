// SPDX-License-Identifier: Apache-2.0
// Random numbers of framework/ops/random.cc as TensorFlow 1 draws them: outputs come in groups (as
// many as one Philox block gives), group g of a fixed-rate distribution uses block g, group g of
// one that rejects samples owns the 256 words per output from g on. An execution reserves 256
// blocks per output whatever it uses. From words to numbers: kernels/elementwise/distributions.h.
// log, sin and cos are the C library's, as in TensorFlow.
// RandomShuffle and Multinomial: kernels/host/random/random.cc.
#include <algorithm>
#include <optional>

#include "framework/runtime/kernel/kernel_random.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/random/philox_fill.h"
#include "kernels/elementwise/distributions.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- Distributions ----------------------------------------------------------------------------
// convert(words, out, n): n outputs from the words of n / kGroup blocks. kWide types compute in
// float.

template <class T>
struct Uniform {
  static constexpr int kGroup = random::kGroup<T>;
  static constexpr double kCost = sizeof(T) == 8 ? 1.5 : 0.8;
  static void convert(const uint32_t* words, T* out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, float>) {
        out[i] = random::unit_float(words[i]);
      } else if constexpr (std::is_same_v<T, double>) {
        out[i] = random::unit_double(words[2 * i], words[2 * i + 1]);
      } else if constexpr (std::is_same_v<T, Float16>) {
        out[i] = T(random::unit_float16(words[i]));
      } else {
        out[i] = T(random::unit_bfloat16(words[i]));
      }
    }
  }
};

template <class T>
struct Normal {
  static constexpr int kGroup = random::kGroup<T>;
  static constexpr double kCost = sizeof(T) == 8 ? 20 : 8;
  static void convert(const uint32_t* words, T* out, int64_t n) {
    for (int64_t i = 0; i < n; i += 2) {
      if constexpr (std::is_same_v<T, double>) {
        random::normal_pair(words + 2 * i, out + i);
      } else if constexpr (std::is_same_v<T, float>) {
        random::normal_pair(words + i, out + i);
      } else {
        float pair[2];
        random::normal_pair(words + i, pair);
        narrow(pair, out + i, 2);
      }
    }
  }
};

// Integers low + word mod range.
template <class T>
struct UniformInt {
  static constexpr int kGroup = random::kGroup<T>;
  static constexpr double kCost = sizeof(T) == 8 ? 4 : 2;
  T low;
  T high;
  void convert(const uint32_t* words, T* out, int64_t n) const {
    for (int64_t i = 0; i < n; ++i) out[i] = random::uniform_int(words, i, low, high);
  }
};

// Blocks per piece of parallel work, and per tile of words on the stack.
constexpr int64_t kPieceBlocks = 4096;
constexpr int64_t kTileBlocks = 64;

template <class T, class Distribution>
void fill(RunContext& c, const Philox& stream, const Distribution& distribution, T* out,
          int64_t n) {
  constexpr int64_t kGroup = Distribution::kGroup;
  const int64_t groups = (n + kGroup - 1) / kGroup;
  c.parallel_for(groups, kPieceBlocks, Distribution::kCost * kGroup,
                 [&](int64_t begin, int64_t end) {
                   alignas(64) uint32_t words[4 * kTileBlocks];
                   T last[4];
                   for (int64_t group = begin; group < end; group += kTileBlocks) {
                     const int64_t blocks = std::min(kTileBlocks, end - group);
                     fill_blocks(stream, static_cast<uint64_t>(group), blocks, words);
                     const int64_t whole = std::min(blocks, n / kGroup - group);
                     distribution.convert(words, out + group * kGroup, whole * kGroup);
                     if (whole == blocks) continue;
                     distribution.convert(words + 4 * whole, last, kGroup);
                     std::copy(last, last + n % kGroup, out + (group + whole) * kGroup);
                   }
                 });
}

// --- Truncated normal: rejection --------------------------------------------------------------

template <class T>
using RealOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <class T>
void fill_truncated(RunContext& c, const Philox& stream, T* out, int64_t n) {
  constexpr int64_t kGroup = random::kGroup<T>;
  const auto block = [&](uint64_t at, uint32_t* words) { std::ranges::copy(stream(at), words); };
  const int64_t groups = (n + kGroup - 1) / kGroup;
  c.parallel_for(groups, 1024, 15.0 * kGroup, [&](int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end; ++group) {
      RealOf<T> drawn[kGroup];
      random::truncated_group(block, static_cast<uint64_t>(group) * random::kRegion<T>, drawn);
      const int64_t count = std::min(kGroup, n - group * kGroup);
      if constexpr (sizeof(T) == 2) {
        narrow(drawn, out + group * kGroup, count);
      } else {
        std::copy(drawn, drawn + count, out + group * kGroup);
      }
    }
  });
}

// --- Kernels ----------------------------------------------------------------------------------

// The numbers of one execution, for ops with a counter and those with a seed as input 1.
class Source {
 public:
  explicit Source(const PrepareContext& p) {
    if (p.op().def().random) counted_.emplace(p);
  }
  Philox next(RunContext& c, int64_t outputs) const {
    if (counted_) return counted_->next(blocks_for(outputs));
    if (c.input(1).num_elements() == 6) return stream(c.input(1).data<uint32_t>());
    return seeded_stream(seed(c.input(1), 0), seed(c.input(1), 1));
  }

 private:
  // Element i of a seed; unsigned ones by their bits.
  static int64_t seed(const Tensor& pair, int64_t i) {
    switch (pair.dtype()) {
      case DType::kUInt64:
        return static_cast<int64_t>(pair.data<uint64_t>()[i]);
      case DType::kUInt32:
        return pair.data<uint32_t>()[i];
      case DType::kInt32:
        return pair.data<int32_t>()[i];
      default:
        return pair.data<int64_t>()[i];
    }
  }

  // As RandomStream gave it.
  static Philox stream(const uint32_t* words) {
    return {Philox::Block{words[0], words[1], words[2], words[3]}, Philox::Key{words[4], words[5]}};
  }

  std::optional<CountedStream> counted_;
};

template <template <class> class Distribution>
KernelPtr prepare_real(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  return dispatch<float, double, Float16, BFloat16>(p.output_type(0), [&]<class T>() -> KernelPtr {
    return make_kernel(
        [n, source = Source(p)](RunContext& c) {
          fill<T>(c, source.next(c, n), Distribution<T>(), c.output(0).data<T>(), n);
        },
        50 + Distribution<T>::kCost * static_cast<double>(n));
  });
}

KernelPtr prepare_truncated(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  return dispatch<float, double, Float16, BFloat16>(p.output_type(0), [&]<class T>() -> KernelPtr {
    return make_kernel(
        [n, source = Source(p)](RunContext& c) {
          fill_truncated<T>(c, source.next(c, n), c.output(0).data<T>(), n);
        },
        50 + 15.0 * static_cast<double>(n));
  });
}

KernelPtr prepare_int(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  const int low = p.op().def().input_index("minval");
  const int high = p.op().def().input_index("maxval");
  return dispatch<int32_t, int64_t>(p.output_type(0), [&]<class T>() -> KernelPtr {
    const UniformInt<T> distribution{*p.host_value(low).data<T>(), *p.host_value(high).data<T>()};
    return make_kernel(
        [n, distribution, source = Source(p)](RunContext& c) {
          fill<T>(c, source.next(c, n), distribution, c.output(0).data<T>(), n);
        },
        50 + UniformInt<T>::kCost * static_cast<double>(n));
  });
}

KernelPtr prepare_stream(const PrepareContext& p) {
  return make_kernel(
      [blocks = blocks_for(p.host_value(0)), stream = CountedStream(p)](RunContext& c) {
        const Philox begin = stream.next(blocks);
        uint32_t* const words = c.output(0).data<uint32_t>();
        std::ranges::copy(begin.counter(), words);
        std::ranges::copy(begin.key(), words + 4);
      },
      50);
}

}  // namespace

void register_random_kernels(KernelRegistry& r) {
  r.add("RandomUniform", {}, prepare_real<Uniform>);
  r.add("RandomStandardNormal", {}, prepare_real<Normal>);
  r.add("TruncatedNormal", {}, prepare_truncated);
  r.add("RandomUniformInt", {}, prepare_int);
  r.add("RandomStream", {}, prepare_stream);
  r.add("StatelessRandomUniform", {}, prepare_real<Uniform>);
  r.add("StatelessRandomNormal", {}, prepare_real<Normal>);
  r.add("StatelessTruncatedNormal", {}, prepare_truncated);
  r.add("StatelessRandomUniformInt", {}, prepare_int);
}

}  // namespace treenail::cpu
