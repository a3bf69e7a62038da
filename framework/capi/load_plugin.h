// SPDX-License-Identifier: Apache-2.0
// Plugins with ops and kernels that speak include/treenail/plugin.h. Opening libraries as such:
// runtime/kernel/plugin.h.
#pragma once

#include <string>

namespace treenail {

// Loads the plugin at `path`: afterwards all it registers is there, or, when this throws, nothing.
// A plugin that is loaded already is left alone. Errors: NotFound (no such file),
// FailedPrecondition (cannot be loaded, no entry, another ABI version), AlreadyExists (an op or
// kernel that is there), and whatever the plugin says; all name the path.
void load_plugin(const std::string& path);

// Loads what TREENAIL_PLUGIN_PATH names, once per process; a call after one that threw tries again.
// Called before the first look at the op registry by whatever is in contact with a user: the C ABI
// and the Python module.
void load_environment_plugins();

}  // namespace treenail
