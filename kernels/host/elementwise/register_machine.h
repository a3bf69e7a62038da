// SPDX-License-Identifier: Apache-2.0
// Element-wise programs whose values stay in vector registers: what the host side, which knows
// shapes and programs (register_program.h), and a level library, which knows vectors
// (kernels/cpu/elementwise/register_steps.h), agree on. A step is a function that takes two values,
// A and B, of four vectors each in registers, computes one op and ends in a tail call of the next
// step; the last one stores and returns. So there are no loads and stores between ops, and one
// dispatch an op and block. Where tail calls stay calls a program is only slower: the loop over
// blocks is outside, so the stack is as deep as a program is long.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/runtime/kernel/kernel_fusion.h"
#include "framework/tensor/dtype.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {

// Vectors of a value. Both values together are what the platforms pass in registers: eight vectors.
inline constexpr int kRegisterVectors = 4;
inline constexpr int kMostRegisterBytes = kRegisterVectors * 64;  // of a value
// Of the level's own signature; only a level library calls it.
using RegisterStep = void (*)();

struct RegisterInstruction {
  RegisterStep step = nullptr;
  int32_t memory[2] = {0, 0};  // operands of the context
  LoopParams params;
};

// Where the elements of an operand lie. Lane elements one to one, but for loads, which widen.
struct RegisterOperand {
  const std::byte* base = nullptr;
  int64_t advance = 0;  // bytes from element to element: 0 where each block reads the same
  int64_t stride = 0;   // bytes from vector to vector: 0 for copies of one element
};

struct RegisterContext {
  int64_t at = 0;  // the block's first element
  std::byte* output = nullptr;
  bool streaming = false;  // past the caches: only where every block is aligned to a vector
  RegisterOperand operand[kMostRegisterOperands];
  alignas(64) std::byte waiting[kMostRegisterSpills][kMostRegisterBytes];
  alignas(64) std::byte copies[kMostRegisterCopies][64];
};

// Which of an op's steps, by where its operands are: A, B or memory (M, N).
enum RegisterForm {
  kFormA = 0,
  kFormAB = 0,
  kFormAM = 1,
  kFormAMN = 0,
  kFormABM = 1,
  kFormAMB = 2
};

// The steps that move values, for lanes of one width.
struct RegisterMoves {
  RegisterStep load;      // A from memory[0], elements of the lane's size
  RegisterStep push;      // the same, and B from A
  RegisterStep copy;      // B from A
  RegisterStep exchange;  // A and B
  RegisterStep save_a;    // to memory[0]
  RegisterStep save_b;
  RegisterStep (*widening_load)(DType dtype);  // A from memory[0]; null: not in such lanes
  RegisterStep (*store)(DType dtype);          // A to the output, and the end; null as above
  // Runs the program on elements [0, n), n a multiple of a block.
  void (*run)(const RegisterInstruction* code, RegisterContext& context, int64_t n);
};

struct RegisterMachine {
  int vector_bytes = 0;
  RegisterStep (*pick)(const void* forms, int form) = nullptr;
  RegisterMoves of4 = {}, of8 = {};  // by bytes of a lane
  // What was streamed before comes before what is stored after.
  void (*fence)() = nullptr;
};

// The machine of the level in use; null before a level library has registered one.
const RegisterMachine* register_machine();
void set_register_machine(const RegisterMachine& machine);

}  // namespace treenail::host
