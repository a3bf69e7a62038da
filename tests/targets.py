# SPDX-License-Identifier: Apache-2.0
"""Tests, mirroring the tree: a GoogleTest program per folder, and the folders that pytest runs.

A test may include what its layer may include, and its layer. None of this is built by default.
Whoever stands on "op" needs "ops" as well: the registry asks for the ops there are; and whoever
stands on "runtime" needs "host_kernels" for the like reason.
"""

Component(name="test_support",
          headers=["tests/support/child.h", "tests/support/expect_error.h",
                   "tests/support/free_port.h", "tests/support/plugin_path.h",
                   "tests/support/sanitizers.h", "tests/support/temporary_directory.h"],
          needs=["base"], external=["gtest"])
Component(name="device_support", headers=["tests/support/idle_device.h"],
          needs=["device", "base"])
Component(name="io_support", headers=["tests/support/needs_hdf5.h"], needs=["io", "base"],
          external=["gtest"])
Component(name="graph_support", headers=["tests/support/graph_*.h"],
          needs=["graph", "tensor", "base"], external=["gtest"])
Component(name="base_test", sources=["tests/base/*.cc"], headers=["tests/base/*.h"],
          needs=["test_support", "base"], external=["gtest"])
Component(name="adapter_of_another_version", sources=["tests/base/adapter/another_version.cc"],
          needs=["base"])
Component(name="adapter_of_this_version", sources=["tests/base/adapter/this_version.cc"],
          needs=["base"])
Component(name="device_test", sources=["tests/device/*.cc"],
          needs=["test_support", "device_support", "device", "base"], external=["gtest"])
Component(name="tensor_test", sources=["tests/tensor/*.cc"], headers=["tests/tensor/*.h"],
          needs=["test_support", "tensor", "device", "base"], external=["gtest"])
Component(name="op_test", sources=["tests/op/*.cc"], headers=["tests/op/*.h"],
          needs=["test_support", "ops", "op", "tensor", "base"], external=["gtest"])
Component(name="ops_test", sources=["tests/ops/*.cc"], headers=["tests/ops/*.h"],
          needs=["ops", "graph", "op", "tensor", "base"], external=["gtest"])
Component(name="graph_test", sources=["tests/graph/**/*.cc"], headers=["tests/graph/**/*.h"],
          needs=["test_support", "graph_support", "graph", "ops", "op", "tensor", "base"],
          external=["gtest"])
Component(name="placement_test", sources=["tests/placement/*.cc"], headers=["tests/placement/*.h"],
          needs=["test_support", "graph_support", "device_support", "placement", "graph", "ops",
                 "op", "tensor", "device", "base"],
          external=["gtest"])
Component(name="runtime_test", sources=["tests/runtime/*/*.cc"], headers=["tests/runtime/*/*.h"],
          needs=["test_support", "graph_support", "simulated_device", "runtime", "kernel_api",
                 "placement", "graph", "ops", "host_kernels", "op", "tensor", "device", "base"],
          external=["gtest"])
Component(name="kernels_of_another_build",
          sources=["tests/runtime/kernel/libraries/another_build.cc"],
          needs=["kernel_api", "op", "tensor", "base"])
Component(name="kernels_of_another_level",
          sources=["tests/runtime/kernel/libraries/another_level.cc"],
          needs=["kernel_api", "op", "tensor", "base"])
Component(name="simulated_memory",
          sources=["tests/simulated/memory.cc", "tests/simulated/queue.cc",
                   "tests/simulated/violation.cc"],
          headers=["tests/simulated/memory.h", "tests/simulated/queue.h",
                   "tests/simulated/violation.h"],
          needs=["test_support", "device", "base"])
Component(name="simulated_device",
          sources=["tests/simulated/device.cc", "tests/simulated/execution.cc",
                   "tests/simulated/kernels.cc", "tests/simulated/library.cc",
                   "tests/simulated/misuse.cc"],
          headers=["tests/simulated/device.h", "tests/simulated/execution.h",
                   "tests/simulated/exports.h", "tests/simulated/kernels.h",
                   "tests/simulated/misuse.h"],
          needs=["simulated_memory", "kernel_api", "op", "tensor", "device", "base"])
# A CUDA without a GPU: the libraries that the plugin opens, and its kernels compiled for the host.
Component(name="cuda_sim_language",
          headers=["tests/cuda_sim/language.h", "tests/cuda_sim/exports.h"])
Component(name="cuda_sim_driver", sources=["tests/cuda_sim/driver/*.cc"],
          headers=["tests/cuda_sim/driver/*.h"],
          needs=["cuda_sim_language", "cuda_entries", "simulated_memory", "test_support", "device",
                 "base"],
          external=["cuda"])
Component(name="cuda_sim_kernels", sources=["tests/cuda_sim/kernels/*.cu"],
          needs=["cuda_kernels", "cuda_sim_language"])
Component(name="cuda_sim_link", sources=["tests/cuda_sim/link/*.cc"],
          headers=["tests/cuda_sim/link/*.h"], needs=["cuda_sim_language"], external=["cuda"])
Component(name="cuda_sim_blas", sources=["tests/cuda_sim/blas/*.cc"],
          headers=["tests/cuda_sim/blas/*.h"],
          needs=["cuda_sim_link", "cuda_sim_language", "cuda_entries", "test_support", "base"],
          external=["cuda"])
Component(name="cuda_sim_fft", sources=["tests/cuda_sim/fft/*.cc"],
          headers=["tests/cuda_sim/fft/*.h"], needs=["cuda_sim_link", "cuda_sim_language"],
          external=["cuda"])
Component(name="cuda_sim_dnn", sources=["tests/cuda_sim/dnn/*.cc"],
          headers=["tests/cuda_sim/dnn/*.h"],
          needs=["cuda_sim_link", "cuda_sim_language", "cuda_entries", "test_support", "base"],
          external=["cuda"])
Component(name="cuda_sim_test", sources=["tests/cuda_sim/*.cc"], headers=["tests/cuda_sim/*.h"],
          needs=["cuda_sim_language", "cuda_entries", "test_support", "base"],
          external=["cuda", "gtest"], features=["cuda"])
Component(name="collectives_support", headers=["tests/collectives/*.h"],
          needs=["test_support", "collectives", "tensor", "device", "base"], external=["gtest"])
Component(name="collectives_test", sources=["tests/collectives/*.cc"],
          needs=["collectives_support", "test_support", "collectives", "tensor", "device", "base"],
          external=["gtest"])
Component(name="eager_test", sources=["tests/eager/*.cc"], headers=["tests/eager/*.h"],
          needs=["test_support", "device_support", "eager", "runtime", "kernel_api", "graph",
                 "ops", "host_kernels", "op", "tensor", "device", "base"],
          external=["gtest"])
Component(name="memory_transport", sources=["tests/transport/*.cc"],
          headers=["tests/transport/*.h"], needs=["rpc_interface", "base"])
Component(name="distributed_test", sources=["tests/distributed/*.cc"],
          headers=["tests/distributed/*.h"],
          needs=["test_support", "graph_support", "memory_transport", "collectives_support",
                 "capi", "distributed", "rpc_interface", "collectives", "eager", "runtime",
                 "kernel_api", "placement", "graph", "ops", "host_kernels", "cpu_kernels", "op",
                 "tensor", "device", "io", "base"],
          external=["gtest"])
Component(name="io_test", sources=["tests/io/*.cc"], headers=["tests/io/*.h"],
          needs=["test_support", "io_support", "adapter_interfaces", "io", "tensor", "device",
                 "base"],
          external=["gtest"])
Component(name="capi_test", sources=["tests/capi/*.cc", "tests/capi/*.c"],
          headers=["tests/capi/*.h"],
          needs=["test_support", "capi", "ops", "host_kernels", "base"],
          external=["gtest"])
Component(name="example_plugin", sources=["tests/capi/plugin/example.c"], needs=["capi"])
Component(name="features_plugin", sources=["tests/capi/plugin/features.c"], needs=["capi"])
Component(name="clash_plugin", sources=["tests/capi/plugin/clash.c"], needs=["capi"])
Component(name="broken_plugin", sources=["tests/capi/plugin/broken.c"], needs=["capi"])
Component(name="layer_plugin",
          sources=["tests/capi/plugin/layer.cc", "tests/capi/plugin/layer_waiting.cc"],
          needs=["capi"])
Component(name="layer_broken_plugin", sources=["tests/capi/plugin/layer_broken.cc"],
          needs=["capi"])
Component(name="hostile_plugin", sources=["tests/capi/plugin/hostile.c"], needs=["capi"])
Component(name="kernels_test", sources=["tests/kernels/*.cc"], headers=["tests/kernels/*.h"],
          needs=["test_support", "io_support", "elementwise", "cpu_kernels", "host_kernels",
                 "adapter_interfaces", "eager", "runtime", "kernel_api", "graph", "op", "tensor",
                 "io", "base"],
          external=["gtest"])

Component(name="fuzz_test", sources=["tests/fuzz/*.cc"], headers=["tests/fuzz/*.h"],
          needs=["graph_support", "placement", "graph", "ops", "op", "io", "tensor", "device",
                 "base"],
          external=["gtest"])
Component(name="steady_test", sources=["tests/steady/*.cc"], headers=["tests/steady/*.h"],
          needs=["graph_support", "runtime", "graph", "ops", "host_kernels", "op", "tensor",
                 "base"],
          external=["gtest"])
Component(name="allocation_counter", sources=["tests/steady/allocation_counter.c"])

Excluded(files=["tests/abi/*/plugin.c"],
         reason="compiled by tests/python/test_abi.py, with the headers of its ABI alone")

Plugin(name="example", component="example_plugin", install=False)
Plugin(name="features", component="features_plugin", install=False)
Plugin(name="clash", component="clash_plugin", install=False)
Plugin(name="broken", component="broken_plugin", install=False)
Plugin(name="layer", component="layer_plugin", install=False)
Plugin(name="layer-broken", component="layer_broken_plugin", install=False)
Plugin(name="hostile", component="hostile_plugin", install=False)
Plugin(name="of-another-version", component="adapter_of_another_version",
       export="treenail_adapter", install=False)
Plugin(name="of-this-version", component="adapter_of_this_version", export="treenail_adapter",
       install=False)
Plugin(name="of-another-build", component="kernels_of_another_build",
       export="treenail_kernel_library", install=False)
Plugin(name="of-another-level", component="kernels_of_another_level",
       export="treenail_kernel_library", install=False)
Plugin(name="simulated-device", component="simulated_device", components=["simulated_memory"],
       export="", install=False, own=True)
SimulatedLibrary(folder="cuda_sim", soname="libcuda.so.1", feature="cuda", exports=["cu*"],
                 components=["cuda_sim_driver", "simulated_memory", "base", "cuda_sim_kernels",
                             "cuda_kernels"])
SimulatedLibrary(folder="cuda_sim", soname="libcublasLt.so.{cublasLt}", feature="cuda",
                 exports=["cublas*"], components=["cuda_sim_blas", "cuda_sim_link", "base"],
                 libraries=["libcuda.so.1"], header_of="cublasLt")
SimulatedLibrary(folder="cuda_sim", soname="libcufft.so.{cufft}", feature="cuda",
                 exports=["cufft*"], components=["cuda_sim_fft", "cuda_sim_link"],
                 libraries=["libcuda.so.1"], header_of="cufft")
SimulatedLibrary(folder="cuda_sim", soname="libcudnn.so.{cudnn}", feature="cuda",
                 exports=["cudnn*"], components=["cuda_sim_dnn", "cuda_sim_link", "base"],
                 libraries=["libcuda.so.1"], header_of="cudnn")
Plugin(name="memory-transport", component="memory_transport", export="treenail_adapter",
       install=False)
Plugin(name="allocation-counter", component="allocation_counter", export="", install=False)

TestProgram(name="base", component="base_test", checks=["address-undefined", "thread"])
TestProgram(name="device", component="device_test")
TestProgram(name="tensor", component="tensor_test")
TestProgram(name="op", component="op_test")
TestProgram(name="ops", component="ops_test")
TestProgram(name="graph", component="graph_test")
TestProgram(name="placement", component="placement_test")
TestProgram(name="collectives", component="collectives_test",
            checks=["address-undefined", "thread"])
TestProgram(name="runtime", component="runtime_test", checks=["address-undefined", "thread"])
TestProgram(name="eager", component="eager_test")
TestProgram(name="distributed", component="distributed_test", adapters=["grpc"],
            checks=["address-undefined", "thread"])
TestProgram(name="io", component="io_test")
TestProgram(name="capi", component="capi_test")
TestProgram(name="kernels", component="kernels_test")
TestProgram(name="fuzz", component="fuzz_test", adapters=["hdf5", "jpeg", "png"])
TestProgram(name="steady", component="steady_test", checks=[])
TestProgram(name="cuda_sim", component="cuda_sim_test",
            checks=["address-undefined", "thread"])

Script(name="check-tensorboard", present="tests/tensorboard/check.py",
       arguments=["--build", "{build}"],
       help="event files as TensorBoard (from PyPI, in a throw-away environment) reads them")

Script(name="test-cuda-sim", present="tests/cuda_sim/check.py", arguments=["--build", "{build}"],
       needs=["tests"],
       help="the tests of the CUDA plugin on a simulated CUDA, under warps of 32 and 64 threads")
Script(name="test-gpu", present="tests/cuda_sim/check.py",
       arguments=["--build", "{build}", "--gpu"], needs=["all"],
       help="the tests of the CUDA plugin on the GPUs of this machine")

PythonTests(folders=["tests/gen", "tests/python", "tests/onnx", "tests/opinfo", "tests/bench"])
PythonTests(folders=["tests/programs"])
PythonTests(folders=["tests/cases"], shards=4)
PythonTests(folders=["tests/cuda_sim"], shards=2)
PythonTests(folders=["tests/fuzz/graphs", "tests/fuzz/signatures"])

Script(name="onnx-scoreboard", present="tests/onnx/scoreboard.py", needs=["all"],
       help="run ONNX's own test data and hold the results to tests/onnx/SCOREBOARD.txt")
Script(name="opinfo-scoreboard", present="tests/opinfo/opinfo.py", arguments=["--build", "{build}"],
       needs=["all"], help="PyTorch's own samples: what passed must still pass (tests/opinfo)")
Script(name="opinfo-scoreboard-update", present="tests/opinfo/opinfo.py",
       arguments=["--build", "{build}", "--update"], needs=["all"],
       help="the same, and write the scoreboard")
Script(name="random123-scoreboard", present="tests/random123/scoreboard.py",
       arguments=["--build", "{build}"], needs=["tests/base_test"],
       help="Random123's known answers for Philox: what passed must still pass")
