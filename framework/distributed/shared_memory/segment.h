// SPDX-License-Identifier: Apache-2.0
// Memory that processes of one host share: a memfd sealed against shrinking, growing and further
// seals, so that no process can take pages away under another (a truncate would be SIGBUS there).
// Its descriptor is passed once (local_socket.h); what lies in it is the user's business
// (shared_pool.h). The limit that counts is the memory cgroup's, not the size of /dev/shm.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/intrusive_ptr.h"

namespace treenail {

class Segment final : public RefCounted {
 public:
  // At least `bytes`, rounded up to pages, all there at once. Errors: ResourceExhausted (bytes
  // asked, in use and limit, or what the system says).
  static IntrusivePtr<Segment> create(size_t bytes);
  // A segment of another process. Takes `fd`, also when it throws. Errors: InvalidArgument where it
  // is not sealed or has fewer than `bytes` bytes.
  static IntrusivePtr<Segment> open(int fd, size_t bytes);
  // All that there is of it.
  static IntrusivePtr<Segment> open(int fd);

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  int fd() const { return fd_; }
  // When no further process is to be passed it: descriptors are few. Not while another thread
  // passes it.
  void close_fd();

  // Of all segments that this process has created and not yet freed.
  static int64_t created_bytes();

 protected:
  ~Segment() override;

 private:
  Segment(int fd, size_t bytes, bool own);
  int fd_;
  size_t bytes_;
  std::byte* data_ = nullptr;
  bool own_;
};

}  // namespace treenail
