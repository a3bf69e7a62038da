// SPDX-License-Identifier: Apache-2.0
#include "framework/distributed/rendezvous.h"

#include <utility>

namespace treenail {

void Rendezvous::send(std::string_view key, Tensor value) {
  Receiver* receiver = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) std::rethrow_exception(error_);
    const auto at = entries_.try_emplace(std::string(key)).first;
    Entry& entry = at->second;
    if (entry.receivers.empty()) {
      entry.values.push_back(std::move(value));
      return;
    }
    receiver = entry.receivers.front();
    entry.receivers.pop_front();
    if (entry.receivers.empty()) entries_.erase(at);
  }
  receiver->received(&value, nullptr);
}

void Rendezvous::receive(std::string_view key, Receiver& receiver) {
  Tensor value;
  std::exception_ptr error;
  {
    const std::lock_guard lock(mutex_);
    error = error_;
    if (error == nullptr) {
      const auto at = entries_.try_emplace(std::string(key)).first;
      Entry& entry = at->second;
      if (entry.values.empty()) {
        entry.receivers.push_back(&receiver);
        return;
      }
      value = std::move(entry.values.front());
      entry.values.pop_front();
      if (entry.values.empty()) entries_.erase(at);
    }
  }
  receiver.received(error == nullptr ? &value : nullptr, error);
}

bool Rendezvous::forget(const Receiver& receiver) {
  const std::lock_guard lock(mutex_);
  for (auto at = entries_.begin(); at != entries_.end(); ++at) {
    if (std::erase(at->second.receivers, &receiver) == 0) continue;
    if (at->second.receivers.empty() && at->second.values.empty()) entries_.erase(at);
    return true;
  }
  return false;
}

void Rendezvous::abort(const std::exception_ptr& error) {
  decltype(entries_) dropped;
  {
    const std::lock_guard lock(mutex_);
    if (error_ != nullptr) return;
    error_ = error;
    dropped.swap(entries_);
  }
  for (const auto& [key, entry] : dropped)
    for (Receiver* receiver : entry.receivers) receiver->received(nullptr, error);
}

bool Rendezvous::idle() const {
  const std::lock_guard lock(mutex_);
  return entries_.empty();
}

}  // namespace treenail
