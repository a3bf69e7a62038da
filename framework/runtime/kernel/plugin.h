// SPDX-License-Identifier: Apache-2.0
// Plugin libraries as files: found, opened once, kept open until the process ends, for their
// functions may be running anywhere. What a plugin may do once it is open:
// capi/include/treenail/plugin.h; who lets it: capi/load_plugin.h.
#pragma once

#include <string>
#include <vector>

#include "framework/base/function_ref.h"

namespace treenail {

// Opens the library at `path` and hands the address of its symbol `entry` to `initialise`. A
// library that was opened before is left alone. When `initialise` throws, the library is closed
// again. One at a time: threads wait for each other. Errors: NotFound (no such file),
// FailedPrecondition (cannot be loaded, lacks the symbol), naming the path.
void open_plugin(const std::string& path, const char* entry,
                 FunctionRef<void(void* symbol)> initialise);

// The files that TREENAIL_PLUGIN_PATH names, in order: entries are separated by colons; a directory
// stands for its *.so, by name. Errors: NotFound for an entry that is not there.
std::vector<std::string> plugins_of_environment();

}  // namespace treenail
