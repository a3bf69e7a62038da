// SPDX-License-Identifier: Apache-2.0
// Kernels for matrices of any order and all dtypes, for those of kernels/cpu/linalg that leave
// larger ones to them.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"

namespace treenail::host {

std::unique_ptr<Kernel> dense_cholesky(const PrepareContext& p);
std::unique_ptr<Kernel> dense_triangular_solve(const PrepareContext& p);
std::unique_ptr<Kernel> dense_lu(const PrepareContext& p);
// MatrixSolve and MatrixInverse.
std::unique_ptr<Kernel> dense_solve(const PrepareContext& p);
std::unique_ptr<Kernel> dense_qr(const PrepareContext& p);
std::unique_ptr<Kernel> dense_eigh(const PrepareContext& p);
std::unique_ptr<Kernel> dense_eig(const PrepareContext& p);
std::unique_ptr<Kernel> dense_svd(const PrepareContext& p);
std::unique_ptr<Kernel> dense_determinant(const PrepareContext& p);
std::unique_ptr<Kernel> dense_log_determinant(const PrepareContext& p);
std::unique_ptr<Kernel> dense_exponential(const PrepareContext& p);
std::unique_ptr<Kernel> dense_least_squares(const PrepareContext& p);
// Its third input. Errors: InvalidArgument where it is negative.
double l2_regularizer(const RunContext& c);
// Of matrices of a few diagonals.
std::unique_ptr<Kernel> tridiagonal_solve(const PrepareContext& p);
std::unique_ptr<Kernel> tridiagonal_matmul(const PrepareContext& p);
std::unique_ptr<Kernel> banded_triangular_solve(const PrepareContext& p);

std::unique_ptr<Kernel> dense_square_root(const PrepareContext& p);
std::unique_ptr<Kernel> dense_logarithm(const PrepareContext& p);

// Logarithms of upper triangular matrices of at most so many rows, column by column. False: there
// is none.
inline constexpr int64_t kMostSmallRows = 16;
bool log_of_triangle(int64_t n, const double* t, double* result);
bool log_of_triangle(int64_t n, const std::complex<double>* t, std::complex<double>* result);

}  // namespace treenail::host
