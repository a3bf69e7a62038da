// SPDX-License-Identifier: Apache-2.0
// tn_status, and what becomes of exceptions at the C ABI.
#include <exception>
#include <new>
#include <utility>

#include "framework/capi/guard.h"

using treenail::Code;
using treenail::Error;

namespace treenail::capi {
namespace {

// Assigning the text may itself run out of memory; then the code alone must do.
void store(tn_status* status, Code code, const char* message) noexcept {
  if (status == nullptr) return;
  status->code = code;
  try {
    status->message = message;
  } catch (...) {
    status->message.clear();
  }
}

}  // namespace

void set_ok(tn_status* status) noexcept {
  if (status == nullptr) return;
  status->code = Code::kOk;
  status->message.clear();
}

void store_current_exception(tn_status* status) noexcept {
  try {
    throw;
  } catch (const Error& error) {
    store(status, error.code(), error.what());
  } catch (const std::bad_alloc&) {
    store(status, Code::kResourceExhausted, "out of memory");
  } catch (const std::exception& error) {
    store(status, Code::kInternal, error.what());
  } catch (...) {
    store(status, Code::kUnknown, "an exception of an unknown type");
  }
}

void rethrow(const tn_status& status) {
  if (status.code == Code::kOk) return;
  throw Error(status.code, status.message);
}

}  // namespace treenail::capi

namespace {

static_assert(TN_CANCELLED == static_cast<int>(Code::kCancelled) &&
              TN_UNAUTHENTICATED == static_cast<int>(Code::kUnauthenticated));

bool is_code(tn_code code) { return code >= TN_OK && code <= TN_UNAUTHENTICATED; }

}  // namespace

tn_status* tn_status_new(void) noexcept { return new (std::nothrow) tn_status; }

void tn_status_delete(tn_status* status) noexcept { delete status; }

tn_code tn_status_code(const tn_status* status) noexcept {
  return status == nullptr ? TN_OK : static_cast<tn_code>(status->code);
}

const char* tn_status_message(const tn_status* status) noexcept {
  return status == nullptr ? "" : status->message.c_str();
}

void tn_status_set(tn_status* status, tn_code code, const char* message) noexcept {
  if (code == TN_OK) {
    treenail::capi::set_ok(status);
  } else {
    treenail::capi::store(status, is_code(code) ? static_cast<Code>(code) : Code::kUnknown,
                          message == nullptr ? "" : message);
  }
}

const char* tn_code_name(tn_code code) noexcept {
  return treenail::code_name(is_code(code) ? static_cast<Code>(code) : Code::kUnknown).data();
}
