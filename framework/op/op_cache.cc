// SPDX-License-Identifier: Apache-2.0
#include "framework/op/op_cache.h"

#include <algorithm>

#include "framework/base/hash.h"

namespace treenail {
namespace {

constexpr size_t kCalls = 256;

// A tensor is as a rule one call's own, and long to compare.
bool repeats(std::span<const NamedAttr> attrs) {
  return std::ranges::none_of(attrs, [](const NamedAttr& attr) {
    const AttrKind kind = element_kind(attr.second.kind());
    return kind == AttrKind::kTensor || kind == AttrKind::kFunction;
  });
}

uint64_t hash_of(const OpDef& def, std::span<const DType> input_types,
                 std::span<const NamedAttr> attrs) {
  uint64_t hash = hash_bytes(input_types.data(), input_types.size_bytes(),
                             static_cast<uint64_t>(reinterpret_cast<uintptr_t>(&def)));
  for (const auto& [name, value] : attrs) hash = hash_combine(hash_text(name, hash), value.hash());
  return hash;
}

}  // namespace

OpInstance OpCache::resolve(const OpDef& def, std::span<const DType> input_types,
                            std::span<const NamedAttr> attrs, std::span<const int> arg_sizes) {
  if (!repeats(attrs)) return resolve_op(def, input_types, attrs, arg_sizes);
  if (calls_.empty()) calls_.resize(kCalls);
  Call& known = calls_[hash_of(def, input_types, attrs) % kCalls];
  if (known.def != &def || !std::ranges::equal(known.op.input_types(), input_types) ||
      !std::ranges::equal(known.attrs, attrs) || !std::ranges::equal(known.arg_sizes, arg_sizes)) {
    OpInstance op = resolve_op(def, input_types, attrs, arg_sizes);
    known = {
        &def, {attrs.begin(), attrs.end()}, {arg_sizes.begin(), arg_sizes.end()}, std::move(op)};
  }
  return known.op;
}

}  // namespace treenail
