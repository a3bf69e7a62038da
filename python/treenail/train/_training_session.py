# SPDX-License-Identifier: Apache-2.0
"""MonitoredTrainingSession: a MonitoredSession with the hooks that every training wants."""

from __future__ import annotations

from treenail._checks import a_path
from treenail.train._basic_hooks import an_interval
from treenail.train._monitored_session import (ChiefSessionCreator, MonitoredSession,
                                               WorkerSessionCreator)
from treenail.train._saving_hooks import CheckpointSaverHook, StepCounterHook, SummarySaverHook
from treenail.train._scaffold import Scaffold

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class _UseDefault:
    def __repr__(self) -> str:
        return "USE_DEFAULT"


USE_DEFAULT: Any = _UseDefault()


def _interval(secs: Any, steps: Any, default_secs: Any, default_steps: Any, what: str) -> tuple:
    """(seconds or None, steps or None): what was given; the defaults where nothing was; neither for
    None and 0. Raises ValueError for both."""
    if secs is USE_DEFAULT and steps is USE_DEFAULT:
        secs, steps = default_secs, default_steps
    secs = None if secs is USE_DEFAULT else secs or None
    steps = None if steps is USE_DEFAULT else steps or None
    secs = an_interval(secs, "save_%s_secs" % what, False)
    steps = an_interval(steps, "save_%s_steps" % what, True)
    if secs is not None and steps is not None:
        raise ValueError("save_%s_secs is %r and save_%s_steps %r: one of them at most can be given"
                         % (what, secs, what, steps))
    return secs, steps


def MonitoredTrainingSession(  # noqa: N802 (TensorFlow's name)
        master: str = "", is_chief: bool = True, checkpoint_dir: Any = None,
        scaffold: Scaffold | None = None, hooks: Sequence | None = None,
        chief_only_hooks: Sequence | None = None, save_checkpoint_secs: Any = USE_DEFAULT,
        save_summaries_steps: Any = USE_DEFAULT, save_summaries_secs: Any = USE_DEFAULT,
        config: Any = None, stop_grace_period_secs: float = 120,
        log_step_count_steps: int | None = 100, max_wait_secs: float = 7200,
        save_checkpoint_steps: Any = USE_DEFAULT, summary_dir: Any = None) -> MonitoredSession:
    """A MonitoredSession for a training: the chief's restores the latest checkpoint, or
    initialises, and saves checkpoints and summaries; the others' wait for the chief.

    master: the target, '' for this process. is_chief: whether this task is the chief.
    checkpoint_dir: where checkpoints are; None for no checkpoints. scaffold: by default Scaffold().
    hooks: SessionRunHooks; chief_only_hooks: more of them, for the chief. save_checkpoint_secs or
    save_checkpoint_steps: how often checkpoints are saved, every 600 seconds by default;
    save_summaries_steps or save_summaries_secs: how often summaries are, every 100 steps by
    default; None and 0: never. config: a ConfigProto. stop_grace_period_secs: how long threads may
    take to end. log_step_count_steps: how often steps per second are; None and 0: never.
    max_wait_secs: how long the others wait for the chief, and how long anybody waits for a task
    that was lost. summary_dir: where summaries go; checkpoint_dir by default.

        with tn.train.MonitoredTrainingSession(checkpoint_dir="run", save_checkpoint_steps=100,
                                               hooks=[tn.train.StopAtStepHook(last_step=1000)]
                                               ) as session:
            while not session.should_stop():
                session.run(train, {x: batch})
    """
    summaries = _interval(save_summaries_secs, save_summaries_steps, None, 100, "summaries")
    checkpoints = _interval(save_checkpoint_secs, save_checkpoint_steps, 600, None, "checkpoint")
    log_steps = an_interval(log_step_count_steps or None, "log_step_count_steps", True)
    for name, value in (("checkpoint_dir", checkpoint_dir), ("summary_dir", summary_dir)):
        if value is not None:
            a_path(value, name)
    for name, value in (("hooks", hooks), ("chief_only_hooks", chief_only_hooks)):
        if value is not None and not isinstance(value, (list, tuple)):
            raise TypeError("%s must be a list of SessionRunHooks, not %r" % (name, value))
    scaffold = Scaffold() if scaffold is None else scaffold
    if not is_chief:
        worker = WorkerSessionCreator(scaffold, master, config, max_wait_secs)
        return MonitoredSession(worker, hooks, stop_grace_period_secs, max_wait_secs)
    chief = ChiefSessionCreator(scaffold, master, config, checkpoint_dir)
    all_hooks = list(chief_only_hooks or ())
    directory = summary_dir or checkpoint_dir
    if directory:
        if log_steps:
            all_hooks.append(StepCounterHook(log_steps, output_dir=directory))
        if any(summaries):
            all_hooks.append(SummarySaverHook(summaries[1], summaries[0], directory,
                                              scaffold=scaffold))
    if checkpoint_dir and any(checkpoints):
        all_hooks.append(CheckpointSaverHook(checkpoint_dir, *checkpoints, scaffold=scaffold))
    return MonitoredSession(chief, all_hooks + list(hooks or ()), stop_grace_period_secs,
                            max_wait_secs)


__all__ = ["MonitoredTrainingSession"]
