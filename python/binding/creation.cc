// SPDX-License-Identifier: Apache-2.0
// See creation.h. A code object once seen is kept for good: what the graph stores is its address.
#include "python/binding/creation.h"

#if PY_VERSION_HEX < 0x030B0000
#include <frameobject.h>
#endif

#include <algorithm>
#include <array>
#include <span>
#include <unordered_map>

#include "framework/base/hash.h"

namespace treenail::python {
namespace {

// At most so many frames are looked at: deep recursion must not make every op slow.
constexpr int kMaxWalk = 64;

std::string package_directory;  // NOLINT(runtime/string): lives as long as the process
std::unordered_map<PyCodeObject*, bool>& known_codes() {
  static auto* codes = new std::unordered_map<PyCodeObject*, bool>();
  return *codes;
}

// Whether frames of `code` are left out. Keeps `code` alive.
bool own_code(PyCodeObject* code) {
  auto [it, inserted] = known_codes().try_emplace(code, false);
  if (inserted) {
    Py_INCREF(reinterpret_cast<PyObject*>(code));
    Py_ssize_t size = 0;
    const char* file = PyUnicode_AsUTF8AndSize(code->co_filename, &size);
    if (file == nullptr) PyErr_Clear();
    const std::string_view name =
        file ? std::string_view(file, static_cast<size_t>(size)) : std::string_view();
    it->second = (!package_directory.empty() && name.starts_with(package_directory)) ||
                 name.starts_with("<frozen ");
  }
  return it->second;
}

// Nodes made in one place, as in a loop, share what tells it. Guarded by the GIL, like the codes.
std::shared_ptr<const CreationStack> shared_stack(std::span<const CreationFrame> frames) {
  static auto* stacks = new std::array<std::shared_ptr<const CreationStack>, 256>();
  uint64_t hash = 0;
  for (const CreationFrame& frame : frames) {
    hash = hash_combine(hash, static_cast<uint64_t>(reinterpret_cast<uintptr_t>(frame.code)) ^
                                  static_cast<uint64_t>(frame.instruction));
  }
  std::shared_ptr<const CreationStack>& known = (*stacks)[hash % stacks->size()];
  if (known == nullptr || !std::ranges::equal(*known, frames))
    known = std::make_shared<const CreationStack>(frames.begin(), frames.end());
  return known;
}

int byte_offset(PyFrameObject* frame) {
#if PY_VERSION_HEX >= 0x030B0000
  return PyFrame_GetLasti(frame);
#elif PY_VERSION_HEX >= 0x030A0000
  return frame->f_lasti * 2;
#else
  return frame->f_lasti;
#endif
}

}  // namespace

void set_package_directory(std::string directory) {
  package_directory = std::move(directory);
  known_codes().clear();
}

std::shared_ptr<const CreationStack> capture_creation() {
  CreationFrame frames[kMaxCreationFrames];
  int count = 0;
  PyFrameObject* frame = PyThreadState_GetFrame(PyThreadState_Get());
  for (int walked = 0; frame != nullptr && walked < kMaxWalk && count < kMaxCreationFrames;
       ++walked) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (!own_code(code)) frames[count++] = {code, byte_offset(frame)};
    Py_DECREF(reinterpret_cast<PyObject*>(code));
    PyFrameObject* back = PyFrame_GetBack(frame);
    Py_DECREF(reinterpret_cast<PyObject*>(frame));
    frame = back;
  }
  Py_XDECREF(reinterpret_cast<PyObject*>(frame));
  if (count == 0) return nullptr;
  return shared_stack({frames, static_cast<size_t>(count)});
}

Ref creation_entries(const Node& node) {
  Ref list = checked(PyList_New(0));
  if (!node.creation()) return list;
  const CreationStack& stack = *node.creation();
  for (auto it = stack.rbegin(); it != stack.rend(); ++it) {
    auto* code = static_cast<PyCodeObject*>(const_cast<void*>(it->code));
    if (!known_codes().contains(code)) continue;  // recorded by another language binding
    Ref entry = checked(Py_BuildValue("(OiO)", code->co_filename,
                                      PyCode_Addr2Line(code, it->instruction), code->co_name));
    checked(PyList_Append(list.get(), entry.get()));
  }
  return list;
}

}  // namespace treenail::python
