// SPDX-License-Identifier: Apache-2.0
// Discrete Fourier transforms over the last one, two or three axes. How they are computed:
// kernels/cpu/fft/fft.cc.
#include <cmath>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/gradient.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/ops/array_rules.h"
#include "framework/ops/complex_types.h"

namespace treenail {
namespace {

constexpr int kMostAxes = 3;

template <int kAxes>
void complex_shape(ShapeContext& c) {
  c.set_output(0, c.with_rank_at_least(0, kAxes));
}

// The lengths in input 1, kUnknown where they are not known.
template <int kAxes>
std::vector<int64_t> lengths(const ShapeContext& c) {
  const PartialShape given = c.with_rank(1, 1);
  if (given[0] != kUnknown && given[0] != kAxes) {
    throw invalid_argument("fft_length must have shape [", kAxes, "], got ", given);
  }
  std::vector<int64_t> result(kAxes, kUnknown);
  const PartialValue* value = c.value(1);
  for (int i = 0; value != nullptr && i < kAxes; ++i) {
    if (!value->elements[i]) continue;
    result[i] = *value->elements[i];
    if (result[i] < 0) {
      throw invalid_argument("fft_length must not be negative: fft_length[", i, "] = ", result[i]);
    }
  }
  return result;
}

template <int kAxes>
void set_last_axes(ShapeContext& c, const std::vector<int64_t>& extents) {
  const PartialShape input = c.with_rank_at_least(0, kAxes);
  if (!input.rank_known()) return;
  c.set_output(0, input.sub(0, input.rank() - kAxes).concatenated(PartialShape(extents)));
}

template <int kAxes>
void rfft_shape(ShapeContext& c) {
  check_complex_types(c.op().output_type(0), c.op().input_type(0));
  std::vector<int64_t> extents = lengths<kAxes>(c);
  int64_t& last = extents.back();
  if (last > 0) last = last / 2 + 1;
  set_last_axes<kAxes>(c, extents);
}

template <int kAxes>
void irfft_shape(ShapeContext& c) {
  check_complex_types(c.op().input_type(0), c.op().output_type(0));
  set_last_axes<kAxes>(c, lengths<kAxes>(c));
}

// --- Gradients --------------------------------------------------------------------------------

std::string op_name(const char* kind, int axes) {
  return axes == 1 ? kind : concat(kind, axes, "D");
}

// The number of elements of one transform, a scalar of x's dtype.
Value transform_size(GradientContext& c, int axes, DType dtype) {
  const AxisGroup last[] = {{-axes, kToEnd}};
  const Value size = grouped_shape(c.e, c.input_shape(0), c.input_shape_value(0), last);
  return c.e.cast(c.e.reshape(size, int_vector(c.e, {})), dtype);
}

// The matrix of a transform is symmetric: its adjoint is the inverse transform times its size.
template <int kAxes>
void fft_gradient(GradientContext& c) {
  const Value inverse = c.e.call(op_name("IFFT", kAxes), {c.gradient()});
  c.set(0, c.e.mul(inverse, transform_size(c, kAxes, c.input_dtype(0))));
}

template <int kAxes>
void ifft_gradient(GradientContext& c) {
  const Value forward = c.e.call(op_name("FFT", kAxes), {c.gradient()});
  c.set(0, c.e.div(forward, transform_size(c, kAxes, c.input_dtype(0))));
}

// How often each stored frequency of the last axis occurs in the whole spectrum: twice, but for 0
// and, where the length is even, the last one.
Value multiplicity(Emitter& e, Value length, DType real) {
  const Value two = int_scalar(e, 2), one = int_scalar(e, 1), none = int_scalar(e, 0);
  const Value half = e.call("FloorDiv", {length, two});
  const Value frequencies = e.call("Range", {none, e.add(half, one), one});
  const Value first = e.cast(e.call("Equal", {frequencies, none}), real);
  const Value last = e.cast(e.call("Equal", {e.mul(frequencies, two), length}), real);
  return e.sub(e.sub(e.const_scalar(real, 2), first), last);
}

Value complex_of(Emitter& e, Value real) { return e.cast(real, complex_type(e.dtype(real))); }

Value length_product(Emitter& e, Value lengths, DType real) {
  return e.call("Prod", {e.cast(lengths, real), int_vector(e, {0})});
}

// Cropped and padded with zeros at the ends to the shape of input 0: the adjoint of what the op
// does to its input first.
Value fitted_to_input(GradientContext& c, Value gradient) {
  Emitter& e = c.e;
  const PartialShape wanted = c.input_shape(0), given = e.shape(gradient);
  if (wanted.fully_known() && given.fully_known() && wanted == given) return gradient;
  const Value extents = c.input_shape_value(0);
  const Value common = e.call("Minimum", {extents, e.shape_of(gradient)});
  const Value none = e.zeros_like(common);
  const Value cropped = e.call("Slice", {gradient, none, common});
  const std::vector<Value> borders = {none, e.sub(extents, common)};
  const Value zero = e.const_scalar(e.dtype(gradient), 0);
  return e.call("Pad", {cropped, e.call("Pack", borders, {{"axis", 1}}), zero});
}

template <int kAxes>
void rfft_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const DType real = c.input_dtype(0);
  const Value lengths = c.input(1);
  const Value counts = multiplicity(e, element_of(e, lengths, kAxes - 1), real);
  const Value shared = e.div(c.gradient(), complex_of(e, counts));
  const Value inverse = e.call(op_name("IRFFT", kAxes), {shared, lengths}, {{"Treal", real}});
  c.set(0, fitted_to_input(c, e.mul(inverse, length_product(e, lengths, real))));
}

template <int kAxes>
void irfft_gradient(GradientContext& c) {
  Emitter& e = c.e;
  const Value gradient = c.gradient();
  const DType real = e.dtype(gradient);
  const Value lengths = c.input(1);
  const Value counts = multiplicity(e, element_of(e, lengths, kAxes - 1), real);
  const Value weights = e.div(counts, length_product(e, lengths, real));
  const Value spectrum =
      e.call(op_name("RFFT", kAxes), {gradient, lengths}, {{"Tcomplex", complex_type(real)}});
  c.set(0, fitted_to_input(c, e.mul(spectrum, complex_of(e, weights))));
}

// --- Declarations -----------------------------------------------------------------------------

std::string over(int axes) {
  return axes == 1 ? "the last axis" : concat("the last ", axes, " axes");
}

// 5 n log2 n of a complex transform of n points, half of that between real numbers and a spectrum:
// the field's convention (Frigo and Johnson, benchFFT), whatever the algorithm.
template <int kAxes>
double fft_flops(const OpInstance& op, std::span<const Shape> inputs,
                 std::span<const Shape> outputs) {
  const bool real = !is_complex(op.input_type(0)) || !is_complex(op.output_type(0));
  const Shape& points = is_complex(op.output_type(0)) ? inputs[0] : outputs[0];
  double n = 1;
  for (int i = 1; i <= kAxes; ++i) n *= static_cast<double>(points.dim(points.rank() - i));
  if (n < 1) return 0;
  return (real ? 2.5 : 5.0) * static_cast<double>(points.num_elements()) * std::log2(n);
}

template <int kAxes>
void complex_transforms(OpRegistry& r) {
  const std::string tail = concat(
      "Over ", over(kAxes), "; axes before them are a batch, and the shape stays. ",
      "Errors: InvalidArgument for a rank below ", kAxes,
      ". Source: Cooley and Tukey, An Algorithm for the Machine Calculation of Complex Fourier "
      "Series, 1965.");
  for (const bool inverse : {false, true}) {
    r.op(op_name(inverse ? "IFFT" : "FFT", kAxes), HostAccess::kNone)
        .input("input: Tcomplex")
        .output("output: Tcomplex")
        .attr("Tcomplex: {complex64, complex128} = complex64")
        .shape(complex_shape<kAxes>)
        .flops(fft_flops<kAxes>)
        .gradient(inverse ? ifft_gradient<kAxes> : fft_gradient<kAxes>)
        .doc(concat(inverse ? "Inverse discrete Fourier transform: the mean over k of input[k] "
                              "e^(2 pi i j k / n).\n\n"
                            : "Discrete Fourier transform: the sum over j of input[j] "
                              "e^(-2 pi i j k / n).\n\n",
                    tail));
  }
}

template <int kAxes>
void real_transforms(OpRegistry& r) {
  const std::string fit =
      concat("fft_length [", kAxes, "] holds the lengths of ", over(kAxes),
             " in real numbers: the input is cropped or padded with zeros at the ends to fit");
  const std::string errors = concat(
      " Errors: InvalidArgument for a rank below ", kAxes,
      ", another shape of fft_length, a negative length, or types that do not belong together "
      "(float32 and complex64, float64 and complex128).");
  r.op(op_name("RFFT", kAxes), HostAccess::kNone)
      .input("input: Treal")
      .input("fft_length: int32")
      .output("output: Tcomplex")
      .attr("Treal: {float, double} = float")
      .attr("Tcomplex: {complex64, complex128} = complex64")
      .host("fft_length")
      .shape(rfft_shape<kAxes>)
      .flops(fft_flops<kAxes>)
      .gradient(rfft_gradient<kAxes>, {"fft_length"})
      .doc(concat("Discrete Fourier transform of real numbers: of the last axis only the "
                  "frequencies 0 to n / 2, for the others are their conjugates.\n\n",
                  fit, ". The last axis of the result has n / 2 + 1 elements.", errors));
  r.op(op_name("IRFFT", kAxes), HostAccess::kNone)
      .input("input: Tcomplex")
      .input("fft_length: int32")
      .output("output: Treal")
      .attr("Treal: {float, double} = float")
      .attr("Tcomplex: {complex64, complex128} = complex64")
      .host("fft_length")
      .shape(irfft_shape<kAxes>)
      .flops(fft_flops<kAxes>)
      .gradient(irfft_gradient<kAxes>, {"fft_length"})
      .doc(concat("Real numbers from the half of their spectrum that RFFT gives.\n\n", fit,
                  ", its last axis to n / 2 + 1 frequencies. What makes no real signal counts for "
                  "nothing: the imaginary part of frequency 0 and, where n is even, of the last "
                  "one.",
                  errors));
}

}  // namespace

void register_fft_ops(OpRegistry& r) {
  complex_transforms<1>(r);
  complex_transforms<2>(r);
  complex_transforms<kMostAxes>(r);
  real_transforms<1>(r);
  real_transforms<2>(r);
  real_transforms<kMostAxes>(r);
  r.finish("fft");
}

}  // namespace treenail
