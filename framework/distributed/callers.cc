// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/callers.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/distributed/server_address.h"

namespace treenail {
namespace {

template <class All>
bool has(const All& all, std::string_view one) {
  return std::ranges::find(all, one) != all.end();
}

// As certificates have it: "::1" of "[::1]:port".
std::string host_of_address(const std::string& address) {
  std::string host = host_of(address);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

}  // namespace

Admission::Admission(const ClusterSpec& cluster, std::shared_ptr<const Credentials> credentials,
                     std::vector<std::string> open_to)
    : credentials_(std::move(credentials)), open_to_(std::move(open_to)) {
  for (const auto& [task, address] : cluster.tasks()) hosts_.push_back(host_of_address(address));
}

Admission::Admission(std::span<const std::string> addresses,
                     std::shared_ptr<const Credentials> credentials)
    : credentials_(std::move(credentials)) {
  for (const std::string& address : addresses) hosts_.push_back(host_of_address(address));
}

bool Admission::is_task(std::span<const std::string_view> names) const {
  return std::ranges::any_of(names, [&](std::string_view name) { return has(hosts_, name); });
}

Caller Admission::admit(std::span<const std::string_view> names, std::string_view token) const {
  if (credentials_ == nullptr) return {};
  Caller caller{"", false};
  Tokens* const tokens = credentials_->tokens();
  if (!names.empty()) {
    caller = {std::string(names[0]), is_task(names)};
  } else if (tokens != nullptr && !token.empty()) {
    caller.identity = tokens->name_of(token);
    caller.is_task = caller.identity == tokens->own_name();
  }
  if (caller.identity.empty()) {
    throw error_of(Code::kUnauthenticated,
                   {"this server knows its callers by ",
                    tokens == nullptr ? "a certificate" : "a certificate or a token",
                    token.empty() ? ", and none was shown that has a name"
                                  : "; the token that was shown is not one of them"});
  }
  if (caller.is_task || open_to_.empty() || has(open_to_, caller.identity)) return caller;
  throw error_of(Code::kPermissionDenied, {"this server is not open to \"", caller.identity, "\""});
}

std::string Admission::to_text(const Caller& caller) {
  return concat(caller.is_task ? "task " : "user ", caller.identity);
}

Caller Admission::from_text(std::string_view text) {
  if (text.empty()) return {};
  return {std::string(text.substr(5)), text.starts_with("task ")};
}

}  // namespace treenail
