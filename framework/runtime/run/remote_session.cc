// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/remote_session.h"

namespace treenail {

RemoteSession::~RemoteSession() = default;
RemotePlan::~RemotePlan() = default;

}  // namespace treenail
