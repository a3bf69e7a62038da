// SPDX-License-Identifier: Apache-2.0
// Error's out-of-line members: the destructor is the key function, so the one typeinfo lies in
// libtreenail.
#include "framework/base/error.h"

#include <string>
#include <string_view>
#include <utility>

namespace treenail {

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "Ok";
    case Code::kCancelled:
      return "Cancelled";
    case Code::kUnknown:
      return "Unknown";
    case Code::kInvalidArgument:
      return "InvalidArgument";
    case Code::kDeadlineExceeded:
      return "DeadlineExceeded";
    case Code::kNotFound:
      return "NotFound";
    case Code::kAlreadyExists:
      return "AlreadyExists";
    case Code::kPermissionDenied:
      return "PermissionDenied";
    case Code::kResourceExhausted:
      return "ResourceExhausted";
    case Code::kFailedPrecondition:
      return "FailedPrecondition";
    case Code::kAborted:
      return "Aborted";
    case Code::kOutOfRange:
      return "OutOfRange";
    case Code::kUnimplemented:
      return "Unimplemented";
    case Code::kInternal:
      return "Internal";
    case Code::kUnavailable:
      return "Unavailable";
    case Code::kDataLoss:
      return "DataLoss";
    case Code::kUnauthenticated:
      return "Unauthenticated";
  }
  return "Unknown";
}

Error::Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

Error::~Error() = default;

Error error_of(Code code, std::initializer_list<TextPart> parts) {
  return Error(code, join_text(parts));
}

Error Error::with_prefix(std::string_view prefix) const {
  std::string text(prefix);
  text += message_;
  return Error(code_, std::move(text));
}

}  // namespace treenail
