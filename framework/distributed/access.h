// SPDX-License-Identifier: Apache-2.0
// What clients of a server may have it run. Operations that compute, and keep state in the session,
// always; those that reach further (OpDef::host_access) as the server says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "framework/graph/graph.h"
#include "framework/io/file_place.h"

namespace treenail {

struct AccessRules {
  std::vector<std::string> allow_ops;    // by name, whatever they reach
  std::vector<std::string> allow_paths;  // directories: operations on files are allowed below them

  bool allow(const OpDef& op) const;
};

class AccessCheck {
 public:
  // `server`: who refuses, as errors name it. Errors: NotFound for an operation that there is not;
  // as FileRoots.
  explicit AccessCheck(const AccessRules& rules, std::string server = "the server");
  // Of the graph and all functions that it brings. Errors: PermissionDenied, naming node and
  // operation and what would allow it.
  void check(const Graph& graph) const;
  // Where what passes the check may name files.
  const FileRoots* file_roots() const { return &roots_; }

 private:
  void check(const Node& node, const std::string& function) const;

  const AccessRules rules_;
  const FileRoots roots_;
  const std::string server_;
};

}  // namespace treenail
