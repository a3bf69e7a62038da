// SPDX-License-Identifier: Apache-2.0
// On x86-64 in a dozen instructions; elsewhere by ucontext, which makes a system call each time.
#include "tests/cuda_sim/driver/stack_switch.h"

#include "tests/cuda_sim/driver/watch.h"

#if !defined(__x86_64__) || defined(TREENAIL_CUDA_SIM_UCONTEXT)
#include <ucontext.h>
#endif

namespace treenail::cuda_sim {

#if defined(__x86_64__) && !defined(TREENAIL_CUDA_SIM_UCONTEXT)

// The registers that a called function keeps. The floating-point environment is the queue's.
extern "C" void treenail_cuda_sim_switch(void** from, void* to);
asm(R"(
.text
.type treenail_cuda_sim_switch, @function
.hidden treenail_cuda_sim_switch
.globl treenail_cuda_sim_switch
treenail_cuda_sim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size treenail_cuda_sim_switch, .-treenail_cuda_sim_switch
)");

// Six registers, the entry to return to, and no caller of it.
TN_UNSEEN StackPoint first_point(char* stack, size_t bytes, void (*entry)()) {
  auto** at = reinterpret_cast<void**>(stack + bytes - 64);
  *--at = nullptr;
  *--at = reinterpret_cast<void*>(entry);
  for (int i = 0; i < 6; ++i) *--at = nullptr;
  return {at};
}

TN_UNSEEN void switch_stack(StackPoint& from, const StackPoint& to) {
  treenail_cuda_sim_switch(&from.at, to.at);
}

#else

// A context lies at the bottom of its stack; the scheduler's, on a stack of the system, in its own.
TN_UNSEEN StackPoint first_point(char* stack, size_t bytes, void (*entry)()) {
  auto* const context = reinterpret_cast<ucontext_t*>(stack);
  const size_t head = (sizeof(ucontext_t) + 63) / 64 * 64;
  ::getcontext(context);
  context->uc_stack.ss_sp = stack + head;
  context->uc_stack.ss_size = bytes - head;
  context->uc_link = nullptr;
  ::makecontext(context, entry, 0);
  return {context};
}

TN_UNSEEN void switch_stack(StackPoint& from, const StackPoint& to) {
  static thread_local ucontext_t scheduler;
  if (from.at == nullptr) from.at = &scheduler;
  ::swapcontext(static_cast<ucontext_t*>(from.at), static_cast<ucontext_t*>(to.at));
}

#endif

}  // namespace treenail::cuda_sim
