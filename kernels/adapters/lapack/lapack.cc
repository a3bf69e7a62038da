// SPDX-License-Identifier: Apache-2.0
// The system's LAPACK behind lapack_api.h. Only standard Fortran symbols are linked, so that the
// distribution's alternatives keep working after installation. Its threads are those of the BLAS
// beneath it, whose count the BLAS adapter sets to one; OpenMP's count belongs to a thread and is
// set here, around each call.
#include <dlfcn.h>

#include <complex>
#include <cstdint>

#include "build_info.h"
#include "kernels/adapters/lapack/lapack_api.h"

using C = std::complex<float>;
using Z = std::complex<double>;

extern "C" {
// LAPACK ships no header of its own. Lengths of character arguments follow the others, as GCC and
// all Fortran compilers that it links with have it.
#define TREENAIL_DECLARE(prefix, T)                                                                \
  void prefix##potrf_(const char* uplo, const int* n, T* a, const int* lda, int* info, size_t);    \
  void prefix##getrf_(const int* m, const int* n, T* a, const int* lda, int* pivots, int* info);   \
  void prefix##trsm_(const char* side, const char* uplo, const char* trans, const char* diag,      \
                     const int* m, const int* n, const T* alpha, const T* a, const int* lda, T* b, \
                     const int* ldb, size_t, size_t, size_t, size_t)
TREENAIL_DECLARE(s, float);
TREENAIL_DECLARE(d, double);
TREENAIL_DECLARE(c, C);
TREENAIL_DECLARE(z, Z);
#undef TREENAIL_DECLARE
const void* treenail_adapter(void);
}

namespace treenail {
namespace {

// One OpenMP thread for what this thread calls while it lives.
class OneThread {
 public:
  OneThread() {
    if (openmp().set == nullptr) return;
    found_ = openmp().get();
    if (found_ != 1) openmp().set(1);
  }
  ~OneThread() {
    if (found_ != 1) openmp().set(found_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  struct OpenMp {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  // Looked up in this adapter's own dependencies, never linked: the library decides which runtime
  // there is.
  static const OpenMp& openmp() {
    static const OpenMp functions = [] {
      OpenMp found;
      Dl_info self;
      if (::dladdr(reinterpret_cast<void*>(&treenail_adapter), &self) == 0) return found;
      void* handle = ::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) return found;
      found.get = reinterpret_cast<int (*)()>(::dlsym(handle, "omp_get_max_threads"));
      found.set = reinterpret_cast<void (*)(int)>(::dlsym(handle, "omp_set_num_threads"));
      if (found.get == nullptr) found.set = nullptr;
      return found;
    }();
    return functions;
  }
  int found_ = 1;
};

// The same names for each type, so that one definition calls them.
#define TREENAIL_CALLS(prefix, T)                                                                  \
  void potrf(int n, T* a, int* info) { prefix##potrf_("U", &n, a, &n, info, 1); }                  \
  void getrf(int n, T* a, int* pivots, int* info) { prefix##getrf_(&n, &n, a, &n, pivots, info); } \
  void trsm(const char* uplo, const char* trans, const char* diag, int m, int n, const T* a,       \
            T* b) {                                                                                \
    const T one(1);                                                                                \
    prefix##trsm_("R", uplo, trans, diag, &m, &n, &one, a, &n, b, &m, 1, 1, 1, 1);                 \
  }
TREENAIL_CALLS(s, float)
TREENAIL_CALLS(d, double)
TREENAIL_CALLS(c, C)
TREENAIL_CALLS(z, Z)
#undef TREENAIL_CALLS

template <class T>
bool cholesky(int64_t n, T* a) {
  const OneThread scope;
  int info = 0;
  potrf(static_cast<int>(n), a, &info);
  return info == 0;
}

template <class T>
void lu(int64_t n, T* a, int32_t* pivots) {
  const OneThread scope;
  int info = 0;  // beyond 0: the first pivot that is zero, which the caller sees for itself
  getrf(static_cast<int>(n), a, pivots, &info);
  for (int64_t i = 0; i < n; ++i) --pivots[i];
}

template <class T>
void solve_right(bool upper, bool adjoint, bool unit, int64_t m, int64_t n, const T* a, T* b) {
  const OneThread scope;
  trsm(upper ? "U" : "L", adjoint ? "C" : "N", unit ? "U" : "N", static_cast<int>(m),
       static_cast<int>(n), a, b);
}

template <class T>
constexpr DenseRoutines<T> kRoutines = {cholesky<T>, lu<T>, solve_right<T>};

constexpr LapackApi kApi = {
    {sizeof(LapackApi), build_info::kVersion},
    kRoutines<float>,
    kRoutines<double>,
    kRoutines<C>,
    kRoutines<Z>,
};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
