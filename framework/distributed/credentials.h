// SPDX-License-Identifier: Apache-2.0
// What a process shows to those it speaks with, and asks of them: certificates, or tokens over an
// encrypted connection. Only names of files pass through programs; no secret stands in an argument,
// the environment, a message of an error or a log.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace treenail {

// Names of files, all but the last two in PEM; empty: none.
struct CredentialFiles {
  std::string certificate;  // a chain, its own certificate first
  std::string key;          // of that; readable by nobody else
  std::string authority;    // certificates of those who sign what others show
  std::string revoked;      // a directory of lists of revoked certificates (openssl rehash)
  std::string token_file;   // lines "NAME TOKEN", the process's own first; readable by nobody else

  // A file of lines "certificate = FILE" and so on; names are taken from its directory. Errors:
  // NotFound, InvalidArgument.
  static CredentialFiles read(const std::string& path);
  // Sets the one that a setting names, as "token-file"; false where none is called so.
  bool set(std::string_view name, std::string file);
};

// Who may show which token. The file is read again when it has changed. Thread-safe.
class Tokens {
 public:
  // Errors: PermissionDenied for a file that others can read, NotFound, InvalidArgument.
  explicit Tokens(std::string path);
  // The first line's.
  std::string own_name();
  std::string own();
  // Whose it is; empty: nobody's. Takes the same time for every token of one length.
  std::string name_of(std::string_view token);

 private:
  using Lines = std::vector<std::pair<std::string, std::string>>;
  std::shared_ptr<const Lines> lines();

  const std::string path_;
  std::mutex mutex_;  // guards what follows
  struct stat seen_ = {};
  std::shared_ptr<const Lines> lines_;
};

class Credentials {
 public:
  // Errors: InvalidArgument for files that do not go together, NotFound and PermissionDenied for
  // what cannot be read or what others could read.
  explicit Credentials(CredentialFiles files);

  const CredentialFiles& files() const { return files_; }
  // Null: none are in use.
  Tokens* tokens() const { return tokens_.get(); }

 private:
  const CredentialFiles files_;
  const std::unique_ptr<Tokens> tokens_;
};

// From the file `path`; where that is empty, from the one that TREENAIL_CREDENTIALS names, and null
// where it names none. Errors: as above.
std::shared_ptr<const Credentials> credentials_from(const std::string& path);

}  // namespace treenail
