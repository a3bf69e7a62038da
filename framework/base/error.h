// SPDX-License-Identifier: Apache-2.0
// The one exception of the library: a canonical code (gRPC's numbers) and a sentence that says what
// was given and what is needed. Thrown for whatever a user, a file or a peer can cause; our own
// mistakes are assertions (assert.h's assert). The key function lives in libtreenail, so that an
// Error thrown in a kernel library is caught by type everywhere.
#pragma once

#include <exception>
#include <string>
#include <string_view>

#include "framework/base/text.h"

namespace treenail {

enum class Code : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

// "InvalidArgument", "NotFound", ...
std::string_view code_name(Code code);

class Error : public std::exception {
 public:
  Error(Code code, std::string message);
  Error(const Error&) = default;
  Error& operator=(const Error&) = default;
  ~Error() override;

  const char* what() const noexcept override { return message_.c_str(); }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  // The same code; `prefix` placed before the text (the caller of a kernel names op and node this
  // way).
  Error with_prefix(std::string_view prefix) const;

 private:
  Code code_;
  std::string message_;
};

template <class... Parts>
Error cancelled(const Parts&... parts) {
  return Error(Code::kCancelled, concat(parts...));
}
template <class... Parts>
Error invalid_argument(const Parts&... parts) {
  return Error(Code::kInvalidArgument, concat(parts...));
}
template <class... Parts>
Error deadline_exceeded(const Parts&... parts) {
  return Error(Code::kDeadlineExceeded, concat(parts...));
}
template <class... Parts>
Error not_found(const Parts&... parts) {
  return Error(Code::kNotFound, concat(parts...));
}
template <class... Parts>
Error already_exists(const Parts&... parts) {
  return Error(Code::kAlreadyExists, concat(parts...));
}
template <class... Parts>
Error resource_exhausted(const Parts&... parts) {
  return Error(Code::kResourceExhausted, concat(parts...));
}
template <class... Parts>
Error failed_precondition(const Parts&... parts) {
  return Error(Code::kFailedPrecondition, concat(parts...));
}
template <class... Parts>
Error out_of_range(const Parts&... parts) {
  return Error(Code::kOutOfRange, concat(parts...));
}
template <class... Parts>
Error unimplemented(const Parts&... parts) {
  return Error(Code::kUnimplemented, concat(parts...));
}
template <class... Parts>
Error internal_error(const Parts&... parts) {
  return Error(Code::kInternal, concat(parts...));
}
template <class... Parts>
Error data_loss(const Parts&... parts) {
  return Error(Code::kDataLoss, concat(parts...));
}

}  // namespace treenail
