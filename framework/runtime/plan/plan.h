// SPDX-License-Identifier: Apache-2.0
// Second stage of a plan: a topology specialised to concrete shapes of feeds and variables. Shape
// rules have run, shape arithmetic has become constants, kernels are prepared, buffers have arena
// offsets; a run infers and looks up nothing. Only below data-dependent shapes nodes infer, prepare
// and allocate when they run (PlanNode::Kind::kDynamic). Immutable once made; what a run changes
// lies in a Frame. Who runs it: executor.h.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/base/fork.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/plan/numbers.h"
#include "framework/runtime/plan/topology.h"

namespace treenail {

struct PlanNode {
  enum class Kind : uint8_t {
    kKernel,   // prepared
    kView,     // output 0 is another shape over an input's bytes
    kOrder,    // nothing to compute: passes dependencies on
    kDynamic,  // infer, prepare and allocate at run time
  };
  Kind kind = Kind::kKernel;
  const Node* node = nullptr;  // of the topology's graph; of a fused group the last one
  int32_t device = 0;          // in the topology's devices
  bool fused = false;          // the kernel computes a group (fusion.h)
  bool apart = false;          // ... together with another kernel: may overwrite no input
  std::unique_ptr<Kernel> kernel;
  // Started, not run: an AsyncKernel, or kDynamic and such an op or on a device with a queue.
  bool asynchronous = false;
  bool calls = false;          // functions of the graph
  bool queued = false;         // a QueuedKernel
  Numbers inputs;              // slots
  int32_t first_output = 0;    // slots of outputs follow one another
  int32_t memory = 0;          // of its device, as Topology::memory()
  int64_t scratch_offset = 0;  // in that memory's arena
  Numbers fresh;  // output slots to allocate before the kernel: their values outlive the run
  int32_t forwarded = -1;  // input slot that output 0 takes over, computed over what is there
  // Output slots the kernel sets, whose shape is planned: checked after the kernel.
  Numbers kernel_gives;
  Numbers counted;     // input slots whose value is released after its last use, once per use
  Numbers successors;  // plan nodes that wait for this one, once per wait
  int32_t waits_for = 0;
};

struct Slot {
  enum class Kind : uint8_t {
    kUnused,
    kConstant,  // known when the plan was made
    kArg,       // a feed
    kArena,     // planned memory, or a view of it
    kRun,       // set during the run: fresh memory, what a kernel gives, views of these
  };
  Kind kind = Kind::kUnused;
  DType dtype = DType::kInvalid;
  PartialShape shape;
  int32_t memory = 0;  // where the value lies, as Topology::memory()
  int64_t offset = 0;  // kArena
  // kRun and PlanNode::fresh: whence it comes; null: from its memory's device.
  Tensor (*allocate)(DType dtype, const Shape& shape) = nullptr;
  int32_t uses = 0;  // kRun, and kArg of a body: uses after which the value is released; 0: kept to
                     // the end of the run
};

struct Plan;
class Activation;  // run/activation.h
class Exchange;    // kernel/kernel_exchange.h
class RunTrace;    // run/profile.h

// Filled by the executor where a run is asked for it (run/profile.h): by plan node.
struct NodeTrace {
  struct Entry {
    int64_t start_ns = 0, end_ns = 0;  // of the monotonic clock
    int64_t thread = 0;                // the system's number; 0: the node did not run
    int64_t bytes_in_use = 0;
    int64_t bytes_allocated = 0;  // of outputs that the plan does not know, and their arithmetic
    double flops = 0;
  };
  int64_t begin_ns = 0;
  std::vector<Entry> entries;
};

// What a run and all the bodies that it calls have in common.
struct RunScope {
  CancellationToken token;
  CancellationToken waits;       // of asynchronous nodes: cancelled with `token`, and by an error
  RunTrace* trace = nullptr;     // of a run that is asked for one: what the bodies did
  Exchange* exchange = nullptr;  // with the other tasks of the step; null: there are none
};

// What one run, or one call of a body, changes. Pooled per plan: steady-state runs construct
// nothing.
struct Frame {
  explicit Frame(const Plan& plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;
  // Before a run: where its intermediate values of one memory lie. Nothing to do where they lay
  // there before.
  void use_arena(const Plan& plan, size_t memory, std::byte* data);
  void reset(const Plan& plan);  // drops what the run left in feeds' and run-set slots

  std::vector<Tensor> values;  // by slot; constants and arena tensors stay in place between runs
  std::unique_ptr<std::byte*[]> arenas;             // by memory
  std::unique_ptr<std::atomic<int32_t>[]> uses;     // by slot
  std::unique_ptr<std::atomic<int32_t>[]> waiting;  // by plan node
  // The executor's own, where nodes do not run in order: room for each plan node once.
  std::unique_ptr<int32_t[]> ready;
  std::unique_ptr<int32_t[]> below;
  RunScope* scope = nullptr;
  std::unique_ptr<RunScope> own_scope;  // where the frame is a run's and no body's
  Activation* activation = nullptr;     // while nodes run as dependencies allow
  NodeTrace* trace = nullptr;           // of the run in progress
};

// What a plan needs of a memory: the host's, or a device's.
struct PlanMemory {
  Device* device = nullptr;
  bool used = false;  // a node runs there, or a value lies there
  int64_t arena_bytes = 0;
  int64_t peak_bytes =
      0;  // arena and fresh outputs (PlanNode::fresh), as many as are there at once
  // For Tensor and Buffer: null where it is the host's.
  Device* owner() const { return device->is_host() ? nullptr : device; }
};

// Nodes that one kernel computes, as a plan node: the one that runs it last.
struct FusedGroup {
  int32_t position = 0;            // of that plan node
  std::vector<const Node*> nodes;  // each behind those whose values it reads
  std::vector<Output> inputs;      // what PlanNode::inputs are
};

struct Plan {
  ~Plan();
  std::shared_ptr<const Topology> topology;
  ResourceManager* resources = nullptr;
  std::vector<PlanNode> nodes;  // in canonical order
  std::vector<Slot> slots;
  std::vector<std::pair<int32_t, Tensor>> constants;  // with their slots
  std::vector<int32_t> arg_slots;                     // per feed; -1: nothing needs it
  std::vector<int32_t> fetch_slots;                   // per fetch
  std::vector<int32_t> run_slots;                     // kArg and kRun: emptied after a run
  std::vector<FusedGroup> groups;                     // in order of position
  std::vector<PlanMemory> memories;                   // by device of the topology
  double cost_ns = 0;                                 // sum of the kernels' estimates
  bool side_by_side = false;  // run independent nodes on several threads: estimated faster than
                              // splitting each kernel
  bool can_wait = false;      // there are asynchronous nodes, or arguments that arrive one by one
  bool bodies_wait = false;   // some of them call functions
  // Only where arguments do not come at once: the plan nodes that wait for each feed; and what each
  // fetch and each target waits for, plan nodes and ~i for feed i.
  std::vector<Numbers> arg_successors, fetch_waits, target_waits;
  // Only with Args::kIteration: behind the feeds and fetches stand as many states, each of which
  // the nodes that use it hand on to the next iteration. By plan node and by feed, which fetches
  // wait for it; a fetch also waits for who reads the value, so that it can be taken.
  int32_t num_states = 0;
  std::vector<Numbers> node_ends, arg_ends;

  // Nodes run one after the other, so that their order, too, separates lifetimes of values; else
  // only what a node waits for does.
  bool in_order() const { return !side_by_side && !can_wait; }

  // Frames not in a run.
  mutable ForkMutex mutex;
  mutable std::vector<std::unique_ptr<Frame>> idle_frames;
};

// When the feeds of a run are there. kIteration: one by one, of a loop's body whose iterations
// overlap.
enum class Args : uint8_t { kAtOnce, kOneByOne, kIteration };

// `feed_shapes`: one per feed, fully known, or partial for a plan that serves all shapes. Errors:
// as shape rules and prepare() throw, with op and node before the text.
std::shared_ptr<const Plan> make_plan(std::shared_ptr<const Topology> topology,
                                      std::span<const PartialShape> feed_shapes,
                                      ResourceManager& resources, Args args = Args::kAtOnce);

// That its arena in that memory could not be had: which node asks for most.
Error arena_error(const Plan& plan, size_t memory, const Error& error);

// "[MatMul node \"h1/MatMul\"] text", then where the node was created: for an error that comes from
// running `node`.
Error located_error(const Node& node, const Error& error);

}  // namespace treenail
