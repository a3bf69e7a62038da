// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/file.h"

namespace treenail {
namespace {

// By version: 2 has figures of devices and links, 3 how devices slow each other as well.
constexpr std::array<std::string_view, 3> kFirstLines = {
    "treenail-placement-profile 1", "treenail-placement-profile 2", "treenail-placement-profile 3"};
constexpr std::array<std::string_view, 3> kLines = {
    "\"runs N\", \"kernel KIND NAME COUNT NANOSECONDS FUSED...\"",
    ", \"device NAME FLOPS BYTES NANOSECONDS\", \"link FROM TO NANOSECONDS BYTES\"",
    ", \"contention DEVICE HOST THOUSANDTHS\""};
constexpr int64_t kAlone = 1000;  // thousandths
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

void PlacementProfile::set_device(std::string_view device, const DeviceFigures& figures) {
  if (!is_word(device))
    throw invalid_argument("a placement profile cannot hold the name ", quoted(device));
  if (figures.flops_per_second < 1 || figures.bytes_per_second < 1 || figures.ns_per_node < 0) {
    throw invalid_argument("a placement profile was given ", figures.flops_per_second,
                           " operations and ", figures.bytes_per_second, " bytes a second and ",
                           figures.ns_per_node, " ns for ", device);
  }
  devices_[std::string(device)] = figures;
}

void PlacementProfile::set_contention(std::string_view device, const ContentionFigures& figures) {
  if (!devices_.contains(std::string(device))) {
    throw invalid_argument("a placement profile was given a slowdown of ", quoted(device),
                           ", of which it has no other figures");
  }
  if (!is_word(figures.host))
    throw invalid_argument("a placement profile cannot hold the name ", quoted(figures.host));
  if (figures.thousandths < kAlone) {
    throw invalid_argument("a placement profile was given ", figures.thousandths,
                           " thousandths as the slowdown of ", device, "; needed are at least ",
                           kAlone);
  }
  contention_[std::string(device)] = figures;
}

void PlacementProfile::set_link(const Link& link, const LinkFigures& figures) {
  for (const std::string& name : {link.first, link.second}) {
    if (!is_word(name))
      throw invalid_argument("a placement profile cannot hold the name ", quoted(name));
  }
  if (figures.latency_ns < 0 || figures.bytes_per_second < 1) {
    throw invalid_argument("a placement profile was given ", figures.latency_ns, " ns and ",
                           figures.bytes_per_second, " bytes a second from ", link.first, " to ",
                           link.second);
  }
  links_[link] = figures;
}

std::string PlacementProfile::to_text() const {
  const bool has_figures = !devices_.empty() || !links_.empty();
  const size_t version = !contention_.empty() ? 3 : has_figures ? 2 : 1;
  std::string text = concat(kFirstLines[version - 1], "\nruns ", runs_, "\n");
  for (const auto& [key, sum] : sums_) {
    const auto& [kind, name, fused] = key;
    text += concat("kernel ", kind, " ", name, " ", sum.count, " ", sum.total_ns);
    for (const std::string& each : fused) text += " " + each;
    text += "\n";
  }
  for (const auto& [name, each] : devices_) {
    text += concat("device ", name, " ", each.flops_per_second, " ", each.bytes_per_second, " ",
                   each.ns_per_node, "\n");
  }
  for (const auto& [name, each] : contention_)
    text += concat("contention ", name, " ", each.host, " ", each.thousandths, "\n");
  for (const auto& [link, each] : links_) {
    text += concat("link ", link.first, " ", link.second, " ", each.latency_ns, " ",
                   each.bytes_per_second, "\n");
  }
  return text +
         concat("end ", sums_.size() + devices_.size() + contention_.size() + links_.size(), "\n");
}

// A line after the other into a profile.
class PlacementProfile::Reader {
 public:
  explicit Reader(std::string_view text) : lines_(text) {}

  PlacementProfile read() {
    read_head();
    while (lines_.next()) {
      if (ended_) lines_.fail("nothing may follow the end");
      read_line();
    }
    if (!ended_) throw data_loss("a placement profile has no end: it was cut short");
    return std::move(profile_);
  }

 private:
  void read_head() {
    const std::string_view line = lines_.next() ? lines_.line() : std::string_view();
    const auto known = std::ranges::find(kFirstLines, line);
    version_ = known - kFirstLines.begin() + 1;
    if (known != kFirstLines.end()) return;
    throw invalid_argument(
        "it is no placement profile that this Treenail knows: it does not begin with the line ",
        quoted(kFirstLines[0]), ", ", quoted(kFirstLines[1]), " or ", quoted(kFirstLines[2]));
  }

  void read_line() {
    const std::vector<std::string_view>& words = lines_.words();
    const auto is = [&](std::string_view first, size_t least, size_t most) {
      return !words.empty() && words[0] == first && words.size() >= least && words.size() <= most;
    };
    if (is("runs", 2, 2) && !has_runs_) {
      profile_.runs_ = lines_.whole(1, 0, "the number of runs");
      has_runs_ = true;
    } else if (is("kernel", 5, words.size()) && has_runs_) {
      read_kernel(words);
    } else if (is("device", 5, 5) && has_runs_ && version_ >= 2) {
      const DeviceFigures figures{lines_.whole(2, 1, "operations per second"),
                                  lines_.whole(3, 1, "bytes per second"),
                                  lines_.whole(4, 0, "the time in ns")};
      note_fresh(profile_.devices_.try_emplace(std::string(words[1]), figures).second, "device");
    } else if (is("contention", 4, 4) && has_runs_ && version_ >= 3) {
      read_contention(words);
    } else if (is("link", 5, 5) && has_runs_ && version_ >= 2) {
      const LinkFigures figures{lines_.whole(3, 0, "the time in ns"),
                                lines_.whole(4, 1, "bytes per second")};
      const Link link(words[1], words[2]);
      note_fresh(profile_.links_.try_emplace(link, figures).second, "link");
    } else if (is("end", 2, 2) && has_runs_) {
      read_end();
    } else {
      lines_.fail(concat("a line is ", kLines[0], version_ >= 2 ? kLines[1] : "",
                         version_ >= 3 ? kLines[2] : "", " or \"end N\""));
    }
  }

  void read_contention(const std::vector<std::string_view>& words) {
    const std::string device(words[1]);
    if (!profile_.devices_.contains(device))
      lines_.fail("no line before it has the figures of that device");
    ContentionFigures figures{std::string(words[2]),
                              lines_.whole(3, kAlone, "the slowdown in thousandths")};
    note_fresh(profile_.contention_.try_emplace(device, std::move(figures)).second, "contention");
  }

  void read_kernel(const std::vector<std::string_view>& words) {
    const Sum sum{lines_.whole(3, 1, "the count"), lines_.whole(4, 0, "the time in ns")};
    std::vector<std::string> fused(words.begin() + 5, words.end());
    note_fresh(
        profile_.sums_
            .try_emplace({std::string(words[1]), std::string(words[2]), std::move(fused)}, sum)
            .second,
        "kernel");
  }

  void note_fresh(bool fresh, std::string_view what) {
    if (!fresh) lines_.fail(concat("the same ", what, " stands twice"));
    ++lines_read_;
  }

  void read_end() {
    const std::string_view what = version_ >= 2 ? "lines" : "kernels";
    if (lines_.whole(1, 0, concat("the number of ", what)) != lines_read_)
      throw data_loss("a placement profile has ", lines_read_, " ", what, ", and its end tells ",
                      lines_.words()[1]);
    ended_ = true;
  }

  ProfileReader lines_;
  PlacementProfile profile_;
  int64_t version_ = 1;
  bool has_runs_ = false, ended_ = false;
  int64_t lines_read_ = 0;  // of kernels, devices, contention and links
};

PlacementProfile PlacementProfile::from_text(std::string_view text) { return Reader(text).read(); }

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
