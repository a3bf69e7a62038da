// SPDX-License-Identifier: Apache-2.0
// Treenail's environment variables, typed: unset or empty is "no value"; nonsense is
// InvalidArgument naming the variable, what it holds and what it may hold. The environment is read,
// never written.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace treenail {

std::optional<std::string> env_text(const char* name);
// A decimal integer in [low, high].
std::optional<int64_t> env_int(const char* name, int64_t low, int64_t high);
// A positive byte count: "1073741824", "512M", "16G", "16GiB"; suffixes K, M, G, T are powers of
// 1024, any case.
std::optional<int64_t> env_bytes(const char* name);
// One of `choices`, spelled exactly; gives its index.
std::optional<int> env_choice(const char* name, std::span<const std::string_view> choices);

// The grammar of env_bytes for text from elsewhere; nullopt when it does not fit.
std::optional<int64_t> parse_bytes(std::string_view text);

}  // namespace treenail
