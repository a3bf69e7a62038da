// SPDX-License-Identifier: Apache-2.0
// Execution of a placed graph, in numbers: what runs when, what crosses when, how much memory lives
// at once. The rules, which a test holds against a second simulator:
//
// - A task is ready when all of its values are there. A device runs as many tasks at once as it has
//   slots; a free slot takes the lowest task that is ready, as a run takes the first in the order
//   of its graph (run/activation.h). A task that takes no time needs no slot.
// - A task takes as long as it costs, but where others of its device's host are busy, that is, run
//   a task that takes time: then it goes on more slowly, from when they begin to when they end, as
//   contention.h says. Transfers neither slow tasks nor are slowed.
// - A value is there for tasks in its own memory when its producer ends, elsewhere when its
//   transfer has arrived: one for each memory where it is wanted. Transfers that share a channel
//   (of two, either) occupy it one after the other, bytes times seconds per byte each, in the order
//   in which the values were made, then by producer, output and destination; each arrives the
//   link's latency later. They overlap whatever devices do.
// - A value holds memory from the start of its producer until the last task that takes it there has
//   ended and what is sent from it has arrived; what has arrived, until the last that takes it
//   there has ended. State holds its memory throughout. At one time what ends comes before what
//   arrives, and that before what starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "framework/placement/problem.h"

namespace treenail {

struct PlacementTimeline {
  struct Transfer {
    int32_t value = 0;
    int32_t from = 0, to = 0;  // memories
    double start = 0;          // the link is occupied from here
    double finish = 0;         // the value is there
  };
  std::vector<double> start, finish;  // by task, in seconds
  std::vector<Transfer> transfers;    // in the order in which they were queued
  std::vector<double> busy;           // by device: the sum of its tasks' times
  std::vector<int64_t> peak_bytes;    // by memory
  double makespan = 0;                // the last task's end, in seconds
};

// `places`: by task, the number of its device. The problem is checked.
PlacementTimeline simulate(const PlacementProblem& problem, std::span<const int32_t> places);

}  // namespace treenail
