// SPDX-License-Identifier: Apache-2.0
// What the library of the simulated devices exports beside treenail_device_library(): for tests, to
// arrange failures and to look inside. `device` is 0 or 1.
#pragma once

#include <stdint.h>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

// How late the queues are: chosen from this seed, or not at all.
SIM_EXPORT void sim_seed(uint64_t seed);
SIM_EXPORT void sim_delays(int on);

// Of blocks that are not freed when the queue has done what it has now. The device is not lost.
SIM_EXPORT int64_t sim_live_bytes(int device);
SIM_EXPORT int64_t sim_live_blocks(int device);
SIM_EXPORT void sim_set_limit(int device, int64_t bytes);  // <= 0: the default
// The nth allocation from now on fails; 0: none.
SIM_EXPORT void sim_fail_allocation(int device, int64_t nth);

// After so many more tasks of its queue (copies, kernels, frees, notifications) the device is lost.
SIM_EXPORT void sim_lose(int device, int64_t after);
// Waits until what is queued on a lost device was told so.
SIM_EXPORT void sim_restore(int device);

SIM_EXPORT int64_t sim_kernels_run(int device);
// What was done; `what`: 0 in, 1 out, 2 within, 3 from a peer.
SIM_EXPORT int64_t sim_copies(int device, int what);
SIM_EXPORT int64_t sim_copied_bytes(int device, int what);

// Violations are recorded instead of ending the process.
SIM_EXPORT void sim_record_violations(int on);
// How many were recorded since the last call; the last one's text, cut to `size` with its zero.
SIM_EXPORT int sim_violations(char* text, int size);

// "Op: reason", a line for each op of the host that has no kernel here. Stays valid.
SIM_EXPORT const char* sim_left_out(void);

// Commits a misuse that is one violation: 0 copies from a freed block, 1 changes the source of a
// copy_in before it is done, 2 writes to the destination of a copy_out before it is done, 3
// overwrites what a pending copy to the other device reads, 4 gives a device's address for host
// memory, 5 copies beyond the end of a block.
SIM_EXPORT void sim_misuse(int device, int what);
