// SPDX-License-Identifier: Apache-2.0
// Look-ups by name in definitions and instances. An op has few arguments and attributes: a scan is
// the fastest table.
#include "framework/op/op_def.h"

#include <algorithm>

#include "framework/base/error.h"

namespace treenail {
namespace {

template <class Def>
int index_of(const std::vector<Def>& defs, std::string_view name) {
  for (size_t i = 0; i < defs.size(); ++i) {
    if (defs[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

// begin[arg] <= i < begin[arg + 1], with empty ranges among them.
int arg_of(const std::vector<int>& begin, int i) {
  return static_cast<int>(std::upper_bound(begin.begin(), begin.end(), i) - begin.begin()) - 1;
}

}  // namespace

std::string_view to_text(HostAccess access) {
  constexpr std::string_view kNames[] = {"none", "files", "process", "network", "python"};
  return kNames[static_cast<size_t>(access)];
}

int OpDef::input_index(std::string_view arg) const { return index_of(inputs, arg); }
int OpDef::output_index(std::string_view arg) const { return index_of(outputs, arg); }
int OpDef::attr_index(std::string_view attr) const { return index_of(attrs, attr); }

const AttrValue& OpInstance::attr(std::string_view name) const {
  const int position = def().attr_index(name);
  if (position < 0) {
    throw internal_error("op \"", def().name, "\" has no attribute \"", name, "\"");
  }
  return attr(position);
}

int OpInstance::input_arg(int i) const { return arg_of(resolved_->input_begin, i); }
int OpInstance::output_arg(int i) const { return arg_of(resolved_->output_begin, i); }

std::string OpInstance::input_name(int i) const {
  const int arg = input_arg(i);
  const ArgDef& declared = def().inputs[arg];
  return declared.is_list() ? concat(declared.name, "[", i - resolved_->input_begin[arg], "]")
                            : declared.name;
}

}  // namespace treenail
