# SPDX-License-Identifier: Apache-2.0
"""Where slurm_check.py sends its jobs from: commands and jobs there, and the end of waiting."""

import contextlib
import glob
import json
import os
import re
import shlex
import subprocess
import time

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HOSTS = os.path.join(TOP, "ci/hosts")
TEMPLATES = os.path.join(TOP, "contrib/slurm")
PATIENCE = 1800.0  # seconds: a site's queue may be long


class Failed(Exception):
    """A check does not hold; the text shows why."""


class NotRun(Exception):
    """A check cannot be made here; the text says what is missing."""


def stack_env(treenail: str, work: str) -> str:
    """The program that runs its arguments in the environment of this Treenail; for a tree without
    one, a stand-in in `work`."""
    own = os.path.join(treenail, "bin/stack-env")
    if os.path.isfile(own):
        return own
    modules = [path for pattern in ("python", "lib*/python3*/*-packages", "lib/python3/*-packages")
               for path in glob.glob(os.path.join(treenail, pattern))
               if os.path.isdir(os.path.join(path, "treenail"))]
    if not modules:
        raise Failed("%s is neither a build directory nor a prefix of Treenail: it has neither "
                     "bin/stack-env nor a Python module" % treenail)
    path = os.path.join(work, "stack-env")
    with open(path, "w", encoding="utf-8") as stream:
        stream.write("#!/bin/sh\nPATH=%s:/usr/bin:$PATH\nPYTHONPATH=%s\nexport PATH PYTHONPATH\n"
                     'exec "$@"\n' % (shlex.quote(os.path.join(treenail, "bin")),
                                      shlex.quote(modules[0])))
    os.chmod(path, 0o755)
    return path


class Cluster:
    """Where commands are given, and what they find there."""

    def __init__(self, options) -> None:
        self.state = options.hosts and os.path.abspath(options.hosts)
        self.enter = [HOSTS, "run", "--state", self.state, "login", "--"] if self.state else []
        self.work, self.reports = options.work, options.reports
        self.stack = stack_env(os.path.abspath(options.treenail), self.work)
        self.script("task", '# A copy of the training; its files have the number of the task.\n'
                    'rank=${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}\n'
                    'hostname > "$1-$rank.host"\n'
                    'exec %s python3 %s mlp --quiet --report "$1-$rank.json"\n' % (
                        shlex.quote(self.stack), shlex.quote(os.path.join(TOP, "smoke/train.py"))))

    def script(self, name: str, text: str) -> str:
        """A program in the working directory."""
        path = self.at(name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\n" + text)
        os.chmod(path, 0o755)
        return path

    def run(self, *words) -> str:
        """The output of a command given where jobs are sent from."""
        done = subprocess.run([*self.enter, *map(str, words)], cwd=self.work,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                              env=dict(os.environ, STACK_ENV=self.stack))
        text = done.stdout.decode(errors="replace")
        if done.returncode:
            raise Failed("%s: exit status %d\n%s" % (
                shlex.join(map(str, words)), done.returncode, text[-3000:]))
        return text

    def job(self, log: str, *words, wanted="COMPLETED") -> None:
        """Waits for the end of a job or array, which is to be `wanted`. words: sbatch's."""
        number = self.submitted(log, *words)
        states = self.finished(number)
        if set(states) != {wanted}:
            raise Failed("sbatch %s: ended as %s\n%s" % (
                shlex.join(map(str, words)), ", ".join(states), read(self.at(log))[-3000:]))

    def submitted(self, log: str, *words) -> str:
        """The number of a new job. `sbatch --wait` would look every ten seconds only."""
        return self.run("sbatch", "--parsable", "--open-mode=truncate",
                        "--output=" + self.at(log), *words).split(";")[0].strip()

    def ended(self, number: str) -> list:
        """The states of the job, or of an array's, when all have ended; [] before."""
        states = re.findall(r"\bJobState=(\w+)", self.run("scontrol", "show", "job", number))
        return [] if set(states) & {"PENDING", "RUNNING", "COMPLETING", "CONFIGURING"} else states

    def finished(self, number: str) -> list:
        """The states of the job, or of an array's, at its end; one that has none is cancelled."""
        try:
            return wait("the end of job " + number, lambda: self.ended(number),
                        lambda: self.run("scontrol", "show", "job", number))
        except Failed:
            with contextlib.suppress(Failed):  # Slurm itself may be what does not answer
                self.run("scancel", number)
            raise

    def at(self, name: str) -> str:
        return os.path.join(self.work, name)

    def nodes(self) -> int:
        """How many nodes can take work now."""
        words = self.run("sinfo", "-h", "-t", "idle,mixed", "-o", "%D").split()
        return sum(map(int, words))

    def info(self, *words) -> dict:
        """treenail-info of one task; words: srun's options, and what runs treenail-info."""
        text = self.run("srun", "-n1", *words, self.stack, "treenail-info", "--json")
        return json.loads(text[text.index("{"):])


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.read()
    except FileNotFoundError:
        return ""


def wait(what: str, condition, instead):
    """The condition's first true value; `instead` is asked for what there is without it."""
    deadline = time.monotonic() + PATIENCE
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise Failed("waited %d s for %s; instead there is:\n%s" % (PATIENCE, what, instead()))
        time.sleep(0.5)


def refused(cluster, words: list, sentence: str) -> None:
    """The job fails, and its output has the sentence."""
    cluster.job("refused.log", *words, wanted="FAILED")
    if sentence not in read(cluster.at("refused.log")):
        raise Failed("%s: '%s' is not in: %s" % (words, sentence, read(cluster.at("refused.log"))))
