// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/cost_model_bytes.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/io/proto_wire.h"

namespace treenail {
namespace {

// Each pair of devices looks through all of them.
constexpr size_t kMostModels = 4096;
// Sums of times stay finite and keep their order.
constexpr double kLeastRate = 1e-6, kMostRate = 1e30, kMostSeconds = 1e9, kMostTrips = 1e12,
                 kMostSlowdown = 1e6;

double real(const ProtoField& field, double least, double most, std::string_view what) {
  const double value = std::bit_cast<double>(field.value);
  if (field.type == WireType::kFixed64 && value >= least && value <= most) return value;
  throw invalid_argument("a cost model says ", value, " for ", what, "; needed is a number in [",
                         least, ", ", most, "]");
}

int64_t whole(const ProtoField& field, int64_t least, int64_t most, std::string_view what) {
  const auto value = static_cast<int64_t>(field.value);
  if (field.type == WireType::kVarint && value >= least && value <= most) return value;
  throw invalid_argument("a cost model says ", value, " for ", what,
                         "; needed is a whole number in [", least, ", ", most, "]");
}

ProtoWriter message_of(const DeviceModel& model) {
  ProtoWriter out;
  out.bytes(1, to_text(model.devices));
  out.real(2, model.speed.flops_per_second);
  out.real(3, model.speed.bytes_per_second);
  out.real(4, model.speed.seconds_per_node);
  out.signed_number(5, model.slots);
  out.signed_number(6, model.memory_bytes);
  out.real(7, model.slowdown);
  out.bytes(8, model.host);
  return out;
}

DeviceModel device_from(ProtoReader reader) {
  DeviceModel model{{}, usual_speed("CPU")};
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) model.devices = parse_device_name(field.bytes);
    if (field.number == 2)
      model.speed.flops_per_second = real(field, kLeastRate, kMostRate, "operations per second");
    if (field.number == 3)
      model.speed.bytes_per_second = real(field, kLeastRate, kMostRate, "bytes per second");
    if (field.number == 4)
      model.speed.seconds_per_node = real(field, 0, kMostSeconds, "seconds per node");
    if (field.number == 5)
      model.slots = static_cast<int32_t>(
          whole(field, 1, std::numeric_limits<int32_t>::max(), "operations at once"));
    if (field.number == 6)
      model.memory_bytes = whole(field, 0, int64_t{1} << 62, "bytes of memory");
    if (field.number == 7) model.slowdown = real(field, 1, kMostSlowdown, "a slowdown");
    if (field.number == 8) model.host = field.bytes;
  }
  return model;
}

ProtoWriter message_of(const LinkModel& model) {
  ProtoWriter out;
  out.bytes(1, to_text(model.from));
  out.bytes(2, to_text(model.to));
  out.real(3, model.latency);
  out.real(4, model.bytes_per_second);
  out.varint(5, static_cast<uint64_t>(model.sharing));
  return out;
}

LinkModel link_from(ProtoReader reader) {
  LinkModel model{{}, {}, 0, 1e9};
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) model.from = parse_device_name(field.bytes);
    if (field.number == 2) model.to = parse_device_name(field.bytes);
    if (field.number == 3) model.latency = real(field, 0, kMostSeconds, "a latency");
    if (field.number == 4)
      model.bytes_per_second = real(field, kLeastRate, kMostRate, "bytes per second");
    if (field.number == 5)
      model.sharing = static_cast<PlacementProblem::Sharing>(whole(field, 0, 3, "sharing"));
  }
  return model;
}

}  // namespace

std::string cost_model_to_bytes(const CostModel& model) {
  ProtoWriter out;
  for (const DeviceModel& each : model.devices) out.message(1, message_of(each));
  for (const LinkModel& each : model.links) out.message(2, message_of(each));
  if (model.costs.profile != nullptr) out.bytes(3, model.costs.profile->to_text());
  out.signed_number(4, model.costs.unknown_dimension);
  out.real(5, model.costs.trip_count);
  return out.text();
}

CostModel cost_model_from_bytes(std::string_view bytes) {
  CostModel model;
  ProtoReader reader(bytes);
  for (ProtoField field; reader.next(&field);) {
    if (field.number == 1) model.devices.push_back(device_from(ProtoReader(field.bytes)));
    if (field.number == 2) model.links.push_back(link_from(ProtoReader(field.bytes)));
    if (field.number == 3) {
      model.costs.profile =
          std::make_shared<const PlacementProfile>(PlacementProfile::from_text(field.bytes));
    }
    if (field.number == 4)
      model.costs.unknown_dimension = whole(field, 1, int64_t{1} << 40, "an unknown dimension");
    if (field.number == 5) model.costs.trip_count = real(field, 0, kMostTrips, "a trip count");
    if (model.devices.size() > kMostModels || model.links.size() > kMostModels)
      throw invalid_argument("a cost model has more than ", kMostModels,
                             " models of devices or of links; what was measured of each belongs "
                             "in a profile");
  }
  return model;
}

}  // namespace treenail
