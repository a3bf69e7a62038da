// SPDX-License-Identifier: Apache-2.0
// The system's LAPACK as kernels see it: present or not, and which matrices go there. The choice
// is made when a kernel is prepared, by shape and library alone.
#pragma once

#include "kernels/adapters/blas/blas_api.h"
#include "kernels/adapters/lapack/lapack_api.h"

namespace treenail::host {

// The BLAS beneath LAPACK and its routines; null: none, or none that is faster than Eigen.
struct Lapack {
  const BlasApi* blas = nullptr;
  const LapackApi* api = nullptr;
};
const Lapack& lapack();

// While it lives, the library runs each call on the calling thread alone.
class LapackScope {
 public:
  explicit LapackScope(bool used) : blas_(used ? lapack().blas : nullptr) {
    if (blas_ != nullptr) blas_->begin();
  }
  ~LapackScope() {
    if (blas_ != nullptr) blas_->end();
  }
  LapackScope(const LapackScope&) = delete;
  LapackScope& operator=(const LapackScope&) = delete;

 private:
  const BlasApi* blas_;
};

}  // namespace treenail::host
