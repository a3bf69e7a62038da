// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/shared_memory/local_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/interrupt.h"
#include "framework/base/spin.h"

namespace treenail {
namespace {

Error unavailable(const std::string& text) { return Error(Code::kUnavailable, text); }

std::string said(const std::string& what, int number) { return what + ": " + ::strerror(number); }

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    throw invalid_argument("the path \"", path, "\" of a socket has ", path.size(),
                           " bytes; at most ", sizeof(address.sun_path) - 1, " fit");
  }
  ::memcpy(address.sun_path, path.data(), path.size());
  return address;
}

// Whether the descriptor can be read before the deadline.
bool readable_until(int fd, int64_t deadline) {
  while (true) {
    const int64_t left = deadline - monotonic_ns();
    pollfd one{fd, POLLIN, 0};
    const int ms = static_cast<int>(std::clamp<int64_t>(left / 1'000'000 + 1, 0, 50));
    if (::poll(&one, 1, left <= 0 ? 0 : ms) > 0) return true;
    if (left <= 0) return false;
    poll_interrupt();
  }
}

int passed_descriptor(msghdr& header) {
  int passed = -1;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    ::memcpy(&passed, CMSG_DATA(c), sizeof(passed));
  }
  return passed;
}

}  // namespace

LocalConnection::LocalConnection(int fd) : fd_(fd) {
  ucred peer{};
  socklen_t size = sizeof(peer);
  const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
  process_ = peer.pid;
  if (known && peer.uid == ::geteuid()) return;
  ::close(std::exchange(fd_, -1));
  throw Error(Code::kPermissionDenied, "a process of another user (number " +
                                           std::to_string(peer.uid) +
                                           ") wants to share memory; only this one's (number " +
                                           std::to_string(::geteuid()) + ") may");
}

LocalConnection::LocalConnection(LocalConnection&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), process_(other.process_) {}

LocalConnection& LocalConnection::operator=(LocalConnection&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(process_, other.process_);
  return *this;
}

LocalConnection::~LocalConnection() {
  if (fd_ >= 0) ::close(fd_);
}

bool LocalConnection::send(std::span<const std::byte> message, int passed) const {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  if (passed >= 0) {
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
    cmsghdr* const c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    ::memcpy(CMSG_DATA(c), &passed, sizeof(passed));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(fd_, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

LocalConnection::Received LocalConnection::receive(std::span<std::byte> message,
                                                   int* passed) const {
  size_t bytes = 0;
  const Received got = receive_any(message, &bytes, passed);
  if (got != Received::kMessage || bytes == message.size()) return got;
  if (*passed >= 0) ::close(std::exchange(*passed, -1));
  return Received::kClosed;
}

LocalConnection::Received LocalConnection::receive_any(std::span<std::byte> buffer, size_t* bytes,
                                                       int* passed) const {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  ssize_t got = 0;
  do {
    got = ::recvmsg(fd_, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  *passed = -1;
  if (got < 0) return errno == EAGAIN ? Received::kNothing : Received::kClosed;
  *passed = passed_descriptor(header);
  *bytes = static_cast<size_t>(got);
  if (got > 0 && (header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0) return Received::kMessage;
  if (*passed >= 0) ::close(std::exchange(*passed, -1));
  return Received::kClosed;
}

LocalConnection::Received LocalConnection::receive_until(std::span<std::byte> message, int* passed,
                                                         int64_t deadline) const {
  *passed = -1;
  if (!readable_until(fd_, deadline)) return Received::kNothing;
  return receive(message, passed);
}

void private_directory(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    throw unavailable(said("the directory \"" + path + "\" cannot be made", errno));
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  const bool there = fd >= 0 && ::fstat(fd, &status) == 0;
  if (fd >= 0) ::close(fd);
  if (!there) throw unavailable("\"" + path + "\" is no directory that this process may enter");
  if (status.st_uid == ::geteuid() && (status.st_mode & 077) == 0) return;
  throw Error(Code::kPermissionDenied,
              "the directory \"" + path +
                  "\" for shared memory must belong to this user alone (mode 0700)");
}

LocalListener::LocalListener(const std::string& directory, const std::string& name)
    : path_(directory + "/" + name) {
  private_directory(directory);
  const sockaddr_un address = address_of(path_);
  fd_ = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  ::unlink(path_.c_str());
  const auto* const where = reinterpret_cast<const sockaddr*>(&address);
  if (fd_ >= 0 && ::bind(fd_, where, sizeof(address)) == 0 && ::listen(fd_, 128) == 0) return;
  const std::string text = said("no process can connect to \"" + path_ + "\"", errno);
  if (fd_ >= 0) ::close(fd_);
  throw unavailable(text);
}

LocalListener::~LocalListener() {
  ::close(fd_);
  ::unlink(path_.c_str());
}

LocalConnection LocalListener::accept(int64_t deadline) {
  while (readable_until(fd_, deadline)) {
    const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) return LocalConnection(fd);
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
      throw unavailable(said("a process that connects to \"" + path_ + "\" is refused", errno));
  }
  throw deadline_exceeded("no further process has connected to \"", path_, "\"");
}

void remove_dead_sockets(const std::string& directory) {
  constexpr time_t kYoung = 10;  // one that is bound may not listen yet
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(directory, ignored)) {
    const std::string path = entry.path().string();
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || !S_ISSOCK(status.st_mode)) continue;
    if (::time(nullptr) - status.st_mtime < kYoung) continue;
    const sockaddr_un address = address_of(path);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    const auto* const where = reinterpret_cast<const sockaddr*>(&address);
    const bool dead = ::connect(fd, where, sizeof(address)) != 0 && errno == ECONNREFUSED;
    ::close(fd);
    if (dead) ::unlink(path.c_str());
  }
}

LocalConnection connect_local(const std::string& directory, const std::string& name,
                              int64_t deadline) {
  const std::string path = directory + "/" + name;
  const sockaddr_un address = address_of(path);
  while (true) {
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (fd < 0) throw unavailable(said("no socket", errno));
    if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      return LocalConnection(fd);
    const int failed = errno;
    ::close(fd);
    if (monotonic_ns() >= deadline)
      throw unavailable(said("\"" + path + "\" does not answer", failed));
    poll_interrupt();
    const timespec moment{0, 2'000'000};
    ::nanosleep(&moment, nullptr);
  }
}

}  // namespace treenail
