// SPDX-License-Identifier: Apache-2.0
#include "framework/tensor/prepacked.h"

#include <algorithm>
#include <mutex>

#include "framework/base/error.h"

namespace treenail {

// What is leaked here, a run that was in flight at the fork may still read.
void PrepackedForms::begin_anew_if_abandoned() {
  if (mutex_.abandoned()) begin_anew(forms_);
}

const std::byte* PrepackedForms::find(const PackKey& key, size_t bytes,
                                      FunctionRef<void(std::byte*)> make) {
  // Who needs the same form meanwhile waits for it instead of making it again.
  const std::lock_guard lock(mutex_);
  begin_anew_if_abandoned();
  const auto form =
      std::find_if(forms_.begin(), forms_.end(), [&](const Form& f) { return f.key == key; });
  if (form == forms_.end()) {
    forms_.push_back({key, nullptr});
    return nullptr;
  }
  if (!form->bytes) {
    IntrusivePtr<Buffer> made;
    try {
      made = Buffer::allocate(DType::kUInt8, static_cast<int64_t>(bytes));
    } catch (const Error& error) {
      if (error.code() != Code::kResourceExhausted) throw;
      return nullptr;
    }
    make(static_cast<std::byte*>(made->data()));
    form->bytes = std::move(made);
  }
  return static_cast<const std::byte*>(form->bytes->data());
}

void PrepackedForms::clear() {
  const std::lock_guard lock(mutex_);
  begin_anew_if_abandoned();
  forms_.clear();
}

}  // namespace treenail
