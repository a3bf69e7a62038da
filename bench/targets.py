# SPDX-License-Identifier: Apache-2.0
"""Benchmarks: `ninja bench`. Nothing here is built by default."""

Component(name="executor_bench", sources=["bench/executor/*.cc"],
          needs=["graph_support", "eager", "runtime", "kernel_api", "graph", "op", "tensor",
                 "base"],
          external=["benchmark"])
BenchProgram(name="executor", component="executor_bench")
Component(name="kernels_bench", sources=["bench/kernels/*.cc"], headers=["bench/kernels/*.h"],
          needs=["graph_support", "eager", "runtime", "kernel_api", "graph", "op", "tensor",
                 "base"],
          external=["benchmark"])
BenchProgram(name="kernels", component="kernels_bench")
Component(name="collectives_bench", sources=["bench/collectives/*.cc"],
          needs=["collectives", "tensor", "device", "base"])
BenchProgram(name="collectives", component="collectives_bench")
Excluded(files=["bench/workers/all_reduce_mpi.c"],
         reason="compiled by bench/figure_collectives.py, with mpicc, as the peer over MPI")
Excluded(files=["bench/workers/move_mpi.c"],
         reason="compiled by bench/figure_mpi_values.py, with mpicc, as what MPI itself takes")
Excluded(files=["bench/workers/rpc_raw.cc"],
         reason="compiled by bench/figure_clusters.py, as what gRPC itself takes")
Excluded(files=["bench/gpu/direct.cu"],
         reason="compiled where there is a GPU, as what its libraries give to who calls them")
Script(name="bench", present="bench/run.py", arguments=["--build", "{build}"],
       needs=["all", "bench-programs"], help="the promised figures, side by side with peers")
