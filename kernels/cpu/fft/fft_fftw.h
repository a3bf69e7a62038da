// SPDX-License-Identifier: Apache-2.0
// Fourier transforms by FFTW instead of our own, for those who ask: TREENAIL_FFT=fftw, or
// TREENAIL_FFTW_WISDOM=file, plans measured on this machine. Then the bits are FFTW's, and that
// file's.
#pragma once

#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "kernels/adapters/fftw/fftw_api.h"
#include "kernels/cpu/fft/fft_boxes.h"

namespace treenail::cpu {

// Errors: InvalidArgument for another choice in TREENAIL_FFT.
bool fftw_wanted();

// `given`: what the input holds; `wanted`: the lengths of the transform. Errors: Unimplemented
// without the adapter, InvalidArgument for a file without wisdom.
template <class T>
std::unique_ptr<Kernel> prepare_fftw(FftwKind kind, int axes, const Boxes& given,
                                     const Boxes& wanted);

}  // namespace treenail::cpu
