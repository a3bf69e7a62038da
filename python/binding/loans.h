// SPDX-License-Identifier: Apache-2.0
// What Python lends to tensors: memory that somebody with the GIL must give back. When the last
// share of a buffer ends, on whatever thread, the loan goes to a lock-free list that the next
// holder of the GIL empties. After finalisation has begun nobody does.
#pragma once

#include "framework/device/allocator.h"

namespace treenail::python {

// Ended by end(what) with the GIL held; `end` throws nothing.
struct Loan : FromAllocator {
  Loan(void (*end)(void*), void* what) : end(end), what(what) {}
  void (*end)(void* what);
  void* what;
  Loan* next = nullptr;
};

// A Buffer::Release for a Loan*, which it takes over.
void end_later(void* loan);

// Ends the loans whose last share has gone since the last call. Needs the GIL; cheap when there is
// none.
void release_borrowed();

}  // namespace treenail::python
