// SPDX-License-Identifier: Apache-2.0
// x[1], x[:, -1], x[..., None] with immediate execution, where the subscript is made of plain ints
// and slices. _slicing.py says what subscripts mean.
#include <array>
#include <map>
#include <string>

#include "framework/op/op_registry.h"
#include "python/binding/op_call.h"
#include "python/binding/quick_call.h"
#include "python/binding/quick_constants.h"
#include "python/binding/tensor_type.h"

namespace treenail::python {
namespace {

constexpr size_t kMostItems = 8;

// One bit per item of the subscript.
struct Masks {
  int begin = 0, end = 0, ellipsis = 0, new_axis = 0, shrink_axis = 0;
  auto operator<=>(const Masks&) const = default;
};

// Kept for the masks that have been seen: there are few.
const NamedAttrs& attrs_of(const Masks& masks) {
  static auto* const known = new std::map<Masks, NamedAttrs>();
  NamedAttrs& attrs = (*known)[masks];
  if (attrs.empty()) {
    for (const auto& [name, mask] :
         {std::pair("begin_mask", masks.begin), std::pair("end_mask", masks.end),
          std::pair("ellipsis_mask", masks.ellipsis), std::pair("new_axis_mask", masks.new_axis),
          std::pair("shrink_axis_mask", masks.shrink_axis)})
      attrs.emplace_back(name, static_cast<int64_t>(mask));
  }
  return attrs;
}

class Ranges {
 public:
  // False where the item is of another kind.
  bool take(PyObject* item) {
    const int bit = 1 << size_;
    begin_[size_] = end_[size_] = 0;
    strides_[size_] = 1;
    if (item == Py_None) {
      masks_.new_axis |= bit;
    } else if (item == Py_Ellipsis) {
      masks_.ellipsis |= bit;
    } else if (PyLong_CheckExact(item)) {
      if (!number(item, begin_[size_]) || begin_[size_] == INT32_MAX) return false;
      end_[size_] = begin_[size_] + 1;
      masks_.shrink_axis |= bit;
    } else if (PySlice_Check(item)) {
      const auto* const slice = reinterpret_cast<const PySliceObject*>(item);
      if (!bound(slice->start, begin_[size_], masks_.begin, bit) ||
          !bound(slice->stop, end_[size_], masks_.end, bit))
        return false;
      if (slice->step != Py_None && !number(slice->step, strides_[size_])) return false;
    } else {
      return false;
    }
    ++size_;
    return true;
  }

  // Null where a vector is too long to be kept.
  Ref of(const ImmediateTensor& x) const {
    static const OpDef& def = OpRegistry::instance().get("StridedSlice");
    const QuickConstant begin = quick_integers({begin_.data(), size_});
    const QuickConstant end = quick_integers({end_.data(), size_});
    const QuickConstant strides = quick_integers({strides_.data(), size_});
    const ImmediateTensor* const inputs[] = {&x, begin.get(), end.get(), strides.get()};
    return quick_call(def, inputs, attrs_of(masks_));
  }

 private:
  static bool number(PyObject* object, int32_t& value) {
    int overflow = 0;
    if (!PyLong_CheckExact(object)) return false;
    const int64_t wide = PyLong_AsLongLongAndOverflow(object, &overflow);
    value = static_cast<int32_t>(wide);
    return overflow == 0 && value == wide;
  }
  static bool bound(PyObject* object, int32_t& value, int& mask, int bit) {
    if (object != Py_None) return number(object, value);
    mask |= bit;
    return true;
  }

  size_t size_ = 0;
  std::array<int32_t, kMostItems> begin_, end_, strides_;
  Masks masks_;
};

}  // namespace

Ref quick_subscript(PyObject* tensor, PyObject* key) {
  const ImmediateTensor* const x = immediate_value(tensor);
  if (x == nullptr || current_mode() != CallMode::kImmediate) return {};
  Ranges ranges;
  if (!PyTuple_CheckExact(key)) return ranges.take(key) ? ranges.of(*x) : Ref();
  const auto size = static_cast<size_t>(PyTuple_GET_SIZE(key));
  if (size == 0 || size > kMostItems) return {};
  for (size_t i = 0; i < size; ++i)
    if (!ranges.take(PyTuple_GET_ITEM(key, static_cast<Py_ssize_t>(i)))) return {};
  return ranges.of(*x);
}

}  // namespace treenail::python
