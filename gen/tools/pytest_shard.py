# SPDX-License-Identifier: Apache-2.0
"""A pytest plugin: run one of n equal parts of what was collected.

TREENAIL_TEST_SHARD=i/n keeps every n-th test, beginning with the i-th; neighbours (the cases of one
op) are spread over the shards, so that no shard gets all the slow ones.
"""

import os


def pytest_collection_modifyitems(config, items):
    text = os.environ.get("TREENAIL_TEST_SHARD", "")
    if not text:
        return
    index, count = (int(part) for part in text.split("/"))
    dropped = [item for at, item in enumerate(items) if at % count != index]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = [item for at, item in enumerate(items) if at % count == index]
