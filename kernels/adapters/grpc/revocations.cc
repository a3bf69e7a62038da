// SPDX-License-Identifier: Apache-2.0
#include "kernels/adapters/grpc/revocations.h"

#include <openssl/bio.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace treenail::grpc_adapter {
namespace {

constexpr std::chrono::seconds kLookPeriod{2};
constexpr size_t kMostKnown = 10'000;

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> files;
  std::error_code failed;
  for (std::filesystem::directory_iterator at(directory, failed), end; !failed && at != end;
       at.increment(failed))
    files.push_back(at->path().string());
  std::ranges::sort(files);
  return files;
}

std::string look_of(const std::vector<std::string>& files) {
  std::string text;
  for (const std::string& file : files) {
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0) continue;
    char facts[96];
    std::snprintf(facts, sizeof facts, " %lld %lld.%09ld %llu\n",
                  static_cast<long long>(status.st_size),
                  static_cast<long long>(status.st_mtim.tv_sec), status.st_mtim.tv_nsec,
                  static_cast<unsigned long long>(status.st_ino));
    text += file + facts;
  }
  return text;
}

}  // namespace

void Revocations::look_again() {
  const auto now = std::chrono::steady_clock::now();
  if (now - looked_ < kLookPeriod) return;
  looked_ = now;
  const std::vector<std::string> files = files_of(directory_);
  std::string look = look_of(files);
  if (look == seen_) return;
  seen_ = std::move(look);
  lists_.clear();
  known_.clear();
  for (const std::string& file : files) {
    const std::unique_ptr<BIO, int (*)(BIO*)> source(BIO_new_file(file.c_str(), "r"), BIO_free);
    if (source == nullptr) continue;
    while (X509_CRL* const list = PEM_read_bio_X509_CRL(source.get(), nullptr, nullptr, nullptr))
      lists_.emplace_back(list);
  }
}

bool Revocations::is_listed(const std::string& certificate) const {
  const std::unique_ptr<BIO, int (*)(BIO*)> source(
      BIO_new_mem_buf(certificate.data(), static_cast<int>(certificate.size())), BIO_free);
  const std::unique_ptr<X509, void (*)(X509*)> shown(
      PEM_read_bio_X509(source.get(), nullptr, nullptr, nullptr), X509_free);
  if (shown == nullptr) return true;  // what cannot be looked up is not let in
  return std::ranges::any_of(lists_, [&](const auto& list) {
    X509_REVOKED* entry = nullptr;
    const bool same =
        X509_NAME_cmp(X509_CRL_get_issuer(list.get()), X509_get_issuer_name(shown.get())) == 0;
    return same && X509_CRL_get0_by_cert(list.get(), &entry, shown.get()) == 1;
  });
}

bool Revocations::has(const std::string& certificate) {
  if (directory_.empty()) return false;
  const std::lock_guard lock(mutex_);
  look_again();
  if (const auto found = known_.find(certificate); found != known_.end()) return found->second;
  if (known_.size() >= kMostKnown) known_.clear();
  return known_[certificate] = is_listed(certificate);
}

}  // namespace treenail::grpc_adapter
