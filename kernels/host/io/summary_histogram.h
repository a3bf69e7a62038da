// SPDX-License-Identifier: Apache-2.0
// TensorFlow's histogram of a summary: buckets whose limits grow by a tenth, and moments. Source:
// tensorflow/core/lib/histogram (limits and encoding).
#pragma once

#include <array>
#include <cfloat>
#include <cstdint>
#include <string>
#include <vector>

namespace treenail::host {

class SummaryHistogram {
 public:
  SummaryHistogram();
  // A finite number.
  void add(double value);
  // As a HistogramProto message.
  std::string encode() const;

 private:
  double min_ = DBL_MAX;
  double max_ = -DBL_MAX;
  double num_ = 0;
  double sum_ = 0;
  double sum_squares_ = 0;
  std::vector<double> counts_;
};

}  // namespace treenail::host
