// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/map_staging.cc.
#include <algorithm>
#include <limits>

#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/staging_map.h"
#include "kernels/host/state/async_lambda.h"
#include "kernels/host/state/staging_names.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;
using Types = std::vector<DType>;

// types: of whole tuples.
template <bool ordered>
IntrusivePtr<StagingMap> map_of(const PrepareContext& p, const Types& types) {
  return named_staging_map(p.resources(), p.op().get_string("container"), staging_name(p),
                           {staging_limits(p.op()), ordered}, types);
}

StagingMap::Part part_of(const Tensor& indices, const Types& types) {
  const std::span<const int32_t> places = indices.values<int32_t>();
  return {{places.begin(), places.end()}, types};
}

template <bool ordered>
KernelPtr prepare_put(const PrepareContext& p) {
  return make_async_kernel(
      [map = map_of<ordered>(p, p.op().get<Types>("dtypes")), n = p.num_inputs(),
       types = p.op().get<Types>("fake_dtypes")](RunContext& c, const Done& done) {
        map->put(c, done, *c.input(0).data<int64_t>(), part_of(c.input(1), types),
                 staged_inputs(c, 2, n));
      });
}

using Take = void (StagingMap::*)(const RunContext&, const Done&, int64_t, StagingMap::Part);

template <bool ordered, Take take>
KernelPtr prepare_take(const PrepareContext& p) {
  return make_async_kernel([map = map_of<ordered>(p, {}), types = p.op().get<Types>("dtypes")](
                               RunContext& c, const Done& done) {
    ((*map).*take)(c, done, *c.input(0).data<int64_t>(), part_of(c.input(1), types));
  });
}

template <bool ordered>
KernelPtr prepare_take_any(const PrepareContext& p) {
  return make_async_kernel(
      [map = map_of<ordered>(p, {}), types = p.op().get<Types>("dtypes")](
          RunContext& c, const Done& done) { map->get_any(c, done, part_of(c.input(0), types)); });
}

template <bool ordered, int64_t (StagingMap::*size)() const>
KernelPtr prepare_size(const PrepareContext& p) {
  return make_kernel(
      [map = map_of<ordered>(p, p.op().get<Types>("dtypes"))](RunContext& c) {
        *c.output(0).data<int32_t>() = static_cast<int32_t>(
            std::min<int64_t>(((*map).*size)(), std::numeric_limits<int32_t>::max()));
      },
      50);
}

template <bool ordered>
KernelPtr prepare_clear(const PrepareContext& p) {
  return make_kernel(
      [map = map_of<ordered>(p, p.op().get<Types>("dtypes"))](RunContext&) { map->clear(); }, 500);
}

template <bool ordered>
void register_map(KernelRegistry& r, const std::string& prefix) {
  r.add(prefix + "Stage", {}, prepare_put<ordered>);
  r.add(prefix + "Unstage", {}, prepare_take<ordered, &StagingMap::get>);
  r.add(prefix + "Peek", {}, prepare_take<ordered, &StagingMap::peek>);
  r.add(prefix + "UnstageNoKey", {}, prepare_take_any<ordered>);
  r.add(prefix + "Size", {}, prepare_size<ordered, &StagingMap::size>);
  r.add(prefix + "IncompleteSize", {}, prepare_size<ordered, &StagingMap::incomplete_size>);
  r.add(prefix + "Clear", {}, prepare_clear<ordered>);
}

}  // namespace

void register_map_staging_kernels(KernelRegistry& r) {
  register_map<false>(r, "Map");
  register_map<true>(r, "OrderedMap");
}

}  // namespace treenail::host
