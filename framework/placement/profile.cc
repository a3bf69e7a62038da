// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/profile.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/file.h"

namespace treenail {
namespace {

constexpr std::string_view kFirstLine = "treenail-placement-profile 1";
constexpr int64_t kMostBytes = int64_t{1} << 30;

// A word of a line: letters that are seen.
bool is_word(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c != 0x7f; });
}

class ProfileReader {
 public:
  explicit ProfileReader(std::string_view text) : rest_(text) {}

  // False at the end.
  bool next() {
    words_.clear();
    if (rest_.empty()) return false;
    ++number_;
    const size_t end = rest_.find('\n');
    if (end == std::string_view::npos)
      throw data_loss("line ", number_, " has no end: the profile was cut short");
    std::string_view line = rest_.substr(0, end);
    line_ = line;
    rest_.remove_prefix(end + 1);
    while (!line.empty()) {
      const size_t space = std::min(line.find(' '), line.size());
      words_.push_back(line.substr(0, space));
      if (!is_word(words_.back())) fail("words are separated by single spaces");
      line.remove_prefix(std::min(space + 1, line.size()));
    }
    return true;
  }
  std::string_view line() const { return line_; }
  const std::vector<std::string_view>& words() const { return words_; }

  int64_t whole(size_t word, int64_t least, std::string_view what) const {
    const std::string_view text = word < words_.size() ? words_[word] : std::string_view();
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size() || value < least)
      fail(concat(what, " must be a whole number of at least ", least));
    return value;
  }

  [[noreturn]] void fail(std::string_view why) const {
    throw invalid_argument("line ", number_, " of a placement profile, ", quoted(line_), ": ", why);
  }

 private:
  std::string_view rest_, line_;
  std::vector<std::string_view> words_;
  int number_ = 0;
};

int64_t plus(int64_t a, int64_t b) {
  return a > std::numeric_limits<int64_t>::max() - b ? std::numeric_limits<int64_t>::max() : a + b;
}

}  // namespace

void PlacementProfile::add(std::string_view kind, std::string_view name,
                           std::span<const std::string> fused, int64_t ns) {
  for (const std::string_view word : {kind, name}) {
    if (!is_word(word))
      throw invalid_argument("a placement profile cannot hold the name ", quoted(word));
  }
  for (const std::string& each : fused) {
    if (!is_word(each))
      throw invalid_argument("a placement profile cannot hold the name ", quoted(each));
  }
  if (ns < 0) throw invalid_argument("a placement profile was given ", ns, " ns for ", name);
  Sum& sum = sums_[{std::string(kind), std::string(name), {fused.begin(), fused.end()}}];
  sum.count = plus(sum.count, 1);
  sum.total_ns = plus(sum.total_ns, ns);
}

std::vector<PlacementProfile::Entry> PlacementProfile::entries() const {
  std::vector<Entry> all;
  for (const auto& [key, sum] : sums_) {
    const auto& [kind, name, fused] = key;
    all.push_back({kind, name, fused, sum.count, sum.total_ns});
  }
  return all;
}

std::string PlacementProfile::to_text() const {
  std::string text = concat(kFirstLine, "\nruns ", runs_, "\n");
  for (const auto& [key, sum] : sums_) {
    const auto& [kind, name, fused] = key;
    text += concat("kernel ", kind, " ", name, " ", sum.count, " ", sum.total_ns);
    for (const std::string& each : fused) text += " " + each;
    text += "\n";
  }
  return text + concat("end ", sums_.size(), "\n");
}

PlacementProfile PlacementProfile::from_text(std::string_view text) {
  PlacementProfile profile;
  ProfileReader reader(text);
  if (!reader.next() || reader.line() != kFirstLine) {
    throw invalid_argument(
        "it is no placement profile that this Treenail knows: it does not begin ", "with the line ",
        quoted(kFirstLine));
  }
  bool ended = false, has_runs = false;
  while (reader.next()) {
    const std::vector<std::string_view>& words = reader.words();
    if (ended) reader.fail("nothing may follow the end");
    if (words.size() == 2 && words[0] == "runs" && !has_runs) {
      profile.runs_ = reader.whole(1, 0, "the number of runs");
      has_runs = true;
    } else if (words.size() >= 5 && words[0] == "kernel" && has_runs) {
      const Sum sum{reader.whole(3, 1, "the count"), reader.whole(4, 0, "the time in ns")};
      std::vector<std::string> fused(words.begin() + 5, words.end());
      const auto fresh = profile.sums_.try_emplace(
          {std::string(words[1]), std::string(words[2]), std::move(fused)}, sum);
      if (!fresh.second) reader.fail("the same kernel stands twice");
    } else if (words.size() == 2 && words[0] == "end" && has_runs) {
      if (reader.whole(1, 0, "the number of kernels") != static_cast<int64_t>(profile.sums_.size()))
        throw data_loss("a placement profile has ", profile.sums_.size(),
                        " kernels, and its end tells ", words[1]);
      ended = true;
    } else {
      reader.fail(
          "a line is \"runs N\", \"kernel KIND NAME COUNT NANOSECONDS FUSED...\" or \"end N\"");
    }
  }
  if (!ended) throw data_loss("a placement profile has no end: it was cut short");
  return profile;
}

void PlacementProfile::save(const std::string& path) const {
  const std::string text = to_text();
  AtomicFile file(path);
  write_at(file.file(), 0, text.data(), text.size(), path);
  file.commit();
}

PlacementProfile PlacementProfile::load(const std::string& path) {
  const FileDescriptor file = open_for_reading(path);
  const int64_t size = file_size(file, path);
  if (size > kMostBytes)
    throw invalid_argument("placement profile ", quoted(path), ": it has ", size,
                           " bytes, at most ", kMostBytes, " are read");
  std::string text(static_cast<size_t>(size), '\0');
  text.resize(read_at(file, 0, text.data(), text.size(), path));
  try {
    return from_text(text);
  } catch (const Error& error) {
    throw error.with_prefix(concat("placement profile ", quoted(path), ": "));
  }
}

}  // namespace treenail
