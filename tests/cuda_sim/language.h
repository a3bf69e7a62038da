// SPDX-License-Identifier: Apache-2.0
// The language of kernels/cuda/language/gpu.h for the host, which that header includes where no GPU
// compiler reads it. A kernel becomes a function that runs once for each thread, each on a fiber of
// its own (driver/engine.h), and a registration by which the simulated driver finds and launches
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

namespace treenail::cuda_sim {

// What the running thread knows about itself.
struct Place {
  int thread = 0, threads = 1;
  int64_t block = 0, blocks = 1;
  int block_y = 0, blocks_y = 1;
  int warp_size = 32;
};
extern constinit thread_local Place place;

void sync();
void sync_warp();
// `bits` of each lane are given to all; those of `lane` come back.
uint64_t shuffle(uint64_t bits, int lane);
// The block's memory for the declaration that `site` stands for.
void* shared(const void* site, size_t bytes);
void* dynamic_shared();

// One look at each address among the arguments of a launch.
class ArgumentVisitor {
 public:
  virtual ~ArgumentVisitor() = default;
  virtual void pointer(int parameter, uintptr_t& address) = 0;
  // Eight bytes of a struct, which are a pointer if they look like one.
  virtual void word(uintptr_t& bits) = 0;
};

// A launch's arguments, copied when it is asked for.
class Call {
 public:
  virtual ~Call() = default;
  virtual void visit(ArgumentVisitor& visitor) = 0;
  virtual void run() const = 0;  // one thread
};

template <class T>
void visit_argument(ArgumentVisitor& visitor, int parameter, T& argument) {
  uintptr_t word = 0;
  if constexpr (std::is_pointer_v<T>) {
    static_assert(!std::is_function_v<std::remove_pointer_t<T>>, "a function of which machine?");
    std::memcpy(&word, &argument, sizeof(word));
    visitor.pointer(parameter, word);
    std::memcpy(&argument, &word, sizeof(word));
  } else if constexpr (std::is_class_v<T> && alignof(T) >= alignof(uintptr_t)) {
    auto* const bytes = reinterpret_cast<std::byte*>(&argument);
    for (size_t at = 0; at + sizeof(word) <= sizeof(T); at += sizeof(word)) {
      std::memcpy(&word, bytes + at, sizeof(word));
      visitor.word(word);
      std::memcpy(bytes + at, &word, sizeof(word));
    }
  }
}

template <class... A>
class KernelCall final : public Call {
  static_assert((std::is_trivially_copyable_v<A> && ...), "arguments are copied as bytes");

 public:
  KernelCall(void (*function)(A...), void** arguments)
      : function_(function), arguments_(read(arguments, std::index_sequence_for<A...>())) {}

  void visit(ArgumentVisitor& visitor) override {
    std::apply(
        [&](A&... argument) {
          int parameter = 0;
          (visit_argument(visitor, parameter++, argument), ...);
        },
        arguments_);
  }
  void run() const override { std::apply(function_, arguments_); }

 private:
  template <size_t... I>
  static std::tuple<A...> read([[maybe_unused]] void** arguments, std::index_sequence<I...>) {
    return {*static_cast<const A*>(arguments[I])...};
  }

  void (*const function_)(A...);
  std::tuple<A...> arguments_;
};

using AnyFunction = void (*)();

struct KernelEntry {
  const char* name;
  int most_threads;
  int parameters;
  AnyFunction function;
  std::unique_ptr<Call> (*make_call)(AnyFunction function, void** arguments);
};

void register_kernel(const KernelEntry& entry);

struct Registered {
  template <class... A>
  Registered(const char* name, int most_threads, void (*function)(A...)) {
    register_kernel({name, most_threads, sizeof...(A), reinterpret_cast<AnyFunction>(function),
                     [](AnyFunction any, void** arguments) -> std::unique_ptr<Call> {
                       return std::make_unique<KernelCall<A...>>(
                           reinterpret_cast<void (*)(A...)>(any), arguments);
                     }});
  }
};

}  // namespace treenail::cuda_sim

#define TN_KERNEL(name, ...)                                      \
  static void name(__VA_ARGS__);                                  \
  static const ::treenail::cuda_sim::Registered tn_kernel_##name( \
      #name, ::treenail::gpu::kMostThreads, &name);               \
  static void name(__VA_ARGS__)
#define TN_SHARED(T, name, n)       \
  static char tn_shared_##name = 0; \
  T(&name)                          \
  [n] = *static_cast<T(*)[n]>(::treenail::cuda_sim::shared(&tn_shared_##name, sizeof(T) * (n)))
#define TN_DYNAMIC_SHARED(T, name) \
  T* const name = static_cast<T*>(::treenail::cuda_sim::dynamic_shared())

namespace treenail::gpu {

inline int thread() { return cuda_sim::place.thread; }
inline int threads() { return cuda_sim::place.threads; }
inline int64_t block() { return cuda_sim::place.block; }
inline int64_t blocks() { return cuda_sim::place.blocks; }
inline int block_y() { return cuda_sim::place.block_y; }
inline int blocks_y() { return cuda_sim::place.blocks_y; }
inline int warp_size() { return cuda_sim::place.warp_size; }

inline void sync() { cuda_sim::sync(); }
inline void sync_warp() { cuda_sim::sync_warp(); }

template <class T>
T shuffle_from(T value, int lane) {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = cuda_sim::shuffle(bits, lane);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}
template <class T>
T shuffle_down(T value, int down) {
  const int own = thread() % warp_size();
  return shuffle_from(value, own + down < warp_size() ? own + down : own);
}
template <class T>
T shuffle_xor(T value, int mask) {
  const int own = thread() % warp_size();
  return shuffle_from(value, (own ^ mask) < warp_size() ? own ^ mask : own);
}

template <class T, class... Allowed>
inline constexpr bool kIsOneOf = (std::is_same_v<T, Allowed> || ...);

// Atomic, and no more: what a GPU's atomics do not order, these do not.
template <class T, class F>
T atomic_change(T* at, F changed) {
  T before, after;
  __atomic_load(at, &before, __ATOMIC_RELAXED);
  do {
    after = changed(before);
  } while (
      !__atomic_compare_exchange(at, &before, &after, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}
template <class T>
T atomic_add(T* at, T value) {
  static_assert(kIsOneOf<T, int, unsigned, unsigned long long, float, double>);
  return atomic_change(at, [&](T before) { return static_cast<T>(before + value); });
}
template <class T>
T atomic_min(T* at, T value) {
  static_assert(kIsOneOf<T, int, unsigned, long long, unsigned long long>);
  return atomic_change(at, [&](T before) { return value < before ? value : before; });
}
template <class T>
T atomic_max(T* at, T value) {
  static_assert(kIsOneOf<T, int, unsigned, long long, unsigned long long>);
  return atomic_change(at, [&](T before) { return before < value ? value : before; });
}

}  // namespace treenail::gpu
