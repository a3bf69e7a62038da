// SPDX-License-Identifier: Apache-2.0
// What the simulated libcuda.so.1 exports beside the driver's own entry points: for tests, to
// arrange failures and to look inside, and for the other simulated libraries, to queue work as the
// vendor's do. `device` is an index below TREENAIL_CUDA_SIM_DEVICES (0 to 8; 2 unless given).
//
// The environment of the process also chooses TREENAIL_CUDA_SIM_WARP (32 or 64),
// TREENAIL_CUDA_SIM_SEED and TREENAIL_CUDA_SIM_DELAYS (0: streams are not late); with
// TREENAIL_CUDA_SIM_NO_DNN cuDNN finds that it cannot work.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUSIM_EXPORT extern "C" __attribute__((visibility("default")))

// How late streams are and in which order threads run: chosen from this seed; or not late at all.
CUSIM_EXPORT void cusim_seed(uint64_t seed);
CUSIM_EXPORT void cusim_delays(int on);
// While it is held, the device's streams begin nothing.
CUSIM_EXPORT void cusim_hold(int device, int on);
// Until the device's streams have done what they have now.
CUSIM_EXPORT void cusim_wait(int device);

// What cuDriverGetVersion() says; 0: the version of the cuda.h that it was built with.
CUSIM_EXPORT void cusim_driver_version(int version);
// Launches give CUDA_ERROR_NO_BINARY_FOR_GPU, as where no image is of the GPU's architecture.
CUSIM_EXPORT void cusim_no_binary(int on);

// Of blocks for which cuMemFree was not called.
CUSIM_EXPORT int64_t cusim_live_blocks(int device);
CUSIM_EXPORT int64_t cusim_live_bytes(int device);
CUSIM_EXPORT int64_t cusim_pinned_blocks(void);
CUSIM_EXPORT void cusim_set_limit(int device, int64_t bytes);  // <= 0: the default
// The nth allocation from now on fails; 0: none. Device -1: of pinned memory.
CUSIM_EXPORT void cusim_fail_allocation(int device, int64_t nth);

// After so many more operations (copies, memsets, launches and what other libraries queue) the
// device is lost: every call on it fails with CUDA_ERROR_LAUNCH_FAILED, as after a kernel's fault.
CUSIM_EXPORT void cusim_lose(int device, int64_t after);
// Waits until the streams are through.
CUSIM_EXPORT void cusim_restore(int device);

// How often since the process began; copies and launches when they are done, the rest when called.
enum {
  CUSIM_LAUNCHES,
  CUSIM_COPIES_IN,
  CUSIM_COPIES_OUT,
  CUSIM_COPIES_WITHIN,
  CUSIM_COPIES_PEER,
  CUSIM_BYTES_IN,
  CUSIM_BYTES_OUT,
  CUSIM_BYTES_WITHIN,
  CUSIM_BYTES_PEER,
  CUSIM_MEMSETS,
  CUSIM_SYNCHRONISATIONS,  // the host waits: cuEventSynchronize, copies to pageable memory
  CUSIM_ALLOCATIONS,       // cuMemAlloc and cuMemHostAlloc that succeed
  CUSIM_LIBRARY_CALLS,     // what other libraries queue: a product is one
  CUSIM_COUNTERS,
};
CUSIM_EXPORT int64_t cusim_count(int device, int what);

// Violations are recorded instead of ending the process.
CUSIM_EXPORT void cusim_record_violations(int on);
// How many were recorded since the last call; the last one's text, cut to `size` with its zero.
CUSIM_EXPORT int cusim_violations(char* text, int size);

// For the other libraries. A stream is a CUstream, an address a CUdeviceptr.
//
// Queues work(context, lost), which is called once, on the stream's thread: also where the device
// is lost by then, to free the context. Returns a CUresult; not 0: it will not be called.
CUSIM_EXPORT int cusim_enqueue(void* stream, void (*work)(void* context, int lost), void* context);
// Within work(): the memory behind an address, which the stream's device must be able to use. Null
// after a violation.
CUSIM_EXPORT void* cusim_view(void* stream, const char* who, const void* address, size_t bytes,
                              int writes);
// 1 where address names such memory of a device, else 0.
CUSIM_EXPORT int cusim_is_device_memory(const void* address);
