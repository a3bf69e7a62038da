// SPDX-License-Identifier: Apache-2.0
// Eigen as it is used here: its permissive part, without threads of its own, without assertions
// (which abort). Compiled at the baseline alone, one file per decomposition, in double precision:
// its templates cost seconds each.
#pragma once

#define EIGEN_MPL2_ONLY
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_NO_DEBUG
#include <Eigen/Core>
#include <complex>
#include <cstdint>

namespace treenail::eigen {

template <class T>
using EigenMatrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;

}  // namespace treenail::eigen
