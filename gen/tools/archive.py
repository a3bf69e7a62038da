# SPDX-License-Identifier: Apache-2.0
"""What reproducible archives share: the time stamp and writing a file whole or not at all."""

import os
import subprocess


def epoch(source):
    """SOURCE_DATE_EPOCH, else the last commit's time, else the one of the VERSION file."""
    if os.environ.get("SOURCE_DATE_EPOCH", "").isdigit():
        return int(os.environ["SOURCE_DATE_EPOCH"])
    if os.path.exists(os.path.join(source, ".git")):
        done = subprocess.run(["git", "-C", source, "log", "-1", "--format=%ct"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0 and done.stdout.strip().isdigit():
            return int(done.stdout)
    return int(os.stat(os.path.join(source, "VERSION")).st_mtime)


def write_whole(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path + ".new", "wb") as stream:
        stream.write(data)
    os.replace(path + ".new", path)
