// SPDX-License-Identifier: Apache-2.0
// CTCGreedyDecoder and CTCBeamSearchDecoder of framework/ops/ctc.cc. The beam search keeps prefixes
// of label sequences: for each the log-probability of all alignments so far that end in a blank,
// and of those that end in its last label. Prefixes of equal probability keep the order in which
// they were met, so that results do not depend on how a sort treats them.
#include <algorithm>
#include <cmath>
#include <memory>
#include <unordered_map>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/ctc/ctc.h"

namespace treenail::host {
namespace {

using Path = std::vector<int64_t>;

// One label sequence per row of the batch, as outputs `first` (indices), first + stride (values)
// and first + 2 stride (dense shape).
void set_sparse(RunContext& c, const std::vector<Path>& paths, int first, int stride) {
  int64_t count = 0, longest = 0;
  for (const Path& path : paths) {
    const auto length = static_cast<int64_t>(path.size());
    count += length;
    longest = std::max(longest, length);
  }
  Tensor indices(DType::kInt64, Shape({count, 2})), values(DType::kInt64, Shape({count}));
  int64_t* index = indices.data<int64_t>();
  int64_t* value = values.data<int64_t>();
  for (size_t b = 0; b < paths.size(); ++b) {
    for (size_t i = 0; i < paths[b].size(); ++i) {
      *index++ = static_cast<int64_t>(b);
      *index++ = static_cast<int64_t>(i);
      *value++ = paths[b][i];
    }
  }
  c.set_output(first, std::move(indices));
  c.set_output(first + stride, std::move(values));
  c.set_output(first + 2 * stride,
               Tensor::vector<int64_t>({static_cast<int64_t>(paths.size()), longest}));
}

template <class T>
void decode_greedily(RunContext& c, bool merge, double cost) {
  const CtcInputs<T> x(c.input(0));
  const std::vector<int64_t> lengths = checked_lengths(c.input(1), x.steps);
  std::vector<Path> paths(static_cast<size_t>(x.batch));
  Tensor scores(dtype_of<T>, Shape({x.batch, 1}));
  c.run_chunks(x.batch, cost, [&](int64_t b) {
    double score = 0;
    int64_t before = -1;
    for (int64_t t = 0; t < lengths[static_cast<size_t>(b)]; ++t) {
      const T* row = x.at(t, b);
      const int64_t best = std::max_element(row, row + x.classes) - row;
      score -= static_cast<double>(row[best]);
      if (best != x.blank() && !(merge && best == before)) {
        paths[static_cast<size_t>(b)].push_back(best);
      }
      before = best;
    }
    scores.data<T>()[b] = static_cast<T>(score);
  });
  set_sparse(c, paths, 0, 1);
  c.set_output(3, std::move(scores));
}

// --- Beam search ------------------------------------------------------------------------------

class BeamSearch {
 public:
  BeamSearch(int64_t width, int64_t classes)
      : width_(static_cast<size_t>(width)), classes_(classes), blank_(classes - 1) {
    nodes_.push_back({-1, -1, 0});
    beams_.push_back({0, -1, -1, 0, kLogZero, 0, 0});
  }

  // One step with these log-probabilities, none of them NaN.
  void step(const double* p) {
    best_.clear();
    next_order_ = 0;
    for (const Beam& beam : beams_) offer(stayed(beam, p));
    for (const Beam& beam : beams_) extend(beam, p);
    std::sort(best_.begin(), best_.end(), better);
    for (const Beam& beam : beams_) nodes_[static_cast<size_t>(beam.node)].place = kNowhere;
    for (size_t i = 0; i < best_.size(); ++i) {
      if (best_[i].node < 0) best_[i].node = add_node(best_[i].parent, best_[i].label);
      nodes_[static_cast<size_t>(best_[i].node)].place = static_cast<int64_t>(i);
    }
    beams_.swap(best_);
  }

  size_t size() const { return beams_.size(); }
  double score(size_t i) const { return beams_[i].total; }
  Path path(size_t i, bool merge) const {
    Path labels;
    for (const Node* node = &node_of(beams_[i]); node->parent >= 0;
         node = &nodes_[static_cast<size_t>(node->parent)]) {
      if (!merge || labels.empty() || labels.back() != node->label) labels.push_back(node->label);
    }
    std::reverse(labels.begin(), labels.end());
    return labels;
  }

 private:
  static constexpr int64_t kNowhere = -1;
  // A prefix: another one and a label more. `place`: where it stands in the beam.
  struct Node {
    int64_t parent, label, place;
  };
  struct Beam {
    int64_t node, parent, label;  // node -1: not made yet
    double blank, labelled, total;
    int64_t order;
  };
  static bool better(const Beam& a, const Beam& b) {
    return a.total > b.total || (a.total == b.total && a.order < b.order);
  }

  const Node& node_of(const Beam& beam) const { return nodes_[static_cast<size_t>(beam.node)]; }
  int64_t key(int64_t parent, int64_t label) const { return parent * classes_ + label; }

  // What alignments of a prefix add to that with one label more: a label after itself needs a blank
  // between.
  static double extended(const Beam& beam, int64_t label, const double* p) {
    return (label == beam.label ? beam.blank : beam.total) + p[label];
  }

  // The same prefix a step later, with what its parent adds if that is in the beam too.
  Beam stayed(const Beam& beam, const double* p) const {
    Beam now = beam;
    now.blank = beam.total + p[blank_];
    now.labelled = kLogZero;
    if (beam.label >= 0) {
      now.labelled = beam.labelled + p[beam.label];
      const int64_t place = nodes_[static_cast<size_t>(beam.parent)].place;
      if (place != kNowhere) {
        const Beam& parent = beams_[static_cast<size_t>(place)];
        now.labelled = log_sum(now.labelled, extended(parent, beam.label, p));
      }
    }
    now.total = log_sum(now.blank, now.labelled);
    return now;
  }

  void extend(const Beam& beam, const double* p) {
    for (int64_t label = 0; label < blank_; ++label) {
      const double total = extended(beam, label, p);
      if (total == kLogZero || hopeless(total)) continue;
      const auto known = children_.find(key(beam.node, label));
      const int64_t node = known == children_.end() ? -1 : known->second;
      if (node >= 0 && nodes_[static_cast<size_t>(node)].place != kNowhere) continue;  // stayed
      offer({node, beam.node, label, kLogZero, total, total, 0});
    }
  }

  // What comes later loses against its equals.
  bool hopeless(double total) const {
    return best_.size() == width_ && total <= best_.front().total;
  }

  void offer(Beam beam) {
    if (hopeless(beam.total)) return;
    beam.order = next_order_++;
    if (best_.size() == width_) {
      std::pop_heap(best_.begin(), best_.end(), better);
      best_.pop_back();
    }
    best_.push_back(beam);
    std::push_heap(best_.begin(), best_.end(), better);
  }

  int64_t add_node(int64_t parent, int64_t label) {
    constexpr size_t kMostNodes = size_t{1} << 24;
    if (nodes_.size() >= kMostNodes) {
      throw resource_exhausted("the beam search met more than ", kMostNodes,
                               " prefixes: beam_width is too large for so many steps");
    }
    const auto node = static_cast<int64_t>(nodes_.size());
    children_[key(parent, label)] = node;
    nodes_.push_back({parent, label, kNowhere});
    return node;
  }

  size_t width_;
  int64_t classes_, blank_;
  std::vector<Node> nodes_;
  std::vector<Beam> beams_, best_;
  std::unordered_map<int64_t, int64_t> children_;  // of prefixes that were in the beam once
  int64_t next_order_ = 0;
};

struct SearchOptions {
  int64_t width;
  int paths;
  bool merge;
};

template <class T>
void search(RunContext& c, const SearchOptions& o, double cost) {
  const CtcInputs<T> x(c.input(0));
  const std::vector<int64_t> lengths = checked_lengths(c.input(1), x.steps);
  std::vector<std::vector<Path>> paths(static_cast<size_t>(o.paths),
                                       std::vector<Path>(static_cast<size_t>(x.batch)));
  Tensor scores(dtype_of<T>, Shape({x.batch, o.paths}));
  c.run_chunks(x.batch, cost, [&](int64_t b) {
    BeamSearch beams(o.width, x.classes);
    std::vector<double> p(static_cast<size_t>(x.classes));
    for (int64_t t = 0; t < lengths[static_cast<size_t>(b)]; ++t) {
      poll(c);
      x.log_softmax(t, b, p.data());
      for (double& value : p) value = std::isnan(value) ? kLogZero : value;
      beams.step(p.data());
    }
    if (beams.size() < static_cast<size_t>(o.paths)) {
      throw invalid_argument("Less leaves in the beam search than requested: top_paths is ",
                             o.paths, ", but sequence ", b, " has ", beams.size());
    }
    for (int i = 0; i < o.paths; ++i) {
      const auto path = static_cast<size_t>(i);
      paths[path][static_cast<size_t>(b)] = beams.path(path, o.merge);
      scores.data<T>()[b * o.paths + i] = static_cast<T>(beams.score(path));
    }
  });
  for (int i = 0; i < o.paths; ++i) set_sparse(c, paths[static_cast<size_t>(i)], i, o.paths);
  c.set_output(3 * o.paths, std::move(scores));
}

template <class T>
std::unique_ptr<Kernel> prepare_greedy(const PrepareContext& p) {
  const bool merge = p.op().get_bool("merge_repeated");
  const double cost = 1000 + 2 * static_cast<double>(p.input_shape(0).num_elements());
  return make_kernel([merge, cost](RunContext& c) { decode_greedily<T>(c, merge, cost); }, cost);
}

template <class T>
std::unique_ptr<Kernel> prepare_search(const PrepareContext& p) {
  const SearchOptions o = {p.op().get_int("beam_width"),
                           static_cast<int>(p.op().get_int("top_paths")),
                           p.op().get_bool("merge_repeated")};
  const double cost = 1000 + 2 * static_cast<double>(p.input_shape(0).num_elements()) *
                                 static_cast<double>(o.width);
  return make_kernel([o, cost](RunContext& c) { search<T>(c, o, cost); }, cost);
}

template <class T>
void register_type(KernelRegistry& r) {
  r.add("CTCGreedyDecoder", {{"T", {dtype_of<T>}}}, prepare_greedy<T>);
  r.add("CTCBeamSearchDecoder", {{"T", {dtype_of<T>}}}, prepare_search<T>);
}

}  // namespace

void register_ctc_decoders_kernels(KernelRegistry& r) {
  register_type<float>(r);
  register_type<double>(r);
}

}  // namespace treenail::host
