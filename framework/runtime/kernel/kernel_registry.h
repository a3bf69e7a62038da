// SPDX-License-Identifier: Apache-2.0
// Which kernel computes which op on which dtypes on which kind of device. Host kernels (baseline)
// and those of the loaded ISA level library stand in one registry; the level library is opened at
// the first look-up.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_fusion.h"

namespace treenail {

// The kernel serves an op whose attribute `attr` (kind type) is one of `dtypes`.
struct TypeConstraint {
  std::string attr;
  std::vector<DType> dtypes;
};

struct KernelRegistration {
  std::string op;
  std::vector<TypeConstraint> constraints;
  PrepareFn prepare = nullptr;
  std::string kind = Device::kHostKind;  // of the devices that it runs on
};

class KernelRegistry {
 public:
  // Host kernels and the best level library this CPU runs (TREENAIL_CPU_ISA forces a lower one).
  // Never destroyed.
  static KernelRegistry& instance();

  KernelRegistry();
  ~KernelRegistry();
  KernelRegistry(const KernelRegistry&) = delete;
  KernelRegistry& operator=(const KernelRegistry&) = delete;

  // For one op, one kind of device and disjoint constraints each kernel is registered once; a
  // level's kernel takes the place of none.
  void add(std::string_view op, std::vector<TypeConstraint> constraints, PrepareFn prepare,
           std::string_view kind = Device::kHostKind);

  // What a plugin brings: all of it, or nothing when one is there already. Errors: AlreadyExists.
  void add_all(std::vector<KernelRegistration> kernels);

  // What makes one kernel of several nodes on devices of a kind; without it nothing is fused there.
  void set_fuser(const Fuser& fuser, std::string_view kind = Device::kHostKind);
  const Fuser& fuser(std::string_view kind = Device::kHostKind) const;

  // Errors: Unimplemented, naming op, dtypes and what is registered.
  PrepareFn find(const OpInstance& op, std::string_view kind = Device::kHostKind) const;
  // Does a device of that kind run the op with these dtypes?
  bool serves(const OpInstance& op, std::string_view kind) const;
  bool has(std::string_view op) const;
  // dtypes (of attribute `attr`) with a kernel for `op` on the host: for tests and the op
  // reference.
  std::vector<std::string> describe(std::string_view op) const;
  // What is registered for a kind, by op name.
  std::vector<KernelRegistration> registered(std::string_view kind) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What a level library exports as `const treenail::KernelLibrary* treenail_kernel_library()`
// (extern "C").
struct KernelLibrary {
  uint32_t abi;          // kKernelLibraryAbi
  const char* build_id;  // of the libtreenail it was built with: another build is refused
  const char* level;     // "x86-64-v3"
  void (*register_kernels)(KernelRegistry&);
};
inline constexpr uint32_t kKernelLibraryAbi = 1;

}  // namespace treenail
