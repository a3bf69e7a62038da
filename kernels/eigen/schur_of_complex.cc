// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/schur.h"

namespace treenail::eigen {

template bool schur<std::complex<double>>(int64_t, std::complex<double>*, std::complex<double>*,
                                          void*);

}  // namespace treenail::eigen
