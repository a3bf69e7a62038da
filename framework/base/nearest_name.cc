// SPDX-License-Identifier: Apache-2.0
// Optimal string alignment distance, weighted so that a letter of the wrong case costs half of a
// wrong letter.
#include "framework/base/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "framework/base/text.h"

namespace treenail {
namespace {

constexpr int kEdit = 2;      // an insertion, deletion, replacement or swap
constexpr int kCaseEdit = 1;  // a letter of the other case
constexpr size_t kLongest = 128;

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

int distance(std::string_view a, std::string_view b) {
  std::vector<int> before_last(b.size() + 1);
  std::vector<int> last(b.size() + 1);
  std::vector<int> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) last[j] = static_cast<int>(j) * kEdit;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = static_cast<int>(i) * kEdit;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = a[i - 1];
      const char y = b[j - 1];
      const int replace = x == y ? 0 : lower(x) == lower(y) ? kCaseEdit : kEdit;
      row[j] = std::min({last[j] + kEdit, row[j - 1] + kEdit, last[j - 1] + replace});
      if (i > 1 && j > 1 && x == b[j - 2] && a[i - 2] == y) {
        row[j] = std::min(row[j], before_last[j - 2] + kEdit);
      }
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates) {
  if (name.empty() || name.size() > kLongest) return "";
  // Up to a third of the letters may be wrong, at least one.
  const int limit = std::max<int>(kEdit, static_cast<int>(name.size()) * kEdit / 3);
  int best = limit + 1;
  std::string_view found;
  for (std::string_view candidate : candidates) {
    const size_t longer = std::max(candidate.size(), name.size());
    const size_t shorter = std::min(candidate.size(), name.size());
    if (longer > kLongest || static_cast<int>(longer - shorter) * kEdit >= best) continue;
    const int d = distance(name, candidate);
    if (d < best) {
      best = d;
      found = candidate;
    }
  }
  return std::string(found);
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::string near = nearest_name(name, candidates);
  return near.empty() ? "" : concat("; did you mean \"", near, "\"?");
}

}  // namespace treenail
