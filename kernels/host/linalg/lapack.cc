// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/linalg/lapack.h"

#include <array>
#include <atomic>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/base/environment.h"
#include "framework/base/fork.h"

namespace treenail::host {
namespace {

constexpr const char* kPackages =
    "a BLAS and LAPACK (Debian: libopenblas0, Fedora: flexiblas-openblas-openmp)";

// TREENAIL_LINALG=builtin leaves the system's LAPACK alone.
bool wanted() {
  constexpr std::array<std::string_view, 2> kChoices = {"auto", "builtin"};
  return env_choice("TREENAIL_LINALG", kChoices).value_or(0) == 0;
}

Lapack* open_lapack() {
  if (!wanted()) return new Lapack;
  const AdapterRequest below = {"blas", sizeof(BlasApi), "matrix products by the system's BLAS",
                                kPackages};
  const AdapterRequest above = {"lapack", sizeof(LapackApi),
                                "decompositions by the system's LAPACK", kPackages};
  const auto* blas = static_cast<const BlasApi*>(try_open_adapter(below));
  // Upon a reference BLAS it is slower than Eigen; a serial OpenBLAS is not to be called from
  // several threads.
  if (blas == nullptr || blas->tuned() == 0 || blas->concurrent() == 0) return new Lapack;
  const auto* api = static_cast<const LapackApi*>(try_open_adapter(above));
  return api == nullptr ? new Lapack : new Lapack{blas, api};
}

}  // namespace

const Lapack& lapack() {
  static std::atomic<Lapack*> opened{nullptr};
  return made_once(opened, open_lapack);
}

}  // namespace treenail::host
