// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/system_limits.h"
#include "framework/device/allocator.h"

namespace treenail {
namespace {

constexpr size_t kPage = 65536;  // the largest page of a supported architecture
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::atomic<int64_t> created{0};

// A control group would not refuse such memory but end a process, so it is counted beforehand.
void check_limits(size_t bytes) {
  const Allocator& host = Allocator::host();
  const auto wanted = static_cast<int64_t>(bytes);
  const int64_t in_use = host.stats().bytes_in_use + created.load();
  if (in_use + wanted > host.limit())
    throw resource_exhausted("a segment of ", bytes, " bytes of shared memory is asked for; ",
                             in_use, " bytes are in use, and the limit is ", host.limit(),
                             " (TREENAIL_MEMORY_LIMIT, or the memory that this process may have)");
  const int64_t left = cgroup_memory_left();
  const int64_t tables = wanted / 16 + (int64_t{1} << 20);  // the kernel's own, of what maps it
  if (wanted + tables > left)
    throw resource_exhausted("a segment of ", bytes, " bytes of shared memory is asked for, and ",
                             left, " bytes are left to this process's memory control group");
}

int sealed_memory(size_t bytes) {
  const int fd = ::memfd_create("treenail", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) throw resource_exhausted("no shared memory can be made: ", ::strerror(errno));
  int failed = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  // Pages that cannot be had are an error here, and no signal at their first use.
  if (failed == 0) failed = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (failed == 0 && ::fcntl(fd, F_ADD_SEALS, kSeals) != 0) failed = errno;
  if (failed == 0) return fd;
  ::close(fd);
  throw resource_exhausted("a segment of ", bytes,
                           " bytes of shared memory is asked for: ", ::strerror(failed));
}

}  // namespace

int64_t Segment::created_bytes() { return created.load(); }

Segment::Segment(int fd, size_t bytes, bool own) : fd_(fd), bytes_(bytes), own_(own) {
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
  if (at == MAP_FAILED) {
    const int failed = errno;
    ::close(fd);
    throw resource_exhausted("shared memory of ", bytes,
                             " bytes cannot be mapped: ", ::strerror(failed));
  }
  data_ = static_cast<std::byte*>(at);
  if (own_) created += static_cast<int64_t>(bytes);
}

Segment::~Segment() {
  ::munmap(data_, bytes_);
  close_fd();
  if (own_) created -= static_cast<int64_t>(bytes_);
}

void Segment::close_fd() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

IntrusivePtr<Segment> Segment::create(size_t bytes) {
  const size_t whole = (bytes + kPage - 1) / kPage * kPage;
  check_limits(whole);
  return IntrusivePtr<Segment>(new Segment(sealed_memory(whole), whole, true));
}

IntrusivePtr<Segment> Segment::open(int fd) {
  struct stat status {};
  const bool known = ::fstat(fd, &status) == 0 && status.st_size > 0;
  return open(fd, known ? static_cast<size_t>(status.st_size) : 1);
}

IntrusivePtr<Segment> Segment::open(int fd, size_t bytes) {
  struct stat status;
  const int seals = ::fcntl(fd, F_GET_SEALS);
  const bool sealed = seals >= 0 && (seals & kSeals) == kSeals;
  const bool large =
      bytes > 0 && ::fstat(fd, &status) == 0 && static_cast<uint64_t>(status.st_size) >= bytes;
  if (sealed && large) return IntrusivePtr<Segment>(new Segment(fd, bytes, false));
  ::close(fd);
  throw invalid_argument("a peer offers shared memory of ", bytes, " bytes that ",
                         sealed ? "is smaller than that" : "is not sealed against shrinking");
}

}  // namespace treenail
