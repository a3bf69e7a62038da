// SPDX-License-Identifier: Apache-2.0
#include "python/binding/loans.h"

#include <atomic>

namespace treenail::python {
namespace {

std::atomic<Loan*> ended_list{nullptr};

}  // namespace

void end_later(void* argument) {
  auto* loan = static_cast<Loan*>(argument);
  loan->next = ended_list.load(std::memory_order_relaxed);
  while (!ended_list.compare_exchange_weak(loan->next, loan, std::memory_order_release,
                                           std::memory_order_relaxed)) {
  }
}

void release_borrowed() {
  if (ended_list.load(std::memory_order_relaxed) == nullptr) return;
  Loan* list = ended_list.exchange(nullptr, std::memory_order_acquire);
  while (list != nullptr) {
    Loan* next = list->next;
    list->end(list->what);
    delete list;
    list = next;
  }
}

}  // namespace treenail::python
