# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/queue.cc."""

from harness import no_case

for name in ("FIFOQueueV2", "PaddingFIFOQueueV2", "RandomShuffleQueueV2", "PriorityQueueV2",
             "QueueEnqueueV2", "QueueEnqueueManyV2", "QueueDequeueV2", "QueueDequeueManyV2",
             "QueueDequeueUpToV2", "QueueCloseV2", "QueueIsClosedV2", "QueueSizeV2"):
    no_case(name, "works on a queue; tests/python/test_queues.py, tests/runtime/state/queue_test.cc")
