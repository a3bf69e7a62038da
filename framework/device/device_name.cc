// SPDX-License-Identifier: Apache-2.0
#include "framework/device/device_name.h"

#include <algorithm>
#include <charconv>

#include "framework/base/error.h"

namespace treenail {
namespace {

[[noreturn]] void refuse(std::string_view text) {
  throw invalid_argument(
      "\"", text,
      "\" is not a device name: needed is /job:NAME/replica:N/task:N/device:TYPE:N with any "
      "part left out, or short /cpu:N, /gpu:N");
}

std::string upper_case(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return out;
}

bool is_word(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// "*" leaves the number open, as in TensorFlow.
std::optional<int> number(std::string_view digits, std::string_view whole) {
  if (digits == "*") return std::nullopt;
  int value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || value < 0) refuse(whole);
  return value;
}

void read_part(std::string_view part, std::string_view whole, DeviceName& name) {
  const size_t colon = part.find(':');
  if (colon == std::string_view::npos) refuse(whole);
  const std::string_view key = part.substr(0, colon);
  std::string_view rest = part.substr(colon + 1);
  const std::string kind = upper_case(key);
  if (key == "job") {
    if (!is_word(rest)) refuse(whole);
    name.job = rest;
  } else if (key == "replica") {
    name.replica = number(rest, whole);
  } else if (key == "task") {
    name.task = number(rest, whole);
  } else if (key == "device" || kind == "CPU" || kind == "GPU") {
    if (key == "device") {
      const size_t second = rest.find(':');
      const std::string_view type = rest.substr(0, second);
      if (!is_word(type)) refuse(whole);
      name.type = upper_case(type);
      if (second == std::string_view::npos) return;
      rest = rest.substr(second + 1);
    } else {
      name.type = kind;
    }
    name.index = number(rest, whole);
  } else {
    refuse(whole);
  }
}

}  // namespace

DeviceName parse_device_name(std::string_view text) {
  DeviceName name;
  std::string_view rest = text;
  while (!rest.empty()) {
    if (rest[0] != '/') refuse(text);
    rest.remove_prefix(1);
    const size_t slash = rest.find('/');
    read_part(rest.substr(0, slash), text, name);
    rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  }
  return name;
}

std::string to_text(const DeviceName& name) {
  std::string out;
  if (!name.job.empty()) out += concat("/job:", name.job);
  if (name.replica) out += concat("/replica:", *name.replica);
  if (name.task) out += concat("/task:", *name.task);
  if (!name.type.empty())
    out += concat("/device:", name.type, ":", name.index ? concat(*name.index) : "*");
  return out;
}

DeviceName merge_device_names(const DeviceName& outer, const DeviceName& inner) {
  DeviceName merged = outer;
  if (!inner.job.empty()) merged.job = inner.job;
  if (inner.replica) merged.replica = inner.replica;
  if (inner.task) merged.task = inner.task;
  if (!inner.type.empty()) {
    merged.type = inner.type;
    merged.index = inner.index;
  }
  return merged;
}

bool satisfies(const DeviceName& device, const DeviceName& request) {
  const auto agrees = [](const std::optional<int>& have, const std::optional<int>& want) {
    return !want || have == want;
  };
  return (request.job.empty() || request.job == device.job) &&
         agrees(device.replica, request.replica) && agrees(device.task, request.task) &&
         (request.type.empty() || request.type == device.type) &&
         agrees(device.index, request.index);
}

}  // namespace treenail
