// SPDX-License-Identifier: Apache-2.0
// Who asks a server for something, and whether he may ask at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/distributed/cluster.h"
#include "framework/distributed/credentials.h"

namespace treenail {

struct Caller {
  // The first alternative name of his certificate, or the name of his token; empty where a server
  // knows nobody: all are one then.
  std::string identity;
  // A task of the cluster, which speaks for others.
  bool is_task = true;
};

class Admission {
 public:
  // `open_to`: identities besides the cluster's tasks that may ask; none: all whose certificate the
  // authority has signed, or who have a token. `credentials`: null where nobody is known.
  Admission(const ClusterSpec& cluster, std::shared_ptr<const Credentials> credentials,
            std::vector<std::string> open_to);
  // `addresses`: those of the tasks.
  Admission(std::span<const std::string> addresses, std::shared_ptr<const Credentials> credentials);

  // `names`: the alternative names of the certificate that was shown. Errors: Unauthenticated,
  // PermissionDenied.
  Caller admit(std::span<const std::string_view> names, std::string_view token) const;

  // A caller as text, and back.
  static std::string to_text(const Caller& caller);
  static Caller from_text(std::string_view text);

 private:
  bool is_task(std::span<const std::string_view> names) const;

  const std::shared_ptr<const Credentials> credentials_;
  const std::vector<std::string> open_to_;
  std::vector<std::string> hosts_;  // of the cluster's tasks
};

}  // namespace treenail
