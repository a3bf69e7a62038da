# SPDX-License-Identifier: Apache-2.0
"""Asks the machine. The only module that runs processes.

Every process is written to build/gen/configure.log, and successful results are kept in
build/gen/probe.json under a key of command, input, environment, the program's identity and the
package manager's last change, so that configuring again costs nothing and never believes old news.
What is asked stands in toolchain.py, libraries.py and interpreters.py; the answers become one
record (facts.py), and plan decides from that record alone.
"""

import hashlib
import json
import os
import shlex
import shutil
import subprocess
from typing import Any, Dict, List, Sequence, Tuple

from gen.errors import ConfigureError
from gen.options import Options

PACKAGE_DATABASES = ("/var/lib/dpkg/status", "/var/lib/rpm/rpmdb.sqlite",
                     "/usr/lib/sysimage/rpm/rpmdb.sqlite")
# What nvcc adds to its command line unseen; neither probes nor the build let it.
HIDDEN_FLAGS = ("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS")


class Prober:
    """Runs processes for configure: logged, memoised, with one environment."""

    def __init__(self, build: str, options: Options, use_cache: bool = True):
        self.options = options
        self.directory = os.path.join(build, "gen")
        os.makedirs(self.directory, exist_ok=True)
        self.log = open(os.path.join(self.directory, "configure.log"), "w", encoding="utf-8",
                        errors="backslashreplace")
        self.cache_path = os.path.join(self.directory, "probe.json")
        self.environment = dict(os.environ, LC_ALL="C")
        for name in ("PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "PKG_CONFIG_SYSROOT_DIR",
                     *HIDDEN_FLAGS):
            self.environment.pop(name, None)
            if options.env(name):
                self.environment[name] = options.env(name)
        self.cache: Dict[str, Any] = {}
        self.used: Dict[str, Any] = {}
        if use_cache:
            try:
                with open(self.cache_path, encoding="utf-8") as stream:
                    self.cache = dict(json.load(stream))
            except (OSError, ValueError, TypeError):
                self.cache = {}
        self.world = [_identity(path) for path in PACKAGE_DATABASES]

    def say(self, text: str) -> None:
        self.log.write(text + "\n")

    def run(self, command: Sequence[str], stdin: str = "") -> Tuple[int, str, str]:
        """(exit status, stdout, stderr); as from a shell 127 where the program does not
        exist and 126 where it cannot be run."""
        programs = [_identity(shutil.which(word) or word) for word in command[:2]]
        key = hashlib.sha256(json.dumps(
            [list(command), stdin, programs, self.world,
             [self.environment.get(n, "") for n in sorted(self.environment)
              if n.startswith("PKG_CONFIG")]]).encode()).hexdigest()
        self.say("$ " + shlex.join(command) + ("" if not stdin else "  <<'END'\n%s\nEND" % stdin))
        if key in self.cache:
            status, out, err = self.cache[key]
            self.say("[remembered]")
        else:
            try:
                done = subprocess.run(list(command), input=stdin, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, env=self.environment,
                                      encoding="utf-8", errors="replace", timeout=120)
                status, out, err = done.returncode, done.stdout, done.stderr
            except FileNotFoundError as error:
                status, out, err = 127, "", str(error)
            except OSError as error:
                status, out, err = 126, "", error.strerror or str(error)
            except subprocess.TimeoutExpired:
                status, out, err = 124, "", "no answer within 120 s"
        if status == 0:
            self.used[key] = [status, out, err]
        if out.strip() and len(out) < 4000:
            self.say(out.rstrip())
        if err.strip():
            self.say(err.rstrip()[:4000])
        self.say("-> %d\n" % status)
        return status, out, err

    def finish(self) -> None:
        text = json.dumps(self.used, sort_keys=True)
        with open(self.cache_path + ".new", "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(self.cache_path + ".new", self.cache_path)
        self.log.close()


def _identity(path: str) -> List[Any]:
    try:
        status = os.stat(path)
        return [os.path.realpath(path), int(status.st_mtime), status.st_size]
    except OSError:
        return [path]


def split_words(text: str) -> List[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise ConfigureError("cannot split '%s' into words: %s" % (text, error))


def memory_mib() -> int:
    """Memory that link jobs may count on: the machine's, below the cgroup's limit."""
    found = 2048
    try:
        with open("/proc/meminfo", encoding="ascii") as stream:
            for line in stream:
                if line.startswith("MemTotal:"):
                    found = int(line.split()[1]) // 1024
    except (OSError, ValueError):
        pass
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path, encoding="ascii") as stream:
                text = stream.read().strip()
            if text.isdigit():
                found = min(found, int(text) >> 20)
        except OSError:
            continue
    return found
