// SPDX-License-Identifier: Apache-2.0
// The one exception of the library: a canonical code (gRPC's numbers) and a sentence that says what
// was given and what is needed. Thrown for whatever a user, a file or a peer can cause; our own
// mistakes are assertions (assert.h's assert). The key function lives in libtreenail, so that an
// Error thrown in a kernel library is caught by type everywhere.
#pragma once

#include <exception>
#include <initializer_list>
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

Error error_of(Code code, std::initializer_list<TextPart> parts);

template <class... Parts>
[[gnu::cold]] Error cancelled(const Parts&... parts) {
  return error_of(Code::kCancelled, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error invalid_argument(const Parts&... parts) {
  return error_of(Code::kInvalidArgument, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error deadline_exceeded(const Parts&... parts) {
  return error_of(Code::kDeadlineExceeded, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error not_found(const Parts&... parts) {
  return error_of(Code::kNotFound, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error already_exists(const Parts&... parts) {
  return error_of(Code::kAlreadyExists, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error resource_exhausted(const Parts&... parts) {
  return error_of(Code::kResourceExhausted, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error failed_precondition(const Parts&... parts) {
  return error_of(Code::kFailedPrecondition, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error out_of_range(const Parts&... parts) {
  return error_of(Code::kOutOfRange, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error unimplemented(const Parts&... parts) {
  return error_of(Code::kUnimplemented, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error internal_error(const Parts&... parts) {
  return error_of(Code::kInternal, {TextPart(parts)...});
}
template <class... Parts>
[[gnu::cold]] Error data_loss(const Parts&... parts) {
  return error_of(Code::kDataLoss, {TextPart(parts)...});
}

}  // namespace treenail
