// SPDX-License-Identifier: Apache-2.0
// Unicode's full case mapping of UTF-8 text, without rules of single languages. Tables:
// letter_case_table.h, made by python/tools/letter_case.py. Source: The Unicode Standard, section
// 3.13 (default case algorithms, the final sigma among them).
#pragma once

#include <string>
#include <string_view>

namespace treenail::host {

std::string to_lower_utf8(std::string_view text);
std::string to_upper_utf8(std::string_view text);

}  // namespace treenail::host
