// SPDX-License-Identifier: Apache-2.0
// FFTW as guest: the batch is cut into pieces by shape alone, each one plan on one thread. All
// pieces begin at aligned places, for FFTW's choice of instructions looks at addresses.
#include "kernels/cpu/fft/fft_fftw.h"

#include <array>
#include <atomic>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cpu/fft/fft_line.h"

namespace treenail::cpu {
namespace {

constexpr const char* kChoice = "TREENAIL_FFT";
constexpr const char* kWisdom = "TREENAIL_FFTW_WISDOM";

const FftwApi* open_fftw() {
  const AdapterRequest request = {"fftw", sizeof(FftwApi), "Fourier transforms by FFTW",
                                  "FFTW (Debian: libfftw3-double3 libfftw3-single3, Fedora: "
                                  "fftw-libs)",
                                  "fftw"};
  const auto* api = static_cast<const FftwApi*>(open_adapter(request));
  const std::optional<std::string> file = env_text(kWisdom);
  if (!file) return api;
  const bool narrow = api->import_wisdom(file->c_str(), 0) == 0;
  const bool wide = api->import_wisdom(file->c_str(), 1) == 0;
  if (!narrow && !wide) {
    throw invalid_argument(kWisdom, "=", *file,
                           " holds no wisdom of FFTW, neither of fftwf-wisdom nor of fftw-wisdom");
  }
  return api;
}

const FftwApi& fftw() {
  static std::atomic<const FftwApi*> api{nullptr};
  return made_once(api, open_fftw);
}

bool asked_for_fftw() {
  constexpr std::array<std::string_view, 2> kChoices = {"builtin", "fftw"};
  if (const auto choice = env_choice(kChoice, kChoices)) return *choice == 1;
  return env_text(kWisdom).has_value();
}

class Plan {
 public:
  Plan(const FftwApi& api, const FftwTransforms& t) : api_(api), made_(api.create(&t)) {
    if (made_ == nullptr) {
      throw resource_exhausted("FFTW has no plan for ", t.batch, " transforms of [", t.length[0],
                               t.axes > 1 ? concat(",", t.length[1]) : "",
                               t.axes > 2 ? concat(",", t.length[2]) : "", "]");
    }
  }
  ~Plan() { api_.destroy(made_); }
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  void run(void* from, void* to) const { api_.run(made_, from, to); }

 private:
  const FftwApi& api_;
  void* made_;
};

// Pieces of the batch: equal but for the last one.
template <class T>
struct Pieces {
  int64_t from_numbers, to_numbers;  // of one transform, in Ts
  FftCut cut;
  double cost;
  std::unique_ptr<const Plan> whole, rest;

  // A multiple of 16 transforms is a multiple of kFftwAlignment bytes.
  static constexpr int64_t kUnit = 16;
  static_assert(kUnit * sizeof(T) % kFftwAlignment == 0);

  Pieces(FftwKind kind, int axes, const Boxes& input, const Boxes& wanted, const Boxes& output)
      : from_numbers(numbers(input, kind == kFftwFromReal)),
        to_numbers(numbers(output, kind == kFftwToReal)),
        cut((wanted.batch + kUnit - 1) / kUnit, 16),
        cost(static_cast<double>(wanted.batch) * fft_cost_ns(static_cast<int64_t>(wanted.size()))) {
    FftwTransforms t = {kind, sizeof(T) == sizeof(double) ? 1 : 0, axes, {1, 1, 1}, 0};
    for (int i = 0; i < axes; ++i) t.length[i] = wanted.extent[kMostAxes - axes + i];
    t.batch = std::min(wanted.batch, transforms());
    whole = std::make_unique<const Plan>(fftw(), t);
    t.batch = wanted.batch - (cut.chunks - 1) * transforms();
    if (t.batch != transforms() && cut.chunks > 1) rest = std::make_unique<const Plan>(fftw(), t);
  }
  int64_t transforms() const { return cut.grain * kUnit; }
  void run(const RunContext& c, T* from, T* to) const {
    c.run_chunks(cut.chunks, cost, [&](int64_t piece) {
      const bool last = rest && piece + 1 == cut.chunks;
      (last ? rest : whole)
          ->run(from + piece * transforms() * from_numbers, to + piece * transforms() * to_numbers);
    });
  }

 private:
  static int64_t numbers(const Boxes& boxes, bool real) {
    return boxes.extent[0] * boxes.extent[1] * boxes.last() * (real ? 1 : 2);
  }
};

bool is_aligned(const void* p) { return reinterpret_cast<uintptr_t>(p) % kFftwAlignment == 0; }

template <class T>
void scale_by(const RunContext& c, T factor, T* x, int64_t count) {
  constexpr int64_t kGrain = 1 << 15;
  c.parallel_for(count, kGrain, 0.3, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) x[i] *= factor;
  });
}

}  // namespace

bool fftw_wanted() {
  static const bool wanted = asked_for_fftw();
  return wanted;
}

template <class T>
std::unique_ptr<Kernel> prepare_fftw(FftwKind kind, int axes, const Boxes& given,
                                     const Boxes& wanted) {
  Boxes input = wanted, output = wanted;
  if (kind == kFftwToReal) input.last() = wanted.last() / 2 + 1;
  if (kind == kFftwFromReal) output.last() = wanted.last() / 2 + 1;
  const int64_t width = kind == kFftwFromReal ? 1 : 2;
  const bool fits = kind != kFftwToReal && same_extents(given, input);
  const bool inverse = kind == kFftwBackward || kind == kFftwToReal;
  const T scale = static_cast<T>(1 / wanted.size());
  // Errors where the products of extents would overflow, before FFTW sees them.
  const size_t scratch = fitted_bytes<T>(input, width);
  fitted_bytes<T>(output, kind == kFftwToReal ? 1 : 2);
  auto pieces = std::make_shared<const Pieces<T>>(kind, axes, input, wanted, output);
  return make_kernel(
      [=](RunContext& c) {
        const T* const given_numbers = static_cast<const T*>(c.input(0).raw());
        T* const to = static_cast<T*>(c.output(0).raw());
        // Read only, unless it is the copy.
        T* from = const_cast<T*>(given_numbers);
        if (!fits || !is_aligned(given_numbers)) {
          from = reinterpret_cast<T*>(c.scratch());
          fit(c, given, input, width, given_numbers, from);
        }
        pieces->run(c, from, to);
        if (inverse) scale_by(c, scale, to, wanted.batch * pieces->to_numbers);
      },
      pieces->cost, scratch);
}

template std::unique_ptr<Kernel> prepare_fftw<float>(FftwKind, int, const Boxes&, const Boxes&);
template std::unique_ptr<Kernel> prepare_fftw<double>(FftwKind, int, const Boxes&, const Boxes&);

}  // namespace treenail::cpu
