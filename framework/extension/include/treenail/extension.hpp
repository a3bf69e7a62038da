// SPDX-License-Identifier: Apache-2.0
// Functions on tensors for Python, in PyTorch's style: a pybind11 module whose functions take and
// give tn::ext::Tensor. They are called with tensors of Treenail, arrays of NumPy, PyTorch and
// others, which come by DLPack or the buffer protocol, without a copy where they lie row by row in
// the host's memory; what they give is a tensor of Treenail. Header only, over pybind11 alone.
//
//   tn::ext::Tensor twice(const tn::ext::Tensor& x) {
//     auto y = tn::ext::Tensor::empty<float>(x.sizes());
//     for (int64_t i = 0; i < x.numel(); ++i) y.mutable_data<float>()[i] = 2 * x.data<float>()[i];
//     return y;
//   }
//   PYBIND11_MODULE(example, m) { m.def("twice", &twice); }
#ifndef TREENAIL_EXTENSION_HPP_
#define TREENAIL_EXTENSION_HPP_

#include <pybind11/pybind11.h>

#include <complex>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tn {
namespace ext {

// DLPack's description of an element.
struct ElementType {
  uint8_t code = 2;  // 0 int, 1 uint, 2 float, 5 complex, 6 bool
  uint8_t bits = 32;
  uint16_t lanes = 1;
  size_t size() const { return static_cast<size_t>(bits) / 8; }
  bool operator==(const ElementType& other) const {
    return code == other.code && bits == other.bits && lanes == other.lanes;
  }
  std::string name() const {
    static const char* const kNames[] = {"int", "uint", "float", "opaque", "bfloat", "complex"};
    if (code == 6) return "bool";
    return (code < 6 ? kNames[code] : "type" + std::to_string(code)) + std::to_string(bits);
  }
};

template <class T>
constexpr ElementType element_type() {
  constexpr auto kBits = static_cast<uint8_t>(8 * sizeof(T));
  if constexpr (std::is_same_v<T, bool>)
    return {6, kBits, 1};
  else if constexpr (std::is_floating_point_v<T>)
    return {2, kBits, 1};
  else if constexpr (std::is_integral_v<T>)
    return {std::is_signed_v<T> ? uint8_t{0} : uint8_t{1}, kBits, 1};
  else if constexpr (std::is_same_v<T, std::complex<float>> ||
                     std::is_same_v<T, std::complex<double>>)
    return {5, kBits, 1};
  else
    static_assert(!sizeof(T), "no tensor has elements of this type");
}

namespace detail {

namespace py = pybind11;

// DLPack's structures, versions 0 and 1.
struct View {
  void* data;
  int32_t device_type, device_id;  // 1: the host's memory
  int32_t ndim;
  ElementType type;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};
struct Managed {
  View view;
  void* context;
  void (*deleter)(Managed*);
};
struct ManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*deleter)(ManagedVersioned*);
  uint64_t flags;
  View view;
};

// Ends, with the GIL, what was taken out of a capsule.
template <class M>
std::shared_ptr<void> owner_of(M* managed) {
  return std::shared_ptr<void>(managed, [](void* taken) {
    const py::gil_scoped_acquire gil;
    auto* self = static_cast<M*>(taken);
    if (self->deleter != nullptr) self->deleter(self);
  });
}

}  // namespace detail

// Dense elements, row by row. Copies share them.
class Tensor {
 public:
  Tensor() = default;
  // Elements that are not set yet.
  template <class T>
  static Tensor empty(std::vector<int64_t> sizes) {
    return Tensor(element_type<T>(), std::move(sizes));
  }

  ElementType type() const { return type_; }
  template <class T>
  bool is() const {
    return type_ == element_type<T>();
  }
  int64_t dim() const { return static_cast<int64_t>(sizes_.size()); }
  const std::vector<int64_t>& sizes() const { return sizes_; }
  // Axes from the end are negative. Errors: IndexError.
  int64_t size(int64_t axis) const {
    const int64_t at = axis < 0 ? axis + dim() : axis;
    if (at < 0 || at >= dim())
      throw pybind11::index_error("axis " + std::to_string(axis) + " of a tensor of rank " +
                                  std::to_string(dim()));
    return sizes_[static_cast<size_t>(at)];
  }
  int64_t numel() const {
    int64_t count = 1;
    for (const int64_t size : sizes_) count *= size;
    return count;
  }
  // Errors: TypeError where the elements are no T; ValueError for writing what was taken in.
  template <class T>
  const T* data() const {
    check_type(element_type<T>());
    return static_cast<const T*>(data_);
  }
  template <class T>
  T* mutable_data() {
    check_type(element_type<T>());
    if (!made_here_) throw pybind11::value_error("an argument's elements may only be read");
    return static_cast<T*>(data_);
  }

  static Tensor from_dlpack(const pybind11::object& capsule);
  static Tensor from_buffer(const pybind11::buffer& buffer);
  pybind11::object to_treenail() const;

 private:
  Tensor(ElementType type, std::vector<int64_t> sizes)
      : type_(type), sizes_(std::move(sizes)), made_here_(true) {
    for (const int64_t size : sizes_)
      if (size < 0) throw pybind11::value_error("a tensor with a negative size was asked for");
    owner_ =
        std::shared_ptr<void>(::operator new(bytes() + 1), [](void* p) { ::operator delete(p); });
    data_ = owner_.get();
  }
  // What lies at `data`, whose end `owner` brings; strides in bytes, null where it is dense.
  Tensor(ElementType type, std::vector<int64_t> sizes, const int64_t* strides, void* data,
         std::shared_ptr<void> owner)
      : type_(type), sizes_(std::move(sizes)) {
    const size_t alignment = type_.code == 5 ? type_.size() / 2 : type_.size();
    const bool aligned = reinterpret_cast<uintptr_t>(data) % (alignment == 0 ? 1 : alignment) == 0;
    if (numel() == 0 || (aligned && is_dense(strides))) {
      data_ = data;
      owner_ = std::move(owner);
      return;
    }
    Tensor copy(type_, sizes_);
    copy.gather(static_cast<const char*>(data), strides);
    *this = std::move(copy);
    made_here_ = false;
  }

  size_t bytes() const { return static_cast<size_t>(numel()) * type_.size(); }
  void check_type(ElementType wanted) const {
    if (type_ == wanted) return;
    throw pybind11::type_error("a tensor of " + type_.name() + " was given; needed is one of " +
                               wanted.name());
  }
  bool is_dense(const int64_t* strides) const {
    auto stride = static_cast<int64_t>(type_.size());
    for (size_t i = sizes_.size(); strides != nullptr && i-- > 0; stride *= sizes_[i])
      if (sizes_[i] != 1 && strides[i] != stride) return false;
    return true;
  }
  void gather(const char* from, const int64_t* strides) {
    if (is_dense(strides)) {  // not aligned
      std::memcpy(data_, from, bytes());
      return;
    }
    std::vector<int64_t> at(sizes_.size());
    auto* to = static_cast<char*>(data_);
    for (int64_t n = numel(); n > 0; --n, to += type_.size()) {
      int64_t offset = 0;
      for (size_t i = 0; i < at.size(); ++i) offset += at[i] * strides[i];
      std::memcpy(to, from + offset, type_.size());
      for (size_t i = at.size(); i-- > 0 && ++at[i] == sizes_[i];) at[i] = 0;
    }
  }

  ElementType type_;
  std::vector<int64_t> sizes_;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
  bool made_here_ = false;
};

inline Tensor Tensor::from_dlpack(const pybind11::object& capsule) {
  const bool versioned = PyCapsule_IsValid(capsule.ptr(), "dltensor_versioned") != 0;
  const char* name = versioned ? "dltensor_versioned" : "dltensor";
  void* managed = PyCapsule_GetPointer(capsule.ptr(), name);
  if (managed == nullptr || PyCapsule_SetName(capsule.ptr(), versioned ? "used_dltensor_versioned"
                                                                       : "used_dltensor") != 0)
    throw pybind11::error_already_set();
  auto* newer = static_cast<detail::ManagedVersioned*>(managed);
  auto* older = static_cast<detail::Managed*>(managed);
  std::shared_ptr<void> owner = versioned ? detail::owner_of(newer) : detail::owner_of(older);
  if (versioned && newer->major > 1)
    throw pybind11::buffer_error("DLPack " + std::to_string(newer->major) + " is not known here");
  const detail::View& view = versioned ? newer->view : older->view;
  if (view.device_type != 1 && view.device_type != 3 && view.device_type != 11)
    throw pybind11::buffer_error("a tensor on a device of DLPack type " +
                                 std::to_string(view.device_type) +
                                 " was given; needed is one in the host's memory");
  if (view.type.lanes != 1 || view.type.bits % 8 != 0 || view.type.bits == 0)
    throw pybind11::buffer_error("elements of " + view.type.name() + " cannot be taken");
  const std::vector<int64_t> sizes(view.shape, view.shape + view.ndim);
  std::vector<int64_t> strides;
  for (int32_t i = 0; view.strides != nullptr && i < view.ndim; ++i)
    strides.push_back(view.strides[i] * static_cast<int64_t>(view.type.size()));
  return Tensor(view.type, sizes, view.strides == nullptr ? nullptr : strides.data(),
                static_cast<char*>(view.data) + view.byte_offset, std::move(owner));
}

inline Tensor Tensor::from_buffer(const pybind11::buffer& buffer) {
  auto info = std::make_shared<pybind11::buffer_info>(buffer.request());
  const char kind = info->format.empty() ? 'B' : info->format.back();
  ElementType type{0, static_cast<uint8_t>(8 * info->itemsize), 1};
  if (std::strchr("?", kind) != nullptr)
    type.code = 6;
  else if (std::strchr("efdg", kind) != nullptr)
    type.code = info->format.size() > 1 && info->format[info->format.size() - 2] == 'Z' ? 5 : 2;
  else if (std::strchr("BHILQN", kind) != nullptr)
    type.code = 1;
  else if (std::strchr("bhilqn", kind) == nullptr)
    throw pybind11::buffer_error("a buffer of format \"" + info->format +
                                 "\" was given; needed are numbers");
  if (info->format[0] == '>' || info->format[0] == '!')
    throw pybind11::buffer_error("a buffer in another byte order was given");
  const std::vector<int64_t> sizes(info->shape.begin(), info->shape.end());
  const std::vector<int64_t> strides(info->strides.begin(), info->strides.end());
  std::shared_ptr<void> owner(info.get(), [info](void*) mutable {
    const pybind11::gil_scoped_acquire gil;
    info.reset();
  });
  return Tensor(type, sizes, strides.data(), info->ptr, std::move(owner));
}

// A tensor of Treenail over the same elements.
inline pybind11::object Tensor::to_treenail() const {
  struct Exported {
    Tensor tensor;
    std::vector<int64_t> strides;
    detail::ManagedVersioned managed;
  };
  auto exported =
      std::make_unique<Exported>(Exported{*this, std::vector<int64_t>(sizes_.size()), {}});
  int64_t stride = 1;
  for (size_t i = sizes_.size(); i-- > 0; stride *= sizes_[i]) exported->strides[i] = stride;
  exported->managed = {1, 0, exported.get(), nullptr, 1, {}};  // 1: read-only
  exported->managed.deleter = [](detail::ManagedVersioned* self) {
    delete static_cast<Exported*>(self->context);
  };
  exported->managed.view = {data_,
                            1,
                            0,
                            static_cast<int32_t>(sizes_.size()),
                            type_,
                            exported->tensor.sizes_.data(),
                            exported->strides.data(),
                            0};
  PyObject* capsule = PyCapsule_New(&exported->managed, "dltensor_versioned", nullptr);
  if (capsule == nullptr) throw pybind11::error_already_set();
  exported.release();  // NOLINT(bugprone-unused-return-value): from_dlpack ends it
  const auto held = pybind11::reinterpret_steal<pybind11::object>(capsule);
  return pybind11::module_::import("treenail").attr("from_dlpack")(held);
}

}  // namespace ext
}  // namespace tn

namespace pybind11 {
namespace detail {

template <>
struct type_caster<tn::ext::Tensor> {
#if PYBIND11_VERSION_HEX >= 0x02080000
  PYBIND11_TYPE_CASTER(tn::ext::Tensor, const_name("Tensor"));
#else
  PYBIND11_TYPE_CASTER(tn::ext::Tensor, _("Tensor"));
#endif

  bool load(handle source, bool) {
    const bool is_buffer = PyObject_CheckBuffer(source.ptr()) != 0;
    if (hasattr(source, "__dlpack__") && load_dlpack(source, is_buffer)) return true;
    if (!is_buffer) return false;
    value = tn::ext::Tensor::from_buffer(reinterpret_borrow<buffer>(source));
    return true;
  }
  static handle cast(const tn::ext::Tensor& tensor, return_value_policy, handle) {
    return tensor.to_treenail().release();
  }

 private:
  // False where its DLPack will not give it, but its buffer may: of NumPy's read-only arrays.
  bool load_dlpack(handle source, bool is_buffer) {
    try {
      value = tn::ext::Tensor::from_dlpack(capsule_of(source));
      return true;
    } catch (error_already_set& error) {
      if (!is_buffer || !error.matches(PyExc_BufferError)) throw;
    }
    return false;
  }
  // Of version 1 where the object knows it.
  static object capsule_of(handle source) {
    try {
      return source.attr("__dlpack__")(arg("max_version") = make_tuple(1, 0));
    } catch (error_already_set& error) {
      if (!error.matches(PyExc_TypeError)) throw;
    }
    return source.attr("__dlpack__")();
  }
};

}  // namespace detail
}  // namespace pybind11

#endif  // TREENAIL_EXTENSION_HPP_
