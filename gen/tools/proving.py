# SPDX-License-Identifier: Apache-2.0
"""What the proofs (proofs.py) have in common: verdicts, processes, other builds, the audit."""

import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys

sys.dont_write_bytecode = True
TOOLS = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(TOOLS))
sys.path[:0] = [TOOLS, SOURCE]
import audit  # noqa: E402  (the path must be set first)
import subbuild  # noqa: E402
from gen.distro import this_distro  # noqa: E402


class NotRun(Exception):
    """The machine lacks something; the text says what."""


class Failed(Exception):
    """The proof does not hold; the text shows why."""


PROOFS = {}  # every proof of the modules that were imported: its name and its function


def proof(function=None, *, quick=False):
    """Decorator: the function is a proof, named as it is, and its docstring one line that says what
    it shows. It returns what was found and raises Failed or NotRun. A quick one takes a minute or
    two, and ci/test runs it."""
    def registered(chosen):
        chosen.quick = quick
        PROOFS[chosen.__name__.replace("_", "-")] = chosen
        return chosen
    return registered(function) if function else registered


def need(program, dependency):
    if not shutil.which(program):
        raise NotRun("%s is not installed; %s" % (program, this_distro().install_hint(dependency)))


def run(command, cwd=None, environment=None, status=0, umask=-1):
    """The output; raises Failed with its end where the exit status is another than `status`."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, **(environment or {})),
                          umask=umask, check=False)
    text = done.stdout.decode(errors="replace")
    if status is not None and done.returncode != status:
        raise Failed("%s: exit status %d\n%s" % (
            " ".join(map(str, command)), done.returncode, text[-4000:]))
    return text


def build_info(name, directory="."):
    """A fact of the build in `directory`, as kVersion."""
    with open(os.path.join(directory, "gen/build_info.h"), encoding="utf-8") as stream:
        return re.search(r'%s\[\] = "(.*)"' % name, stream.read()).group(1)


def manifest():
    with open("gen/tests.json", encoding="utf-8") as stream:
        return json.load(stream)


def configured(extra, directory, drop=()):
    """The options of this build with others added, for a build in `directory`."""
    with open("gen/configuration.json", encoding="utf-8") as stream:
        stored = json.load(stream)
    kept = [w for w in stored["arguments"] if not w.startswith(tuple(drop))] if drop else (
        stored["arguments"])
    return subbuild.arguments(kept, extra, directory), stored["environment"]


def other_build(extra, directory, environment=None, source=SOURCE, targets=("all",), drop=()):
    # A variable may have been given as a word, too, and words win.
    words, stored = configured(extra, directory,
                               tuple(drop) + tuple(name + "=" for name in environment or ()))
    settings = dict(stored, **(environment or {}))
    run([sys.executable, "-B", os.path.join(source, "configure.py")] + words, environment=settings)
    run(["ninja", "-C", directory, *targets], environment=environment)


def audited(directory, prefix=""):
    """The core, the Python module, the program and each kernel library of a build: an instruction
    beyond the level that it is built for, outside the allowances of audit.py, fails."""
    baseline, version = build_info("kIsaBaseline", directory), build_info("kVersion", directory)
    kernels = "lib/treenail-%s/kernels" % version.split(".")[0]
    paths = {baseline: ["lib/libtreenail.so." + version]}
    package = os.path.join(directory, "python/treenail")
    for name in os.listdir(package) if os.path.isdir(package) else ():
        if name.startswith("_treenail") and name.endswith(".so"):
            paths[baseline].append(os.path.join("python/treenail", name))
    if os.path.exists(os.path.join(directory, "bin/treenail-info")):
        paths[baseline].append("bin/treenail-info")
    for level in build_info("kKernelLevels", directory).split():
        paths.setdefault(level, []).append("%s/%s/libtreenail-kernels-cpu.so" % (kernels, level))
    count = 0
    with concurrent.futures.ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        audits = {level: pool.submit(audit.audit, [os.path.join(directory, n) for n in names],
                                     level, prefix) for level, names in paths.items()}
        for level, started in audits.items():
            try:
                found, beyond = started.result()
            except audit.Unusable as reason:
                raise NotRun(str(reason)) from None
            count += found
            if beyond:
                raise Failed("%d instructions beyond %s:\n%s" % (
                    len(beyond), level, "\n".join(map(str, beyond[:20]))))
    return "%d instructions in %d files, none beyond its level (%s)" % (
        count, sum(map(len, paths.values())), ", ".join(sorted(paths)))


def tracked(source=SOURCE):
    """Paths of the files that git knows or would know, sorted."""
    names = run(["git", "-C", source, "ls-files", "-z", "-co", "--exclude-standard"]).split("\0")
    return sorted(name for name in names if name and os.path.isfile(os.path.join(source, name)))


def tracked_files(into):
    """A copy of those files."""
    for name in tracked():
        target = os.path.join(into, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copy(os.path.join(SOURCE, name), target)


def debian_repository():
    """This machine's release of Debian, and a repository that apt has it from."""
    release = this_distro().codename
    found = run(["apt-get", "indextargets", "--format", "$(REPO_URI)",
                 "Codename: " + release]).split()
    if not found:
        raise NotRun("apt knows no repository of " + release)
    return release, found[0]
