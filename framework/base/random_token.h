// SPDX-License-Identifier: Apache-2.0
// A name that nobody guesses: 128 bits from the operating system, as 32 hexadecimal digits.
#pragma once

#include <string>
#include <string_view>

namespace treenail {

// Errors: as system_seed().
std::string random_token();
// Takes the same time wherever they differ.
bool are_equal_secrets(std::string_view a, std::string_view b);

}  // namespace treenail
