// SPDX-License-Identifier: Apache-2.0
// The device libraries that are installed with libtreenail, found at run time: each is a package of
// its own, and what it needs (a driver, a GPU) may be absent on the machine.
#pragma once

namespace treenail {

// Opens those in "devices" of the private library directory, once in a process; called before the
// devices of a process are listed. What cannot be used is no error: why_missing() says it where
// somebody asks for such a device.
void open_installed_devices();

}  // namespace treenail
