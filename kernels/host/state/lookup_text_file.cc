// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/state/lookup_text_file.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/file.h"
#include "framework/tensor/string_element.h"
#include "kernels/host/strings/read_number.h"

namespace treenail::host {
namespace {

constexpr int64_t kLinesPerPoll = 4096;

// A column of the lines, as one of the two tensors.
struct Column {
  const char* role;  // for messages
  int64_t index;
  Tensor into;
};

void check_column(const Column& column, DType dtype) {
  if (column.index == LookupColumns::kLineNumber && dtype != DType::kInt64) {
    throw invalid_argument(column.role, "_index = -1, the line's number, needs ", column.role,
                           "s of dtype int64, the table's are ", dtype);
  }
  if (dtype == DType::kBool)
    throw invalid_argument("a text file gives no ", column.role, "s of dtype bool");
}

// Field `index` of a line; the whole line for kWholeLine.
std::string_view field_of(std::string_view line, const LookupColumns& columns, int64_t index,
                          int64_t number, const std::string& path) {
  if (index < 0) return line;
  std::string_view rest = line;
  for (int64_t skipped = 0; skipped < index; ++skipped) {
    const size_t end = rest.find(columns.delimiter);
    if (end == std::string_view::npos) {
      throw invalid_argument("Invalid number of columns in ", path, " line ", number, " (",
                             quoted(line), "): expected at least ",
                             std::max(columns.key, columns.value) + 1, ", got ", skipped + 1);
    }
    rest.remove_prefix(end + 1);
  }
  return rest.substr(0, rest.find(columns.delimiter));
}

void store(std::string_view field, Column& column, int64_t number, const std::string& path) {
  if (column.index == LookupColumns::kLineNumber) {
    column.into.data<int64_t>()[number] = number;
    return;
  }
  dispatch<int32_t, int64_t, float, double, StringElement>(column.into.dtype(), [&]<class T>() {
    T& to = column.into.data<T>()[number];
    if constexpr (std::is_same_v<T, StringElement>) {
      to = StringElement(field);
    } else if (!read_number(field, &to)) {
      throw invalid_argument("Field ", quoted(field), " in line ", number, " of ", path,
                             " is not a valid ", column.into.dtype());
    }
  });
}

// The bytes of a file without carriage returns, in memory that is counted.
struct Text {
  Tensor memory;
  std::string_view view;
};

Text text_of(const std::string& path) {
  const FileDescriptor file = open_for_reading(path);
  Tensor memory(DType::kUInt8, Shape({file_size(file, path)}));
  auto* const data = static_cast<char*>(memory.raw());
  char* const end = data + read_at(file, 0, data, memory.bytes(), path);
  const auto size = static_cast<size_t>(std::remove(data, end, '\r') - data);
  return {std::move(memory), {data, size}};
}

int64_t lines_in(std::string_view text) {
  const int64_t ended = std::ranges::count(text, '\n');
  return ended + (text.empty() || text.back() == '\n' ? 0 : 1);
}

}  // namespace

LookupPairs read_lookup_file(const std::string& path, const LookupColumns& columns, DType key,
                             DType value, FunctionRef<void()> poll) {
  Column keys{"key", columns.key, {}}, values{"value", columns.value, {}};
  check_column(keys, key);
  check_column(values, value);
  const Text text = text_of(path);
  const int64_t there = lines_in(text.view);
  const int64_t lines = columns.lines < 0 ? there : columns.lines;
  if (lines > there) {
    throw invalid_argument("Invalid vocab_size in ", path, ": expected ", lines,
                           " lines, the file has ", there);
  }
  keys.into = Tensor(key, Shape({lines}));
  values.into = Tensor(value, Shape({lines}));
  std::string_view rest = text.view;
  for (int64_t number = 0; number < lines; ++number) {
    if (number % kLinesPerPoll == 0) poll();
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (line.empty())
      throw invalid_argument("Invalid content in ", path, ": line ", number, " is empty");
    for (Column* const column : {&keys, &values})
      store(field_of(line, columns, column->index, number, path), *column, number, path);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
  return {std::move(keys.into), std::move(values.into)};
}

}  // namespace treenail::host
