// SPDX-License-Identifier: Apache-2.0
// See dlpack.h: from capsules to tensors. What is in a capsule comes from code that is not ours, so
// all of it that can be checked is.
#include <cstring>
#include <limits>
#include <utility>

#include "framework/tensor/truth_values.h"
#include "python/binding/dlpack.h"
#include "python/binding/dlpack_abi.h"
#include "python/binding/loans.h"
#include "python/binding/module.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

namespace abi = dlpack_abi;

template <class... Parts>
[[noreturn]] void throw_buffer_error(const Parts&... parts) {
  throw_python(PyExc_BufferError, concat(parts...));
}

// What was taken out of a capsule, once: it is given back, once, with the GIL held.
class Taken {
 public:
  Taken(void* managed, bool versioned) : managed_(managed), versioned_(versioned) {}
  Taken(Taken&& other) noexcept
      : managed_(std::exchange(other.managed_, nullptr)), versioned_(other.versioned_) {}
  Taken& operator=(Taken&&) = delete;
  ~Taken() {
    if (managed_ != nullptr) loan_end()(managed_);
  }
  const abi::TensorView& view() const {
    return versioned_ ? static_cast<abi::ManagedVersioned*>(managed_)->tensor
                      : static_cast<abi::Managed*>(managed_)->tensor;
  }
  const abi::ManagedVersioned* versioned() const {
    return versioned_ ? static_cast<abi::ManagedVersioned*>(managed_) : nullptr;
  }
  // Memory over which a tensor may be laid; this is empty then.
  IntrusivePtr<Buffer> lent(const void* data, size_t bytes) {
    auto* loan = new Loan(loan_end(), managed_);
    managed_ = nullptr;
    return Buffer::borrow(data, bytes, end_later, loan);
  }

 private:
  template <class M>
  static void end(void* managed) {
    // A deleter may run Python code, where no exception may be under way; what it sets is no one's.
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    auto* self = static_cast<M*>(managed);
    if (self->deleter != nullptr) self->deleter(self);
    PyErr_Restore(type, value, traceback);
  }
  void (*loan_end() const)(void*) {
    return versioned_ ? end<abi::ManagedVersioned> : end<abi::Managed>;
  }

  void* managed_;
  bool versioned_;
};

Taken taken_from(PyObject* capsule) {
  const bool versioned = PyCapsule_IsValid(capsule, abi::kVersionedName) != 0;
  const char* name = versioned ? abi::kVersionedName : abi::kName;
  if (!versioned && PyCapsule_IsValid(capsule, abi::kName) == 0) {
    const char* given = PyCapsule_GetName(capsule);
    PyErr_Clear();
    throw_buffer_error("a capsule \"", given == nullptr ? "" : given,
                       "\" was given; needed is \"dltensor\" or \"dltensor_versioned\", and each "
                       "can be taken once");
  }
  void* managed = PyCapsule_GetPointer(capsule, name);
  if (managed == nullptr) throw PythonError();
  checked(PyCapsule_SetName(capsule, versioned ? abi::kUsedVersionedName : abi::kUsedName));
  return Taken(managed, versioned);
}

// --- What was given ------------------------------------------------------------------------------

DType dtype_from(const abi::DataType& type) {
  static constexpr DType kDtypes[] = {
      DType::kInt8,    DType::kInt16,    DType::kInt32,     DType::kInt64,      DType::kUInt8,
      DType::kUInt16,  DType::kUInt32,   DType::kUInt64,    DType::kFloat16,    DType::kFloat32,
      DType::kFloat64, DType::kBFloat16, DType::kComplex64, DType::kComplex128, DType::kBool};
  static constexpr const char* kCodes[] = {"int",    "uint",    "float", "opaque",
                                           "bfloat", "complex", "bool"};
  for (const DType dtype : kDtypes) {
    if (type.lanes != 1 || type.bits != 8 * dtype_size(dtype)) continue;
    const bool same = dtype == DType::kBool       ? type.code == abi::kBool
                      : dtype == DType::kBFloat16 ? type.code == abi::kBfloat
                      : is_floating(dtype)        ? type.code == abi::kFloat
                      : is_complex(dtype)         ? type.code == abi::kComplex
                      : is_signed_integer(dtype)  ? type.code == abi::kInt
                                                  : type.code == abi::kUInt;
    if (same) return dtype;
  }
  throw_buffer_error("elements of DLPack type ",
                     type.code < std::size(kCodes) ? kCodes[type.code] : "code ",
                     type.code < std::size(kCodes) ? std::string() : std::to_string(type.code),
                     " with ", static_cast<int>(type.bits), " bits and ",
                     static_cast<int>(type.lanes), " lanes have no tensor dtype");
}

Shape shape_from(const abi::TensorView& view) {
  if (view.ndim < 0 || view.ndim > kMaxRank) {
    throw_buffer_error("a tensor of rank ", view.ndim, " was given; ranks are 0 to ", kMaxRank);
  }
  if (view.ndim > 0 && view.shape == nullptr)
    throw_buffer_error("a tensor of rank ", view.ndim, " was given without its shape");
  int64_t dims[kMaxRank];
  for (int i = 0; i < view.ndim; ++i) {
    dims[i] = view.shape[i];
    if (dims[i] < 0) throw_buffer_error("a tensor was given whose extent ", i, " is ", dims[i]);
  }
  return Shape(std::span<const int64_t>(dims, static_cast<size_t>(view.ndim)));
}

void check_memory(const abi::TensorView& view) {
  const int32_t type = view.device.type;
  if (type == abi::kCpu || type == abi::kCudaHost || type == abi::kRocmHost) return;
  throw_buffer_error("a tensor on a device of DLPack type ", type, ", number ", view.device.id,
                     " was given; needed is one in the host's memory (type 1): copy it there");
}

bool is_compact(const abi::TensorView& view, const Shape& shape) {
  if (view.strides == nullptr) return true;
  int64_t stride = 1;
  for (int i = view.ndim; i-- > 0;) {
    if (shape.dim(i) != 1 && view.strides[i] != stride) return false;
    stride *= shape.dim(i);
  }
  return true;
}

// Row-major elements of what lies in other strides.
void gather(const abi::TensorView& view, const Shape& shape, const char* from, size_t size,
            char* to) {
  int64_t at[kMaxRank] = {};
  for (int64_t n = shape.num_elements(); n > 0; --n) {
    int64_t offset = 0;
    for (int i = 0; i < view.ndim; ++i) offset += at[i] * view.strides[i];
    std::memcpy(to, from + offset * static_cast<int64_t>(size), size);
    to += size;
    for (int i = view.ndim; i-- > 0;) {
      if (++at[i] < shape.dim(i)) break;
      at[i] = 0;
    }
  }
}

Tensor copied(const abi::TensorView& view, DType dtype, const Shape& shape, const char* data) {
  Tensor tensor(dtype, shape);
  if (is_compact(view, shape)) {
    std::memcpy(tensor.raw(), data, tensor.bytes());
  } else {
    gather(view, shape, data, dtype_size(dtype), static_cast<char*>(tensor.raw()));
  }
  if (dtype == DType::kBool) make_truth_values(tensor.raw(), tensor.bytes());
  return tensor;
}

size_t alignment_of(DType dtype) {
  return is_complex(dtype) ? dtype_size(dtype) / 2 : dtype_size(dtype);
}

// Why the memory cannot be used as it lies; null where it can.
const char* needs_copy(const abi::TensorView& view, DType dtype, const Shape& shape,
                       const char* data, size_t bytes) {
  if (!is_compact(view, shape)) return "it does not lie row by row";
  if (reinterpret_cast<uintptr_t>(data) % alignment_of(dtype) != 0)
    return "it is not aligned to its elements";
  if (dtype == DType::kBool && !are_truth_values(data, bytes)) return "its bools are not 0 or 1";
  return nullptr;
}

Tensor tensor_from(Taken taken, CopyWish copy) {
  if (const auto* versioned = taken.versioned(); versioned && versioned->version.major > 1) {
    throw_buffer_error("a capsule of DLPack ", versioned->version.major, ".",
                       versioned->version.minor, " was given; needed is version 1 or older");
  }
  const abi::TensorView& view = taken.view();
  check_memory(view);
  const DType dtype = dtype_from(view.dtype);
  const Shape shape = shape_from(view);
  if (shape.num_elements() == 0) return Tensor(dtype, shape);
  if (view.data == nullptr)
    throw_buffer_error("a tensor of shape ", shape, " without memory was given");
  const char* data = static_cast<const char*>(view.data) + view.byte_offset;
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * dtype_size(dtype);
  const char* why = needs_copy(view, dtype, shape, data, bytes);
  if (why != nullptr && copy == CopyWish::kNever)
    throw_buffer_error("copy = False, but the memory cannot be used as it is: ", why);
  if (why != nullptr || copy == CopyWish::kAlways) return copied(view, dtype, shape, data);
  return Tensor(dtype, shape, taken.lent(data, bytes));
}

// --- Whom to ask ---------------------------------------------------------------------------------

void check_device(PyObject* object) {
  Ref device = Ref::steal(
      parking([&] { return PyObject_CallMethod(object, "__dlpack_device__", nullptr); }));
  if (!device) throw PythonError();
  Ref type = checked(PySequence_GetItem(device.get(), 0));
  Ref number = checked(PyNumber_Index(type.get()));  // some give members of an enum
  abi::TensorView asked = {};
  asked.device.type = static_cast<int32_t>(PyLong_AsLong(number.get()));
  if (PyErr_Occurred()) throw PythonError();
  check_memory(asked);
}

// Of version 1 where the object knows it.
Ref capsule_of(PyObject* object) {
  Ref method = checked(PyObject_GetAttrString(object, "__dlpack__"));
  Ref none = checked(PyTuple_New(0));
  Ref newer = checked(Py_BuildValue("{s:(ii)}", "max_version", 1, 0));
  Ref capsule =
      Ref::steal(parking([&] { return PyObject_Call(method.get(), none.get(), newer.get()); }));
  if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
    PyErr_Clear();
    capsule = Ref::steal(parking([&] { return PyObject_CallNoArgs(method.get()); }));
  }
  if (!capsule) throw PythonError();
  if (!PyCapsule_CheckExact(capsule.get())) {
    throw_type_error("__dlpack__() of '", type_name_of(object), "' gave ", repr_of(capsule.get()),
                     ", which is no capsule");
  }
  return capsule;
}

// from_dlpack(object, copy): a concrete Tensor.
PyObject* from_dlpack(PyObject*, PyObject* const* args, Py_ssize_t nargs) {
  return guarded([&] {
    if (nargs != 2) throw_type_error("from_dlpack() takes an object and whether to copy");
    return with_prefix(
               [] { return "from_dlpack(): "; },
               [&] {
                 return new_concrete_tensor(tensor_from_dlpack(args[0], copy_wish_from(args[1])));
               })
        .release();
  });
}

}  // namespace

void add_dlpack(PyObject* module) {
  static PyMethodDef functions[] = {
      {"from_dlpack", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(from_dlpack)),
       METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  add_methods(module, functions);
}

Tensor tensor_from_dlpack(PyObject* object, CopyWish copy) {
  release_borrowed();
  if (PyCapsule_CheckExact(object)) return tensor_from(taken_from(object), copy);
  if (PyObject_HasAttrString(object, "__dlpack__") == 0 ||
      PyObject_HasAttrString(object, "__dlpack_device__") == 0) {
    throw_type_error("an object of type '", type_name_of(object), "' was given: ", repr_of(object),
                     "; needed is one with __dlpack__ and __dlpack_device__, or a DLPack capsule");
  }
  check_device(object);
  return tensor_from(taken_from(capsule_of(object).get()), copy);
}

}  // namespace treenail::python
