// SPDX-License-Identifier: Apache-2.0
// From a tile program to a register program: a linear scan that keeps the value computed last in A
// and one other in B, and lets what is needed later wait in L1. An input is memory anyway: it costs
// an operand, never a place.
#include <algorithm>
#include <climits>
#include <memory>
#include <utility>

#include "kernels/host/elementwise/register_program.h"

namespace treenail::host {
namespace {

constexpr size_t kMostInstructions = 256;

// Bytes of the lane a value needs: 0 for truth values, which fit any, -1 where none does.
int lane_for(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return 0;
    case DType::kFloat32:
    case DType::kInt32:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kInt8:
    case DType::kUInt8:
    case DType::kInt16:
    case DType::kUInt16:
      return 4;
    case DType::kFloat64:
    case DType::kInt64:
    case DType::kUInt32:
      return 8;
    default:
      return -1;
  }
}

class Allocator {
 public:
  Allocator(const TileProgram& program, const std::vector<bool>& single, RegisterProgram& out)
      : program_(program), single_(single), out_(out) {}

  bool allocate() {
    if (!choose_lane()) return false;
    find_uses();
    if (!place_inputs()) return false;
    const auto steps = program_.steps();
    for (size_t k = 0; k < steps.size(); ++k) {
      const int result = program_.inputs() + static_cast<int>(k);
      if (is_single(result)) continue;
      now_ = static_cast<int>(k);
      add(steps[k], result);
      if (!fits_) return false;
    }
    const DType dtype = program_.dtype(program_.registers() - 1);
    const RegisterStep store = out_.moves->store(dtype);
    if (store == nullptr) return false;
    out_.code.push_back({store, {}, {}});
    out_.output_bytes = static_cast<int>(dtype_size(dtype));
    return out_.code.size() <= kMostInstructions;
  }

 private:
  struct Value {
    std::vector<int> uses;  // steps, in their order
    int memory = -1;        // operand that holds its lanes
    int narrow = -1;        // operand that holds it in fewer bytes than a lane
  };

  bool is_single(int reg) const { return single_[static_cast<size_t>(reg)]; }
  Value& value(int reg) { return values_[static_cast<size_t>(reg)]; }
  int next_use(int reg, int from) {
    for (const int use : value(reg).uses) {
      if (use >= from) return use;
    }
    return INT_MAX;
  }
  bool needed(int reg, int from) { return reg >= 0 && next_use(reg, from) != INT_MAX; }
  bool kept(int reg) { return value(reg).memory >= 0 || value(reg).narrow >= 0; }

  bool choose_lane() {
    int lane = 0;
    for (int reg = 0; reg < program_.registers(); ++reg) {
      if (is_single(reg)) continue;
      const int wanted = lane_for(program_.dtype(reg));
      if (wanted < 0 || (wanted > 0 && lane > 0 && wanted != lane)) return false;
      lane = std::max(lane, wanted);
    }
    out_.lane = lane == 0 ? 4 : lane;
    out_.moves = out_.lane == 4 ? &out_.machine->of4 : &out_.machine->of8;
    const auto steps = program_.steps();
    for (size_t k = 0; k < steps.size(); ++k) {
      if (is_single(program_.inputs() + static_cast<int>(k))) continue;
      const RegisterForms& forms = steps[k].loops.registers;
      if (forms.forms == nullptr || (forms.lane != 0 && forms.lane != out_.lane)) return false;
    }
    return true;
  }

  void find_uses() {
    values_.resize(static_cast<size_t>(program_.registers()));
    const auto steps = program_.steps();
    for (size_t k = 0; k < steps.size(); ++k) {
      if (is_single(program_.inputs() + static_cast<int>(k))) continue;
      for (int j = 0; j < steps[k].arity; ++j)
        value(steps[k].operand[j]).uses.push_back(static_cast<int>(k));
    }
    value(program_.registers() - 1).uses.push_back(INT_MAX - 1);
  }

  // Operands for inputs and for single elements that steps compute.
  bool place_inputs() {
    int copies = 0, arrays = 0;
    for (int reg = 0; reg < program_.registers(); ++reg) {
      const bool memory = reg < program_.inputs() || is_single(reg);
      if (!memory || value(reg).uses.empty()) continue;
      const DType dtype = program_.dtype(reg);
      const int lane = lane_for(dtype), bytes = static_cast<int>(dtype_size(dtype));
      if (lane < 0 || (lane != 0 && lane != out_.lane)) return false;
      if (is_single(reg)) {
        if (++copies > kMostRegisterCopies) return false;
        value(reg).memory = add_operand({});
      } else {
        if (++arrays > kMostRegisterArrays) return false;
        const int stride = bytes * out_.machine->vector_bytes / out_.lane;
        const int operand = add_operand({nullptr, bytes, stride});
        (bytes == out_.lane ? value(reg).memory : value(reg).narrow) = operand;
        if (bytes != out_.lane && out_.moves->widening_load(dtype) == nullptr) return false;
      }
      out_.sources.push_back(
          {reg, static_cast<int>(out_.operands.size()) - 1, dtype, is_single(reg)});
    }
    return fits_;
  }

  int add_operand(RegisterOperand operand) {
    out_.operands.push_back(operand);
    if (out_.operands.size() > kMostRegisterOperands) fits_ = false;
    return static_cast<int>(out_.operands.size()) - 1;
  }

  void emit(RegisterStep step, int m = 0, int n = 0, const LoopParams& params = {}) {
    out_.code.push_back({step, {m, n}, params});
  }

  // The value of A or B, wherever it is, waits in L1 from here on.
  void save(int reg) {
    Value& v = value(reg);
    if (v.memory >= 0) return;
    const size_t place = free_place();
    if (!fits_) return;
    held_[place] = reg;
    v.memory = out_.waiting[place];
    emit(a_ == reg ? out_.moves->save_a : out_.moves->save_b, static_cast<int>(place));
  }
  size_t free_place() {
    for (size_t k = 0; k < held_.size(); ++k) {
      if (!needed(held_[k], now_)) return k;
    }
    if (held_.size() == kMostRegisterSpills) {
      fits_ = false;
      return 0;
    }
    held_.push_back(-1);
    out_.waiting.push_back(add_operand({nullptr, 0, out_.machine->vector_bytes}));
    return held_.size() - 1;
  }

  void free_b(int from) {
    if (needed(b_, from) && !kept(b_) && b_ != a_) save(b_);
    b_ = -1;
  }
  // A is about to be overwritten; `reads_b`: by a step that reads B.
  void free_a(int from, bool reads_b) {
    if (!needed(a_, from) || kept(a_) || a_ == b_) return;
    const bool later = needed(b_, from) && !kept(b_);
    if (reads_b || (later && next_use(b_, from) <= next_use(a_, from))) {
      save(a_);
    } else {
      free_b(from);
      emit(out_.moves->copy);
      b_ = a_;
    }
  }
  void exchange() {
    emit(out_.moves->exchange);
    std::swap(a_, b_);
  }
  void load(int reg) {
    const Value& v = value(reg);
    if (v.memory >= 0) {
      emit(out_.moves->load, v.memory);
    } else {
      emit(out_.moves->widening_load(program_.dtype(reg)), v.narrow);
    }
    a_ = reg;
  }
  void bring(int reg) {
    if (a_ == reg) return;
    if (b_ == reg) return exchange();
    free_a(now_, false);
    load(reg);
  }
  // B gets what A holds, A the value.
  void push(int reg) {
    free_b(now_);
    b_ = a_;
    if (value(reg).memory >= 0) {
      emit(out_.moves->push, value(reg).memory);
      a_ = reg;
    } else {
      emit(out_.moves->copy);
      load(reg);
    }
  }

  void add(const TileProgram::Step& step, int result) {
    if (step.arity == 1) {
      bring(step.operand[0]);
      compute(step, kFormA, false, -1, -1);
    } else if (step.arity == 2) {
      add_binary(step);
    } else {
      add_ternary(step);
    }
    a_ = result;
  }
  void compute(const TileProgram::Step& step, int form, bool reads_b, int m, int n) {
    free_a(now_ + 1, reads_b);
    const RegisterStep picked = out_.machine->pick(step.loops.registers.forms, form);
    emit(picked, m < 0 ? 0 : value(m).memory, n < 0 ? 0 : value(n).memory, step.params);
  }

  void add_binary(const TileProgram::Step& step) {
    int x = step.operand[0], y = step.operand[1];
    const bool second_first = a_ == y || (a_ != x && b_ == y);
    if (step.loops.registers.commutes && second_first) std::swap(x, y);
    if (x == y) {
      bring(x);
      if (b_ != x && value(x).memory < 0) {
        free_b(now_);
        emit(out_.moves->copy);
        b_ = x;
      }
    } else if (a_ == y && b_ == x) {
      exchange();
    } else if (a_ == y) {
      push(x);
    } else if (a_ != x) {
      if (b_ == y && value(y).memory < 0) {  // x comes to A, and y stays
        free_a(now_, true);
        load(x);
      } else {
        bring(x);
      }
    }
    if (b_ != y && value(y).memory < 0) {  // an input that loads widen
      push(y);
      exchange();
    }
    if (b_ == y) {
      compute(step, kFormAB, true, -1, -1);
    } else {
      compute(step, kFormAM, false, y, -1);
    }
  }

  // The first operand in A, of the others at most one in B.
  void add_ternary(const TileProgram::Step& step) {
    const int x = step.operand[0], y = step.operand[1], z = step.operand[2];
    // Twice, for bringing the second may push out the first where that can be loaded again.
    for (const int reg : {y, z, y}) {
      if (value(reg).memory >= 0 || (b_ == reg && reg != x)) continue;
      if (a_ != reg) bring(reg);
      save(reg);
    }
    if (!fits_) return;
    if (a_ != x && b_ != x) {
      if (b_ >= 0 && (b_ == y || b_ == z)) {
        free_a(now_, true);
        load(x);
      } else {
        bring(x);
      }
    } else if (b_ == x) {
      exchange();
    }
    // What is in B and not in memory must be read there; both cannot be.
    const bool y_in_b = b_ == y && value(y).memory < 0, z_in_b = b_ == z && value(z).memory < 0;
    if (y_in_b && y != z) {
      compute(step, kFormABM, true, z, -1);
    } else if (z_in_b && y != z) {
      compute(step, kFormAMB, true, y, -1);
    } else {
      if (y_in_b) save(y);
      compute(step, kFormAMN, false, y, z);
    }
  }

  const TileProgram& program_;
  const std::vector<bool>& single_;
  RegisterProgram& out_;
  std::vector<Value> values_;
  std::vector<int> held_;  // by place to wait: the value, by its register
  int a_ = -1, b_ = -1;    // the values in registers
  int now_ = 0;            // the step
  bool fits_ = true;
};

}  // namespace

std::unique_ptr<const RegisterProgram> make_register_program(const TileProgram& program,
                                                             const std::vector<bool>& single) {
  const RegisterMachine* machine = register_machine();
  if (machine == nullptr) return nullptr;
  auto out = std::make_unique<RegisterProgram>();
  out->machine = machine;
  if (!Allocator(program, single, *out).allocate()) return nullptr;
  return out;
}

}  // namespace treenail::host
