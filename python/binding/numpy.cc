// SPDX-License-Identifier: Apache-2.0
// See numpy.h. Borrowed arrays: the tensor's buffer owns a reference, a loan (loans.h).
#include "python/binding/numpy.h"
#include "framework/tensor/truth_values.h"

#include <bit>
#include <cstring>
#include <vector>

#include "framework/device/allocator.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/transfer.h"
#include "python/binding/gil.h"
#include "python/binding/module.h"
#include "python/binding/numpy_abi.h"

namespace treenail::python {
namespace {

namespace abi = numpy_abi;

// Below this a copy costs less than borrowing, and the caller may change the array at once.
constexpr size_t kSmallBytes = 1024;

void** table = nullptr;  // NumPy's function table, once loaded
PyTypeObject* array_type = nullptr;
PyTypeObject* scalar_type = nullptr;

template <class Fn>
Fn slot(int index) {
  return reinterpret_cast<Fn>(table[index]);
}

abi::Array* array_of(PyObject* object) { return reinterpret_cast<abi::Array*>(object); }

DType integer_dtype(size_t bytes, bool is_signed) {
  switch (bytes) {
    case 1:
      return is_signed ? DType::kInt8 : DType::kUInt8;
    case 2:
      return is_signed ? DType::kInt16 : DType::kUInt16;
    case 4:
      return is_signed ? DType::kInt32 : DType::kUInt32;
    default:
      return is_signed ? DType::kInt64 : DType::kUInt64;
  }
}

DType dtype_of_descr(const abi::Descr* descr) {
  switch (descr->type_num) {
    case abi::kBool:
      return DType::kBool;
    case abi::kByte:
      return DType::kInt8;
    case abi::kUByte:
      return DType::kUInt8;
    case abi::kShort:
      return DType::kInt16;
    case abi::kUShort:
      return DType::kUInt16;
    case abi::kInt:
      return DType::kInt32;
    case abi::kUInt:
      return DType::kUInt32;
    case abi::kLong:
      return integer_dtype(sizeof(long), true);
    case abi::kULong:
      return integer_dtype(sizeof(unsigned long), false);
    case abi::kLongLong:
      return DType::kInt64;
    case abi::kULongLong:
      return DType::kUInt64;
    case abi::kFloat:
      return DType::kFloat32;
    case abi::kDouble:
      return DType::kFloat64;
    case abi::kHalf:
      return DType::kFloat16;
    case abi::kCFloat:
      return DType::kComplex64;
    case abi::kCDouble:
      return DType::kComplex128;
    case abi::kObject:
    case abi::kString:
    case abi::kUnicode:
      return DType::kString;
    default:
      break;
  }
  // ml_dtypes registers its types at run time.
  const std::string_view name = descr->typeobj->tp_name;
  return name == "bfloat16" || name.ends_with(".bfloat16") ? DType::kBFloat16 : DType::kInvalid;
}

int type_number(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return abi::kBool;
    case DType::kInt8:
      return abi::kByte;
    case DType::kUInt8:
      return abi::kUByte;
    case DType::kInt16:
      return abi::kShort;
    case DType::kUInt16:
    case DType::kBFloat16:
      return abi::kUShort;
    case DType::kInt32:
      return abi::kInt;
    case DType::kUInt32:
      return abi::kUInt;
    case DType::kInt64:
      return sizeof(long) == 8 ? abi::kLong : abi::kLongLong;
    case DType::kUInt64:
      return sizeof(long) == 8 ? abi::kULong : abi::kULongLong;
    case DType::kFloat16:
      return abi::kHalf;
    case DType::kFloat32:
      return abi::kFloat;
    case DType::kFloat64:
      return abi::kDouble;
    case DType::kComplex64:
      return abi::kCFloat;
    case DType::kComplex128:
      return abi::kCDouble;
    case DType::kString:
      return abi::kObject;
    default:
      throw_type_error("a value of dtype ", dtype_name(dtype), " has no NumPy form");
  }
}

Ref bfloat16_type() {
  PyObject* modules = PyImport_GetModuleDict();  // borrowed
  PyObject* ml_dtypes = PyDict_GetItemString(modules, "ml_dtypes");
  if (ml_dtypes == nullptr || ml_dtypes == Py_None) return {};
  Ref type = Ref::steal(PyObject_GetAttrString(ml_dtypes, "bfloat16"));
  if (!type) PyErr_Clear();
  return type;
}

// A new reference.
abi::Descr* descr_of(DType dtype) {
  load_numpy();
  if (dtype == DType::kBFloat16) {
    if (Ref type = bfloat16_type()) {
      Ref numpy = checked(PyImport_ImportModule("numpy"));
      return reinterpret_cast<abi::Descr*>(checked(parking([&] {
                                             return PyObject_CallMethod(numpy.get(), "dtype", "O",
                                                                        type.get());
                                           })).release());
    }
  }
  abi::Descr* descr = slot<abi::DescrFromTypeFn>(abi::kDescrFromType)(type_number(dtype));
  if (descr == nullptr) throw PythonError();
  return descr;
}

bool swapped(const abi::Descr* descr) {
  return descr->byteorder == (std::endian::native == std::endian::little ? '>' : '<');
}

// --- Borrowed arrays -----------------------------------------------------------------------------

void drop_array(void* array) { Py_DECREF(static_cast<PyObject*>(array)); }

Shape shape_of_array(const abi::Array* array) {
  if (array->nd > kMaxRank) {
    throw invalid_argument("an array of rank ", array->nd, " was given; tensors have rank ",
                           kMaxRank, " at most");
  }
  int64_t dims[kMaxRank];
  for (int i = 0; i < array->nd; ++i) dims[i] = array->dimensions[i];
  return Shape(std::span<const int64_t>(dims, static_cast<size_t>(array->nd)));
}

Tensor tensor_over(PyObject* object, DType dtype, bool may_borrow) {
  abi::Array* array = array_of(object);
  const Shape shape = shape_of_array(array);
  const size_t bytes = static_cast<size_t>(shape.num_elements()) * dtype_size(dtype);
  if (!may_borrow || bytes <= kSmallBytes ||
      (dtype == DType::kBool && !are_truth_values(array->data, bytes))) {
    Tensor tensor(dtype, shape);
    if (bytes != 0) std::memcpy(tensor.raw(), array->data, bytes);
    if (dtype == DType::kBool) make_truth_values(tensor.raw(), bytes);
    return tensor;
  }
  auto* loan = new Loan(drop_array, new_ref(object));
  return Tensor(dtype, shape, Buffer::borrow(array->data, bytes, end_later, loan));
}

// --- Strings -------------------------------------------------------------------------------------

Tensor strings_from_array(PyObject* object) {
  abi::Array* array = array_of(object);
  const Shape shape = shape_of_array(array);
  Ref objects = Ref::borrow(object);
  if (array->descr->type_num != abi::kObject || (array->flags & abi::kCContiguous) == 0) {
    // 'S' keeps its bytes, 'U' becomes str objects: NumPy knows how.
    objects = checked(slot<abi::FromAnyFn>(abi::kFromAny)(
        object, descr_of(DType::kString), 0, 0,
        abi::kCContiguous | abi::kForceCast | abi::kEnsureCopy, nullptr));
  }
  Tensor tensor(DType::kString, shape);
  auto* out = tensor.data<StringElement>();
  auto* const* elements = reinterpret_cast<PyObject**>(array_of(objects.get())->data);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    if (elements[i] == nullptr || !(PyUnicode_Check(elements[i]) || PyBytes_Check(elements[i]))) {
      throw_type_error("element ", i, " of an object array is ",
                       elements[i] ? repr_of(elements[i]) : std::string("null"),
                       "; only str and bytes make a string tensor");
    }
    out[i] = StringElement(text_of(elements[i], "a string element"));
  }
  return tensor;
}

Ref bytes_object(const StringElement& element) {
  const std::string_view view = element.view();
  return checked(PyBytes_FromStringAndSize(view.data(), static_cast<Py_ssize_t>(view.size())));
}

// --- Casts ---------------------------------------------------------------------------------------

int kind_rank(DType dtype) {
  if (dtype == DType::kBool) return 0;
  if (is_integer(dtype)) return 1;
  if (is_floating(dtype)) return 2;
  if (is_complex(dtype)) return 3;
  return -1;
}

Tensor bfloat16_from(PyObject* object, DType own, Casting casting) {
  if (own == DType::kUInt16) {  // the bits themselves
    Tensor bits = tensor_from_numpy(object, DType::kUInt16, casting, false);
    return Tensor(DType::kBFloat16, bits.shape(), bits.buffer());
  }
  const Tensor floats = tensor_from_numpy(object, DType::kFloat32, casting, false);
  Tensor out(DType::kBFloat16, floats.shape());
  for (int64_t i = 0; i < floats.num_elements(); ++i) {
    out.data<BFloat16>()[i].bits = float_to_bfloat16_bits(floats.data<float>()[i]);
  }
  return out;
}

// Of an array in any layout; nothing where it is empty.
Ref first_element(PyObject* object) {
  Ref flat = checked(PyObject_GetAttrString(object, "flat"));
  Ref iterator = checked(PyObject_GetIter(flat.get()));
  Ref element = Ref::steal(PyIter_Next(iterator.get()));
  if (!element && PyErr_Occurred()) throw PythonError();
  return element;
}

[[noreturn]] void throw_object_element(PyObject* element, int64_t index, DType wanted) {
  throw_type_error("an object array was given, whose element ", index, " is ", repr_of(element),
                   " of type '", type_name_of(element), "'; needed is dtype ", dtype_name(wanted));
}

Ref converted(PyObject* object, DType own, DType wanted, Casting casting) {
  if (own == wanted) return cast_array(object, wanted);  // another layout or byte order
  const int from = kind_rank(own);
  const int to = kind_rank(wanted);
  if (to >= 0 && is_object_array(object)) {
    const Ref first = first_element(object);
    if (first) throw_object_element(first.get(), 0, wanted);
  }
  if (from < 0 || to < 0 || (casting == Casting::kSafeKind && from > to)) {
    throw_type_error("an array of dtype ", dtype_name(own), " was given where ", dtype_name(wanted),
                     " is needed; convert it with astype() if that is meant");
  }
  Ref result = cast_array(object, wanted);
  if (casting == Casting::kSafeKind && from == 1 && to == 1 && !same_values(object, result.get())) {
    throw_value_error("an array of dtype ", dtype_name(own),
                      " holds values that do not fit the needed dtype ", dtype_name(wanted));
  }
  return result;
}

// --- Out -----------------------------------------------------------------------------------------

void drop_buffer(PyObject* capsule) {
  auto* buffer = static_cast<Buffer*>(PyCapsule_GetPointer(capsule, nullptr));
  if (buffer != nullptr) buffer->unref();
}

Ref string_array(const Tensor& tensor, const Py_intptr_t* dims) {
  Ref array = checked(slot<abi::NewFromDescrFn>(abi::kNewFromDescr)(
      array_type, descr_of(DType::kString), tensor.rank(), dims, nullptr, nullptr, 0, nullptr));
  auto** out = reinterpret_cast<PyObject**>(array_of(array.get())->data);
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    PyObject* old = out[i];
    out[i] = bytes_object(tensor.data<StringElement>()[i]).release();
    Py_XDECREF(old);
  }
  return array;
}

void import_numpy() {
  if (Ref::steal(PyImport_ImportModule("numpy"))) return;
  RaisedException raised;
  if (!raised.is(PyExc_ImportError)) raised.raise();
  throw_python(PyExc_ImportError,
               concat("arrays need NumPy, which ", repr_of(PySys_GetObject("executable")),
                      " cannot import (", raised.text(),
                      "); install it (Debian, Fedora: python3-numpy, PyPI: numpy)"));
}

}  // namespace

bool numpy_loaded() {
  if (table != nullptr) return true;
  PyObject* modules = PyImport_GetModuleDict();
  if (PyDict_GetItemString(modules, "numpy") == nullptr) return false;
  load_numpy();
  return true;
}

void load_numpy() {
  if (table != nullptr) return;
  import_numpy();
  Ref module = Ref::steal(PyImport_ImportModule("numpy._core._multiarray_umath"));  // NumPy 2
  if (!module) {
    if (!PyErr_ExceptionMatches(PyExc_ImportError)) throw PythonError();
    PyErr_Clear();
    module = checked(PyImport_ImportModule("numpy.core._multiarray_umath"));
  }
  Ref capsule = checked(PyObject_GetAttrString(module.get(), "_ARRAY_API"));
  auto** found = static_cast<void**>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (found == nullptr) throw PythonError();
  const unsigned int version =
      reinterpret_cast<abi::GetVersionFn>(found[abi::kGetNDArrayCVersion])();
  if ((version >> 24) != 1 && (version >> 24) != 2) {
    throw_python(
        PyExc_ImportError,
        concat("treenail knows the C interface of NumPy 1 and 2; this NumPy offers version ",
               static_cast<int64_t>(version >> 24)));
  }
  array_type = static_cast<PyTypeObject*>(found[abi::kArrayType]);
  scalar_type = static_cast<PyTypeObject*>(found[abi::kGenericScalarType]);
  table = found;
}

bool is_array(PyObject* object) {
  if (table != nullptr && Py_TYPE(object) == array_type) return true;
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyList_CheckExact(object))
    return false;
  return numpy_loaded() && PyObject_TypeCheck(object, array_type);
}

bool is_numpy_scalar(PyObject* object) {
  if (PyLong_CheckExact(object) || PyFloat_CheckExact(object) || PyList_CheckExact(object))
    return false;
  return numpy_loaded() && PyObject_TypeCheck(object, scalar_type);
}

DType dtype_of_numpy(PyObject* object) {
  if (PyObject_TypeCheck(object, array_type)) return dtype_of_descr(array_of(object)->descr);
  return dtype_of_descr(array_of(as_array(object).get())->descr);
}

Tensor tensor_from_numpy(PyObject* object, DType wanted, Casting casting, bool may_borrow) {
  load_numpy();
  Ref held;
  if (!PyObject_TypeCheck(object, array_type)) {
    held = as_array(object);
    object = held.get();
  }
  const abi::Array* array = array_of(object);
  const DType own = dtype_of_descr(array->descr);
  if (own == DType::kInvalid) {
    Ref descr = checked(PyObject_GetAttrString(object, "dtype"));
    throw_type_error("an array of NumPy dtype ", repr_of(descr.get()),
                     " has no counterpart among tensor dtypes");
  }
  if (wanted == DType::kInvalid) wanted = own;
  if (own == DType::kString && wanted == DType::kString) return strings_from_array(object);
  constexpr int kNeeded = abi::kCContiguous | abi::kAligned;
  if (own == wanted && (array->flags & kNeeded) == kNeeded && !swapped(array->descr)) {
    return tensor_over(object, wanted, may_borrow);
  }
  if (wanted == DType::kBFloat16 && own != DType::kBFloat16)
    return bfloat16_from(object, own, casting);
  Ref fitting = converted(object, own, wanted, casting);
  return tensor_over(fitting.get(), wanted, may_borrow);
}

bool is_object_array(PyObject* array) { return array_of(array)->descr->type_num == abi::kObject; }

Ref cast_array(PyObject* array, DType wanted) {
  return checked(slot<abi::FromAnyFn>(abi::kFromAny)(
      array, descr_of(wanted), 0, 0,
      abi::kCContiguous | abi::kAligned | abi::kNotSwapped | abi::kForceCast, nullptr));
}

// NumPy wraps integers silently when it casts.
bool same_values(PyObject* before, PyObject* after) {
  Ref equal = checked(PyObject_RichCompare(before, after, Py_EQ));
  if (!is_array(equal.get())) return checked(PyObject_IsTrue(equal.get())) == 1;
  Ref all = checked(parking([&] { return PyObject_CallMethod(equal.get(), "all", nullptr); }));
  return checked(PyObject_IsTrue(all.get())) == 1;
}

void check_number_objects(PyObject* array, DType wanted) {
  Ref flat = checked(PyObject_GetAttrString(array, "flat"));
  Ref iterator = checked(PyObject_GetIter(flat.get()));
  for (int64_t i = 0; Ref element = Ref::steal(PyIter_Next(iterator.get())); ++i) {
    if (PyNumber_Check(element.get()) == 0) throw_object_element(element.get(), i, wanted);
  }
  if (PyErr_Occurred()) throw PythonError();
}

Ref as_array(PyObject* object) {
  load_numpy();
  return checked(slot<abi::FromAnyFn>(abi::kFromAny)(object, nullptr, 0, 0, 0, nullptr));
}

Tensor on_host(const Tensor& tensor) {
  if (tensor.device() == nullptr) return tensor;
  const GilRelease release;
  return in_memory_of(tensor, nullptr);
}

Ref array_from_tensor(Tensor&& tensor, bool scalars) {
  load_numpy();
  if (tensor.device() != nullptr) return array_from_tensor(on_host(tensor), scalars);
  const DType dtype = tensor.dtype();
  if (scalars && tensor.rank() == 0) {
    if (dtype == DType::kString) return bytes_object(*tensor.data<StringElement>());
    abi::Descr* descr = descr_of(dtype);
    Ref held = Ref::steal(reinterpret_cast<PyObject*>(descr));
    return checked(slot<abi::ScalarFn>(abi::kScalar)(tensor.raw(), descr, nullptr));
  }
  Py_intptr_t dims[kMaxRank];
  for (int i = 0; i < tensor.rank(); ++i) dims[i] = tensor.dim(i);
  if (dtype == DType::kString) return string_array(tensor, dims);
  const size_t bytes = tensor.bytes();
  const auto create = slot<abi::NewFromDescrFn>(abi::kNewFromDescr);
  if (bytes <= kSmallBytes || !tensor.exclusive()) {
    Ref array = checked(
        create(array_type, descr_of(dtype), tensor.rank(), dims, nullptr, nullptr, 0, nullptr));
    if (bytes != 0) std::memcpy(array_of(array.get())->data, tensor.raw(), bytes);
    return array;
  }
  Ref array =
      checked(create(array_type, descr_of(dtype), tensor.rank(), dims, nullptr, tensor.raw(),
                     abi::kCContiguous | abi::kAligned | abi::kWriteable, nullptr));
  Buffer* buffer = tensor.buffer().get();
  buffer->ref();
  Ref capsule = Ref::steal(PyCapsule_New(buffer, nullptr, drop_buffer));
  if (!capsule) {
    buffer->unref();
    throw PythonError();
  }
  checked(slot<abi::SetBaseObjectFn>(abi::kSetBaseObject)(array.get(), capsule.release()));
  return array;
}

Ref numpy_scalar_type(DType dtype) {
  if (dtype == DType::kResource || dtype == DType::kVariant) {
    throw_type_error("dtype ", dtype_name(dtype), " has no NumPy type");
  }
  Ref descr = Ref::steal(reinterpret_cast<PyObject*>(descr_of(dtype)));
  return Ref::borrow(
      reinterpret_cast<PyObject*>(reinterpret_cast<abi::Descr*>(descr.get())->typeobj));
}

DType dtype_from_numpy(PyObject* object) {
  load_numpy();
  Ref numpy = checked(PyImport_ImportModule("numpy"));
  Ref descr =
      Ref::steal(parking([&] { return PyObject_CallMethod(numpy.get(), "dtype", "O", object); }));
  if (!descr) {
    PyErr_Clear();
    return DType::kInvalid;
  }
  return dtype_of_descr(reinterpret_cast<abi::Descr*>(descr.get()));
}

}  // namespace treenail::python
