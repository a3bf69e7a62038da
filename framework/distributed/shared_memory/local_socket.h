// SPDX-License-Identifier: Apache-2.0
// Connections between processes of one user on one host: AF_UNIX sockets in a directory that only
// this user may enter. Two processes are on one host when such a socket connects; equal host names
// prove nothing, for containers have namespaces of their own. A message is a few bytes and at most
// one file descriptor, and arrives whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace treenail {

class LocalConnection {
 public:
  // Of a connected SOCK_SEQPACKET socket, which it takes; the peer's user is checked. Errors:
  // PermissionDenied where that is another user.
  explicit LocalConnection(int fd);
  LocalConnection() = default;
  LocalConnection(LocalConnection&& other) noexcept;
  LocalConnection& operator=(LocalConnection&& other) noexcept;
  ~LocalConnection();

  int fd() const { return fd_; }
  // It is not closed: in this process the number may be of something else.
  void forget() { fd_ = -1; }
  int peer_process() const { return process_; }  // its id, as this process's namespace has it

  // Never waits: false where the peer does not read and its queue is full, or where it is gone.
  bool send(std::span<const std::byte> message, int passed = -1) const;

  enum class Received { kMessage, kNothing, kClosed };
  // Never waits. `message` is filled and *passed set to the descriptor that came along, or -1: the
  // caller owns it. A message of another size counts as kClosed: such a peer is none of ours.
  Received receive(std::span<std::byte> message, int* passed) const;
  // The same for a message of whatever size up to the buffer's, which *bytes tells: not 0.
  Received receive_any(std::span<std::byte> buffer, size_t* bytes, int* passed) const;
  // As receive(), but waits until monotonic_ns() is `deadline`; then kNothing.
  Received receive_until(std::span<std::byte> message, int* passed, int64_t deadline) const;

 private:
  int fd_ = -1;
  int process_ = 0;
};

// Makes the directory, if it is not there, and checks that it is this user's alone. Errors:
// PermissionDenied, Unavailable.
void private_directory(const std::string& path);

// `name` in such a directory, for peers to connect to. What an earlier process left there is
// replaced.
class LocalListener {
 public:
  // Errors: Unavailable, InvalidArgument (a path too long for a socket).
  LocalListener(const std::string& directory, const std::string& name);
  ~LocalListener();
  LocalListener(const LocalListener&) = delete;
  LocalListener& operator=(const LocalListener&) = delete;

  // To be polled; it can be read when a peer is there.
  int fd() const { return fd_; }
  // Waits for a peer until the deadline. Errors: DeadlineExceeded; Unavailable (no descriptor is
  // left); as of LocalConnection.
  LocalConnection accept(int64_t deadline);

 private:
  std::string path_;
  int fd_ = -1;
};

// Removes sockets of processes that are gone, where they are older than ten seconds.
void remove_dead_sockets(const std::string& directory);

// Tries until the deadline. Errors: Unavailable, saying what the last attempt met.
LocalConnection connect_local(const std::string& directory, const std::string& name,
                              int64_t deadline);

}  // namespace treenail
