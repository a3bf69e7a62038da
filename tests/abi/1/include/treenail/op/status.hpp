// SPDX-License-Identifier: Apache-2.0
// How the C++ layer for plugins says that something failed: a Status that is returned, an Error
// that is thrown. Whatever leaves a kernel or a rule becomes the error of the op that was called.
#ifndef TREENAIL_OP_STATUS_HPP_
#define TREENAIL_OP_STATUS_HPP_

#include <exception>
#include <new>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "treenail/plugin.h"

// What must not be shared by two plugins in one process.
#if defined(__GNUC__)
#define TREENAIL_OP_HIDDEN __attribute__((visibility("hidden")))
#else
#define TREENAIL_OP_HIDDEN
#endif

namespace tn {
namespace op {

namespace detail {

TREENAIL_OP_HIDDEN inline const tn_host*& host_slot() {
  static const tn_host* host = nullptr;
  return host;
}

}  // namespace detail

// The table of Treenail that this plugin was loaded into; there once tn_plugin_init has begun.
inline const tn_host* host() { return detail::host_slot(); }

class Status {
 public:
  Status() = default;  // OK
  Status(tn_code code, std::string message) : code_(code), message_(std::move(message)) {}
  static Status OK() { return Status(); }
  bool ok() const { return code_ == TN_OK; }
  tn_code code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& error_message() const { return message_; }
  // Keeps the first failure.
  void Update(const Status& other) {
    if (ok()) *this = other;
  }

 private:
  tn_code code_ = TN_OK;
  std::string message_;
};

inline std::ostream& operator<<(std::ostream& out, const Status& status) {
  return out << (status.ok() ? std::string("OK") : status.message());
}

// A Status as an exception.
class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status) : std::runtime_error(status.message()), status_(status) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

inline void ThrowIfError(const Status& status) {
  if (!status.ok()) throw Error(status);
}

template <class... Parts>
std::string StrCat(const Parts&... parts) {
  std::ostringstream text;
  (void)(text << ... << parts);
  return text.str();
}

// errors::InvalidArgument("x has rank ", x.dims(), ", 2 is needed")
namespace errors {

#define TREENAIL_OP_ERROR_(name, number)     \
  template <class... Parts>                  \
  Status name(const Parts&... parts) {       \
    return Status(number, StrCat(parts...)); \
  }                                          \
  inline bool Is##name(const Status& status) { return status.code() == tn_code{number}; }
TREENAIL_OP_ERROR_(Cancelled, TN_CANCELLED)
TREENAIL_OP_ERROR_(Unknown, TN_UNKNOWN)
TREENAIL_OP_ERROR_(InvalidArgument, TN_INVALID_ARGUMENT)
TREENAIL_OP_ERROR_(DeadlineExceeded, TN_DEADLINE_EXCEEDED)
TREENAIL_OP_ERROR_(NotFound, TN_NOT_FOUND)
TREENAIL_OP_ERROR_(AlreadyExists, TN_ALREADY_EXISTS)
TREENAIL_OP_ERROR_(PermissionDenied, TN_PERMISSION_DENIED)
TREENAIL_OP_ERROR_(ResourceExhausted, TN_RESOURCE_EXHAUSTED)
TREENAIL_OP_ERROR_(FailedPrecondition, TN_FAILED_PRECONDITION)
TREENAIL_OP_ERROR_(Aborted, TN_ABORTED)
TREENAIL_OP_ERROR_(OutOfRange, TN_OUT_OF_RANGE)
TREENAIL_OP_ERROR_(Unimplemented, TN_UNIMPLEMENTED)
TREENAIL_OP_ERROR_(Internal, TN_INTERNAL)
TREENAIL_OP_ERROR_(Unavailable, TN_UNAVAILABLE)
TREENAIL_OP_ERROR_(DataLoss, TN_DATA_LOSS)
TREENAIL_OP_ERROR_(Unauthenticated, TN_UNAUTHENTICATED)
#undef TREENAIL_OP_ERROR_

}  // namespace errors

namespace detail {

// A status of the host's, and what it holds as a Status: `Held s; host()->...(..., s); s.get()`.
class Held {
 public:
  Held() : status_(host()->status_new()) {
    if (status_ == nullptr) throw std::bad_alloc();
  }
  ~Held() { host()->status_delete(status_); }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  operator tn_status*() { return status_; }  // NOLINT(google-explicit-constructor)
  Status get() const {
    const tn_code code = host()->status_code(status_);
    return code == TN_OK ? Status() : Status(code, host()->status_message(status_));
  }
  void check() const { ThrowIfError(get()); }

 private:
  tn_status* status_;
};

// The exception being handled. What is no Error keeps its text; its class tells what it is.
inline Status CurrentException(const char* where) {
  try {
    throw;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::bad_alloc&) {
    return errors::ResourceExhausted(where, " ran out of memory");
  } catch (const std::out_of_range& error) {
    return errors::OutOfRange(where, " threw: ", error.what());
  } catch (const std::invalid_argument& error) {
    return errors::InvalidArgument(where, " threw: ", error.what());
  } catch (const std::exception& error) {
    return errors::Internal(where, " threw: ", error.what());
  } catch (...) {
    return errors::Internal(where, " threw what is no std::exception");
  }
}

// Calls body, which returns a Status; nothing gets out.
template <class Body>
Status Guarded(const char* where, const Body& body) noexcept {
  try {
    try {
      return body();
    } catch (...) {
      return CurrentException(where);
    }
  } catch (...) {
    return Status(TN_RESOURCE_EXHAUSTED, std::string());
  }
}

inline void Store(const Status& status, tn_status* out) noexcept {
  if (!status.ok()) host()->status_set(out, status.code(), status.message().c_str());
}

}  // namespace detail
}  // namespace op
}  // namespace tn

// Of functions that return a Status.
#define TREENAIL_RETURN_IF_ERROR(expression)                \
  do {                                                      \
    const ::tn::op::Status treenail_status_ = (expression); \
    if (!treenail_status_.ok()) return treenail_status_;    \
  } while (0)

#endif  // TREENAIL_OP_STATUS_HPP_
