// SPDX-License-Identifier: Apache-2.0
// Joining and leaving a group of processes (framework/distributed/collectives), for
// treenail.distributed.
#include "framework/base/interrupt.h"
#include "framework/distributed/collectives/communicator.h"
#include "framework/distributed/collectives/mpi_exchange.h"
#include "framework/distributed/collectives/shared_memory_communicator.h"
#include "framework/distributed/credentials.h"
#include "framework/distributed/rank_group.h"
#include "python/binding/gil.h"
#include "python/binding/module.h"
#include "python/binding/signals.h"

namespace treenail::python {
namespace {

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

// What join() gives becomes the group of this process. The GIL is free meanwhile.
template <class Join>
PyObject* joined(Join&& join) {
  const InterruptScope interrupts(signal_poll());
  const GilRelease released;
  set_communicator(join());
  return nullptr;
}

// join_single(): a group of this process alone.
PyObject* join_single(PyObject*, PyObject*) {
  return guarded([] {
    joined(single_communicator);
    return none();
  });
}

// join_shared_memory(rank, size, directory, join timeout in s, timeout in s)
PyObject* join_local(PyObject*, PyObject* args) {
  return guarded([&] {
    SharedMemoryGroup group;
    const char* directory = nullptr;
    double join_timeout = 0, timeout = 0;
    if (PyArg_ParseTuple(args, "iisdd", &group.rank, &group.size, &directory, &join_timeout,
                         &timeout) == 0)
      throw PythonError();
    group.directory = directory;
    group.join_timeout_ns = nanoseconds(join_timeout);
    group.timeout_ns = nanoseconds(timeout);
    joined([&] { return join_shared_memory(group); });
    return none();
  });
}

// join_mpi(announced, over shared memory, join timeout in s, timeout in s) -> (rank on this host,
// ranks on this host)
PyObject* join_by_mpi(PyObject*, PyObject* args) {
  return guarded([&] {
    MpiGroup group;
    int prefer = 1;
    double join_timeout = 0, timeout = 0;
    if (PyArg_ParseTuple(args, "ipdd", &group.announced, &prefer, &join_timeout, &timeout) == 0)
      throw PythonError();
    group.prefer_shared_memory = prefer != 0;
    group.join_timeout_ns = nanoseconds(join_timeout);
    group.timeout_ns = nanoseconds(timeout);
    MpiJoined place;
    joined([&] {
      place = join_mpi(group);
      return place.communicator;
    });
    return checked(Py_BuildValue("ii", place.local_rank, place.local_size)).release();
  });
}

std::vector<std::string> texts(PyObject* list) {
  std::vector<std::string> found;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i)
    found.emplace_back(text_of(PyList_GET_ITEM(list, i), "an address"));
  return found;
}

// join_ranks(rank, [address of each rank], over shared memory, address to listen at or "", plain
// text, ms after which a silent rank is lost or 0, join timeout in s, timeout in s) -> as
// join_mpi()
PyObject* join_by_rpc(PyObject*, PyObject* args) {
  return guarded([&] {
    RankGroup group;
    PyObject* addresses = nullptr;
    const char* listen = nullptr;
    int plain_text = 0, prefer = 1;
    long long silence_ms = 0;
    double join_timeout = 0, timeout = 0;
    if (PyArg_ParseTuple(args, "iO!pspLdd", &group.rank, &PyList_Type, &addresses, &prefer, &listen,
                         &plain_text, &silence_ms, &join_timeout, &timeout) == 0)
      throw PythonError();
    group.addresses = texts(addresses);
    group.listen = listen;
    if (silence_ms > 0) group.patience = patience_of(silence_ms);
    group.plain_text = plain_text != 0;
    group.credentials = credentials_from("");
    group.prefer_shared_memory = prefer != 0;
    group.join_timeout_ns = nanoseconds(join_timeout);
    group.timeout_ns = nanoseconds(timeout);
    RanksJoined place;
    joined([&] {
      place = join_ranks(group);
      return place.communicator;
    });
    return checked(Py_BuildValue("ii", place.local_rank, place.local_size)).release();
  });
}

PyObject* leave_group(PyObject*, PyObject*) {
  return guarded([] {
    {
      const GilRelease released;
      set_communicator(nullptr);
    }
    return none();
  });
}

// group() -> (rank, size, transport), or None.
PyObject* group(PyObject*, PyObject*) {
  return guarded([] {
    const std::shared_ptr<Communicator> found = find_communicator();
    if (found == nullptr) return none();
    return checked(Py_BuildValue("iis", found->rank(), found->size(), found->transport()))
        .release();
  });
}

}  // namespace

void add_distributed(PyObject* module) {
  static PyMethodDef functions[] = {
      {"join_single", join_single, METH_NOARGS, nullptr},
      {"join_shared_memory", join_local, METH_VARARGS, nullptr},
      {"join_mpi", join_by_mpi, METH_VARARGS, nullptr},
      {"join_ranks", join_by_rpc, METH_VARARGS, nullptr},
      {"leave_group", leave_group, METH_NOARGS, nullptr},
      {"group", group, METH_NOARGS, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, functions);
}

}  // namespace treenail::python
