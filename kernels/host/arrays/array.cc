// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/array.cc. Identity and its like are views and need none.
#include <complex>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor_list.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- Sources ----------------------------------------------------------------------------------

KernelPtr prepare_const(const PrepareContext& p) {
  return make_kernel(
      [value = p.op().get<Tensor>("value")](RunContext& c) { c.set_output(0, value); }, 20);
}

KernelPtr prepare_placeholder(const PrepareContext& p) {
  const std::string name(p.node_name());
  return make_kernel([message = concat("You must feed a value for placeholder tensor \"", name,
                                       "\" with dtype ", p.op().get_type("dtype"), " and shape ",
                                       p.op().get<PartialShape>("shape"))](
                         RunContext&) { throw Error(Code::kInvalidArgument, message); },
                     20);
}

// The input may lie in memory that the plan uses again: the values are copied.
KernelPtr prepare_placeholder_with_default(const PrepareContext& p) {
  const double cost = 50 + 0.1 * static_cast<double>(p.input_shape(0).num_elements() * 4);
  return make_kernel([](RunContext& c) { c.set_output(0, c.input(0).deep_copy()); }, cost);
}

// --- Fills ------------------------------------------------------------------------------------

template <class T>
KernelPtr fill_kernel(int64_t n, const T* constant) {
  const T fixed = constant == nullptr ? T() : *constant;
  const double cost = 5 + kMoveCost<T> * static_cast<double>(n);
  return make_kernel(
      [n, fixed, from_input = constant == nullptr](RunContext& c) {
        const T value = from_input ? *elements<T>(c.input(1)) : fixed;
        T* out = elements<T>(c.output(0));
        c.parallel_for(n, kMoveGrain<T>, kMoveCost<T>, [&](int64_t begin, int64_t end) {
          fill_elements(out + begin, value, end - begin);
        });
      },
      cost);
}

KernelPtr prepare_fill(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  return dispatch_element(p.output_type(0), [n]<class T>() { return fill_kernel<T>(n, nullptr); });
}

// As many elements as the list has, none of which is set.
void unset_list(RunContext& c) {
  const TensorList& list = TensorList::in(c.input(0));
  c.output(0).data<VariantElement>()->object = IntrusivePtr<const VariantObject>(
      new TensorList(list.element_dtype, list.element_shape, list.size()));
}

KernelPtr prepare_zeros_like(const PrepareContext& p) {
  if (p.output_type(0) == DType::kVariant) return make_kernel(unset_list, 100);
  const int64_t n = p.output_shape(0).num_elements();
  return dispatch_element(p.output_type(0), [n]<class T>() {
    const T zero = T();
    return fill_kernel<T>(n, &zero);
  });
}

template <class T>
T one() {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(1.0F);
  } else {
    return T(1);
  }
}

KernelPtr prepare_ones_like(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  return dispatch<float, double, Float16, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                  uint16_t, uint32_t, uint64_t, bool, std::complex<float>, std::complex<double>>(
      p.output_type(0), [n]<class T>() {
        const T value = one<T>();
        return fill_kernel<T>(n, &value);
      });
}

// Of the first inputs, as many as there are outputs.
KernelPtr prepare_identity_n(const PrepareContext& p) {
  double cost = 0;
  const int count = p.op().num_outputs();
  for (int i = 0; i < count; ++i) {
    cost += 10 + 0.1 * static_cast<double>(p.input_shape(i).num_elements()) *
                     static_cast<double>(dtype_size(p.input_type(i)));
  }
  return make_kernel(
      [n = count](RunContext& c) {
        for (int i = 0; i < n; ++i) {
          dispatch_element(c.input(i).dtype(), [&]<class T>() {
            const T* from = elements<T>(c.input(i));
            T* to = elements<T>(c.output(i));
            if (from == to) return;
            c.parallel_for(c.input(i).num_elements(), kMoveGrain<T>, kMoveCost<T>,
                           [&](int64_t begin, int64_t end) {
                             copy_elements(to + begin, from + begin, end - begin);
                           });
          });
        }
      },
      cost);
}

// --- Sequences --------------------------------------------------------------------------------

// Computed from the index, not by repeated addition: no error builds up. Half types and float in
// double.
template <class T>
KernelPtr range_kernel(const PrepareContext& p) {
  using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  const auto wide = [&p](int i) {
    const T value = *p.host_value(i).data<T>();
    if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
      return static_cast<Wide>(static_cast<float>(value));
    } else {
      return static_cast<Wide>(value);
    }
  };
  const Wide start = wide(0);
  const Wide delta = wide(2);
  const int64_t n = p.output_shape(0).num_elements();
  return make_kernel(
      [start, delta, n](RunContext& c) {
        T* out = c.output(0).data<T>();
        c.parallel_for(n, kMoveGrain<T>, 1.0, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            if constexpr (std::is_integral_v<T>) {
              out[i] = static_cast<T>(start + i * delta);
            } else if constexpr (sizeof(T) == 2) {
              out[i] = T(static_cast<float>(start + static_cast<double>(i) * delta));
            } else {
              out[i] = static_cast<T>(start + static_cast<double>(i) * delta);
            }
          }
        });
      },
      10 + static_cast<double>(n));
}

KernelPtr prepare_range(const PrepareContext& p) {
  return dispatch<float, double, Float16, BFloat16, int32_t, int64_t>(
      p.output_type(0), [&p]<class T>() { return range_kernel<T>(p); });
}

template <class T>
KernelPtr linspace_kernel(const PrepareContext& p) {
  const int64_t n = p.output_shape(0).num_elements();
  return make_kernel(
      [n](RunContext& c) {
        const auto wide = [](T value) {
          if constexpr (sizeof(T) == 2) {
            return static_cast<double>(static_cast<float>(value));
          } else {
            return static_cast<double>(value);
          }
        };
        const auto narrow = [](double value) {
          if constexpr (sizeof(T) == 2) {
            return T(static_cast<float>(value));
          } else {
            return static_cast<T>(value);
          }
        };
        const T first = *c.input(0).data<T>();
        const T last = *c.input(1).data<T>();
        const double step = n > 1 ? (wide(last) - wide(first)) / static_cast<double>(n - 1) : 0.0;
        T* out = c.output(0).data<T>();
        c.parallel_for(n, kMoveGrain<T>, 1.0, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = narrow(wide(first) + static_cast<double>(i) * step);
        });
        if (n > 1) out[n - 1] = last;
      },
      10 + static_cast<double>(n));
}

KernelPtr prepare_linspace(const PrepareContext& p) {
  return dispatch<float, double, Float16, BFloat16>(
      p.output_type(0), [&p]<class T>() { return linspace_kernel<T>(p); });
}

// --- OneHot -----------------------------------------------------------------------------------

// The output is [prefix, depth, suffix], the indices are [prefix, suffix].
template <class T, class Index>
KernelPtr one_hot_kernel(int64_t prefix, int64_t depth, int64_t suffix) {
  const double item_cost = 2 + kMoveCost<T> * static_cast<double>(depth * suffix);
  return make_kernel(
      [prefix, depth, suffix, item_cost](RunContext& c) {
        const Index* indices = c.input(0).data<Index>();
        const T on = *elements<T>(c.input(2));
        const T off = *elements<T>(c.input(3));
        T* out = elements<T>(c.output(0));
        const int64_t slab = depth * suffix;
        const int64_t grain = slab >= kMoveGrain<T> ? 1 : kMoveGrain<T> / (slab > 0 ? slab : 1);
        c.parallel_for(prefix, grain, item_cost, [&](int64_t begin, int64_t end) {
          fill_elements(out + begin * slab, off, (end - begin) * slab);
          for (int64_t i = begin; i < end; ++i) {
            for (int64_t j = 0; j < suffix; ++j) {
              const int64_t at = static_cast<int64_t>(indices[i * suffix + j]);
              if (at >= 0 && at < depth) out[i * slab + at * suffix + j] = on;
            }
          }
        });
      },
      item_cost * static_cast<double>(prefix));
}

KernelPtr prepare_one_hot(const PrepareContext& p) {
  const Shape& indices = p.input_shape(0);
  const Shape& output = p.output_shape(0);
  const int64_t axis = p.op().get_int("axis") < 0 ? indices.rank() : p.op().get_int("axis");
  const int64_t prefix = indices.sub(0, static_cast<int>(axis)).num_elements();
  const int64_t suffix = indices.sub(static_cast<int>(axis), indices.rank()).num_elements();
  const int64_t depth = output.dim(static_cast<int>(axis));
  return dispatch_element(p.output_type(0), [&]<class T>() {
    return dispatch<uint8_t, int32_t, int64_t>(p.input_type(0), [&]<class Index>() {
      return one_hot_kernel<T, Index>(prefix, depth, suffix);
    });
  });
}

}  // namespace

void register_array_kernels(KernelRegistry& r) {
  r.add("Const", {}, prepare_const);
  r.add("Placeholder", {}, prepare_placeholder);
  r.add("PlaceholderWithDefault", {}, prepare_placeholder_with_default);
  r.add("Fill", {}, prepare_fill);
  r.add("ZerosLike", {}, prepare_zeros_like);
  r.add("OnesLike", {}, prepare_ones_like);
  r.add("IdentityN", {}, prepare_identity_n);
  r.add("CustomGradient", {}, prepare_identity_n);
  r.add("Range", {}, prepare_range);
  r.add("LinSpace", {}, prepare_linspace);
  r.add("OneHot", {}, prepare_one_hot);
}

}  // namespace treenail::host
