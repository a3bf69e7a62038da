# SPDX-License-Identifier: Apache-2.0
"""The core: its layers and the library they make. The order below is the order of dependence."""

Component(name="base", sources=["framework/base/**/*.cc"], headers=["framework/base/**/*.h"])
Component(name="device", sources=["framework/device/**/*.cc"], headers=["framework/device/**/*.h"],
          needs=["base"])
Component(name="tensor", sources=["framework/tensor/**/*.cc"], headers=["framework/tensor/**/*.h"],
          needs=["device", "base"])
Component(name="op", sources=["framework/op/**/*.cc"], headers=["framework/op/**/*.h"],
          needs=["tensor", "base"])
Component(name="ops", sources=["framework/ops/**/*.cc"], headers=["framework/ops/**/*.h"],
          needs=["op", "tensor", "base"], debug_variables=False)
Component(name="graph", sources=["framework/graph/**/*.cc"], headers=["framework/graph/**/*.h"],
          needs=["op", "io", "tensor", "base"])
Component(name="placement", sources=["framework/placement/**/*.cc"],
          headers=["framework/placement/**/*.h"],
          needs=["graph", "op", "io", "tensor", "device", "base"])

# The kernel-side headers of runtime/: all that kernels may see of it.
Component(name="kernel_api",
          headers=["framework/runtime/kernel/kernel*.h", "framework/runtime/kernel/async_kernel.h",
                   "framework/runtime/kernel/device_library.h",
                   "framework/runtime/kernel/queued_kernel.h",
                   "framework/runtime/state/barrier.h",
                   "framework/runtime/state/conditional_accumulator.h",
                   "framework/runtime/state/lookup_table.h",
                   "framework/runtime/state/queue.h",
                   "framework/runtime/state/resource_handle.h",
                   "framework/runtime/state/staging_area.h",
                   "framework/runtime/state/staging_map.h",
                   "framework/runtime/state/stored_value.h",
                   "framework/runtime/state/variable.h",
                   "framework/runtime/state/waiting_resource.h"],
          needs=["op", "tensor", "device", "base"])
Component(name="runtime", sources=["framework/runtime/**/*.cc"],
          headers=["framework/runtime/**/*.h"],
          needs=["kernel_api", "placement", "graph", "op", "tensor", "device", "base"])
Component(name="eager", sources=["framework/eager/**/*.cc"], headers=["framework/eager/**/*.h"],
          needs=["runtime", "kernel_api", "placement", "graph", "op", "tensor", "device", "base"])
Component(name="io", sources=["framework/io/**/*.cc"], headers=["framework/io/**/*.h"],
          needs=["tensor", "base"])
# What a master, its workers and their clients are. What carries their messages is an adapter.
Component(name="rpc_interface", headers=["framework/distributed/rpc_api.h"], needs=["base"])
Component(name="distributed",
          sources=["framework/distributed/*.cc", "framework/distributed/planning/*.cc"],
          headers=["framework/distributed/*.h", "framework/distributed/planning/*.h"],
          needs=["rpc_interface", "collectives", "eager", "runtime", "kernel_api", "placement",
                 "graph", "op", "tensor", "device", "io", "base"])
# Groups of processes and what they compute together; kernels use it.
Component(name="collectives",
          sources=["framework/distributed/shared_memory/*.cc",
                   "framework/distributed/collectives/*.cc"],
          headers=["framework/distributed/shared_memory/*.h",
                   "framework/distributed/collectives/*.h"],
          needs=["tensor", "device", "base"])
Component(name="capi", sources=["framework/capi/**/*.cc"],
          headers=["framework/capi/**/*.h", "framework/capi/**/*.hpp"],
          needs=["distributed", "eager", "runtime", "kernel_api", "placement", "graph", "op",
                 "tensor", "io", "base"])

Registration(output="ops_table.cc", sources="framework/ops/*.cc", function="register_*_ops",
             namespace="treenail", table="treenail::register_all_ops",
             argument="treenail::OpRegistry", include="framework/op/op_registry.h",
             finish="finish")
Registration(output="host_kernels_table.cc", sources="kernels/host/**/*.cc",
             function="register_*_kernels", namespace="treenail::host",
             table="treenail::register_host_kernels", argument="treenail::KernelRegistry",
             include="framework/runtime/kernel/kernel_registry.h")

SharedLibrary(
    name="treenail",
    components=["base", "device", "tensor", "op", "ops", "graph", "placement", "runtime", "eager",
                "collectives", "distributed", "io", "capi", "host_kernels",
                "eigen_decompositions"],
    generated=["ops_table.cc", "host_kernels_table.cc"],
    precompiled=["framework/op/gradient.h", "framework/op/op_registry.h",
                 "framework/runtime/kernel/kernel_registry.h"])

Component(name="info_tool", sources=["framework/tools/info.cc"],
          needs=["runtime", "base"])
Program(name="treenail-info", component="info_tool", manual="docs/man/treenail-info.1",
        completion="framework/tools/treenail-info.bash")

Component(name="worker_tool", sources=["framework/tools/worker.cc"],
          needs=["capi", "distributed", "rpc_interface", "runtime", "graph", "op", "device", "io",
                 "tensor", "base"])
Program(name="treenail-worker", component="worker_tool", manual="docs/man/treenail-worker.1",
        completion="framework/tools/treenail-worker.bash",
        unit="framework/tools/treenail-worker@.service", feature="grpc", part="worker")

# Header only, over pybind11: functions on tensors for Python. No part of the C interface.
Component(name="extension", headers=["framework/extension/include/treenail/*.hpp"],
          external=["pybind11", "python-dev"])
Headers(root="framework/extension/include",
        files=["framework/extension/include/treenail/*.hpp"])

Headers(root="framework/capi/include",
        files=["framework/capi/include/treenail/*.h", "framework/capi/include/treenail/**/*.hpp"])
