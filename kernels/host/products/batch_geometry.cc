// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/products/batch_geometry.h"

#include <algorithm>

namespace treenail::host {

BatchGeometry BatchGeometry::of(const PrepareContext& c) {
  const Shape &a = c.input_shape(0), &b = c.input_shape(1), &out = c.output_shape(0);
  BatchGeometry g;
  g.adjoint = c.op().def().attr_index("adj_x") >= 0;
  g.trans_a = c.op().get_bool(g.adjoint ? "adj_x" : "transpose_a");
  g.trans_b = c.op().get_bool(g.adjoint ? "adj_y" : "transpose_b");
  g.m = out.dim(out.rank() - 2);
  g.n = out.dim(out.rank() - 1);
  g.k = a.dim(a.rank() - (g.trans_a ? 2 : 1));
  g.axes.resize(static_cast<size_t>(out.rank() - 2));
  int64_t step_a = 1, step_b = 1;
  for (int i = out.rank() - 2; i-- > 0;) {
    g.batch *= out.dim(i);
    const int ia = i - (out.rank() - a.rank()), ib = i - (out.rank() - b.rank());
    const int64_t da = ia >= 0 ? a.dim(ia) : 1, db = ib >= 0 ? b.dim(ib) : 1;
    g.axes[static_cast<size_t>(i)] = {out.dim(i), da == 1 ? 0 : step_a, db == 1 ? 0 : step_b};
    if (db != 1) g.same_b = false;
    step_a *= da;
    step_b *= db;
  }
  // Where B never changes A has the whole batch, densely: its rows follow each other.
  if (g.same_b && !g.trans_a) {
    g.m *= g.batch;
    g.batch = 1;
    g.axes = {};
  }
  return g;
}

void BatchGeometry::entries(int64_t index, int64_t& a, int64_t& b) const {
  a = b = 0;
  for (size_t i = axes.size(); i-- > 0;) {
    const int64_t at = index % axes[i].extent;
    index /= axes[i].extent;
    a += at * axes[i].step_a;
    b += at * axes[i].step_b;
  }
}

}  // namespace treenail::host
