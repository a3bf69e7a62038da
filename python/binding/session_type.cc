// SPDX-License-Identifier: Apache-2.0
// SessionBase, which treenail.Session extends: run() with nested fetches and feeds, on the C API
// for its cost per step. The GIL is given up while a graph runs, except for runs estimated below 20
// us while no other thread runs one: such a run may then wait for nobody who waits for the GIL.
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "framework/base/interrupt.h"
#include "framework/distributed/client.h"
#include "framework/runtime/run/session.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/feed_values.h"
#include "python/binding/fetches.h"
#include "python/binding/graph_lock.h"
#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/placement.h"
#include "python/binding/signals.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

constexpr double kCheapNs = 20000;

struct SessionState {
  GraphObject* graph = nullptr;  // owned
  std::shared_ptr<Session> session;
};

struct SessionObject {
  PyObject_HEAD PyObject* dict;
  PyObject* weakrefs;
  SessionState* state;
};
SessionObject* cast(PyObject* self) { return reinterpret_cast<SessionObject*>(self); }

SessionState& open_state(PyObject* self) {
  SessionState* s = cast(self)->state;
  if (s == nullptr || !s->session)
    throw_python(PyExc_RuntimeError, "this session was never opened");
  return *s;
}

// Runs of threads that gave up the GIL.
std::atomic<int> released_runs{0};

class ReleasedRun {
 public:
  ReleasedRun() { released_runs.fetch_add(1, std::memory_order_relaxed); }
  ~ReleasedRun() { released_runs.fetch_sub(1, std::memory_order_relaxed); }

 private:
  GilRelease release_;
};

// --- Requests ------------------------------------------------------------------------------------

// What one call of run() collects. A thread keeps it for its next call, so that a loop allocates
// nothing; a call inside a call (Python code of a fetch or a feed) has one of its own.
struct Request {
  Fetches fetches;
  Feeds feeds;
};
class RequestLease {
 public:
  explicit RequestLease(GraphObject* graph) : request_(std::move(idle)) {
    if (!request_) request_ = std::make_unique<Request>();
    request_->fetches.begin(graph);
  }
  ~RequestLease() {
    request_->fetches.clear();
    request_->feeds.outputs.clear();
    request_->feeds.values.clear();
    idle = std::move(request_);
  }
  RequestLease(const RequestLease&) = delete;
  RequestLease& operator=(const RequestLease&) = delete;
  Fetches& fetches() { return request_->fetches; }
  Feeds& feeds() { return request_->feeds; }

 private:
  static thread_local std::unique_ptr<Request> idle;
  std::unique_ptr<Request> request_;
};
thread_local std::unique_ptr<Request> RequestLease::idle;

// --- Running -------------------------------------------------------------------------------------

// A number of a RunOptions; 0 without one.
int64_t option_of(PyObject* options, PyObject* name) {
  if (options == nullptr || options == Py_None) return 0;
  Ref value = Ref::steal(PyObject_GetAttr(options, name));
  const long long number = value ? PyLong_AsLongLong(value.get()) : -1;
  if (!PyErr_Occurred()) return number;
  if (value ? !PyErr_ExceptionMatches(PyExc_TypeError)
            : !PyErr_ExceptionMatches(PyExc_AttributeError))
    throw PythonError();
  PyErr_Clear();
  throw_type_error("Session.run(): options must be a RunOptions, not ", repr_of(options),
                   " of type '", type_name_of(options), "'");
}

// The fields of a NodeStats of Python's, node by node.
Ref stats_list(std::span<const NodeStats> nodes) {
  Ref list = checked(PyList_New(0));
  for (const NodeStats& n : nodes) {
    Ref fused = checked(PyTuple_New(static_cast<Py_ssize_t>(n.fused.size())));
    for (size_t i = 0; i < n.fused.size(); ++i) {
      Ref part = checked(Py_BuildValue("(NN)", text_object(n.fused[i].first).release(),
                                       text_object(n.fused[i].second).release()));
      PyTuple_SET_ITEM(fused.get(), static_cast<Py_ssize_t>(i), part.release());
    }
    const Ref arguments = checked(
        Py_BuildValue("(NNNOLLLLLd)", text_object(n.name).release(), text_object(n.op).release(),
                      text_object(n.device).release(), fused.get(), n.start_ns, n.end_ns, n.thread,
                      n.bytes_allocated, n.bytes_in_use, n.flops));
    checked(PyList_Append(list.get(), arguments.get()));
  }
  return list;
}

// The fields of a DeviceMemory of Python's, device by device.
Ref device_list(std::span<const DeviceMemory> devices) {
  Ref list = checked(PyList_New(0));
  for (const DeviceMemory& d : devices) {
    const Ref fields = checked(
        Py_BuildValue("(NLL)", text_object(d.device).release(), d.arena_bytes, d.peak_bytes));
    checked(PyList_Append(list.get(), fields.get()));
  }
  return list;
}

void fill_metadata(PyObject* object, const RunMetadata& metadata) {
  const auto set = [&](const char* name, const Ref& value) {
    if (PyObject_SetAttrString(object, name, value.get()) >= 0) return;
    if (!PyErr_ExceptionMatches(PyExc_AttributeError)) throw PythonError();
    PyErr_Clear();
    throw_type_error("Session.run(): run_metadata must be a RunMetadata, not ", repr_of(object),
                     " of type '", type_name_of(object), "'");
  };
  set("nodes_executed", checked(PyLong_FromLongLong(metadata.nodes_executed)));
  set("arena_bytes", checked(PyLong_FromLongLong(metadata.arena_bytes)));
  set("peak_bytes", checked(PyLong_FromLongLong(metadata.peak_bytes)));
  set("_devices", device_list(metadata.devices));
  set("cost_ns", checked(PyFloat_FromDouble(metadata.cost_ns)));
  set("specialized", Ref::steal(bool_object(metadata.specialized)));
  set("_nodes", stats_list(metadata.nodes));
  set("clock_error_ns", checked(PyLong_FromLongLong(metadata.clock_error_ns)));
}

// Options of a run that looks after signals.
RunOptions polled() {
  RunOptions options;
  options.poll = signal_poll();
  return options;
}

struct RunArguments {
  PyObject* fetches = nullptr;
  PyObject* feed_dict = nullptr;
  PyObject* options = nullptr;
  PyObject* run_metadata = nullptr;
};

RunArguments parse_arguments(PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  RunArguments parsed;
  PyObject** places[] = {&parsed.fetches, &parsed.feed_dict, &parsed.options, &parsed.run_metadata};
  static constexpr const char* kNames[] = {"fetches", "feed_dict", "options", "run_metadata"};
  if (nargs > 4) throw_type_error("run() takes at most 4 arguments, ", nargs, " were given");
  for (Py_ssize_t i = 0; i < nargs; ++i) *places[i] = args[i];
  const Py_ssize_t keywords = kwnames == nullptr ? 0 : PyTuple_GET_SIZE(kwnames);
  for (Py_ssize_t k = 0; k < keywords; ++k) {
    PyObject* name = PyTuple_GET_ITEM(kwnames, k);
    int found = -1;
    for (int i = 0; i < 4; ++i) {
      if (PyUnicode_CompareWithASCIIString(name, kNames[i]) == 0) found = i;
    }
    if (found < 0) throw_type_error("run() got an unexpected keyword argument ", repr_of(name));
    if (*places[found] != nullptr)
      throw_type_error("run() got several values for '", kNames[found], "'");
    *places[found] = args[nargs + k];
  }
  if (parsed.fetches == nullptr) throw_type_error("run() misses the argument 'fetches'");
  return parsed;
}

PyObject* run(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
  SessionState* held_state = cast(self)->state;
  PyObject* graph = held_state && held_state->graph ? as_object(held_state->graph) : nullptr;
  return guarded(
      [&] {
        const RunArguments arguments = parse_arguments(args, nargs, kwnames);
        SessionState& s = open_state(self);
        RequestLease request(s.graph);
        Fetches& fetches = request.fetches();
        Feeds& feeds = request.feeds();
        with_prefix([] { return "Session.run(): "; },
                    [&] {
                      fetches.collect(arguments.fetches);
                      collect_feeds(arguments.feed_dict, s.graph, feeds);
                    });
        const std::shared_ptr<Session> session = s.session;
        const auto signature =
            session->signature(feeds.outputs, fetches.outputs(), fetches.targets());

        RunOptions options = polled();
        options.timeout_ms = option_of(arguments.options, state().str_timeout);
        options.trace = option_of(arguments.options, state().str_trace_level) > 0;
        RunMetadata metadata;
        RunMetadata* wanted_metadata =
            arguments.run_metadata != nullptr && arguments.run_metadata != Py_None ? &metadata
                                                                                   : nullptr;
        const double cost = Session::estimated_cost_ns(*signature);
        std::vector<Tensor> results;
        try {
          if (cost > 0 && cost < kCheapNs && options.timeout_ms <= 0 &&
              released_runs.load(std::memory_order_relaxed) == 0) {
            results = session->run(signature, feeds.values, options, wanted_metadata);
          } else {
            const ReleasedRun released;
            results = session->run(signature, feeds.values, options, wanted_metadata);
          }
        } catch (const Error&) {  // what was known before the run is known all the same
          if (wanted_metadata != nullptr) fill_metadata(arguments.run_metadata, metadata);
          throw;
        }
        feeds.values.clear();
        release_borrowed();
        if (wanted_metadata != nullptr) fill_metadata(arguments.run_metadata, metadata);
        return fetches.assemble(arguments.fetches, results).release();
      },
      graph);
}

// _check(fetches, feed_list): whether a run could fetch and feed them, as run() would say it.
PyObject* check(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !PyList_Check(args[1])) throw_type_error("_check() takes fetches and a list");
    SessionState& s = open_state(self);
    RequestLease request(s.graph);
    request.fetches().collect(args[0]);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i) {
      const Ref key = Ref::borrow(PyList_GET_ITEM(args[1], i));
      const bool composite = PyObject_HasAttrString(key.get(), "__treenail_feed__") != 0;
      if (is_symbolic(key.get()) || !composite) feed_target(key.get(), s.graph);
    }
    Py_RETURN_NONE;
  });
}

// _partial_run_setup(fetches, feeds: a list): the handle of a run in parts.
PyObject* partial_run_setup(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2 || !PyList_Check(args[1]))
      throw_type_error("_partial_run_setup() takes fetches and a list of feeds");
    SessionState& s = open_state(self);
    RequestLease request(s.graph);
    Fetches& fetches = request.fetches();
    fetches.collect(args[0]);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(args[1]); ++i)
      request.feeds().outputs.push_back(feed_target(PyList_GET_ITEM(args[1], i), s.graph));
    const std::shared_ptr<Session> session = s.session;
    const auto signature =
        session->signature(request.feeds().outputs, fetches.outputs(), fetches.targets());
    std::string handle;
    {
      const ReleasedRun released;
      handle = session->partial_run_setup(signature, polled());
    }
    return text_object(handle).release();
  });
}

// _partial_run(handle, fetches, feed_dict)
PyObject* partial_run(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  SessionState* held_state = cast(self)->state;
  PyObject* graph = held_state && held_state->graph ? as_object(held_state->graph) : nullptr;
  return guarded(
      [&] {
        if (nargs != 3) throw_type_error("_partial_run() takes a handle, fetches and a feed_dict");
        SessionState& s = open_state(self);
        RequestLease request(s.graph);
        Fetches& fetches = request.fetches();
        Feeds& feeds = request.feeds();
        const std::string handle(text_of(args[0], "handle"));
        fetches.collect(args[1]);
        collect_feeds(args[2], s.graph, feeds);
        Session::Part part{{}, fetches.outputs(), fetches.targets()};
        for (size_t i = 0; i < feeds.outputs.size(); ++i)
          part.feeds.emplace_back(feeds.outputs[i], feeds.values[i]);
        const std::shared_ptr<Session> session = s.session;
        std::vector<Tensor> results;
        {
          const ReleasedRun released;
          results = session->partial_run(handle, part, polled());
        }
        part.feeds.clear();
        feeds.values.clear();
        release_borrowed();
        return fetches.assemble(args[1], results).release();
      },
      graph);
}

// --- Life ----------------------------------------------------------------------------------------

PyObject* create(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&] {
    Ref self = checked(type->tp_alloc(type, 0));
    cast(self.get())->state = new SessionState();
    return self.release();
  });
}

ClientOptions client_options_from(PyObject* filters, PyObject* silence_ms) {
  ClientOptions client;
  for (Py_ssize_t i = 0; i < PyTuple_Size(filters); ++i)
    client.device_filters.emplace_back(text_of(PyTuple_GET_ITEM(filters, i), "a device filter"));
  const int64_t most = PyLong_AsLongLong(silence_ms);
  if (most > 0) client.patience = patience_of(most);
  return client;
}

// A server may let it wait.
std::shared_ptr<Session> open_session(const std::shared_ptr<Graph>& graph, SessionOptions options,
                                      const std::string& target, const ClientOptions& client) {
  if (target.empty()) return std::make_shared<Session>(graph, std::move(options));
  const InterruptScope interrupts(signal_poll());
  const GilRelease release;
  options.remote = open_remote_session(target, graph, options, client);
  return std::make_shared<Session>(graph, std::move(options));
}

// _open(graph, fold_constants, merge_common_subexpressions, allow_soft_placement,
//       fuse_elementwise, {kind of device: most of them}, log_placement, target,
//       cost model or None, (name of a device that is known, ...), milliseconds for which a
//       connection may be silent, or 0, credentials, "bfloat16", "float16" or "")
PyObject* open(PyObject* self, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 13) throw_type_error("_open() takes a graph and twelve options");
    GraphObject* graph = graph_from(args[0]);
    SessionOptions options;
    options.fold_constants = checked(PyObject_IsTrue(args[1])) == 1;
    options.merge_common_subexpressions = checked(PyObject_IsTrue(args[2])) == 1;
    options.allow_soft_placement = checked(PyObject_IsTrue(args[3])) == 1;
    options.fuse_elementwise = checked(PyObject_IsTrue(args[4])) == 1;
    options.device_count = device_count_from(args[5]);
    options.log_placement = checked(PyObject_IsTrue(args[6])) == 1;
    const std::string target(text_of(args[7], "target"));
    options.placement = cost_model_from(args[8]);
    ClientOptions client = client_options_from(args[9], args[10]);
    client.credentials = std::string(text_of(args[11], "credentials"));
    const std::string sent(text_of(args[12], "sendrecv_dtype"));
    if (sent == "bfloat16") client.sent_as = DType::kBFloat16;
    if (sent == "float16") client.sent_as = DType::kFloat16;
    SessionState& s = *cast(self)->state;
    if (s.session) throw_python(PyExc_RuntimeError, "the session is open already");
    s.session = open_session(graph->state->graph, options, target, client);
    s.graph = reinterpret_cast<GraphObject*>(new_ref(args[0]));
    return none();
  });
}

PyObject* close(PyObject* self, PyObject*) {
  return guarded([&] {
    SessionState& s = open_state(self);
    const std::shared_ptr<Session> session = s.session;
    {
      const GilRelease release;  // plans go there, and with them tensors
      session->close();
    }
    return none();
  });
}

PyObject* device_names(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const std::string& name : open_state(self).session->devices())
      checked(PyList_Append(list.get(), text_object(name).get()));
    return list.release();
  });
}

// _figures(): what the tasks of a server's cluster tell of themselves, as bytes; of a session of
// this process none.
PyObject* figures(PyObject* self, PyObject*) {
  return guarded([&] {
    const std::string told = open_state(self).session->figures();
    return checked(PyBytes_FromStringAndSize(told.data(), static_cast<Py_ssize_t>(told.size())))
        .release();
  });
}

PyObject* get_graph(PyObject* self, void*) {
  return guarded([&] { return new_ref(as_object(open_state(self).graph)); });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(cast(self)->dict);
  if (cast(self)->state != nullptr) Py_VISIT(cast(self)->state->graph);
  return 0;
}
int clear(PyObject* self) {
  Py_CLEAR(cast(self)->dict);
  if (cast(self)->state != nullptr) Py_CLEAR(cast(self)->state->graph);
  return 0;
}
void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (cast(self)->weakrefs != nullptr) PyObject_ClearWeakRefs(self);
  SessionState* s = cast(self)->state;
  if (s != nullptr && s->session) {
    const GilRelease release;  // freeing the state of a large model takes its time
    s->session.reset();
  }
  clear(self);
  delete s;
  type->tp_free(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyGetSetDef getset[] = {
    {"graph", get_graph, nullptr, "The Graph this session runs.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
PyMethodDef methods[] = {
    {"run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(run)),
     METH_FASTCALL | METH_KEYWORDS,
     "run($self, fetches, feed_dict=None, options=None, run_metadata=None)\n--\n\n"
     "Runs what `fetches` needs and gives its values in the same structure.\n\n"
     "fetches: a Tensor, Operation, Variable or name, or any nesting of lists, tuples and dicts of "
     "such; a tensor becomes "
     "an array (rank 0: a NumPy scalar), an operation None.\n"
     "feed_dict: values (numbers, lists, arrays) for tensors, which are then not computed. A "
     "C-contiguous array of the right "
     "dtype is read where it lies: do not change it meanwhile from another thread.\n"
     "A constant may be fed as well, in its own shape, and what is computed from it follows; a "
     "gradient keeps axes and shapes that were known when it was made, unless they came from "
     "tn.placeholder_with_default.\n"
     "options: RunOptions, for timeout_in_ms and trace_level. run_metadata: a RunMetadata to fill, "
     "also when the "
     "run fails.\n\n"
     "Raises TypeError and ValueError for fetches and feeds that make no sense, KeyboardInterrupt "
     "on Ctrl-C, and the classes of "
     "tn.errors for what operations raise."},
    {"close", close, METH_NOARGS,
     "close($self, /)\n--\n\nCancels what runs and frees the variables. Later runs raise "
     "FailedPreconditionError."},
    {"_partial_run_setup",
     reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(partial_run_setup)), METH_FASTCALL,
     nullptr},
    {"_partial_run", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(partial_run)),
     METH_FASTCALL, nullptr},
    {"_check", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(check)), METH_FASTCALL,
     nullptr},
    {"_device_names", device_names, METH_NOARGS, nullptr},
    {"_figures", figures, METH_NOARGS, nullptr},
    {"_open", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(open)), METH_FASTCALL, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(SessionObject, weakrefs), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(SessionObject, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyType_Slot slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(create)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_doc, const_cast<char*>("The core of treenail.Session.")},
    {0, nullptr},
};
PyType_Spec spec = {"treenail._treenail.SessionBase", sizeof(SessionObject), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

}  // namespace

void add_session(PyObject* module) {
  State& s = state();
  if (s.session_type == nullptr) {
    s.session_type = make_type(spec, true);
    watch_forks_for_signals();
  }
  add_type(module, "SessionBase", s.session_type);
}

}  // namespace treenail::python
