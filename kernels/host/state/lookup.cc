// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/lookup.cc: what a table does is its own (runtime/state/lookup_table.h).
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/io/file_place.h"
#include "framework/runtime/kernel/kernel_files.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/lookup_table.h"
#include "framework/tensor/string_element.h"
#include "kernels/host/state/lookup_text_file.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr double kFindNs = 25;    // a key
constexpr double kInsertNs = 60;  // a key
constexpr int64_t kFindGrain = 4096;
constexpr double kFileCostNs = 1e6;  // as in kernels/host/io

template <bool is_static>
KernelPtr prepare_table(const PrepareContext& p) {
  const OpInstance& op = p.op();
  LookupSpec spec{is_static, op.get_type("key_dtype"), op.get_type("value_dtype")};
  if (op.def().attr_index("value_shape") >= 0)
    spec.value_shape = op.get<PartialShape>("value_shape").shape();
  const std::string& shared = op.get_string("shared_name");
  const std::string name = shared.empty() ? std::string(p.node_name()) : shared;
  if (name.empty()) {  // in immediate execution
    return make_kernel(
        [spec](RunContext& c) {
          c.output(0).data<ResourceElement>()->object = make_counted<LookupTable>("", spec);
        },
        200);
  }
  const auto table = named_lookup_table(p.resources(), op.get_string("container"), name, spec);
  return make_kernel(
      [table](RunContext& c) { c.output(0).data<ResourceElement>()->object = table; }, 10);
}

double cost_of(const PrepareContext& p, double each_ns) {
  return 100 + each_ns * static_cast<double>(p.input_shape(1).num_elements());
}

KernelPtr prepare_find(const PrepareContext& p) {
  return make_kernel(
      [](RunContext& c) {
        const LookupTable& table = lookup_table_from(c.input(0));
        const Tensor& keys = c.input(1);
        table.check_keys(keys);
        table.check_default(c.input(2));
        Tensor& values = c.output(0);
        const LookupTable::Reading reading = table.read();
        c.parallel_for(keys.num_elements(), kFindGrain, kFindNs, [&](int64_t begin, int64_t end) {
          reading.find(keys, c.input(2), begin, end, values);
        });
      },
      cost_of(p, kFindNs));
}

KernelPtr prepare_size(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) { *c.output(0).data<int64_t>() = lookup_table_from(c.input(0)).size(); },
      50);
}

KernelPtr prepare_export(const PrepareContext& p) {
  return make_kernel(
      [keys = p.output_type(0), values = p.output_type(1)](RunContext& c) {
        const LookupTable& table = lookup_table_from(c.input(0));
        table.check_export(keys, values);
        const LookupTable::Reading reading = table.read();
        c.set_output(0, reading.keys());
        c.set_output(1, reading.values());
      },
      10'000);
}

template <void (LookupTable::*change)(const Tensor&, const Tensor&)>
KernelPtr prepare_pairs(const PrepareContext& p) {
  return make_kernel(
      [](RunContext& c) { (lookup_table_from(c.input(0)).*change)(c.input(1), c.input(2)); },
      cost_of(p, kInsertNs));
}

KernelPtr prepare_remove(const PrepareContext& p) {
  return make_kernel([](RunContext& c) { lookup_table_from(c.input(0)).remove(c.input(1)); },
                     cost_of(p, kInsertNs));
}

KernelPtr prepare_text_file(const PrepareContext& p) {
  const OpInstance& op = p.op();
  const LookupColumns columns{op.get_int("key_index"), op.get_int("value_index"),
                              op.get_int("vocab_size"), op.get_string("delimiter")[0]};
  return make_kernel(
      [columns, roots = file_roots_of(p)](RunContext& c) {
        LookupTable& table = lookup_table_from(c.input(0));
        table.check_static();
        const FileScope scope(roots);
        const std::string path(c.input(1).data<StringElement>()->view());
        const LookupPairs pairs =
            read_lookup_file(path, columns, table.spec().key, table.spec().value, [&] { poll(c); });
        table.initialize(pairs.keys, pairs.values);
      },
      kFileCostNs);
}

}  // namespace

void register_lookup_kernels(KernelRegistry& r) {
  r.add("HashTableV2", {}, prepare_table<true>);
  r.add("MutableHashTableV2", {}, prepare_table<false>);
  r.add("MutableHashTableOfTensorsV2", {}, prepare_table<false>);
  r.add("LookupTableFindV2", {}, prepare_find);
  r.add("LookupTableSizeV2", {}, prepare_size);
  r.add("LookupTableExportV2", {}, prepare_export);
  r.add("LookupTableInsertV2", {}, prepare_pairs<&LookupTable::insert>);
  r.add("LookupTableImportV2", {}, prepare_pairs<&LookupTable::replace>);
  r.add("LookupTableRemoveV2", {}, prepare_remove);
  r.add("InitializeTableV2", {}, prepare_pairs<&LookupTable::initialize>);
  r.add("InitializeTableFromTextFileV2", {}, prepare_text_file);
}

}  // namespace treenail::host
