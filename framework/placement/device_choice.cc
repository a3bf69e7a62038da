// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/device_choice.h"

#include <algorithm>

#include "framework/base/error.h"

namespace treenail {
namespace {

std::string list_of(std::span<const PlacementDevice> devices) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < std::min(devices.size(), kShown); ++i)
    list += concat(i == 0 ? "" : ", ", to_text(devices[i].name));
  return devices.size() > kShown ? concat(list, ", ... (", devices.size(), " devices)") : list;
}

template <class Wanted>
std::optional<int32_t> first(std::span<const PlacementDevice> devices, Wanted&& wanted) {
  const auto found = std::ranges::find_if(
      devices, [&](const PlacementDevice& device) { return wanted(device.name); });
  if (found == devices.end()) return std::nullopt;
  return static_cast<int32_t>(found - devices.begin());
}

}  // namespace

std::optional<int32_t> choose_device(std::span<const PlacementDevice> devices,
                                     const DeviceName& request, bool soft) {
  const auto met = first(devices, [&](const DeviceName& d) { return satisfies(d, request); });
  if (met || !soft) return met;
  return first(devices, [&](const DeviceName& d) { return d.type == request.type; }).value_or(0);
}

std::string no_such_device(std::string_view request, std::string_view who,
                           std::span<const PlacementDevice> devices) {
  const std::string why = why_missing(parse_device_name(request).type);
  return concat("cannot be placed on \"", request, "\": ", who, " has ", list_of(devices),
                why.empty() ? "" : " (", why, why.empty() ? "" : ")",
                "; allow_soft_placement runs it there");
}

std::string no_kernel_there(const OpInstance& op, const DeviceName& device, bool held) {
  std::string types;
  for (const DType type : op.input_types()) types += concat(types.empty() ? "" : ", ", type);
  return concat(
      "cannot be placed on ", to_text(device), ": ", device.type,
      " devices have no kernel for it with inputs (", types, ")",
      held ? ", and what it works on is there" : "; allow_soft_placement runs it on the CPU");
}

std::string state_in_two_memories(std::string_view first, const DeviceName& there,
                                  std::string_view other, const DeviceName& elsewhere) {
  return concat("works on state in the memory of two devices: \"", first, "\" is on ",
                to_text(there), ", \"", other, "\" on ", to_text(elsewhere));
}

}  // namespace treenail
