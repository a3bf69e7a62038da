// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/access.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/graph/function.h"
#include "framework/graph/serialize.h"
#include "framework/op/op_registry.h"

namespace treenail {
namespace {

std::string_view reach_of(HostAccess access) {
  constexpr std::string_view kSentences[] = {"computes", "reads or writes files",
                                             "reaches the server's process",
                                             "speaks with other processes", "runs Python"};
  return kSentences[static_cast<size_t>(access)];
}

}  // namespace

bool AccessRules::allow(const OpDef& op) const {
  if (op.host_access == HostAccess::kNone) return true;
  if (op.host_access == HostAccess::kFiles && !allow_paths.empty()) return true;
  return std::ranges::find(allow_ops, op.name) != allow_ops.end();
}

AccessCheck::AccessCheck(const AccessRules& rules, std::string server)
    : rules_(rules), roots_(rules.allow_paths), server_(std::move(server)) {
  for (const std::string& op : rules_.allow_ops) static_cast<void>(OpRegistry::instance().get(op));
}

void AccessCheck::check(const Node& node, const std::string& function) const {
  const OpDef& op = node.op().def();
  if (rules_.allow(op)) return;
  // Between the pieces of one graph; clients' graphs have none.
  if (may_be_stored(op.name, Exchanges::kAllowed) && !may_be_stored(op.name, Exchanges::kRefused))
    return;
  const bool files = op.host_access == HostAccess::kFiles;
  throw error_of(
      Code::kPermissionDenied,
      {server_, " does not run operation \"", op.name, "\", of node \"", node.name(), "\"",
       function.empty() ? "" : concat(" in function \"", function, "\""), ", for its clients: it ",
       reach_of(op.host_access), ". Needed is that the server is started with --allow-",
       files ? "path=DIRECTORY" : concat("ops=", op.name), " (Python: allow_",
       files ? "paths" : "ops", ")"});
}

void AccessCheck::check(const Graph& graph) const {
  for (int id = 0; id < graph.num_nodes(); ++id)
    if (const Node* const node = graph.node(id)) check(*node, "");
  for (const auto& [name, function] : graph.functions()) {
    const Graph& body = *function->body;
    for (int id = 0; id < body.num_nodes(); ++id)
      if (const Node* const node = body.node(id)) check(*node, name);
  }
}

}  // namespace treenail
