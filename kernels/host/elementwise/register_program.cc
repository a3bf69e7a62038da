// SPDX-License-Identifier: Apache-2.0
// Running a register program on a stretch of elements; how one is made: register_allocation.cc.
#include "kernels/host/elementwise/register_program.h"

#include <algorithm>
#include <cstring>

namespace treenail::host {
namespace {

RegisterMachine& level_machine() {
  static RegisterMachine machine;  // written while kernels register, read when they are prepared
  return machine;
}

// A single element as it stands in a lane.
template <class Lane>
Lane lane_of(const void* element, DType dtype) {
  const auto read = [element]<class T>(T x) {
    std::memcpy(&x, element, sizeof x);
    return static_cast<Lane>(x);
  };
  switch (dtype) {
    case DType::kBool:
      return *static_cast<const uint8_t*>(element) != 0 ? Lane(-1) : Lane(0);
    case DType::kInt8:
      return read(int8_t{});
    case DType::kUInt8:
      return read(uint8_t{});
    case DType::kInt16:
      return read(int16_t{});
    case DType::kUInt16:
    case DType::kFloat16:
    case DType::kBFloat16:
      return read(uint16_t{});
    case DType::kUInt32:
      return read(uint32_t{});
    default:
      return read(Lane{});
  }
}

template <class Lane>
void copy_element(std::byte* to, const void* element, DType dtype, int vector_bytes) {
  const Lane x = lane_of<Lane>(element, dtype);
  for (int at = 0; at < vector_bytes; at += static_cast<int>(sizeof x))
    std::memcpy(to + at, &x, sizeof x);
}

}  // namespace

const RegisterMachine* register_machine() {
  const RegisterMachine& machine = level_machine();
  return machine.vector_bytes == 0 ? nullptr : &machine;
}
void set_register_machine(const RegisterMachine& machine) { level_machine() = machine; }

void RegisterProgram::begin(RegisterContext& context) const {
  std::copy(operands.begin(), operands.end(), context.operand);
  for (size_t k = 0; k < waiting.size(); ++k) context.operand[waiting[k]].base = context.waiting[k];
}

void RegisterProgram::run(RegisterContext& context, void* const* pointer, std::byte* output,
                          int64_t n, bool streaming) const {
  std::byte* copies = context.copies[0];
  for (const Source& source : sources) {
    const void* const from = pointer[source.reg];
    RegisterOperand& operand = context.operand[source.operand];
    if (!source.single) {
      operand.base = static_cast<const std::byte*>(from);
      continue;
    }
    if (lane == 4) {
      copy_element<int32_t>(copies, from, source.dtype, machine->vector_bytes);
    } else {
      copy_element<int64_t>(copies, from, source.dtype, machine->vector_bytes);
    }
    operand.base = copies;
    copies += sizeof context.copies[0];
  }
  const int64_t block = kRegisterVectors * machine->vector_bytes / lane;
  const int64_t whole = n / block * block;
  context.output = output;
  context.streaming =
      streaming && output_bytes == lane &&
      reinterpret_cast<uintptr_t>(output) % static_cast<uintptr_t>(machine->vector_bytes) == 0;
  if (whole > 0) moves->run(code.data(), context, whole);
  if (n > whole) run_rest(context, output, whole, n - whole);
}

// On a padded block, zeros behind the elements there are.
void RegisterProgram::run_rest(RegisterContext& context, std::byte* output, int64_t done,
                               int64_t rest) const {
  alignas(64) std::byte input[kMostRegisterArrays][kMostRegisterBytes];
  alignas(64) std::byte result[kMostRegisterBytes];
  std::byte(*next)[kMostRegisterBytes] = input;
  for (const Source& source : sources) {
    if (source.single) continue;
    RegisterOperand& operand = context.operand[source.operand];
    const auto bytes = static_cast<size_t>(rest * operand.advance);
    std::memcpy(*next, operand.base + done * operand.advance, bytes);
    std::memset(*next + bytes, 0, sizeof *next - bytes);
    operand.base = *next++;
  }
  context.output = result;
  context.streaming = false;
  moves->run(code.data(), context, 1);
  std::memcpy(output + done * output_bytes, result, static_cast<size_t>(rest * output_bytes));
}

}  // namespace treenail::host
