// SPDX-License-Identifier: Apache-2.0
// The names of files that are being written, and the removal of those whose writer was killed.
#pragma once

#include <string>

namespace treenail {

// A name beside `path` that says which process of which host writes there:
// "<path>.tmp-<host>-<process>-<number>". Another one at each call.
std::string temporary_name(const std::string& path);

// Removes what processes of this host that are gone left of `path`, and of other steps of it: a
// final "-<digits>" does not count. Another host's files stay, for nobody here knows about its
// processes. Never an error: what cannot be listed or removed stays.
void remove_abandoned(const std::string& path);

}  // namespace treenail
