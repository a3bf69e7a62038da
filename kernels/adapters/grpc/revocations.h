// SPDX-License-Identifier: Apache-2.0
// Certificates that their authority has taken back. gRPC reads lists when it makes a server's
// context, and asks them of new connections alone; these are asked at every call, and read again
// when the directory has changed.
#pragma once

#include <openssl/x509.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

namespace treenail::grpc_adapter {

class Revocations {
 public:
  // Lists in PEM in that directory, under any names; their signatures are not verified: whoever
  // writes there is trusted. "": none.
  explicit Revocations(std::string directory) : directory_(std::move(directory)) {}
  // `certificate`: in PEM.
  bool has(const std::string& certificate);

 private:
  struct FreeList {
    void operator()(X509_CRL* list) const { X509_CRL_free(list); }
  };
  void look_again();
  bool is_listed(const std::string& certificate) const;

  const std::string directory_;
  std::mutex mutex_;  // guards what follows
  std::chrono::steady_clock::time_point looked_{};
  std::string seen_;  // names, sizes and times of the files
  std::vector<std::unique_ptr<X509_CRL, FreeList>> lists_;
  std::unordered_map<std::string, bool> known_;
};

}  // namespace treenail::grpc_adapter
