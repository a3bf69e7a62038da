// SPDX-License-Identifier: Apache-2.0
// Servers of a cluster. By pybind11, as what is called rarely is (rare.cc).
#include <pybind11/pybind11.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "framework/base/interrupt.h"
#include "framework/distributed/client.h"
#include "framework/distributed/server.h"
#include "python/binding/gil.h"
#include "python/binding/module.h"
#include "python/binding/signals.h"
#include "python/binding/values.h"

namespace py = pybind11;

namespace treenail::python {
namespace {

std::string text(const py::handle& value, const char* what) {
  return std::string(text_of(value.ptr(), what));
}

std::vector<std::string> texts(const py::list& values, const char* what) {
  std::vector<std::string> all;
  for (const py::handle value : values) all.push_back(text(value, what));
  return all;
}

// `tasks`: (job, number, address) of each.
ServerOptions options_of(const py::list& tasks, const std::string& job, int index,
                         const std::string& listen, bool plain_text, const py::dict& device_count,
                         int64_t silence_ms, const std::string& credentials,
                         const py::list& open_to, const py::list& allow_ops,
                         const py::list& allow_paths, const py::dict& limits) {
  ServerOptions options;
  for (const py::handle each : tasks) {
    const auto task = py::reinterpret_borrow<py::tuple>(each);
    options.cluster.add({text(task[0], "a job"), task[1].cast<int>()}, text(task[2], "an address"));
  }
  options.task = {job, index};
  options.listen = listen;
  options.plain_text = plain_text;
  if (silence_ms > 0) options.patience = patience_of(silence_ms);
  for (const auto& [kind, most] : device_count)
    options.device_count[text(kind, "a kind of device")] = most.cast<int>();
  options.credentials = credentials_from(credentials);
  options.open_to = texts(open_to, "an identity");
  options.access = {texts(allow_ops, "an operation"), texts(allow_paths, "a directory")};
  for (const auto& [name, value] : limits)
    options.limits.set(text(name, "a limit"), value.cast<int64_t>());
  return options;
}

// Stopped when its last user has gone; steps that run end without the GIL.
class ServerHandle {
 public:
  explicit ServerHandle(const ServerOptions& options) {
    const GilRelease release;
    server_ = std::make_unique<Server>(options);
  }
  ~ServerHandle() { stop(); }
  ServerHandle(const ServerHandle&) = delete;
  ServerHandle& operator=(const ServerHandle&) = delete;

  void stop() {
    const GilRelease release;
    server_.reset();
  }
  bool running() const { return server_ != nullptr; }
  std::string target() const { return server_ ? server_->target() : ""; }
  int port() const { return server_ ? server_->port() : 0; }
  // (task, "shared memory", "MPI" or "messages", why not a better one, values, bytes) of each.
  py::list transports() const {
    py::list all;
    if (server_ == nullptr) return all;
    for (const Transport& one : server_->transports()) {
      if (one.shared_memory) {
        all.append(py::make_tuple(one.task, "shared memory", "", one.values, one.lent_bytes));
      } else {
        all.append(py::make_tuple(one.task, one.mpi ? "MPI" : "messages", one.reason,
                                  one.mpi_values, one.mpi_bytes));
      }
    }
    return all;
  }
  py::dict held_bytes() const {
    py::dict all;
    if (server_ == nullptr) return all;
    for (const auto& [identity, bytes] : server_->held_bytes()) all[py::str(identity)] = bytes;
    return all;
  }

 private:
  std::unique_ptr<Server> server_;
};

void reset(const std::string& target, const std::string& credentials, const py::list& names) {
  const std::vector<std::string> containers = texts(names, "a container");
  const InterruptScope interrupts(signal_poll());
  const GilRelease release;
  reset_cluster(target, containers, credentials);
}

// Made once, however often the module is imported anew.
PyObject* server_class(PyObject* module) {
  static PyObject* made = nullptr;
  if (made != nullptr) return made;
  py::class_<ServerHandle> server(py::handle(module), "ClusterServer",
                                  "The core of treenail.train.Server.");
  server
      .def(py::init([](const py::list& tasks, const std::string& job, int index,
                       const std::string& listen, bool plain_text, const py::dict& device_count,
                       int64_t silence_ms, const std::string& credentials, const py::list& open_to,
                       const py::list& allow_ops, const py::list& allow_paths,
                       const py::dict& limits) {
        return std::make_unique<ServerHandle>(options_of(tasks, job, index, listen, plain_text,
                                                         device_count, silence_ms, credentials,
                                                         open_to, allow_ops, allow_paths, limits));
      }))
      .def("stop", &ServerHandle::stop)
      .def_property_readonly("running", &ServerHandle::running)
      .def_property_readonly("target", &ServerHandle::target)
      .def_property_readonly("port", &ServerHandle::port)
      .def_property_readonly("transports", &ServerHandle::transports)
      .def_property_readonly("held_bytes", &ServerHandle::held_bytes);
  made = server.inc_ref().ptr();
  return made;
}

}  // namespace

void add_cluster(PyObject* module) {
  auto m = py::reinterpret_borrow<py::module_>(module);
  m.attr("ClusterServer") = py::handle(server_class(module));
  m.def("reset_cluster", reset, py::arg("target"), py::arg("credentials"), py::arg("containers"));
}

}  // namespace treenail::python
