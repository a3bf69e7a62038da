// SPDX-License-Identifier: Apache-2.0
// Device names as TensorFlow 1 writes them: "/job:worker/replica:0/task:2/device:GPU:1", "/cpu:0",
// "/gpu:0", any part left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace treenail {

struct DeviceName {
  std::string job;
  std::optional<int> replica;
  std::optional<int> task;
  std::string type;  // upper case: "CPU", "GPU"
  std::optional<int> index;
  friend bool operator==(const DeviceName&, const DeviceName&) = default;
};

// Errors: InvalidArgument, showing the forms that are understood.
DeviceName parse_device_name(std::string_view text);
// The full spelling of what is given: "/job:worker/task:2/device:GPU:1"; "" for nothing.
std::string to_text(const DeviceName& name);
// What `outer` says, replaced part by part by what `inner` says (nested device scopes).
DeviceName merge_device_names(const DeviceName& outer, const DeviceName& inner);
// Whether a device of that full name satisfies the request: every part that is asked for agrees.
bool satisfies(const DeviceName& device, const DeviceName& request);

}  // namespace treenail
