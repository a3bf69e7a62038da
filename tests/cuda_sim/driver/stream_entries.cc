// SPDX-License-Identifier: Apache-2.0
// Entry points of streams and events.
#include "tests/cuda_sim/driver/driver.h"

using namespace treenail::cuda_sim;

CUSIM_ENTRY cuStreamCreate(CUstream* stream, unsigned int flags) {
  return answer_in_context([&](Driver& driver, Device& device) {
    require(stream != nullptr && (flags & ~unsigned{CU_STREAM_NON_BLOCKING}) == 0);
    *stream = reinterpret_cast<CUstream>(&driver.add_stream(device));
    return CUDA_SUCCESS;
  });
}

// Of the point that the event was last recorded at; of nothing, where it never was.
CUSIM_ENTRY cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
  return answer_in_context([&](Driver& driver, Device&) {
    require(flags == 0);
    Stream& late = driver.stream(stream);
    const auto last = driver.event(event)->last();
    if (last != nullptr) late.push_always([last] { last->wait(); });
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuEventCreate(CUevent* event, unsigned int flags) {
  constexpr unsigned kKnown = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING;
  return answer_in_context([&](Driver& driver, Device& device) {
    require(event != nullptr && (flags & ~kKnown) == 0);
    *event = driver.add_event(device);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuEventDestroy(CUevent event) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    driver.remove_event(event);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuEventRecord(CUevent event, CUstream stream) {
  return answer_in_context([&](Driver& driver, Device&) {
    Stream& late = driver.stream(stream);
    const auto found = driver.event(event);
    require(&late.device() == &found->device(), CUDA_ERROR_INVALID_HANDLE);
    found->record(late);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuEventQuery(CUevent event) {
  return answer_in_context([&](Driver& driver, Device&) {
    const auto found = driver.event(event);
    require(!found->device().lost(), CUDA_ERROR_LAUNCH_FAILED);
    const auto last = found->last();
    return last == nullptr || last->reached() ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUSIM_ENTRY cuEventSynchronize(CUevent event) {
  return answer_in_context([&](Driver& driver, Device&) {
    const auto found = driver.event(event);
    found->device().count(CUSIM_SYNCHRONISATIONS);
    if (const auto last = found->last()) last->wait();
    require(!found->device().lost(), CUDA_ERROR_LAUNCH_FAILED);
    return CUDA_SUCCESS;
  });
}
