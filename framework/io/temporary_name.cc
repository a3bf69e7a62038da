// SPDX-License-Identifier: Apache-2.0
// See temporary_name.h. The host is a checksum of its name: short, and free of odd characters.
#include "framework/io/temporary_name.h"

#include <dirent.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "framework/base/crc32c.h"
#include "framework/base/text.h"
#include "framework/io/file_place.h"

namespace treenail {
namespace {

constexpr std::string_view kMark = ".tmp-";

std::string host_text() {
  char name[256] = {};
  ::gethostname(name, sizeof name - 1);
  const std::string_view view = name;
  return concat(static_cast<uint64_t>(crc32c(view.data(), view.size())));
}

bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// The decimal number at the front of `text`; false for none, and for one that does not fit.
bool take_number(std::string_view& text, int64_t* number) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

std::string_view without_step(std::string_view name) {
  const size_t last = name.find_last_not_of("0123456789");
  const bool step = last != std::string_view::npos && name[last] == '-' && last + 1 < name.size();
  return step && last > 0 ? name.substr(0, last) : name;
}

bool is_gone(int64_t process) {
  const auto id = static_cast<pid_t>(process);
  return id > 0 && id == process && ::kill(id, 0) != 0 && errno == ESRCH;
}

bool is_abandoned(std::string_view name, std::string_view stem, std::string_view host) {
  int64_t number = 0, process = 0;
  if (!take(name, stem)) return false;
  if (!name.starts_with(kMark) && !(take(name, "-") && take_number(name, &number))) return false;
  return take(name, kMark) && take(name, host) && take(name, "-") && take_number(name, &process) &&
         take(name, "-") && take_number(name, &number) && name.empty() && is_gone(process);
}

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

}  // namespace

std::string temporary_name(const std::string& path) {
  static std::atomic<uint32_t> counter{0};
  return concat(path, kMark, host_text(), "-", static_cast<int64_t>(::getpid()), "-",
                counter.fetch_add(1, std::memory_order_relaxed));
}

void remove_abandoned(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  const std::string host = host_text();
  const std::string_view name = std::string_view(path).substr(slash + 1);  // npos + 1 is 0
  const std::string_view stem = without_step(name);
  FileDescriptor opened(FilePlace(path).open_directory());
  if (opened.get() < 0) return;
  const std::unique_ptr<DIR, CloseDirectory> listing(::fdopendir(opened.get()));
  if (!listing) return;
  static_cast<void>(opened.release());  // the listing's from here on
  std::vector<std::string> found;
  while (const dirent* entry = ::readdir(listing.get())) {
    if (is_abandoned(entry->d_name, stem, host)) found.push_back(directory + entry->d_name);
  }
  for (const std::string& file : found) FilePlace(file).remove();
}

}  // namespace treenail
