// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/io/summary_histogram.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "framework/io/proto_wire.h"

namespace treenail::host {
namespace {

// Limits of buckets: -positive, reversed; 0; positive. A bucket holds what is below its limit and
// not below the one before.
struct Limits {
  std::vector<double> positive;       // ascending, DBL_MAX last
  std::array<int32_t, 2048> first{};  // per exponent of a double: the first that is not below
  std::vector<double> all;

  Limits() {
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1) positive.push_back(v);
    positive.push_back(DBL_MAX);
    for (size_t exponent = 0; exponent < first.size(); ++exponent) {
      const auto least = std::bit_cast<double>(static_cast<uint64_t>(exponent) << 52);
      const auto at = exponent == 2047 ? positive.end()
                                       : std::lower_bound(positive.begin(), positive.end(), least);
      first[exponent] = static_cast<int32_t>(at - positive.begin());
    }
    for (auto at = positive.rbegin(); at != positive.rend(); ++at) all.push_back(-*at);
    all.push_back(0.0);
    all.insert(all.end(), positive.begin(), positive.end());
  }

  // The place in `all` of the first limit above the value, the last one for DBL_MAX itself.
  size_t bucket(double value) const {
    const double magnitude = std::fabs(value);
    const auto side = static_cast<int64_t>(positive.size());
    int64_t at = first[std::bit_cast<uint64_t>(magnitude) >> 52];
    if (value < 0) {
      while (at < side && positive[static_cast<size_t>(at)] < magnitude) ++at;
      return static_cast<size_t>(side - at);  // `at` limits lie between it and 0
    }
    while (at < side && positive[static_cast<size_t>(at)] <= magnitude) ++at;
    return static_cast<size_t>(std::min(side + 1 + at, 2 * side));
  }
};

const Limits& limits() {
  static const Limits* const made = new Limits;
  return *made;
}

}  // namespace

SummaryHistogram::SummaryHistogram() : counts_(limits().all.size()) {}

void SummaryHistogram::add(double value) {
  ++counts_[limits().bucket(value)];
  min_ = std::min(min_, value);
  max_ = std::max(max_, value);
  num_ += 1;
  sum_ += value;
  sum_squares_ += value * value;
}

std::string SummaryHistogram::encode() const {
  const std::vector<double>& all = limits().all;
  ProtoWriter ends;
  ProtoWriter counts;
  for (size_t i = 0; i < all.size();) {
    double end = all[i];
    const double count = counts_[i++];
    if (count <= 0) {
      while (i < all.size() && counts_[i] <= 0) end = all[i++];
    }
    ends.raw_fixed(std::bit_cast<uint64_t>(end), 8);
    counts.raw_fixed(std::bit_cast<uint64_t>(count), 8);
  }
  ProtoWriter w;
  const double moments[] = {min_, max_, num_, sum_, sum_squares_};
  for (int field = 1; field <= 5; ++field) {
    // Proto3: what is zero is not written (-0.0 is).
    const double value = moments[field - 1];
    if (std::bit_cast<uint64_t>(value) != 0) w.real(field, value);
  }
  w.message(6, ends);
  w.message(7, counts);
  return w.text();
}

}  // namespace treenail::host
