// SPDX-License-Identifier: Apache-2.0
// What a client asks of a server beside running a graph. Sessions at a server: Session, with
// SessionOptions::target.
#pragma once

#include <string>
#include <vector>

namespace treenail {

// The state of these containers goes, or of all where none is named, at every task of the server's
// cluster, and the server's sessions end. Errors: as open_remote_session.
void reset_cluster(const std::string& target, const std::vector<std::string>& containers);

}  // namespace treenail
