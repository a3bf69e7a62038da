# SPDX-License-Identifier: Apache-2.0
"""Static shapes of tn.distributed, in a group of one process."""

import treenail as tn
from static_shapes import excuse, row, rows

tn.distributed.init("none")

rows("distributed.all_reduce distributed.broadcast distributed.all_to_all",
     lambda f, p: f(p.f(None, 3)), [None, 3])
row("distributed.all_reduce", lambda p: tn.distributed.all_reduce([p.f(2), p.f()]), ([2], []))
rows("distributed.all_gather distributed.reduce_scatter", lambda f, p: f(p.f(4, 3)), [None, 3])
excuse("distributed.init distributed.shutdown distributed.is_initialized distributed.rank "
       "distributed.size distributed.local_rank distributed.local_size distributed.transport",
       "of the process, not of a graph")
excuse("distributed.barrier distributed.broadcast_variables", "gives an operation")
