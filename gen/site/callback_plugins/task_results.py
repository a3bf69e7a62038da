# SPDX-License-Identifier: Apache-2.0
"""Every task's result as JSON, for tests and proofs: ansible-core has no callback that tells it."""

import json

from ansible.parsing.ajson import AnsibleJSONEncoder
from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: task_results
    type: notification
    short_description: What became of each task on each host
    description: Writes {"tasks", "stats"}; tasks are [name, host, result], in order.
    options:
      path:
        description: The file to write when all is over.
        env: [{name: TASK_RESULTS}]
        required: true
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "task_results"
    CALLBACK_NEEDS_ENABLED = True

    def __init__(self):
        super().__init__()
        self.tasks = []

    def keep(self, result, **more):
        self.tasks.append((result._task.get_name(), result._host.get_name(),
                           dict(result._result, **more)))

    def v2_runner_on_ok(self, result):
        self.keep(result)

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.keep(result, failed=True)

    def v2_runner_on_skipped(self, result):
        self.keep(result, skipped=True)

    def v2_runner_on_unreachable(self, result):
        self.keep(result)

    def v2_playbook_on_stats(self, stats):
        with open(self.get_option("path"), "w", encoding="utf-8") as stream:
            json.dump({"tasks": self.tasks, "stats": {
                host: stats.summarize(host) for host in stats.processed}}, stream,
                      cls=AnsibleJSONEncoder)
