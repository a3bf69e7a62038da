// SPDX-License-Identifier: Apache-2.0
// For adapters of libraries that may use OpenMP, whose count of threads belongs to a thread.
#pragma once

#include <dlfcn.h>

extern "C" const void* treenail_adapter(void);

namespace treenail {

// One OpenMP thread for what this thread calls while it lives.
class OneThread {
 public:
  OneThread() {
    if (openmp().set == nullptr) return;
    found_ = openmp().get();
    if (found_ != 1) openmp().set(1);
  }
  ~OneThread() {
    if (found_ != 1) openmp().set(found_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  struct OpenMp {
    int (*get)() = nullptr;
    void (*set)(int) = nullptr;
  };
  // Looked up in this adapter's own dependencies, never linked: the library decides which runtime
  // there is.
  static const OpenMp& openmp() {
    static const OpenMp functions = [] {
      OpenMp found;
      Dl_info self;
      if (::dladdr(reinterpret_cast<void*>(&treenail_adapter), &self) == 0) return found;
      void* handle = ::dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
      if (handle == nullptr) return found;
      found.get = reinterpret_cast<int (*)()>(::dlsym(handle, "omp_get_max_threads"));
      found.set = reinterpret_cast<void (*)(int)>(::dlsym(handle, "omp_set_num_threads"));
      if (found.get == nullptr) found.set = nullptr;
      return found;
    }();
    return functions;
  }
  int found_ = 1;
};

}  // namespace treenail
