// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/string_conversion.cc. The C library's own functions format real numbers,
// in the C locale whatever the program's is.
#include <charconv>
#include <complex>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/strings/fingerprint.h"
#include "kernels/host/strings/read_number.h"
#include "kernels/host/strings/string_loops.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- Reading ----------------------------------------------------------------------------------

template <class T>
KernelPtr string_to_number_kernel(int64_t n) {
  return make_kernel(
      [n](RunContext& c) {
        T* out = c.output(0).data<T>();
        each_element(c, n, 100, [&](int64_t i) {
          const std::string_view text = string_at(c.input(0), i);
          T value{};
          if (!read_number(text, &value)) {
            throw invalid_argument("StringToNumberOp could not correctly convert string: ",
                                   quoted(text), " at index ", i);
          }
          out[i] = value;
        });
      },
      100.0 * static_cast<double>(n));
}

KernelPtr prepare_string_to_number(const PrepareContext& p) {
  const int64_t n = p.input_shape(0).num_elements();
  return dispatch<float, double, int32_t, int64_t>(
      p.output_type(0), [&]<class T>() { return string_to_number_kernel<T>(n); });
}

// --- Writing ----------------------------------------------------------------------------------

// The C locale on this thread while it lives.
class CLocale {
 public:
  CLocale() : before_(::uselocale(c_locale())) {}
  ~CLocale() { ::uselocale(before_); }
  CLocale(const CLocale&) = delete;
  CLocale& operator=(const CLocale&) = delete;

 private:
  locale_t before_;
};

// `format` was made by format_of() and checked by the shape rule.
template <class Value>
void append_formatted(std::string* out, const std::string& format, Value value) {
  char buffer[512];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  const int size = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
  if (size < static_cast<int>(sizeof buffer)) {
    out->append(buffer, static_cast<size_t>(size));
    return;
  }
  const size_t before = out->size();
  out->resize(before + static_cast<size_t>(size) + 1);
  std::snprintf(out->data() + before, static_cast<size_t>(size) + 1, format.c_str(), value);
#pragma GCC diagnostic pop
  out->pop_back();
}

template <class T>
std::string as_text(const std::string& format, T value) {
  std::string out;
  if constexpr (std::is_same_v<T, bool>) {
    out = value ? "true" : "false";
  } else if constexpr (is_complex(dtype_of<T>)) {
    out += '(';
    append_formatted(&out, format, static_cast<double>(value.real()));
    out += ',';
    append_formatted(&out, format, static_cast<double>(value.imag()));
    out += ')';
  } else if constexpr (is_floating(dtype_of<T>)) {
    append_formatted(&out, format, static_cast<double>(comparable(value)));
  } else if constexpr (std::is_signed_v<T>) {
    append_formatted(&out, format, static_cast<long long>(value));
  } else {
    append_formatted(&out, format, static_cast<unsigned long long>(value));
  }
  return out;
}

std::string format_of(const PrepareContext& p) {
  const OpInstance& op = p.op();
  const DType dtype = p.input_type(0);
  std::string format = "%" + op.get_string("fill");
  if (op.get_int("width") >= 0) format += std::to_string(op.get_int("width"));
  if (op.get_int("precision") >= 0) format += "." + std::to_string(op.get_int("precision"));
  if (is_floating(dtype) || is_complex(dtype)) {
    format += op.get_bool("scientific") ? "e" : op.get_bool("shortest") ? "g" : "f";
  } else {
    format += is_signed_integer(dtype) ? "lld" : "llu";
  }
  return format;
}

template <class T>
KernelPtr as_string_kernel(const PrepareContext& p) {
  const int64_t n = p.input_shape(0).num_elements();
  return make_kernel(
      [n, format = format_of(p)](RunContext& c) {
        const T* in = c.input(0).data<T>();
        auto* out = c.output(0).data<StringElement>();
        c.parallel_for(n, kStringGrain, 200, [&](int64_t begin, int64_t end) {
          const CLocale locale;
          for (int64_t i = begin; i < end; ++i) out[i] = StringElement(as_text(format, in[i]));
        });
      },
      200.0 * static_cast<double>(n));
}

KernelPtr prepare_as_string(const PrepareContext& p) {
  return dispatch<int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t, Float16,
                  BFloat16, float, double, std::complex<float>, std::complex<double>, bool>(
      p.input_type(0), [&]<class T>() { return as_string_kernel<T>(p); });
}

// --- Hashes -----------------------------------------------------------------------------------

template <class Hash>
KernelPtr bucket_kernel(const PrepareContext& p, Hash hash) {
  const int64_t n = p.input_shape(0).num_elements();
  const auto buckets = static_cast<uint64_t>(p.op().get_int("num_buckets"));
  return make_kernel(
      [n, buckets, hash](RunContext& c) {
        int64_t* out = c.output(0).data<int64_t>();
        each_element(c, n, 30, [&](int64_t i) {
          out[i] = static_cast<int64_t>(hash(string_at(c.input(0), i)) % buckets);
        });
      },
      30.0 * static_cast<double>(n));
}

KernelPtr prepare_fast(const PrepareContext& p) { return bucket_kernel(p, fingerprint64); }

KernelPtr prepare_strong(const PrepareContext& p) {
  const std::vector<int64_t>& key = p.op().get_ints("key");
  return bucket_kernel(
      p, [first = static_cast<uint64_t>(key[0]), second = static_cast<uint64_t>(key[1])](
             std::string_view text) { return sip_hash(first, second, text); });
}

KernelPtr prepare_older(const PrepareContext& p) {
  return bucket_kernel(p, [](std::string_view text) { return murmur_hash64a(text, 0xdecafcaffe); });
}

}  // namespace

void register_string_conversion_kernels(KernelRegistry& r) {
  r.add("StringToNumber", {}, prepare_string_to_number);
  r.add("AsString", {}, prepare_as_string);
  r.add("StringToHashBucketFast", {}, prepare_fast);
  r.add("StringToHashBucketStrong", {}, prepare_strong);
  r.add("StringToHashBucket", {}, prepare_older);
}

}  // namespace treenail::host
