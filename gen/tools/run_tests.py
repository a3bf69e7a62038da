# SPDX-License-Identifier: Apache-2.0
"""Run the tests and say in a line what came of them.

Jobs (a GoogleTest program, a file or a shard of a pytest folder) run side by side, as many as
TREENAIL_TEST_JOBS, MESON_TESTTHREADS or RPM_BUILD_NCPUS say, else one for each core of the affinity
mask and further ones while cores are idle, for some tests wait more than they compute. Each job's
output is kept in tests/log/; what failed is shown, what was skipped is listed with its
reason. A job that dies, hangs or reports no result counts as a failure, and so does one that leaves
anything in the temporary directory that it was given (pytest's own folder apart). --junit gathers
the reports of all jobs, and what is wrong with a job itself, in one.
"""

import argparse
import collections
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

import junit

JOB_SECONDS = 1200
TAIL_LINES = 60


class Job:
    """One process; `kind` is 'cxx' or 'python'."""

    def __init__(self, name, kind, command, report, environment, cwd=None, guess=5.0):
        self.name, self.kind, self.command, self.cwd = name, kind, command, cwd
        self.guess = guess  # of the seconds that it will take
        self.report = os.path.abspath(report)
        self.log = self.report[:-4] + ".log"
        self.environment = environment
        self.process = self.stream = None
        self.temporary = ""
        self.start = self.seconds = self.cpu = 0.0
        self.passed, self.failed, self.skipped, self.cases = 0, [], [], []

    def add(self, case, verdict, message=""):
        """One test of the report."""
        inner = case.find("failure") if case.find("failure") is not None else case.find("error")
        self.cases.append(junit.Case(
            case.get("classname", ""), case.get("name", ""), verdict,
            float(case.get("time") or 0), message, (inner.text or "") if inner is not None else ""))
        name = "%s.%s" % (case.get("classname", ""), case.get("name", ""))
        if verdict == "failed":
            self.failed.append((name, message))
        elif verdict == "skipped":
            self.skipped.append((name, message))
        else:
            self.passed += 1

    def fail(self, message):
        """The job itself failed."""
        self.failed.append((self.name, message))
        self.cases.append(junit.Case(self.name, "job", "failed", self.seconds, message))


def stated_width():
    """How many jobs the environment asks for; 0 where it says nothing."""
    for name in ("TREENAIL_TEST_JOBS", "MESON_TESTTHREADS", "RPM_BUILD_NCPUS"):
        if os.environ.get(name, "").isdigit() and int(os.environ[name]) > 0:
            return int(os.environ[name])
    return 0


def width():
    return stated_width() or len(os.sched_getaffinity(0))


class IdleCores:
    """Whether one more job should run beside those that do: none has begun for a second, and half a
    core or more was idle in it, whoever used the others. Never where the environment says how many
    jobs there are to be."""

    SECONDS = 1.0
    LEAST = 0.5

    def __init__(self, parallel, statistics="/proc/stat"):
        self.most = 0 if stated_width() else 2 * parallel  # jobs at a time
        self.statistics = statistics
        self.begin()

    def begin(self):
        """A second begins, as one does with each job."""
        self.since, self.idle_then = time.monotonic(), self.idle()

    def idle(self):
        """Seconds for which the cores of the affinity mask have been idle, also for a disk; 0 where
        the system does not tell."""
        try:
            with open(self.statistics, encoding="ascii") as stream:
                rows = [line.split() for line in stream if line.startswith("cpu")]
        except OSError:
            return 0.0
        mine = {"cpu%d" % core for core in os.sched_getaffinity(0)}
        return sum(int(row[4]) + int(row[5]) for row in rows if row[0] in mine) / (
            os.sysconf("SC_CLK_TCK"))

    def admit(self, running):
        seconds = time.monotonic() - self.since
        if running >= self.most or seconds < self.SECONDS:
            return False
        idle = (self.idle() - self.idle_then) / seconds
        self.begin()
        return idle >= self.LEAST


def cxx_jobs(manifest, logs, check, filters):
    jobs = []
    environment = {"TREENAIL_BUILD_DIR": os.getcwd(),
                   "TREENAIL_SOURCE_DIR": os.path.abspath(manifest["source"])}
    # LeakSanitizer follows thread-local storage by what __tls_get_addr was seen to return, and dies
    # of stale notes after libraries that start threads were opened (seen with libgomp in oneDNN).
    environment["ASAN_OPTIONS"] = ":".join(
        filter(None, ["intercept_tls_get_addr=0", os.environ.get("ASAN_OPTIONS")]))
    leaks = os.path.join(environment["TREENAIL_SOURCE_DIR"], "tests/support/leaks.txt")
    environment["LSAN_OPTIONS"] = ":".join(filter(None, [
        "print_suppressions=0", "suppressions='%s'" % leaks, os.environ.get("LSAN_OPTIONS")]))
    for name, program in sorted(manifest["programs"].items()):
        if check and check not in program["checks"]:
            continue
        if filters and not any(f in "tests/" + name for f in filters):
            continue
        report = os.path.join(logs, "cxx-%s.xml" % name)
        jobs.append(Job("tests/" + name, "cxx",
                        [os.path.abspath(program["path"]), "--gtest_brief=1",
                         "--gtest_output=xml:" + os.path.abspath(report)], report,
                        environment))
    return jobs


def python_jobs(manifest, logs, filters, pytest_arguments):
    """pytest runs in the source tree with relative paths: it expands $NAME and [x] in others."""
    jobs = []
    source = os.path.abspath(manifest["source"])
    here = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath("python"), here]
    if os.environ.get("PYTHONPATH"):
        paths.append(os.environ["PYTHONPATH"])
    # NumPy's threads wait by spinning: a system of 20 equations took 15 times as long where another
    # test ran. What Treenail itself asks of a BLAS it sets before each call.
    environment = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1",
                   "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
                   "TREENAIL_BUILD_DIR": os.getcwd(), "TREENAIL_SOURCE_DIR": source,
                   "HYPOTHESIS_STORAGE_DIRECTORY": os.path.abspath("tests/hypothesis")}

    def add(name, words, guess, extra=()):
        if filters and not any(f in name for f in filters):
            return
        report = os.path.join(logs, "py-%s.xml" % name.replace("/", "-"))
        jobs.append(Job(name, "python",
                        [manifest["python"], "-m", "pytest", "-q", "-rs", "--color=no",
                         "--rootdir=.", "-p", "no:cacheprovider", "-p", "pytest_shard",
                         "--junitxml", os.path.relpath(report, source)] + pytest_arguments + words,
                        report, dict(environment, **dict(extra)), source, guess))

    for group in manifest["pytest"]:
        folder = os.path.join(source, group["folder"])
        if not os.path.isdir(folder):
            continue
        if group["shards"] > 1:
            if not any(n.startswith("test_") and n.endswith(".py") for n in os.listdir(folder)):
                continue
            count = min(group["shards"], max(2, width()))  # each collects all of the folder
            for shard in range(count):
                add("%s:%d" % (group["folder"], shard + 1), [group["folder"]], 1000.0,
                    {"TREENAIL_TEST_SHARD": "%d/%d" % (shard, count)})
            continue
        for leaf in sorted(os.listdir(folder)):
            if leaf.startswith("test_") and leaf.endswith(".py"):
                path = "%s/%s" % (group["folder"], leaf)
                add(path, [path], os.path.getsize(os.path.join(folder, leaf)) / 2000)
    return jobs


def precompile(python):
    """Bytecode of the module that the tests import, beside the links to it in the build directory:
    they start hundreds of interpreters, none of which writes any. Without it they take longer, no
    more."""
    if os.path.isdir("python"):
        subprocess.run([python, "-m", "compileall", "-q", "python"], check=False)


def start(job):
    job.stream = open(job.log, "w", encoding="utf-8")
    if os.path.exists(job.report):
        os.unlink(job.report)
    job.temporary = tempfile.mkdtemp(prefix="treenail-test-")
    job.start = time.monotonic()
    job.process = subprocess.Popen(job.command, stdout=job.stream, stderr=subprocess.STDOUT,
                                   stdin=subprocess.DEVNULL, start_new_session=True, cwd=job.cwd,
                                   env=dict(os.environ, TMPDIR=job.temporary,
                                            **job.environment))


def ended(job):
    """The exit status, as Popen gives it, of a job that has ended, else None."""
    pid, status, usage = os.wait4(job.process.pid, os.WNOHANG)
    if not pid:
        return None
    job.cpu = usage.ru_utime + usage.ru_stime
    job.process.returncode = os.waitstatus_to_exitcode(status)
    return job.process.returncode


def stop(job):
    try:
        os.killpg(job.process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    job.process.wait()


def clear_temporary(job):
    """Removes the job's temporary directory; the names of what the job left in it."""
    names = [name for name in sorted(os.listdir(job.temporary))
             if not name.startswith("pytest-of-")]
    shutil.rmtree(job.temporary, ignore_errors=True)
    return names


def collect(job, status):
    """Read the job's report; whatever is wrong with job or report is a failure of its own."""
    job.stream.close()
    job.seconds = time.monotonic() - job.start
    left = clear_temporary(job)
    problem = ""
    if status < 0:
        problem = "died of " + signal.Signals(-status).name
    try:
        root = ElementTree.parse(job.report).getroot()
    except (OSError, ElementTree.ParseError):
        if job.kind == "python" and status == 5:
            return  # pytest: nothing collected, as in a shard that gets no case
        job.fail(problem or "gave no report (exit status %d)" % status)
        return
    for case in root.iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            bad = case.find("failure")
            bad = bad if bad is not None else case.find("error")
            job.add(case, "failed", (bad.get("message") or "").strip())
        elif skipped is not None or case.get("result") == "skipped":
            reason = (skipped.get("message") or "") if skipped is not None else ""
            reason = reason.replace("\n", " ").strip()
            if job.kind == "cxx" and ".cc:" in reason:
                reason = reason.split(" ", 1)[-1]
            job.add(case, "skipped", reason or "no reason given")
        elif case.get("status") == "notrun":
            job.add(case, "skipped", "disabled")
        else:
            job.add(case, "passed")
    if status not in (0, 5) and not job.failed:
        job.fail(problem or "ended with exit status %d" % status)
    if left and not job.failed:
        job.fail("left %s in its temporary directory" % ", ".join(left))


class Progress:
    """One line that is rewritten on a terminal, a line per finished job elsewhere."""

    def __init__(self, total):
        self.total, self.done = total, 0
        self.terminal = sys.stdout.isatty()

    def show(self, job, running, counts):
        self.done += 1
        line = "[%d/%d] %d passed, %d failed" % ((self.done, self.total) + counts)
        if self.terminal:
            names = ", ".join(j.name for j in running)
            columns = shutil.get_terminal_size().columns - 1
            sys.stdout.write("\r\033[K" + ("%s  %s" % (line, names))[:columns])
        else:
            verdict = "  FAILED" if job.failed else ""
            sys.stdout.write("%s  %s (%.1f s, %.1f s of processor time)%s\n" % (
                line, job.name, job.seconds, job.cpu, verdict))
        sys.stdout.flush()

    def finish(self):
        if self.terminal:
            sys.stdout.write("\r\033[K")


def run(jobs, parallel):
    """Longest first, so that the end is not one slow job alone: by what the previous run took;
    where there was none, parts of a folder first, which was cut because it is long, then by size.
    """
    history_path = "tests/log/seconds.json"
    try:
        with open(history_path, encoding="utf-8") as stream:
            history = json.load(stream)
    except (OSError, ValueError):
        history = {}
    waiting = collections.deque(sorted(
        jobs, key=lambda j: history.get(j.name, j.guess), reverse=True))
    running = []
    progress, idle_cores = Progress(len(jobs)), IdleCores(parallel)
    try:
        while waiting or running:
            while waiting and (len(running) < parallel or idle_cores.admit(len(running))):
                job = waiting.popleft()
                start(job)
                running.append(job)
                idle_cores.begin()
            time.sleep(0.02)
            for job in list(running):
                status = ended(job)
                if status is None and time.monotonic() - job.start < JOB_SECONDS:
                    continue
                if status is None:
                    stop(job)
                    job.fail("no end after %d s" % JOB_SECONDS)
                    status = 0
                running.remove(job)
                collect(job, status)
                counts = (sum(j.passed for j in jobs), sum(len(j.failed) for j in jobs))
                progress.show(job, running, counts)
    except KeyboardInterrupt:
        for job in running:
            stop(job)
            clear_temporary(job)
        progress.finish()
        print("interrupted")
        sys.exit(130)
    progress.finish()
    history.update({job.name: round(job.seconds, 2) for job in jobs})
    with open(history_path, "w", encoding="utf-8") as stream:
        json.dump(history, stream, sort_keys=True)


def report(jobs, seconds, missing):
    for job in jobs:
        if not job.failed:
            continue
        print("---- %s: %d failed; the end of %s:" % (
            job.name, len(job.failed), os.path.relpath(job.log)))
        with open(job.log, encoding="utf-8", errors="replace") as stream:
            print("".join(stream.readlines()[-TAIL_LINES:]).rstrip())
    reasons = collections.Counter()
    for job in jobs:
        for _, reason in job.skipped:
            reasons[reason] += 1
    for reason, count in sorted(reasons.items()):
        print("skipped %4d: %s" % (count, reason))
    for name, why in sorted(missing.items()):
        print("not run: the tests that need %s (%s)" % (name, why))
    failed = [(job, name, text) for job in jobs for name, text in job.failed]
    for job, name, text in failed[:40]:
        first = ": " + text.splitlines()[0][:160] if text else ""
        print("FAILED %s: %s%s" % (job.name, name, first))
    if len(failed) > 40:
        print("... and %d more" % (len(failed) - 40))
    passed = sum(job.passed for job in jobs)
    print("%d passed, %d failed, %d skipped in %.0f s" % (
        passed, len(failed), sum(len(job.skipped) for job in jobs), seconds))
    if passed == 0 and not failed:
        print("no test ran at all: that is a failure")
        return 1
    return 1 if failed or missing else 0


def write_junit(path, jobs, missing):
    suites = [junit.Suite(job.name, job.cases) for job in jobs if job.cases]
    suites += [junit.Suite("not run", [junit.Case("not run", name, "failed", message=why)])
               for name, why in sorted(missing.items())]
    junit.write(path, suites)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--only", choices=("cxx", "python"))
    parser.add_argument("--check", default="", help="only programs that name this sanitizer run")
    parser.add_argument("--pytest", default="", help="more words for pytest")
    parser.add_argument("--junit", metavar="FILE", help="the reports of all jobs go here, in one")
    parser.add_argument("filters", nargs="*", help="parts of job names")
    options = parser.parse_args()
    filters = options.filters + os.environ.get("TREENAIL_TEST_FILTER", "").split()
    with open(options.manifest, encoding="utf-8") as stream:
        manifest = json.load(stream)
    logs = "tests/log"
    os.makedirs(logs, exist_ok=True)
    began = time.monotonic()
    jobs = []
    if options.only != "python":
        jobs += cxx_jobs(manifest, logs, options.check, filters)
    if options.only != "cxx":
        precompile(manifest["python"])
        jobs += python_jobs(manifest, logs, filters, options.pytest.split())
    run(jobs, width())
    missing = manifest["missing"] if options.only != "python" else {}
    if options.junit:
        write_junit(options.junit, jobs, missing)
    return report(jobs, time.monotonic() - began, missing)


if __name__ == "__main__":
    sys.exit(main())
