// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/credentials.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "framework/base/environment.h"
#include "framework/base/error.h"
#include "framework/base/nearest_name.h"
#include "framework/base/random_token.h"
#include "framework/base/settings_file.h"
#include "framework/io/file.h"

namespace treenail {
namespace {

constexpr size_t kLeastToken = 16;
constexpr int64_t kMostBytes = 1 << 20;

struct Field {
  std::string_view name;
  std::string CredentialFiles::*file;
};
constexpr std::array<Field, 5> kFields = {{{"certificate", &CredentialFiles::certificate},
                                           {"key", &CredentialFiles::key},
                                           {"authority", &CredentialFiles::authority},
                                           {"revoked", &CredentialFiles::revoked},
                                           {"token-file", &CredentialFiles::token_file}}};

std::string read_whole(const FileDescriptor& file, const std::string& path) {
  const int64_t bytes = file_size(file, path);
  if (bytes > kMostBytes)
    throw invalid_argument(path, " has ", bytes, " bytes; it should have a few thousand");
  std::string text(static_cast<size_t>(bytes), '\0');
  text.resize(read_at(file, 0, text.data(), text.size(), path));
  return text;
}

void check_pem(const std::string& path, std::string_view what) {
  if (read_whole(open_for_reading(path), path).find("-----BEGIN ") == std::string::npos)
    throw invalid_argument(path, " is to be a ", what, ", but holds nothing in PEM");
}

// systemd gives a service its credentials by an access list, whose mask shows as the group's
// rights, in a directory that nobody else can enter.
bool is_given_by_systemd(const std::string& path) {
  const std::string directory = env_text("CREDENTIALS_DIRECTORY").value_or("");
  return !directory.empty() && path.starts_with(directory + "/");
}

void check_private(const struct stat& status, const std::string& path) {
  const mode_t others = is_given_by_systemd(path) ? S_IRWXO | S_IWGRP : S_IRWXO | S_IRWXG;
  if ((status.st_mode & others) == 0) return;
  throw error_of(Code::kPermissionDenied,
                 {path, " can be read or written by others than its owner: chmod 600 it"});
}

struct stat status_of(const FileDescriptor& file, const std::string& path) {
  struct stat status = {};
  if (::fstat(file.get(), &status) != 0) throw_file_error(errno, "examine", path);
  return status;
}

bool same_time(const timespec& a, const timespec& b) {
  return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

// Whether the file is that of `before`, unchanged.
bool is_unchanged(const struct stat& before, const struct stat& now) {
  return before.st_dev == now.st_dev && before.st_ino == now.st_ino &&
         before.st_size == now.st_size && same_time(before.st_mtim, now.st_mtim) &&
         same_time(before.st_ctim, now.st_ctim);
}

std::vector<std::pair<std::string, std::string>> parse_tokens(std::string_view text,
                                                              const std::string& path) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<std::pair<std::string, std::string>> lines;
  for (int n = 1; !text.empty(); ++n) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
    line = line.substr(0, line.find_last_not_of(kBlank) + 1);
    if (line.empty() || line.front() == '#') continue;
    const size_t blank = std::min(line.find_first_of(kBlank), line.size());
    std::string_view token = line.substr(blank);
    token.remove_prefix(std::min(token.find_first_not_of(kBlank), token.size()));
    if (token.size() < kLeastToken || token.find_first_of(kBlank) != std::string_view::npos) {
      throw invalid_argument("line ", n, " of ", path, " is not \"NAME TOKEN\" with a token of ",
                             kLeastToken, " characters or more");
    }
    lines.emplace_back(line.substr(0, blank), token);
  }
  if (lines.empty()) throw invalid_argument(path, " has no line \"NAME TOKEN\"");
  return lines;
}

}  // namespace

bool CredentialFiles::set(std::string_view name, std::string file) {
  for (const Field& field : kFields) {
    if (field.name != name) continue;
    this->*field.file = std::move(file);
    return true;
  }
  return false;
}

CredentialFiles CredentialFiles::read(const std::string& path) {
  CredentialFiles files;
  const size_t slash = path.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : path.substr(0, slash + 1);
  for (const Setting& setting : read_settings(path)) {
    const bool absolute = setting.value.starts_with('/');
    if (files.set(setting.name, absolute ? setting.value : directory + setting.value)) continue;
    std::vector<std::string_view> names;
    for (const Field& field : kFields) names.push_back(field.name);
    throw invalid_argument("\"", setting.name, "\" ", setting.where, " is not understood",
                           did_you_mean(setting.name, names));
  }
  return files;
}

Tokens::Tokens(std::string path) : path_(std::move(path)) { static_cast<void>(lines()); }

// What cannot be read is as it was: somebody is about to write it.
std::shared_ptr<const Tokens::Lines> Tokens::lines() {
  const std::lock_guard lock(mutex_);
  try {
    const FileDescriptor file = open_for_reading(path_);
    const struct stat now = status_of(file, path_);
    if (lines_ != nullptr && is_unchanged(seen_, now)) return lines_;
    check_private(now, path_);
    lines_ = std::make_shared<const Lines>(parse_tokens(read_whole(file, path_), path_));
    seen_ = now;
  } catch (const Error&) {
    if (lines_ == nullptr) throw;
  }
  return lines_;
}

std::string Tokens::own_name() { return lines()->front().first; }
std::string Tokens::own() { return lines()->front().second; }

std::string Tokens::name_of(std::string_view token) {
  std::string name;
  for (const auto& [each, known] : *lines())
    if (are_equal_secrets(token, known)) name = each;
  return name;
}

Credentials::Credentials(CredentialFiles files)
    : files_(std::move(files)),
      tokens_(files_.token_file.empty() ? nullptr : std::make_unique<Tokens>(files_.token_file)) {
  if (files_.certificate.empty() != files_.key.empty()) {
    throw invalid_argument("a certificate and its key go together: ",
                           files_.key.empty() ? "the key" : "the certificate", " is missing");
  }
  if (files_.certificate.empty() && files_.authority.empty()) {
    throw invalid_argument(
        "credentials need a certificate and a key, or the authority that signs those of servers");
  }
  if (!files_.certificate.empty()) {
    check_pem(files_.certificate, "certificate");
    check_pem(files_.key, "key");
    check_private(status_of(open_for_reading(files_.key), files_.key), files_.key);
  }
  if (!files_.authority.empty()) check_pem(files_.authority, "certificate of an authority");
  struct stat status = {};
  if (files_.revoked.empty()) return;
  if (::stat(files_.revoked.c_str(), &status) != 0)
    throw_file_error(errno, "open the directory", files_.revoked);
  if (!S_ISDIR(status.st_mode)) throw_file_error(ENOTDIR, "open the directory", files_.revoked);
}

std::shared_ptr<const Credentials> credentials_from(const std::string& path) {
  const std::string given = path.empty() ? env_text("TREENAIL_CREDENTIALS").value_or("") : path;
  if (given.empty()) return nullptr;
  return std::make_shared<const Credentials>(CredentialFiles::read(given));
}

}  // namespace treenail
