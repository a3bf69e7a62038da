// SPDX-License-Identifier: Apache-2.0
// Graph files and checkpoint files from Python, and the lock that h5py and checkpoints share where
// libhdf5 has none.
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "framework/base/fork.h"
#include "framework/graph/import.h"
#include "framework/graph/serialize.h"
#include "framework/io/checkpoint.h"
#include "framework/io/file.h"
#include "framework/io/record.h"
#include "python/binding/attributes.h"
#include "python/binding/dtypes.h"
#include "python/binding/graph_lock.h"
#include "python/binding/module.h"
#include "python/binding/numpy.h"
#include "python/binding/operation_type.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

// str, bytes or os.PathLike, in the file system's encoding, whose undecodable bytes Python keeps as
// surrogates.
std::string path_from(PyObject* object) {
  PyObject* path = nullptr;
  if (PyUnicode_FSConverter(object, &path) == 0) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) throw PythonError();
    PyErr_Clear();
    throw_type_error("a path must be a str, bytes or os.PathLike, not ", repr_of(object),
                     " of type '", type_name_of(object), "'");
  }
  const Ref held = Ref::steal(path);
  return std::string(text_of(path, "a path"));
}

// --- Checkpoints ---------------------------------------------------------------------------------

// h5py's global lock (h5py._objects.phil); kept for good once taken.
PyObject* h5py_lock = nullptr;

void call_lock(const char* method) {
  const GilRetake gil;
  const Ref result =
      Ref::steal(parking([&] { return PyObject_CallMethod(h5py_lock, method, nullptr); }));
  if (!result) PyErr_WriteUnraisable(h5py_lock);
}

// share_h5py_lock(lock): around each use of libhdf5, where libhdf5 itself has no lock.
PyObject* share_h5py_lock(PyObject*, PyObject* lock) {
  return guarded([&] {
    if (hdf5_has_lock() || h5py_lock == lock) return none();
    h5py_lock = new_ref(lock);
    set_hdf5_lock([](void*) { call_lock("acquire"); }, [](void*) { call_lock("release"); },
                  nullptr);
    return none();
  });
}

PyObject* get_hdf5_version(PyObject*, PyObject*) {
  return guarded([&] { return text_object(hdf5_version()).release(); });
}

// open_checkpoint(path, allow_foreign) -> reader. The whole file is checked and its datasets are
// listed here, once for all that is then read of it.
constexpr const char* kReaderCapsule = "treenail.CheckpointReader";

// Without the GIL: who holds HDF5's lock may wait for it (h5py does, where it converts).
void close_checkpoint(PyObject* capsule) {
  auto* const reader =
      static_cast<CheckpointReader*>(PyCapsule_GetPointer(capsule, kReaderCapsule));
  const GilRelease release;
  delete reader;
}

PyObject* open_checkpoint(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("open_checkpoint() takes a path and allow_foreign");
    const std::string path = path_from(args[0]);
    const bool allow_foreign = checked(PyObject_IsTrue(args[1])) == 1;
    std::unique_ptr<CheckpointReader> reader;
    {
      const GilRelease release;
      reader = std::make_unique<CheckpointReader>(path, allow_foreign);
    }
    PyObject* capsule =
        checked(PyCapsule_New(reader.get(), kReaderCapsule, close_checkpoint)).release();
    reader.release();
    return capsule;
  });
}

const CheckpointReader& reader_from(PyObject* capsule) {
  const void* reader = PyCapsule_GetPointer(capsule, kReaderCapsule);
  if (reader == nullptr) throw PythonError();
  return *static_cast<const CheckpointReader*>(reader);
}

// checkpoint_entries(reader) -> [(name, dtype or None, dims)]
PyObject* checkpoint_entries(PyObject*, PyObject* capsule) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const CheckpointReader::Entry& entry : reader_from(capsule).entries()) {
      Ref dtype = entry.dtype == DType::kInvalid ? Ref::borrow(Py_None) : dtype_ref(entry.dtype);
      Ref name = text_object(entry.name);
      Ref item = checked(PyTuple_Pack(3, name.get(), dtype.get(), dims_object(entry.shape).get()));
      checked(PyList_Append(list.get(), item.get()));
    }
    return list.release();
  });
}

// checkpoint_tensor(reader, name) -> array
PyObject* checkpoint_tensor(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("checkpoint_tensor() takes a reader and a name");
    const CheckpointReader& reader = reader_from(args[0]);
    const std::string name(text_of(args[1], "a tensor name"));
    Tensor tensor;
    {
      const GilRelease release;
      tensor = reader.read(name);
    }
    return array_from_tensor(std::move(tensor), false).release();
  });
}

// --- Text ----------------------------------------------------------------------------------------

// write_file(path, text): whole, in place of what was there, or not at all.
PyObject* write_file(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("write_file() takes a path and a text");
    const std::string path = path_from(args[0]);
    const std::string text(text_of(args[1], "the text"));
    {
      const GilRelease release;
      AtomicFile file(path);
      write_at(file.file(), 0, text.data(), text.size(), path);
      file.commit();
    }
    return none();
  });
}

// --- Records -------------------------------------------------------------------------------------

// record(bytes) -> bytes: as one record of a TFRecord file.
PyObject* record(PyObject*, PyObject* data) {
  return guarded([&] {
    std::string file;
    append_record(&file, text_of(data, "a record"));
    return checked(PyBytes_FromStringAndSize(file.data(), static_cast<Py_ssize_t>(file.size())))
        .release();
  });
}

// --- Graphs --------------------------------------------------------------------------------------

PyObject* write_graph_file(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 2) throw_type_error("save_graph() takes a graph and a path");
        const Graph& graph = *graph_from(args[0])->state->graph;
        const std::string path = path_from(args[1]);
        {
          const GilRelease release;
          const std::shared_lock<ForkSharedMutex> lock(graph.mutex());
          save_graph(graph, path);
        }
        return none();
      },
      args[0]);
}

std::unique_ptr<Graph> read_graph_file(const std::string& path) {
  const GilRelease release;
  return load_graph(path);
}

NamedAttrs named_attrs(const OpInstance& op) {
  NamedAttrs attrs;
  for (size_t i = 0; i < op.attrs().size(); ++i)
    attrs.emplace_back(op.def().attrs[i].name, op.attrs()[i]);
  return attrs;
}

// Copies of the nodes of one graph in another, under a name prefix.
class GraphImport {
 public:
  GraphImport(const Graph& source, Graph& target, std::string prefix,
              std::unordered_map<std::string, Output> replaced)
      : source_(source),
        target_(target),
        prefix_(std::move(prefix)),
        replaced_(std::move(replaced)) {}

  void run() {
    for (const Node* node : topological_order(source_)) add(*node);
    colocate_copies(source_, prefix_, [&](const Node& node) { return copies_.at(&node); });
  }
  Node* copy_of(const std::string& name) const {
    const Node* node = source_.find(name);
    return node == nullptr ? nullptr : copies_.at(node);
  }

 private:
  void add(const Node& node) {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs()) {
      const auto it = replaced_.find(to_text(input));
      inputs.push_back(it == replaced_.end() ? Output{copies_.at(input.node), input.index}
                                             : it->second);
    }
    std::vector<Node*> controls;
    for (const Node* before : node.control_inputs()) controls.push_back(copies_.at(before));
    std::vector<int> sizes;
    const OpInstance& op = node.op();
    for (size_t arg = 0; arg < op.def().inputs.size(); ++arg) {
      const auto [begin, end] = op.input_range(static_cast<int>(arg));
      sizes.push_back(end - begin);
    }
    const NamedAttrs attrs = named_attrs(op);
    const std::string name = prefix_.empty() ? node.name() : concat(prefix_, "/", node.name());
    NodeSpec spec;
    spec.op = op.name();
    spec.name = name;
    spec.inputs = inputs;
    spec.attrs = attrs;
    spec.arg_sizes = sizes;
    spec.control_inputs = controls;
    spec.device = node.device();
    copies_.emplace(&node, &target_.add(spec));
  }

  const Graph& source_;
  Graph& target_;
  std::string prefix_;
  std::unordered_map<std::string, Output> replaced_;
  std::unordered_map<const Node*, Node*> copies_;
};

// import_graph(graph, path, prefix, {"node:0" of the file: tensor}) -> {name in the file:
// Operation}
PyObject* import_graph_file(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded(
      [&] {
        if (nargs != 4 || !PyDict_Check(args[3]))
          throw_type_error("import_graph() takes a graph, a path, a prefix and a dict");
        GraphObject* graph = graph_from(args[0]);
        const std::unique_ptr<Graph> source = read_graph_file(path_from(args[1]));
        std::unordered_map<std::string, Output> replaced;
        PyObject *key, *value;
        Py_ssize_t position = 0;
        while (PyDict_Next(args[3], &position, &key, &value) != 0) {
          const Output original = source->find_output(text_of(key, "a tensor name"));
          replaced.emplace(to_text(original), output_from(value, graph));
        }
        Graph& target = *graph->state->graph;
        GraphImport import(*source, target, std::string(text_of(args[2], "a prefix")),
                           std::move(replaced));
        writing(target, [&] { import.run(); });
        Ref dict = checked(PyDict_New());
        for (int id = 0; id < source->num_nodes(); ++id) {
          const std::string& name = source->node(id)->name();
          Ref view = operation_view(graph, import.copy_of(name));
          checked(PyDict_SetItem(dict.get(), text_object(name).get(), view.get()));
        }
        return dict.release();
      },
      args[0]);
}

// load_graph_into(graph, path): `graph` is new and empty.
PyObject* load_graph_into(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("load_graph_into() takes a graph and a path");
    GraphObject* graph = graph_from(args[0]);
    if (graph->state->graph->num_nodes() != 0)
      throw_value_error("load_graph_into() needs an empty graph");
    graph->state->graph = read_graph_file(path_from(args[1]));
    return none();
  });
}

PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(function));
}

}  // namespace

void add_files(PyObject* module) {
  static PyMethodDef functions[] = {
      {"share_h5py_lock", share_h5py_lock, METH_O, nullptr},
      {"hdf5_version", get_hdf5_version, METH_NOARGS,
       "hdf5_version()\n--\n\nThe version of the HDF5 library. Raises UnimplementedError without "
       "one."},
      {"open_checkpoint", fast(open_checkpoint), METH_FASTCALL, nullptr},
      {"checkpoint_entries", checkpoint_entries, METH_O, nullptr},
      {"checkpoint_tensor", fast(checkpoint_tensor), METH_FASTCALL, nullptr},
      {"write_file", fast(write_file), METH_FASTCALL, nullptr},
      {"record", record, METH_O, nullptr},
      {"save_graph", fast(write_graph_file), METH_FASTCALL, nullptr},
      {"import_graph", fast(import_graph_file), METH_FASTCALL, nullptr},
      {"load_graph_into", fast(load_graph_into), METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, functions);
}

}  // namespace treenail::python
