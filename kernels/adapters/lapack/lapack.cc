// SPDX-License-Identifier: Apache-2.0
// The system's LAPACK behind lapack_api.h. Only standard Fortran symbols are linked, so that the
// distribution's alternatives keep working after installation. Its threads are those of the BLAS
// beneath it, whose count the BLAS adapter sets to one; OpenMP's count belongs to a thread and is
// set here, around each call.

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "build_info.h"
#include "kernels/adapters/lapack/fortran.h"
#include "kernels/adapters/lapack/lapack_api.h"
#include "kernels/adapters/openmp/one_thread.h"

namespace treenail {
namespace {

thread_local LapackRefusal refusal;

LapackRefusal take_refusal() { return std::exchange(refusal, LapackRefusal{}); }

// Whether there is a result, by the routine's info; of what it refuses the result does not count.
bool ended_well(const char* routine, int info) {
  if (info < 0) refusal = {routine, -info};
  return info <= 0;
}

template <class T>
bool cholesky(int64_t n, T* a) {
  const OneThread scope;
  int info = 0;
  potrf(static_cast<int>(n), a, &info);
  return ended_well("potrf", info);
}

template <class T>
void lu(int64_t n, T* a, int32_t* pivots) {
  const OneThread scope;
  int info = 0;  // beyond 0: the first pivot that is zero, which the caller sees for itself
  getrf(static_cast<int>(n), a, pivots, &info);
  ended_well("getrf", info);
  for (int64_t i = 0; i < n; ++i) pivots[i] = info < 0 ? static_cast<int>(i) : pivots[i] - 1;
}

template <class T>
void solve_right(bool upper, bool adjoint, bool unit, int64_t m, int64_t n, const T* a, T* b) {
  const OneThread scope;
  trsm(upper ? "U" : "L", adjoint ? "C" : "N", unit ? "U" : "N", static_cast<int>(m),
       static_cast<int>(n), a, b);
}

// Parts of the memory that a routine is given, one after the other; null while it is measured.
class Parts {
 public:
  explicit Parts(void* work) : begin_(static_cast<char*>(work)) {}
  template <class T>
  T* take(int64_t count) {
    char* const part = begin_ == nullptr ? nullptr : begin_ + bytes_;
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 63) / 64 * 64;
    return reinterpret_cast<T*>(part);
  }
  int64_t bytes() const { return bytes_; }

 private:
  char* begin_;
  int64_t bytes_ = 0;
};

// The length of a work array as a query answers it: in the array's own numbers, rounded.
template <class T>
int length_of(T answer) {
  const double length = static_cast<double>(std::real(answer));
  return static_cast<int>(length * (1 + 1e-6)) + 1;
}

template <class T>
struct QrParts : Parts {
  int m, n, columns, reflectors, lwork;
  T* tau;
  T* work;
  QrParts(int64_t rows, int64_t cols, int64_t of_q, void* memory)
      : Parts(memory),
        m(static_cast<int>(rows)),
        n(static_cast<int>(cols)),
        columns(static_cast<int>(of_q)),
        reflectors(std::min(m, n)) {
    T first{}, second{};
    int info = 0;
    geqrf(m, n, nullptr, nullptr, &first, -1, &info);
    orgqr(m, columns, reflectors, nullptr, nullptr, &second, -1, &info);
    lwork = std::max(length_of(first), length_of(second));
    tau = take<T>(reflectors);
    work = take<T>(lwork);
  }
};

template <class T>
void qr(int64_t m, int64_t n, int64_t columns, T* a, T* q, void* work) {
  const OneThread scope;
  const QrParts<T> parts(m, n, columns, work);
  int info = 0;
  geqrf(parts.m, parts.n, a, parts.tau, parts.work, parts.lwork, &info);
  if (info < 0) return static_cast<void>(ended_well("geqrf", info));
  std::copy_n(a, m * std::min(n, columns), q);
  orgqr(parts.m, parts.columns, parts.reflectors, q, parts.tau, parts.work, parts.lwork, &info);
  ended_well("orgqr", info);
}

template <class T>
int64_t qr_room(int64_t m, int64_t n, int64_t columns) {
  return QrParts<T>(m, n, columns, nullptr).bytes();
}

template <class T>
struct EighParts : Parts {
  const char* job;
  int n, lwork, lrwork, liwork;
  T* work;
  Real<T>* rwork;
  int* iwork;
  EighParts(int64_t order, bool vectors, void* memory)
      : Parts(memory), job(vectors ? "V" : "N"), n(static_cast<int>(order)) {
    T answer{};
    Real<T> of_reals{};
    int info = 0;
    heevd(job, n, nullptr, nullptr, &answer, -1, &of_reals, -1, &liwork, -1, &info);
    lwork = length_of(answer);
    lrwork = length_of(of_reals);
    work = take<T>(lwork);
    rwork = take<Real<T>>(lrwork);
    iwork = take<int>(liwork);
  }
};

template <class T>
bool eigh(int64_t n, bool vectors, T* a, Real<T>* values, void* work) {
  const OneThread scope;
  const EighParts<T> p(n, vectors, work);
  int info = 0;
  heevd(p.job, p.n, a, values, p.work, p.lwork, p.rwork, p.lrwork, p.iwork, p.liwork, &info);
  return ended_well("heevd", info);
}

template <class T>
int64_t eigh_room(int64_t n, bool vectors) {
  return EighParts<T>(n, vectors, nullptr).bytes();
}

template <class T>
struct SvdParts : Parts {
  const char* job;
  int m, n, values, ldvt, lwork;
  T* work;
  Real<T>* rwork = nullptr;
  int* iwork;
  SvdParts(int64_t rows, int64_t columns, Vectors vectors, void* memory)
      : Parts(memory),
        job(vectors == Vectors::kNone ? "N" : (vectors == Vectors::kThin ? "S" : "A")),
        m(static_cast<int>(rows)),
        n(static_cast<int>(columns)),
        values(std::min(m, n)),
        ldvt(vectors == Vectors::kFull ? n : values) {
    T answer{};
    int info = 0;
    gesdd(job, m, n, static_cast<T*>(nullptr), static_cast<Real<T>*>(nullptr),
          static_cast<T*>(nullptr), static_cast<T*>(nullptr), ldvt, &answer, -1,
          static_cast<Real<T>*>(nullptr), nullptr, &info);
    lwork = length_of(answer);
    work = take<T>(lwork);
    // As gesdd's description has it, the larger of its two for each job.
    const int64_t k = values, longer = std::max(m, n);
    const int64_t reals = std::max(5 * k * k + 7 * k, 2 * longer * k + 2 * k * k + k);
    if constexpr (!std::is_same_v<T, Real<T>>) rwork = take<Real<T>>(reals);
    iwork = take<int>(8 * k);
  }
};

template <class T>
bool svd(int64_t m, int64_t n, Vectors vectors, T* a, Real<T>* s, T* u, T* vh, void* work) {
  const OneThread scope;
  const SvdParts<T> p(m, n, vectors, work);
  int info = 0;
  gesdd(p.job, p.m, p.n, a, s, u, vh, p.ldvt, p.work, p.lwork, p.rwork, p.iwork, &info);
  return ended_well("gesdd", info);
}

template <class T>
int64_t svd_room(int64_t m, int64_t n, Vectors vectors) {
  return SvdParts<T>(m, n, vectors, nullptr).bytes();
}

template <class T>
void multiply(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c) {
  const OneThread scope;
  gemm(static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), a, b, c);
}

template <class T>
inline constexpr bool is_real = std::is_same_v<T, Real<T>>;

template <class T>
struct SchurParts : Parts {
  int n, lwork;
  T* values;
  T* work;
  Real<T>* rwork = nullptr;
  SchurParts(int64_t order, void* memory) : Parts(memory), n(static_cast<int>(order)) {
    T answer{}, of_values{};
    Real<T> of_reals{};
    int info = 0;
    gees(n, static_cast<T*>(nullptr), &of_values, static_cast<T*>(nullptr), &answer, -1, &of_reals,
         &info);
    lwork = length_of(answer);
    values = take<T>(2 * order);
    work = take<T>(lwork);
    if constexpr (!is_real<T>) rwork = take<Real<T>>(order);
  }
};

template <class T>
bool schur(int64_t n, T* a, T* u, void* work) {
  const OneThread scope;
  const SchurParts<T> p(n, work);
  int info = 0;
  gees(p.n, a, p.values, u, p.work, p.lwork, p.rwork, &info);
  return ended_well("gees", info);
}

template <class T>
int64_t schur_room(int64_t n) {
  return SchurParts<T>(n, nullptr).bytes();
}

template <class T>
struct EigParts : Parts {
  const char* job;
  int n, lwork;
  T* work;
  T* values = nullptr;   // of real matrices, both parts
  T* vectors = nullptr;  // likewise
  Real<T>* rwork = nullptr;
  EigParts(int64_t order, bool wanted, void* memory)
      : Parts(memory), job(wanted ? "V" : "N"), n(static_cast<int>(order)) {
    T answer{}, of_values{};
    Real<T> of_reals{};  // the query writes it
    int info = 0;
    geev(job, n, static_cast<T*>(nullptr), &of_values, static_cast<T*>(nullptr), &answer, -1,
         &of_reals, &info);
    lwork = length_of(answer);
    work = take<T>(lwork);
    if constexpr (is_real<T>) {
      values = take<T>(2 * order);
      vectors = take<T>(wanted ? order * order : 0);
    } else {
      rwork = take<Real<T>>(2 * order);
    }
  }
};

// A pair of complex vectors stands as real and imaginary parts in two columns.
template <class T>
void unpack_vectors(int64_t n, const std::complex<T>* values, const T* packed, std::complex<T>* v) {
  for (int64_t k = 0; k < n; ++k, packed += n, v += n) {
    const bool pair = values[k].imag() != 0;
    for (int64_t i = 0; i < n; ++i) v[i] = {packed[i], pair ? packed[n + i] : T(0)};
    if (!pair) continue;
    for (int64_t i = 0; i < n; ++i) v[n + i] = std::conj(v[i]);
    ++k, packed += n, v += n;
  }
}

template <class T>
bool eig(int64_t n, bool vectors, T* a, Complex<T>* values, Complex<T>* v, void* work) {
  const OneThread scope;
  const EigParts<T> p(n, vectors, work);
  int info = 0;
  if constexpr (is_real<T>) {
    geev(p.job, p.n, a, p.values, p.vectors, p.work, p.lwork, p.rwork, &info);
    for (int64_t i = 0; i < n; ++i) values[i] = {p.values[i], p.values[n + i]};
    if (vectors && info == 0) unpack_vectors(n, values, p.vectors, v);
  } else {
    geev(p.job, p.n, a, values, v, p.work, p.lwork, p.rwork, &info);
  }
  return ended_well("geev", info);
}

template <class T>
int64_t eig_room(int64_t n, bool vectors) {
  return EigParts<T>(n, vectors, nullptr).bytes();
}

int64_t nothing(int64_t) { return 0; }
int64_t nothing_of(int64_t, int64_t, Vectors) { return 0; }

template <class T>
constexpr DenseRoutines<T> kRoutines = {
    cholesky<T>,  lu<T>,       solve_right<T>, qr<T>,       qr_room<T>, eigh<T>,
    eigh_room<T>, svd<T>,      svd_room<T>,    multiply<T>, schur<T>,   schur_room<T>,
    eig<T>,       eig_room<T>, nothing,        nothing_of,  nothing,
};

constexpr LapackApi kApi = {
    {sizeof(LapackApi), build_info::kVersion},
    kRoutines<float>,
    kRoutines<double>,
    kRoutines<C>,
    kRoutines<Z>,
    take_refusal,
};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
