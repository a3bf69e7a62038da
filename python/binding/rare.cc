// SPDX-License-Identifier: Apache-2.0
// What is called rarely: facts about the build, the machine and the op registry. The one file that
// uses pybind11.
#include <pybind11/pybind11.h>

#include "build_info.h"
#include "framework/base/nearest_name.h"
#include "framework/base/thread_pool.h"
#include "framework/capi/load_plugin.h"
#include "framework/device/allocator.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/device_library.h"
#include "framework/runtime/kernel/kernel_library.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/process_info.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/module.h"
#include "python/binding/op_function.h"

namespace py = pybind11;

namespace treenail::python {
namespace {

py::list words(const std::vector<std::string>& texts) {
  py::list list;
  // A path may hold any byte: what is no UTF-8 becomes what os.fsdecode() makes of it.
  for (const std::string& text : texts) {
    list.append(py::reinterpret_steal<py::object>(
        PyUnicode_DecodeFSDefaultAndSize(text.data(), static_cast<Py_ssize_t>(text.size()))));
  }
  return list;
}

py::dict describe_adapters(const ProcessInfo& info) {
  py::dict adapters;
  for (const AdapterInfo& adapter : info.adapters) {
    py::dict d;
    d["loaded"] = adapter.loaded;
    d["problem"] = adapter.problem;
    d["libraries"] = words(adapter.libraries);
    d["indirect"] = words(adapter.indirect);
    adapters[py::str(adapter.name)] = d;
  }
  return adapters;
}

py::dict build_info() {
  const ProcessInfo found = process_info(OpenAdapters::kNo);
  py::dict info;
  info["version"] = found.version;
  info["build_id"] = found.build_id;
  info["build_type"] = found.build_type;
  info["machine"] = found.machine;
  info["isa_baseline"] = found.isa_baseline;
  info["kernel_levels"] = words(found.kernel_levels);
  info["features"] = words(found.features);
  info["installed_kernel_levels"] = words(found.installed_kernel_levels);
  info["best_level"] = found.best_level;
  info["kernel_level"] = found.kernel_level;
  info["kernel_problem"] = found.kernel_problem;
  info["cpu_features"] = words(found.cpu_features);
  info["adapters"] = describe_adapters(found);
  info["devices"] = words(found.devices);
  info["num_threads"] = found.num_threads;
  info["threads_origin"] = found.threads_origin;
  info["memory_limit"] = found.memory_limit;
  info["memory_problem"] = found.memory_problem;
  return info;
}

py::dict describe_arg(const OpDef& def, const ArgDef& arg) {
  py::dict d;
  const auto attr_name = [&](int index) -> py::object {
    return index < 0 ? py::object(py::none()) : py::str(def.attrs[static_cast<size_t>(index)].name);
  };
  d["name"] = arg.name;
  d["dtype"] = arg.dtype == DType::kInvalid ? py::object(py::none())
                                            : py::str(std::string(dtype_name(arg.dtype)));
  d["type_attr"] = attr_name(arg.type_attr);
  d["type_list_attr"] = attr_name(arg.type_list_attr);
  d["number_attr"] = attr_name(arg.number_attr);
  d["is_list"] = arg.is_list();
  d["host"] = arg.host;
  return d;
}

py::dict describe_attr(const AttrDef& attr) {
  py::dict d;
  d["name"] = attr.name;
  d["kind"] = std::string(attr_kind_name(attr.kind));
  d["has_default"] = attr.has_default;
  d["default"] = attr.has_default ? py::str(to_text(attr.default_value)) : py::object(py::none());
  py::list types;
  for (const DType dtype : attr.allowed_types) types.append(std::string(dtype_name(dtype)));
  d["allowed_types"] = types;
  py::list strings;
  for (const std::string& text : attr.allowed_strings) strings.append(text);
  d["allowed_strings"] = strings;
  d["minimum"] = attr.minimum == std::numeric_limits<int64_t>::min()
                     ? py::object(py::none())
                     : py::object(py::int_(attr.minimum));
  return d;
}

py::dict describe_op(const OpDef& def) {
  py::dict d;
  d["name"] = def.name;
  d["python_name"] = snake_case(def.name);
  d["family"] = def.family;
  d["doc"] = def.doc;
  py::list inputs, outputs, attrs, kernels;
  for (const ArgDef& arg : def.inputs) inputs.append(describe_arg(def, arg));
  for (const ArgDef& arg : def.outputs) outputs.append(describe_arg(def, arg));
  for (const AttrDef& attr : def.attrs) attrs.append(describe_attr(attr));
  for (const std::string& text : KernelRegistry::instance().describe(def.name))
    kernels.append(text);
  d["inputs"] = inputs;
  d["outputs"] = outputs;
  d["attrs"] = attrs;
  d["kernels"] = kernels;
  d["differentiable"] = def.gradient_fn != nullptr;
  d["non_differentiable"] = def.non_differentiable;
  d["stateful"] = def.stateful;
  d["elementwise"] = def.elementwise;
  d["data_dependent_shape"] = def.data_dependent_shape;
  d["any_device"] = def.any_device;
  d["computes_sizes"] = def.computes_sizes;
  d["host_access"] = std::string(to_text(def.host_access));
  d["view"] = def.view_of >= 0;
  return d;
}

py::list describe_ops() {
  py::list list;
  for (const OpDef* def : OpRegistry::instance().all()) list.append(describe_op(*def));
  return list;
}

py::dict memory_info() {
  const AllocatorStats stats = Allocator::host().stats();
  py::dict d;
  d["bytes_in_use"] = stats.bytes_in_use;
  d["bytes_cached"] = stats.bytes_cached;
  d["peak_bytes"] = stats.peak_bytes;
  d["system_calls"] = stats.system_calls;
  d["limit"] = Allocator::host().limit();
  return d;
}

}  // namespace

void add_rare(PyObject* module) {
  static bool translator = false;
  if (!translator) {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): the type is pybind11's
    py::register_exception_translator([](std::exception_ptr pointer) {
      try {
        if (pointer) std::rethrow_exception(pointer);
      } catch (const Error&) {
        translate_exception();
      } catch (const PythonError&) {
        translate_exception();
      }
    });
    translator = true;
  }
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.attr("__version__") = treenail::build_info::kVersion;
  // As in build_info(), for whoever must not open devices, which that lists.
  m.attr("__features__") = py::str(treenail::build_info::kFeatures).attr("split")();
  m.def(
      "build_info", build_info,
      "What this build is, and what of it this process uses: version, ISA levels and CPU features, "
      "adapters with the files of external libraries that they use (once they are loaded, on "
      "first use), devices, threads and who decided their number, and the memory limit in bytes. "
      "Why something cannot be used stands under the keys ending in _problem. The program "
      "treenail-info prints the same, with every adapter opened.");
  m.def("describe_ops", describe_ops, "All registered ops, as dicts.");
  m.def("memory_info", memory_info,
        "Bytes in use, cached, at peak, and the limit, of host memory.");
  m.def(
      "release_cached_memory", [] { Allocator::host().release_cache(); },
      "Gives cached memory back to the system.");
  m.def(
      "set_num_threads", [](int n) { ThreadPool::instance().set_num_threads(n); }, py::arg("n"),
      "Threads that work on one operation. Raises InvalidArgumentError unless 1 <= n <= 1024.");
  m.def("num_threads", [] { return ThreadPool::instance().num_threads(); });
  m.def("load_plugin", load_plugin, py::arg("path"), "Loads a library with ops and kernels.");
  m.def("load_device_library", load_device_library, py::arg("path"),
        "Loads a library with a kind of device and its kernels.");
  m.def("load_environment_plugins", load_environment_plugins,
        "Loads what TREENAIL_PLUGIN_PATH names, once.");
  m.def("check_environment", check_environment,
        "Raises InvalidArgumentError for a variable of the environment that cannot be used.");
  m.def(
      "nearest_name",
      [](const std::string& name, const py::list& known) {
        std::vector<std::string_view> candidates;
        for (const py::handle text : known) candidates.push_back(text_of(text.ptr(), "a name"));
        return nearest_name(name, candidates);
      },
      py::arg("name"), py::arg("candidates"),
      "The candidate that a misspelled name is nearest to; '' when none is near.");
  m.def("kernel_level", kernel_level_in_use, "The ISA level whose kernels are in use.");
}

}  // namespace treenail::python
