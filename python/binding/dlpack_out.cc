// SPDX-License-Identifier: Apache-2.0
// See dlpack.h: from tensors to capsules.
#include <memory>
#include <vector>

#include "framework/device/device.h"
#include "framework/tensor/dtype.h"
#include "python/binding/dlpack.h"
#include "python/binding/dlpack_abi.h"
#include "python/binding/numpy.h"

namespace treenail::python {
namespace {

namespace abi = dlpack_abi;

abi::DataType type_of(DType dtype) {
  const auto bits = static_cast<uint8_t>(8 * dtype_size(dtype));
  if (dtype == DType::kBool) return {abi::kBool, bits, 1};
  if (dtype == DType::kBFloat16) return {abi::kBfloat, bits, 1};
  if (is_floating(dtype)) return {abi::kFloat, bits, 1};
  if (is_complex(dtype)) return {abi::kComplex, bits, 1};
  if (is_integer(dtype)) return {is_signed_integer(dtype) ? abi::kInt : abi::kUInt, bits, 1};
  throw_python(PyExc_BufferError, concat("__dlpack__(): a tensor of dtype ", dtype_name(dtype),
                                         " has no DLPack form: its elements are no numbers"));
}

// What a capsule leads to: a share of the tensor, and what the views point at. No part of it needs
// the GIL when it ends.
template <class M>
struct Exported {
  explicit Exported(Tensor value) : tensor(std::move(value)) {
    for (int i = 0; i < tensor.rank(); ++i) shape.push_back(tensor.dim(i));
    strides.resize(shape.size());
    int64_t stride = 1;
    for (size_t i = shape.size(); i-- > 0; stride *= shape[i]) strides[i] = stride;
    managed.tensor = {tensor.raw(),
                      {abi::kCpu, 0},
                      tensor.rank(),
                      type_of(tensor.dtype()),
                      shape.data(),
                      strides.data(),
                      0};
    managed.context = this;
    managed.deleter = [](M* self) { delete static_cast<Exported*>(self->context); };
  }
  Tensor tensor;
  std::vector<int64_t> shape, strides;
  M managed = {};
};

template <class M>
void end_unused(PyObject* capsule, const char* name) {
  if (PyCapsule_IsValid(capsule, name) == 0) return;  // somebody took it
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule, name));
  managed->deleter(managed);
}

template <class M>
Ref in_capsule(std::unique_ptr<Exported<M>> exported, const char* name, PyCapsule_Destructor end) {
  Ref capsule = checked(PyCapsule_New(&exported->managed, name, end));
  exported.release();  // NOLINT(bugprone-unused-return-value): the capsule's now
  return capsule;
}

Ref versioned_capsule(Tensor value, uint64_t flags) {
  auto exported = std::make_unique<Exported<abi::ManagedVersioned>>(std::move(value));
  exported->managed.version = {1, 0};
  exported->managed.flags = flags;
  return in_capsule(std::move(exported), abi::kVersionedName, [](PyObject* capsule) {
    end_unused<abi::ManagedVersioned>(capsule, abi::kVersionedName);
  });
}

Ref plain_capsule(Tensor value) {
  return in_capsule(std::make_unique<Exported<abi::Managed>>(std::move(value)), abi::kName,
                    [](PyObject* capsule) { end_unused<abi::Managed>(capsule, abi::kName); });
}

// (major, minor) or None. Errors: TypeError.
bool wants_versioned(PyObject* version) {
  if (version == Py_None) return false;
  int major = 0, minor = 0;
  if (PyTuple_Check(version) == 0 || PyArg_ParseTuple(version, "ii", &major, &minor) == 0) {
    PyErr_Clear();
    throw_type_error("__dlpack__(): max_version = ", repr_of(version),
                     "; needed is a pair of ints, such as (1, 0), or None");
  }
  return major >= 1;
}

[[noreturn]] void refuse_device(const Tensor& value) {
  throw_python(
      PyExc_BufferError,
      concat("__dlpack__(): the tensor lies in the memory of ", to_text(value.device()->name()),
             ", which DLPack has no number for: export x.cpu(), or ask for a copy by "
             "dl_device=(1, 0)"));
}

// Whether the host's memory is asked for. Errors: TypeError, BufferError for another one.
bool wants_host(PyObject* device) {
  if (device == Py_None) return false;
  int type = 0, id = 0;
  if (PyTuple_Check(device) == 0 || PyArg_ParseTuple(device, "ii", &type, &id) == 0) {
    PyErr_Clear();
    throw_type_error("__dlpack__(): dl_device = ", repr_of(device),
                     "; needed is a pair of ints, such as (1, 0), or None");
  }
  if (type == abi::kCpu && id == 0) return true;
  throw_python(PyExc_BufferError, concat("__dlpack__(): dl_device = ", repr_of(device),
                                         "; what can be had is the host's memory, (1, 0)"));
}

}  // namespace

CopyWish copy_wish_from(PyObject* object) {
  if (object == Py_None) return CopyWish::kIfNeeded;
  if (object == Py_True) return CopyWish::kAlways;
  if (object == Py_False) return CopyWish::kNever;
  throw_type_error("copy = ", repr_of(object), "; needed is True, False or None");
}

Ref dlpack_device(const Tensor& value) {
  if (value.device() != nullptr) refuse_device(value);
  return checked(Py_BuildValue("(ii)", abi::kCpu, 0));
}

Ref dlpack_capsule(const Tensor& value, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *wish = Py_None;
  if (PyArg_ParseTupleAndKeywords(args, kwargs, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                  &stream, &version, &device, &wish) == 0) {
    throw PythonError();
  }
  if (stream != Py_None) {
    throw_python(PyExc_BufferError, concat("__dlpack__(): stream = ", repr_of(stream),
                                           "; a tensor in the host's memory has none"));
  }
  const bool to_host = wants_host(device);
  const bool versioned = wants_versioned(version);
  const CopyWish copy =
      with_prefix([] { return "__dlpack__(): "; }, [&] { return copy_wish_from(wish); });
  type_of(value.dtype());  // before anything is copied
  if (value.device() != nullptr) {
    if (!to_host || copy == CopyWish::kNever) refuse_device(value);
    return versioned ? versioned_capsule(on_host(value), abi::kIsCopied)
                     : plain_capsule(on_host(value));
  }
  if (copy == CopyWish::kAlways) {
    return versioned ? versioned_capsule(value.deep_copy(), abi::kIsCopied)
                     : plain_capsule(value.deep_copy());
  }
  if (versioned) return versioned_capsule(value, abi::kReadOnly);
  if (value.exclusive() || value.num_elements() == 0) return plain_capsule(value);
  if (copy == CopyWish::kNever) {
    throw_python(PyExc_BufferError,
                 "__dlpack__(): copy = False, but others use this tensor's memory, and only a "
                 "capsule of version 1 can say that it may not be written: max_version=(1, 0)");
  }
  return plain_capsule(value.deep_copy());
}

}  // namespace treenail::python
