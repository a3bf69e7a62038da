// SPDX-License-Identifier: Apache-2.0
// "did you mean ...?": the known name nearest to a misspelled one.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace treenail {

// The candidate of the smallest edit distance (insert, delete, replace, swap neighbours; case
// counts a little), the first among equals; "" when none is near enough to be meant.
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);

// `; did you mean "strides"?`, or "" when nothing is near.
std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace treenail
