// SPDX-License-Identifier: Apache-2.0
// Where the values of one step wait at the task that sends them until they are asked for, and who
// asks for them until they are there. Under one key values are handed out in the order in which
// they came.
#pragma once

#include <deque>
#include <exception>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "framework/tensor/tensor.h"

namespace treenail {

class Rendezvous {
 public:
  class Receiver {
   public:
    // Once, from any thread, with no lock held, maybe inside receive(). `value` is null where there
    // is an error.
    virtual void received(const Tensor* value, std::exception_ptr error) noexcept = 0;

   protected:
    ~Receiver() = default;
  };

  // Errors: what the step was aborted with.
  void send(std::string_view key, Tensor value);
  void receive(std::string_view key, Receiver& receiver);
  // Whether the receiver was waiting: it is told nothing then.
  bool forget(const Receiver& receiver);
  // Whoever waits or comes later is told the error; values are dropped.
  void abort(const std::exception_ptr& error);
  // Neither values nor receivers.
  bool idle() const;

 private:
  struct Entry {
    std::deque<Tensor> values;  // one of the two is empty
    std::deque<Receiver*> receivers;
  };

  mutable std::mutex mutex_;
  std::map<std::string, Entry, std::less<>> entries_;  // none of them empty
  std::exception_ptr error_;
};

}  // namespace treenail
