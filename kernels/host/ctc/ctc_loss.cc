// SPDX-License-Identifier: Apache-2.0
// CTCLoss of framework/ops/ctc.cc, by the forward-backward algorithm (Graves et al., 2006, section
// 4). States are the labels with blanks around them; forward[t][u] is the log-probability of all
// beginnings of an alignment that are in state u at step t. One chunk per sequence.
#include <algorithm>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/ctc/ctc.h"

namespace treenail::host {
namespace {

struct Options {
  bool collapse, merge, ignore_longer;
};

// Row i of labels_indices; the order makes each label the last of its sequence so far.
class LabelReader {
 public:
  LabelReader(const Tensor& indices, int64_t batch)
      : indices_(indices.data<int64_t>()), batch_(batch) {}
  int64_t sequence(int64_t i) {
    const int64_t b = indices_[2 * i], place = indices_[2 * i + 1];
    if (b < 0 || b >= batch_) {
      throw invalid_argument("labels_indices[", i, ",0] = ", b, " is not in [0, ", batch_, ")");
    }
    if (place < 0) throw invalid_argument("labels_indices[", i, ",1] = ", place, " is negative");
    if (i > 0 && (b < last_ || (b == last_ && place <= last_place_))) {
      throw invalid_argument("labels_indices[", i, "] = [", b, ",", place, "] is out of order");
    }
    last_ = b;
    last_place_ = place;
    return b;
  }

 private:
  const int64_t* indices_;
  int64_t batch_, last_ = 0, last_place_ = 0;
};

std::vector<std::vector<int32_t>> read_labels(const Tensor& indices, const Tensor& values,
                                              int64_t batch, int64_t blank, const Options& o) {
  std::vector<std::vector<int32_t>> labels(static_cast<size_t>(batch));
  std::vector<bool> ended(labels.size());
  LabelReader reader(indices, batch);
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    const auto b = static_cast<size_t>(reader.sequence(i));
    const int32_t label = values.data<int32_t>()[i];
    if (label < 0) {
      throw invalid_argument("All labels must be nonnegative integers, but labels_values[", i,
                             "] is ", label, " (sequence ", b, ")");
    }
    if (label >= blank) {
      ended[b] = true;
    } else if (ended[b]) {
      throw invalid_argument("Saw a label below num_classes - 1 = ", blank,
                             " after one that ended the sequence: labels_values[", i, "] is ",
                             label, " (sequence ", b, ")");
    } else if (!o.collapse || labels[b].empty() || labels[b].back() != label) {
      labels[b].push_back(label);
    }
  }
  return labels;
}

template <class T>
class Sequence {
 public:
  Sequence(const CtcInputs<T>& x, int64_t b, int64_t steps, const std::vector<int32_t>& labels,
           bool merge)
      : x_(x), b_(b), steps_(steps), merge_(merge), blank_(static_cast<int32_t>(x.blank())) {
    states_.push_back(blank_);
    for (const int32_t label : labels) {
      states_.push_back(label);
      states_.push_back(blank_);
    }
    count_ = static_cast<int64_t>(states_.size());
    probabilities_.resize(static_cast<size_t>(x.classes));
  }

  // The loss; the derivatives go to the sequence's steps of `gradient`, which is laid out as the
  // inputs.
  double run(const RunContext& c, T* gradient) {
    if (steps_ == 0) return count_ == 1 ? 0 : -kLogZero;
    const Tensor memory(DType::kFloat64, Shape({steps_, count_}));
    double* const forward = static_cast<double*>(const_cast<void*>(memory.raw()));
    for (int64_t t = 0; t < steps_; ++t) {
      poll(c);
      x_.log_softmax(t, b_, probabilities_.data());
      forward_step(t, t == 0 ? nullptr : forward + (t - 1) * count_, forward + t * count_);
    }
    const double* last = forward + (steps_ - 1) * count_;
    const double total = count_ > 1 ? log_sum(last[count_ - 1], last[count_ - 2]) : last[0];
    backward(c, forward, total, gradient);
    return -total;
  }

 private:
  double log_probability(int64_t u) const {
    return probabilities_[static_cast<size_t>(states_[u])];
  }
  // Which earlier states lead to u, besides u - 1.
  bool stays(int64_t u) const { return merge_ || states_[u] == blank_; }
  bool skips(int64_t u) const {
    return u > 1 && states_[u] != blank_ && !(merge_ && states_[u] == states_[u - 2]);
  }

  void forward_step(int64_t t, const double* before, double* now) const {
    for (int64_t u = 0; u < count_; ++u) {
      double sum = u <= 1 ? 0 : kLogZero;
      if (t > 0) {
        const double same = stays(u) ? before[u] : kLogZero;
        const double next = u > 0 ? before[u - 1] : kLogZero;
        sum = skips(u) ? log_sum(same, next, before[u - 2]) : log_sum(same, next);
      }
      now[u] = sum + log_probability(u);
    }
  }

  // after[u]: the log-probability of all ends of an alignment that was in state u a step ago.
  void backward_step(const std::vector<double>& after, std::vector<double>& now) const {
    for (int64_t u = 0; u < count_; ++u) {
      const double same = stays(u) ? after[u] + log_probability(u) : kLogZero;
      const double next = u + 1 < count_ ? after[u + 1] + log_probability(u + 1) : kLogZero;
      const bool skip = u + 2 < count_ && skips(u + 2);
      now[u] =
          skip ? log_sum(same, next, after[u + 2] + log_probability(u + 2)) : log_sum(same, next);
    }
  }

  void backward(const RunContext& c, const double* forward, double total, T* gradient) {
    std::vector<double> after(static_cast<size_t>(count_), kLogZero), now(after);
    std::vector<double> share(probabilities_.size());
    after[count_ - 1] = 0;
    if (count_ > 1) after[count_ - 2] = 0;
    for (int64_t t = steps_ - 1; t >= 0; --t) {
      poll(c);
      x_.log_softmax(t, b_, probabilities_.data());
      // The share of each class at this step in all alignments.
      std::fill(share.begin(), share.end(), 0.0);
      for (int64_t u = 0; u < count_ && total != kLogZero; ++u) {
        share[static_cast<size_t>(states_[u])] +=
            std::exp(forward[t * count_ + u] + after[u] - total);
      }
      T* const to = gradient + (t * x_.batch + b_) * x_.classes;
      for (int64_t k = 0; k < x_.classes; ++k) {
        to[k] = static_cast<T>(std::exp(probabilities_[k]) - share[k]);
      }
      backward_step(after, now);
      after.swap(now);
    }
  }

  const CtcInputs<T>& x_;
  int64_t b_, steps_;
  bool merge_;
  int32_t blank_;
  std::vector<int32_t> states_;
  int64_t count_;
  std::vector<double> probabilities_;  // logarithms, at the current step
};

template <class T>
void ctc_loss(RunContext& c, const Options& o, double cost) {
  const CtcInputs<T> x(c.input(0));
  const std::vector<int64_t> lengths = checked_lengths(c.input(3), x.steps);
  auto labels = read_labels(c.input(1), c.input(2), x.batch, x.blank(), o);
  for (size_t b = 0; b < labels.size(); ++b) {
    const auto required = static_cast<int64_t>(labels[b].size());
    if (required > lengths[b] && !o.ignore_longer) {
      throw invalid_argument("Not enough time for target transition sequence (required: ", required,
                             ", available: ", lengths[b], ") of sequence ", b,
                             ": ignore_longer_outputs_than_inputs leaves such sequences out");
    }
  }
  T *const losses = c.output(0).data<T>(), *const gradient = c.output(1).data<T>();
  std::fill_n(gradient, c.output(1).num_elements(), T(0));
  c.run_chunks(x.batch, cost, [&](int64_t b) {
    const auto& own = labels[static_cast<size_t>(b)];
    const int64_t steps = lengths[static_cast<size_t>(b)];
    const bool left_out = static_cast<int64_t>(own.size()) > steps;
    losses[b] =
        left_out ? T(0) : static_cast<T>(Sequence<T>(x, b, steps, own, o.merge).run(c, gradient));
  });
}

template <class T>
std::unique_ptr<Kernel> prepare_ctc_loss(const PrepareContext& p) {
  const Options o = {p.op().get_bool("preprocess_collapse_repeated"),
                     p.op().get_bool("ctc_merge_repeated"),
                     p.op().get_bool("ignore_longer_outputs_than_inputs")};
  const auto elements = static_cast<double>(p.input_shape(0).num_elements());
  const auto labels = static_cast<double>(p.input_shape(2).num_elements());
  const double cost =
      1000 + 40 * elements + 200 * labels * static_cast<double>(p.input_shape(0).dim(0));
  return make_kernel([o, cost](RunContext& c) { ctc_loss<T>(c, o, cost); }, cost);
}

}  // namespace

void register_ctc_loss_kernels(KernelRegistry& r) {
  r.add("CTCLoss", {{"T", {DType::kFloat32}}}, prepare_ctc_loss<float>);
  r.add("CTCLoss", {{"T", {DType::kFloat64}}}, prepare_ctc_loss<double>);
}

}  // namespace treenail::host
