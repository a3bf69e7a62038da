// SPDX-License-Identifier: Apache-2.0
// All ops of the process: those of framework/ops, registered by the generated table at first use,
// and those of plugins.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/op/op_def.h"

namespace treenail {

class OpRegistry {
 public:
  // The registry of this process, with every family of framework/ops in it. Never destroyed.
  static OpRegistry& instance();

  OpRegistry();
  ~OpRegistry();
  OpRegistry(const OpRegistry&) = delete;
  OpRegistry& operator=(const OpRegistry&) = delete;

  // Begins a declaration. Errors: AlreadyExists.
  OpDeclaration op(std::string_view name, HostAccess access);
  // Checks every declaration begun since the last call (shape rule present, gradient declared or
  // refused). Errors: Internal.
  void finish(std::string_view family);
  // Forgets every declaration begun since the last finish(): what a plugin left behind when its
  // registration failed.
  void abandon();

  const OpDef* find(std::string_view name) const;  // nullptr when unknown; the pointer stays valid
  // Errors: NotFound, with the nearest registered name.
  const OpDef& get(std::string_view name) const;
  std::vector<const OpDef*> all() const;  // sorted by name

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Generated from the file names of framework/ops.
void register_all_ops(OpRegistry& registry);

}  // namespace treenail
