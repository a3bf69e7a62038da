# SPDX-License-Identifier: Apache-2.0
"""ClusterSpec: which tasks a cluster has, by job, and where they are."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ClusterSpec:
    """The tasks of a cluster.

    cluster: {job: ["host:port", ...]}, where task i is the i-th; or {job: {task: "host:port"}},
    which may leave out tasks; or another ClusterSpec.

        cluster = tn.train.ClusterSpec({"ps": ["ps0:2222"], "worker": ["w0:2222", "w1:2222"]})
        cluster.task_address("worker", 1)      # "w1:2222"

    Raises TypeError for what has not this form.
    """

    def __init__(self, cluster: Any) -> None:
        if isinstance(cluster, ClusterSpec):
            cluster = cluster._jobs
        if not isinstance(cluster, dict):
            raise TypeError("`cluster` must be a dictionary mapping one or more job names to lists "
                            "of network addresses, or a `ClusterSpec`, not %r" % (cluster,))
        self._jobs: dict = {}
        for job in sorted(cluster, key=str):
            if not isinstance(job, str) or not job:
                raise TypeError("`cluster` must have names of jobs (str) as keys, not %r" % (job,))
            self._jobs[job] = _tasks(job, cluster[job])

    def as_dict(self) -> dict:
        """{job: addresses in a list}, or, where tasks are missing, {job: {task: address}}."""
        return {job: (list(tasks.values()) if list(tasks) == list(range(len(tasks)))
                      else dict(tasks)) for job, tasks in self._jobs.items()}

    @property
    def jobs(self) -> list:
        """The names of the jobs, in their order."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks the job has. Raises ValueError for a job that is not there."""
        return len(self._job(job_name))

    def task_indices(self, job_name: str) -> list:
        """The numbers of its tasks. Raises ValueError for a job that is not there."""
        return list(self._job(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Where a task is. Raises ValueError for one that is not there."""
        tasks = self._job(job_name)
        try:
            return tasks[task_index]
        except (KeyError, TypeError):
            raise ValueError("No task with index %r in job %r; there are %s"
                             % (task_index, job_name, list(tasks))) from None

    def job_tasks(self, job_name: str) -> list:
        """The addresses of its tasks by number, None where one is missing. Raises ValueError for a
        job that is not there."""
        tasks = self._job(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def _job(self, job_name: str) -> dict:
        try:
            return self._jobs[job_name]
        except (KeyError, TypeError):
            raise ValueError("No such job in cluster: %r; there are %s"
                             % (job_name, self.jobs)) from None

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, dict):  # of a form that the constructor takes
            try:
                other = ClusterSpec(other)
            except TypeError:
                return False
        return isinstance(other, ClusterSpec) and self._jobs == other._jobs

    def __hash__(self) -> int:
        return hash(tuple((job, tuple(tasks.items())) for job, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        return "ClusterSpec(%r)" % (self.as_dict(),)


def _tasks(job: str, given: Any) -> dict:
    """{task: address}, in order."""
    if isinstance(given, (list, tuple)):
        given = dict(enumerate(given))
    if not isinstance(given, dict):
        raise TypeError("The tasks for job %r of `cluster` must be a list of addresses, or a dict "
                        "from task to address, not %r" % (job, given))
    for task, address in given.items():
        if isinstance(task, bool) or not isinstance(task, int) or task < 0:
            raise TypeError("The tasks for job %r of `cluster` must be numbered from 0, not %r"
                            % (job, task))
        if not isinstance(address, str) or not address:
            raise TypeError("Task address must be a str such as \"host:2222\", not %r, of task %d "
                            "of job %r in `cluster`" % (address, task, job))
    return {task: given[task] for task in sorted(given)}


__all__ = ["ClusterSpec"]
