// SPDX-License-Identifier: Apache-2.0
#include "kernels/eigen/schur.h"

namespace treenail::eigen {

template bool schur<double>(int64_t, double*, double*, void*);

}  // namespace treenail::eigen
