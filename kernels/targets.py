# SPDX-License-Identifier: Apache-2.0
"""How ops are computed: host kernels in the core, CPU kernels once per ISA level, adapters.

Kernels see op, tensor, base, io and the kernel-side headers of runtime, never a node or a graph.
"""

# Eigen's templates, compiled once, at the baseline.
Component(name="eigen_decompositions", sources=["kernels/eigen/*.cc"],
          headers=["kernels/eigen/*.h"], needs=["adapter_interfaces"], external=["eigen"],
          debug_variables=False)
# What element-wise ops are, for vectors of any level and for one number on a GPU.
Component(name="elementwise", headers=["kernels/elementwise/*.h", "kernels/cpu/simd/vec*.h"])
Component(name="host_kernels", sources=["kernels/host/**/*.cc"], headers=["kernels/host/**/*.h"],
          needs=["elementwise", "kernel_api", "collectives", "op", "tensor", "device", "io", "base",
                 "adapter_interfaces", "eigen_decompositions"],
          debug_variables=False)

Component(name="cpu_kernels", sources=["kernels/cpu/**/*.cc"], headers=["kernels/cpu/**/*.h"],
          needs=["elementwise", "host_kernels", "kernel_api", "op", "tensor", "device", "base",
                 "adapter_interfaces", "eigen_decompositions"],
          debug_variables=False)
Registration(output="cpu_kernels_table.cc", sources="kernels/cpu/**/*.cc",
             function="register_*_kernels", namespace="treenail::cpu",
             table="treenail::cpu::register_all", argument="treenail::KernelRegistry",
             include="framework/runtime/kernel/kernel_registry.h")
KernelLibrary(name="kernels-cpu", component="cpu_kernels", export="treenail_kernel_library",
              generated=["cpu_kernels_table.cc"], compact=["kernels/cpu/linalg/*.cc"],
              precompiled=["framework/runtime/kernel/kernel_registry.h",
                           "kernels/cpu/simd/vec_fma.h"])

# What an adapter and its one user agree on: C tables only, in headers named *_api.h.
Component(name="adapter_interfaces", headers=["kernels/adapters/*/*_api.h"], needs=["base"])
Component(name="adapter_openmp", headers=["kernels/adapters/openmp/*.h"])
Component(name="adapter_blas", sources=["kernels/adapters/blas/*.cc"],
          headers=["kernels/adapters/blas/*.h"], needs=["adapter_interfaces", "base"],
          external=["blas"])
Component(name="adapter_lapack", sources=["kernels/adapters/lapack/*.cc"],
          headers=["kernels/adapters/lapack/*.h"], needs=["adapter_interfaces", "adapter_openmp",
          "base"],
          external=["lapack"])
Component(name="adapter_onednn", sources=["kernels/adapters/onednn/*.cc"],
          headers=["kernels/adapters/onednn/*.h"], needs=["adapter_interfaces", "adapter_openmp",
          "base"],
          external=["onednn"])
Component(name="adapter_hdf5", sources=["kernels/adapters/hdf5/*.cc"],
          headers=["kernels/adapters/hdf5/*.h"],
          needs=["adapter_interfaces", "io", "tensor", "base"], external=["hdf5"])
Component(name="adapter_re2", sources=["kernels/adapters/re2/*.cc"],
          headers=["kernels/adapters/re2/*.h"], needs=["adapter_interfaces", "base"],
          external=["re2"])
Component(name="adapter_jpeg", sources=["kernels/adapters/jpeg/*.cc"],
          headers=["kernels/adapters/jpeg/*.h"], needs=["io", "base"],
          external=["jpeg"])
Component(name="adapter_png", sources=["kernels/adapters/png/*.cc"],
          headers=["kernels/adapters/png/*.h"], needs=["io", "base"],
          external=["png"])
Component(name="adapter_grpc", sources=["kernels/adapters/grpc/*.cc"],
          headers=["kernels/adapters/grpc/*.h"], needs=["rpc_interface", "base"],
          external=["grpc"])
Component(name="adapter_mpi", headers=["kernels/adapters/mpi/*.h"],
          needs=["collectives", "base"], external=["mpi-openmpi"])
Component(name="adapter_openmpi", sources=["kernels/adapters/mpi-openmpi/*.cc"],
          needs=["adapter_mpi", "collectives", "base"], external=["mpi-openmpi"])
Component(name="adapter_mpich", sources=["kernels/adapters/mpi-mpich/*.cc"],
          needs=["adapter_mpi", "collectives", "base"], external=["mpi-mpich"])
Adapter(name="blas", component="adapter_blas", feature="blas", export="treenail_adapter")
Adapter(name="lapack", component="adapter_lapack", feature="lapack", export="treenail_adapter")
Adapter(name="onednn", component="adapter_onednn", feature="onednn", export="treenail_adapter")
Adapter(name="hdf5", component="adapter_hdf5", feature="hdf5", export="treenail_adapter")
Adapter(name="jpeg", component="adapter_jpeg", feature="jpeg", export="treenail_adapter")
Adapter(name="grpc", component="adapter_grpc", feature="grpc", export="treenail_adapter",
        part="grpc")
Adapter(name="png", component="adapter_png", feature="png", export="treenail_adapter")
Adapter(name="re2", component="adapter_re2", feature="re2", export="treenail_adapter")
Adapter(name="mpi-openmpi", component="adapter_openmpi", feature="mpi-openmpi",
        export="treenail_adapter", part="openmpi")
Adapter(name="mpi-mpich", component="adapter_mpich", feature="mpi-mpich",
        export="treenail_adapter", part="mpich")

# The plugin of GPUs. Headers of device code lie beside it, and both sides read them; those of the
# host, which nvcc could not read, lie in driver/ or are called *_host.h.
Component(name="cuda_entries", headers=["kernels/cuda/driver/*.inc"])
Component(name="cuda_host", headers=["kernels/cuda/driver/*.h", "kernels/cuda/**/*_host.h"],
          needs=["cuda_entries", "cuda_kernels", "elementwise", "host_kernels", "kernel_api", "op",
                 "tensor", "device", "base"],
          external=["cuda"])
Component(name="cuda_kernels", sources=["kernels/cuda/**/*.cu"], headers=["kernels/cuda/**/*.h"],
          needs=["elementwise", "base", "cuda_sim_language"])
Component(name="cuda_plugin", sources=["kernels/cuda/**/*.cc"],
          needs=["cuda_host", "cuda_entries", "cuda_kernels", "elementwise", "host_kernels",
                 "kernel_api", "op", "tensor", "device", "base"],
          external=["cuda"], debug_variables=False)
Registration(output="cuda_kernels_table.cc", sources="kernels/cuda/**/*.cc",
             function="register_*_kernels", namespace="treenail::cuda",
             table="treenail::cuda::register_all", argument="treenail::cuda::KernelRegistrations",
             include="kernels/cuda/driver/registrations.h")
DeviceLibrary(name="cuda", component="cuda_plugin", device_code="cuda_kernels",
              images="treenail_cuda_images", feature="cuda", part="cuda",
              generated=["cuda_kernels_table.cc"])
