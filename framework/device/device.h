// SPDX-License-Identifier: Apache-2.0
// A device: where kernels run, and whose memory their inputs and outputs lie in. The CPUs of a
// process share the host's memory and compute when they are called. Every other device has memory
// that the host must not touch, and one queue, in whose order it does what it is asked for: memory
// that is given back may still be used by what was queued before.
#pragma once

#include <cstddef>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "framework/device/allocator.h"
#include "framework/device/device_name.h"

namespace treenail {

class Device {
 public:
  virtual ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  // In full: "/job:localhost/replica:0/task:0/device:CPU:0".
  const DeviceName& name() const { return name_; }
  // "CPU"; of kernels and fusers, which serve all devices of a kind.
  const std::string& kind() const { return name_.type; }
  // A CPU: its memory is the host's, and nothing is queued.
  bool is_host() const { return is_host_; }
  static constexpr const char* kHostKind = "CPU";

  // Its kernels give the bits that the host's give, so that what hangs on constants alone may be
  // computed by these when a plan is made. (What is integers or truth values always is.)
  virtual bool folds() const = 0;

  // At least `bytes` bytes, 64-byte aligned, uninitialised; 0 gives a valid pointer. What is queued
  // from now on may use them. Errors: ResourceExhausted, Unavailable.
  virtual void* allocate(size_t bytes) = 0;
  // When what has been queued so far is done. The same `bytes` as given to allocate.
  virtual void deallocate(void* memory, size_t bytes) noexcept = 0;
  virtual AllocatorStats stats() const = 0;

  // Copies, queued like kernels; host memory is touched until they are done. Errors: Unavailable,
  // where the device is lost; what is lost later shows in notify().
  virtual void copy_in(void* to, const void* from_host, size_t bytes) = 0;
  virtual void copy_out(void* to_host, const void* from, size_t bytes) = 0;
  virtual void copy(void* to, const void* from, size_t bytes) = 0;
  // From another device of the same kind, when that has done what is queued there now; whoever
  // wants to free or overwrite `from` waits for this copy. Where the peer is lost, so is this copy:
  // whoever waits for it is told.
  virtual void copy_from_peer(void* to, Device& peer, const void* from, size_t bytes) = 0;

  // Whoever wants to know when the queue has done all that it holds now: called once, from any
  // thread, maybe before notify() returns, and then with no lock held.
  class Waiter {
   public:
    // `error`: null unless the device was lost.
    virtual void reached(std::exception_ptr error) noexcept = 0;

   protected:
    ~Waiter() = default;
  };
  virtual void notify(Waiter& waiter) noexcept = 0;
  // Sleeps until then. Errors: Unavailable; FailedPrecondition in the child of a fork meanwhile.
  void wait();

 protected:
  explicit Device(DeviceName name);

 private:
  DeviceName name_;
  bool is_host_;
};

// CPU number `index` of this process. Never destroyed.
Device& cpu_device(int index = 0);

// The devices of this process besides its CPUs, which never go: in the order in which they came.
std::vector<Device*> accelerators();
// What a session has: of each kind at most the number given. At least one CPU, which come first and
// are one where no number is given; of others all that there are.
std::vector<Device*> session_devices(const std::map<std::string, int>& most);
// Why there are no devices of a kind, for messages: the end of a sentence. "" where nobody said.
std::string why_missing(std::string_view kind);
void note_missing(std::string_view kind, std::string why);
// Errors: AlreadyExists for a name that is there, InvalidArgument for a CPU or a name that is not
// full.
void check_new_accelerators(const std::vector<std::unique_ptr<Device>>& devices);
// From now on they are there. Errors: the same.
void add_accelerators(std::vector<std::unique_ptr<Device>> devices);

}  // namespace treenail
