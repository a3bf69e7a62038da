# SPDX-License-Identifier: Apache-2.0
"""SyncReplicasOptimizer: workers give gradients, and step together once there are enough of them.

Who computes a gradient gives it to an accumulator of its variable, with the worker's local step;
the chief's queue runner takes the mean of enough of them, updates the variables, and puts a token
with the new global step into a queue for each worker. A worker ends its step by taking a token,
which is its next local step; a gradient of an older one is dropped (Chen et al., Revisiting
Distributed Synchronous SGD, 2016).

Without backup workers each worker has a queue of its own, so that none takes another one's token,
and a gradient counts for the very step alone that it was computed at. Whoever begins anew gives a
gradient of the step that there is: a worker forgets its tokens, and the chief, which may have set
the model back to a checkpoint, or been lost before it gave tokens, gives one to each worker.
"""

from __future__ import annotations

import re

from treenail._accumulators import ConditionalAccumulator, SparseConditionalAccumulator
from treenail._checks import having
from treenail._control import group, no_op
from treenail._convert import IndexedSlices
from treenail._framework import GraphKeys, colocate_with, control_dependencies
from treenail._ops import ops
from treenail._queues import FIFOQueue
from treenail._variables import Variable, global_variables, report_uninitialized_variables
from treenail.train._optimizer import Optimizer
from treenail.train._queue_runner import QueueRunner
from treenail.train._session_run_hook import SessionRunHook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail._treenail import Operation


# Of one worker, that may still wait for a token when it begins anew: a task learns late of a link
# that is silent.
_LOST_SESSIONS = 4


def _count(value: Any, name: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError("%s must be an int, not %r" % (name, value))
    if value < 1:
        raise ValueError("%s must be at least 1, not %r" % (name, value))
    return value.__index__()


class SyncReplicasOptimizer(Optimizer):
    """Trains with several workers in step: variables move by the mean of their gradients.

    opt: the Optimizer that moves them. replicas_to_aggregate: of how many gradients the mean is
    taken, at least. total_num_replicas: how many workers there are, by default as many; with more,
    the slowest of each step are backups, whose gradients come too late and are dropped.
    variable_averages, variables_to_average: an ExponentialMovingAverage, and of what, kept with
    each step. replica: the number of this worker, from 0; by default that of the task on whose
    device it is (tn.train.replica_device_setter).

    Each worker makes one, in its graph, with the same variables:

        optimizer = tn.train.SyncReplicasOptimizer(opt, replicas_to_aggregate=4,
                                                   total_num_replicas=5)
        train = optimizer.minimize(loss, global_step=step)
        hook = optimizer.make_session_run_hook(is_chief)
        with tn.train.MonitoredTrainingSession(master, is_chief, hooks=[hook]) as session:
            while not session.should_stop():
                session.run(train)

    Without backup workers each step takes one gradient of each worker, and adds them in the order
    of workers: the bits are those of one process that adds the same, whoever comes first. Servers
    keep a step's gradients for that until all are there, and wait for a worker that was lost until
    it is back. With backup workers, and where a worker
    does not know its number, gradients are added in the order in which they come; the first tokens
    are then there, as in TensorFlow, before the first step is done, so that a worker may give two
    gradients for it; num_tokens=0 has all wait.
    """

    def __init__(self, opt: Optimizer, replicas_to_aggregate: int,
                 total_num_replicas: int | None = None, variable_averages: Any = None,
                 variables_to_average: Sequence | None = None, use_locking: bool = False,
                 name: str = "sync_replicas", replica: int | None = None) -> None:
        super().__init__(use_locking, name)
        self._opt = having(opt, "apply_gradients", "opt", "an Optimizer")
        self._replicas_to_aggregate = _count(replicas_to_aggregate, "replicas_to_aggregate")
        self._total_num_replicas = self._replicas_to_aggregate
        if total_num_replicas is not None:
            self._total_num_replicas = _count(total_num_replicas, "total_num_replicas")
        if variable_averages is not None:
            having(variable_averages, "apply", "variable_averages", "an ExponentialMovingAverage")
        if replica is not None and (isinstance(replica, bool) or not hasattr(
                replica, "__index__")):
            raise TypeError("replica must be an int, not %r" % (replica,))
        if replica is not None and not 0 <= replica < self._total_num_replicas:
            raise ValueError("replica must be in [0, %d), the workers, not %r"
                             % (self._total_num_replicas, replica))
        self._replica = replica
        self._place = -1  # of this worker's gradients in sums
        self._variable_averages = variable_averages
        self._variables_to_average = variables_to_average
        self._tokens_per_step = max(self._total_num_replicas, self._replicas_to_aggregate)
        self._global_step: Any = None
        self._accumulators: list = []  # (accumulator, device)

    def compute_gradients(self, *args: Any, **kwargs: Any) -> list:
        """As of the inner optimizer: this worker's own gradients."""
        return self._opt.compute_gradients(*args, **kwargs)

    def apply_gradients(self, grads_and_vars: Sequence, global_step: Any = None,
                        name: str | None = None) -> Operation:
        """One operation that gives this worker's gradients, and waits until the step is done.

        global_step: needed; counts the steps. Raises ValueError for none of them, and in immediate
        execution.
        """
        pairs = list(grads_and_vars)
        if not pairs:
            raise ValueError("Must supply at least one variable in grads_and_vars, got %r"
                             % (grads_and_vars,))
        if not isinstance(global_step, Variable):
            raise ValueError("Global step is required to check staleness, global_step must be a "
                             "Variable, not %r" % (global_step,))
        graph = global_step._graph
        if graph._immediate:
            raise ValueError("apply_gradients() of SyncReplicasOptimizer needs a graph: with "
                             "immediate execution use the inner optimizer")
        self._global_step = global_step
        with graph.as_default():
            with graph.name_scope(None):
                anchor = no_op(name="sync_rep_anchor")
            self._place = self._place_of(anchor.device)
            with graph.name_scope(None), colocate_with(anchor):
                self._local_step = Variable(0, trainable=False, dtype=global_step.dtype,
                                            collections=[GraphKeys.LOCAL_VARIABLES],
                                            name="sync_rep_local_step")
            self._make_queues()
            self.local_step_init_op = self._begun_anew()
            self.ready_for_local_init_op = report_uninitialized_variables(global_variables())
            with graph.name_scope(name or self._name):
                given, means = self._accumulated(pairs)
                train = self._in_step(given, means, [v for _, v in pairs])
            return train

    def _place_of(self, device: str) -> int:
        """In sums: the worker's number; -1 with backup workers, and where it is not known."""
        if self._total_num_replicas != self._replicas_to_aggregate:
            return -1
        if self._replica is not None:
            return self._replica
        found = re.search(r"/job:([^/]+)(?:/.*)?/task:(\d+)", device)
        if found is None:
            return -1
        first = 0 if found.group(1) in ("chief", "master") else 1  # which come before workers
        return int(found.group(2)) + first

    def _make_queues(self) -> None:
        """For tokens: of all workers, or one of each."""
        step, names = self._global_step, ["sync_token_q"]
        if self._place >= 0:
            first = 0 if self._replica is not None or self._place == 0 else 1
            places = range(first, first + self._total_num_replicas)
            if self._place not in places:
                raise ValueError("the worker on the device of task %d is none of %d; replica must "
                                 "say which" % (self._place - 1, self._total_num_replicas))
            names = ["sync_token_q_%d" % place for place in places]
        with step._graph.device(step.device or None), step._graph.name_scope(None):
            self._queues = [FIFOQueue(-1, step.dtype, shapes=[[]], name=name, shared_name=name)
                            for name in names]
        self._queue = self._queues[self._place - places[0] if self._place >= 0 else 0]

    def _begun_anew(self) -> Operation:
        """The worker is at the global step."""
        step, queue = self._global_step, self._queue
        after: list = []
        if self._place >= 0:
            with step._graph.device(step.device or None):
                for_lost = queue.enqueue_many((ops.Fill([_LOST_SESSIONS], step.value()),))
                with control_dependencies([for_lost]):
                    size = queue.size()
                after = [queue.dequeue_many(size)]
        with control_dependencies(after):
            return self._local_step.assign(step.value(), read_value=False)

    def _tokens(self, count: int) -> list:
        """Operations that give so many, to one worker after the other."""
        step, queues = self._global_step, len(self._queues)
        shares = [count // queues + (i < count % queues) for i in range(queues)]
        return [queue.enqueue_many((ops.Fill([share], step.value()),))
                for queue, share in zip(self._queues, shares) if share]

    def _accumulated(self, pairs: Sequence) -> tuple:
        """(operations that give this worker's gradients, the means of enough of them)."""
        given, means = [], []
        for gradient, variable in pairs:
            gradient = self._gradient(gradient, variable)
            if gradient is None:
                means.append(None)
                continue
            with variable._graph.device(variable.device or None):
                shared = variable.name + "/grad_accum"
                if isinstance(gradient, IndexedSlices):
                    accumulator: Any = SparseConditionalAccumulator(
                        gradient.dtype, variable.shape, shared_name=shared)
                    given.append(accumulator.apply_indexed_slices_grad(
                        gradient, self._local_step, place=self._place))
                    means.append(accumulator.take_indexed_slices_grad(self._replicas_to_aggregate))
                else:
                    accumulator = ConditionalAccumulator(gradient.dtype, variable.shape,
                                                         shared_name=shared)
                    given.append(accumulator.apply_grad(gradient, self._local_step,
                                                        place=self._place))
                    means.append(accumulator.take_grad(self._replicas_to_aggregate))
                self._accumulators.append((accumulator, variable.device))
        return given, means

    def _once_all_are_there(self, means: list, variables: list) -> list:
        """The same means: no variable moves while a gradient of another one may have to be
        computed again, by a worker that was lost when it had given some."""
        taken = [mean.values if isinstance(mean, IndexedSlices) else mean for mean in means]
        all_there = group(*[each.op for each in taken if each is not None])
        with control_dependencies([all_there]):
            for i, (mean, variable) in enumerate(zip(means, variables)):
                if mean is None:
                    continue
                with variable._graph.device(variable.device or None):
                    taken[i] = ops.Identity(taken[i])
                if isinstance(mean, IndexedSlices):
                    taken[i] = IndexedSlices(taken[i], mean.indices, mean.dense_shape)
        return taken

    def _in_step(self, given: list, means: list, variables: list) -> Operation:
        """What this worker runs; what the chief runs beside it goes into its queue runner."""
        step = self._global_step
        graph = step._graph
        with graph.device(step.device or None), graph.name_scope(""):
            means = self._once_all_are_there(means, variables)
            update = self._opt.apply_gradients(list(zip(means, variables)), step)
            with control_dependencies(given):  # a token is waited for when all are given
                token = self._queue.dequeue()
            with control_dependencies([update]):
                sync = group(*self._tokens(self._tokens_per_step))
            if self._variable_averages is not None:
                with control_dependencies([sync]):
                    sync = self._variable_averages.apply(self._variables_to_average)
            # Its queue is closed at the end of a session: not that of the tokens, which others use.
            own = FIFOQueue(1, step.dtype, shapes=[[]], name="sync_rep_chief")
            self._chief_queue_runner = QueueRunner(own, [sync])
        starts = []
        for accumulator, device in self._accumulators:
            with graph.device(device or None):
                starts.append(accumulator.set_global_step(step.value(), name="SetGlobalStep"))
        if self._place >= 0:
            with graph.device(step.device or None), control_dependencies(starts):
                starts = self._tokens(self._total_num_replicas)
        with control_dependencies(starts):
            self.chief_init_op = self._begun_anew()
        return self._local_step.assign(token, read_value=False)

    def _built(self, caller: str) -> None:
        if self._global_step is None:
            raise ValueError("SyncReplicasOptimizer.%s() should be called after apply_gradients()."
                             % caller)

    def get_chief_queue_runner(self) -> QueueRunner:
        """What the chief runs in a thread: takes the means, and ends the steps. Raises ValueError
        before apply_gradients()."""
        self._built("get_chief_queue_runner")
        return self._chief_queue_runner

    def get_init_tokens_op(self, num_tokens: int = -1) -> Operation:
        """An operation that the chief runs once, when all is initialised: tokens for the first
        step, by default as many as replicas_to_aggregate; none where each step takes one gradient
        of each worker. Raises ValueError before
        apply_gradients(), and for fewer than the first step needs."""
        self._built("get_init_tokens_op")
        if isinstance(num_tokens, bool) or not hasattr(num_tokens, "__index__"):
            raise TypeError("num_tokens must be an int, not %r" % (num_tokens,))
        needed = self._replicas_to_aggregate - self._total_num_replicas
        if num_tokens == -1:
            num_tokens = self._replicas_to_aggregate if self._place < 0 else 0
        elif num_tokens < needed or num_tokens < 0:
            raise ValueError("Too few tokens to finish the first step: %d (num_tokens) vs %d "
                             "(needed)" % (num_tokens, max(needed, 0)))
        if not num_tokens:
            return no_op()
        step = self._global_step
        with step._graph.as_default(), step._graph.device(step.device or None):
            return group(*self._tokens(num_tokens))

    def get_slot(self, var: Variable, name: str) -> Variable | None:
        """As of the inner optimizer."""
        return self._opt.get_slot(var, name)

    def get_slot_names(self) -> list:
        """As of the inner optimizer."""
        return self._opt.get_slot_names()

    def variables(self) -> list:
        """As of the inner optimizer."""
        return self._opt.variables()

    def make_session_run_hook(self, is_chief: bool, num_tokens: int = -1) -> SessionRunHook:
        """A hook that initialises what this needs, in each session, and, for the chief, starts its
        queue runner. num_tokens: as of get_init_tokens_op()."""
        return _SyncReplicasHook(self, is_chief, num_tokens)


class _SyncReplicasHook(SessionRunHook):
    """Initialises a SyncReplicasOptimizer."""

    def __init__(self, optimizer: SyncReplicasOptimizer, is_chief: bool, num_tokens: int) -> None:
        self._optimizer, self._is_chief, self._num_tokens = optimizer, is_chief, num_tokens

    def begin(self) -> None:
        """Raises ValueError before apply_gradients()."""
        self._optimizer._built("make_session_run_hook")
        self._tokens: Any = None
        if self._is_chief:
            self._tokens = self._optimizer.get_init_tokens_op(self._num_tokens)

    def after_create_session(self, session: Any, coord: Any) -> None:
        """Raises RuntimeError where a global variable has no value."""
        optimizer = self._optimizer
        missing = session.run(optimizer.ready_for_local_init_op)
        if len(missing):
            raise RuntimeError("Model is not ready for SyncReplicasOptimizer local init: variables "
                               "not initialized: %s" % ", ".join(m.decode() for m in missing))
        if not self._is_chief:
            session.run(optimizer.local_step_init_op)
            return
        session.run(optimizer.chief_init_op)
        session.run(self._tokens)
        optimizer.get_chief_queue_runner().create_threads(session, coord=coord, daemon=True,
                                                          start=True)


__all__ = ["SyncReplicasOptimizer"]
