// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/logging.cc. Values are shown as TensorFlow 1 shows them (Tensor::
// SummarizeValue): rows in brackets, "..." where elements are left out.
#include <unistd.h>

#include <atomic>
#include <complex>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/text.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/kernel/kernel_state.h"
#include "framework/tensor/half.h"
#include "framework/tensor/string_element.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// A terminal must not obey what a string holds.
std::string escaped(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '\n') {
      out += "\\n";
    } else if (code >= 0x20 && code < 0x7f) {
      out += c;
    } else {
      constexpr char kDigits[] = "0123456789abcdef";
      out += {'\\', 'x', kDigits[code >> 4], kDigits[code & 15]};
    }
  }
  return out;
}

std::string text_of(bool value) { return value ? "1" : "0"; }
template <class T>
std::string text_of(T value) {
  if constexpr (std::is_integral_v<T>) {
    return std::to_string(value);
  } else {
    return concat(value);
  }
}
std::string text_of(Float16 value) { return concat(static_cast<float>(value)); }
std::string text_of(BFloat16 value) { return concat(static_cast<float>(value)); }
template <class T>
std::string text_of(std::complex<T> value) {
  return concat("(", value.real(), ",", value.imag(), ")");
}

std::string element_text(const Tensor& tensor, int64_t i) {
  if (tensor.dtype() == DType::kString) return escaped(tensor.data<StringElement>()[i].view());
  if (!is_plain(tensor.dtype())) return concat("<", tensor.dtype(), ">");
  return dispatch<float, double, int32_t, int64_t, bool, uint8_t, int8_t, int16_t, uint16_t,
                  uint32_t, uint64_t, Float16, BFloat16, std::complex<float>, std::complex<double>>(
      tensor.dtype(), [&]<class T>() { return text_of(tensor.data<T>()[i]); });
}

// The elements of one axis from number *next on, as long as there are some before `limit`.
void append_axis(std::string& out, const Tensor& tensor, int axis, int64_t limit, int64_t* next) {
  for (int64_t i = 0; i < tensor.dim(axis); ++i) {
    if (*next >= limit) {
      if (axis != 0) out += "...";
      return;
    }
    if (axis == tensor.rank() - 1) {
      if (i > 0) out += ' ';
      out += element_text(tensor, (*next)++);
      continue;
    }
    out += '[';
    append_axis(out, tensor, axis + 1, limit, next);
    out += ']';
  }
}

std::string summary_of(const Tensor& tensor, int64_t summarize) {
  const int64_t n = tensor.num_elements();
  const int64_t limit = summarize < 0 || summarize > n ? n : summarize;
  std::string out = "[";
  int64_t next = 0;
  if (tensor.rank() == 0) {
    if (limit > 0) out += element_text(tensor, 0);
  } else if (n > 0) {
    append_axis(out, tensor, 0, limit, &next);
  }
  if (limit < n) out += "...";
  return out + "]";
}

KernelPtr prepare_assert(const PrepareContext& p) {
  return make_kernel(
      [summarize = p.op().get_int("summarize"), n = p.num_inputs()](RunContext& c) {
        if (*c.input(0).data<bool>()) return;
        std::string text = "assertion failed:";
        for (int i = 1; i < n; ++i) text += " " + summary_of(c.input(i), summarize);
        throw invalid_argument(text);
      },
      10);
}

// How many lines an op has written in a session.
class Lines final : public Resource {
 public:
  const char* kind() const override { return "Print"; }
  bool one_more(int64_t first_n) {
    return first_n < 0 || written_.fetch_add(1, std::memory_order_relaxed) < first_n;
  }

 private:
  std::atomic<int64_t> written_{0};
};

// In one piece where the system takes it so: lines of several threads do not mix.
void write_line(const std::string& line) {
  for (size_t done = 0; done < line.size();) {
    const ssize_t n = ::write(STDERR_FILENO, line.data() + done, line.size() - done);
    if (n <= 0) return;  // a closed standard error is nobody's mistake
    done += static_cast<size_t>(n);
  }
}

void hand_on(RunContext& c) {
  const Tensor& input = c.input(0);
  if (input.raw() == c.output(0).raw()) return;
  dispatch_element(input.dtype(), [&]<class T>() {
    copy_elements(elements<T>(c.output(0)), elements<T>(input), input.num_elements());
  });
}

KernelPtr prepare_print(const PrepareContext& p) {
  IntrusivePtr<Resource> state =
      node_state(p.resources(), p.node_name(), [] { return make_counted<Lines>(); });
  return make_kernel(
      [state = std::move(state), message = p.op().get_string("message"),
       first_n = p.op().get_int("first_n"), summarize = p.op().get_int("summarize"),
       n = p.num_inputs()](RunContext& c) {
        if (static_cast<Lines&>(*state).one_more(first_n)) {
          std::string line = message;
          for (int i = 1; i < n; ++i) line += summary_of(c.input(i), summarize);
          write_line(line + "\n");
        }
        hand_on(c);
      },
      10'000);
}

}  // namespace

void register_logging_kernels(KernelRegistry& r) {
  r.add("Assert", {}, prepare_assert);
  r.add("Print", {}, prepare_print);
}

}  // namespace treenail::host
