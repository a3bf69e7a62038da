# SPDX-License-Identifier: Apache-2.0
"""Proof that each patch of the stack is needed and helps, on the real sources of its component.

The sources are fetched once, into TREENAIL_STACK_CACHE (stack-cache of the build directory), by
the machine's own apt and pip configuration; nothing of them is run but configure and compilers.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request

from proving import SOURCE, Failed, NotRun, run

# Component and version -> kind of source, name, version, SHA-256 of the archive.
SOURCES = {
    ("openblas", "0.3.21"): (
        "deb", "openblas", "0.3.21+ds",
        "bbec5cca61c8033b2d57aaecde205d709323a0b35a5f193290081dbb3826848a"),
    ("fftw", "3.3.10"): (
        "deb", "fftw3", "3.3.10",
        "56c932549852cddcfafdab3820b0200c7742675be92179e59e6215b340e26467"),
    ("hdf5", "1.10.8"): (
        "deb", "hdf5", "1.10.8+repack1",
        "7b38e58ff83b13fd8959a90b13bf896bc318ba096c940ab0847abf3ad41a0b31"),
    ("numpy", "1.24.2"): (
        "pypi", "numpy", "1.24.2",
        "003a9f530e880cb2cd177cba1af7220b9aa42def9c4afc2a2fc3ee6be7eb2b22"),
    ("h5py", "3.7.0"): (
        "pypi", "h5py", "3.7.0",
        "3fcf37884383c5da64846ab510190720027dca0768def34dd8dcb659dbe5cbf3"),
}


class Missing(Exception):
    """A source that this machine cannot get, and why."""


def cache():
    """The folder of fetched archives, each under its SHA-256."""
    folder = os.path.abspath(os.environ.get("TREENAIL_STACK_CACHE") or "stack-cache")
    os.makedirs(folder, exist_ok=True)
    return folder


def _sum(path):
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


def _source_lists(folder):
    """This machine's lists of packages as lists of sources, in a folder for apt; how many."""
    done = subprocess.run(["apt-config", "shell", "LIST", "Dir::Etc::SourceList/f", "PARTS",
                           "Dir::Etc::SourceParts/d"], stdout=subprocess.PIPE, text=True,
                          check=False) if shutil.which("apt-config") else None
    paths = re.findall(r"='(.*)'", done.stdout) if done else []
    files = paths[:1] + [os.path.join(part, name) for part in paths[1:] if os.path.isdir(part)
                         for name in os.listdir(part)]
    count = 0
    for path in files:
        if os.path.isfile(path) and path.endswith((".list", ".sources")):
            with open(path, encoding="utf-8") as stream:
                text = stream.read()
            text = re.sub(r"^deb(?=[ \t])", "deb-src", text, flags=re.MULTILINE)
            text = re.sub(r"^Types:.*", "Types: deb-src", text, flags=re.MULTILINE)
            with open(os.path.join(folder, os.path.basename(path)), "w",
                      encoding="utf-8") as stream:
                stream.write(text)
            count += 1
    return count


def _from_deb(name, version, folder):
    """The archive of a Debian source package, by apt as it is configured here."""
    for place in ("lists/partial", "cache", "parts"):
        os.makedirs(os.path.join(folder, place))
    if not _source_lists(os.path.join(folder, "parts")):
        raise Missing("apt is not configured here")
    options = ["-o", "Dir::Etc::SourceList=/dev/null",
               "-o", "Dir::Etc::SourceParts=" + os.path.join(folder, "parts"),
               "-o", "Dir::State::Lists=" + os.path.join(folder, "lists"),
               "-o", "Dir::Cache=" + os.path.join(folder, "cache"),
               "-o", "APT::Sandbox::User=root"]
    for words in (["update", "-qq"], ["source", "-qq", "--download-only", name]):
        done = subprocess.run(["apt-get", *options, *words], cwd=folder, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Missing(" ".join(done.stdout.split())[-300:])
    return [os.path.join(folder, n) for n in os.listdir(folder)
            if n.startswith("%s_%s.orig.tar." % (name, version))]


def _from_pypi(name, version, folder):
    """A source distribution, from the index that pip is configured for here."""
    done = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False)
    index = os.environ.get("PIP_INDEX_URL") or done.stdout.strip() or "https://pypi.org/simple"
    page = urllib.request.Request("%s/%s/" % (index.rstrip("/"), name), headers={
        "Accept": "application/vnd.pypi.simple.v1+json"})
    try:
        with urllib.request.urlopen(page, timeout=60) as stream:
            files = json.load(stream)["files"]
        wanted = "%s-%s.tar.gz" % (name, version)
        for row in files:
            if row["filename"] == wanted:
                path = os.path.join(folder, wanted)
                with urllib.request.urlopen(row["url"], timeout=300) as stream, (
                        open(path, "wb")) as target:
                    shutil.copyfileobj(stream, target)
                return [path]
    except (urllib.error.URLError, OSError, ValueError, KeyError) as reason:
        raise Missing("the index of pip does not answer: %s" % reason) from None
    raise Missing("the index of pip has no %s" % wanted)


def archive(kind, name, version, expected):
    """The path of a source archive in the cache, fetched where it is not there yet."""
    path = os.path.join(cache(), expected)
    if os.path.exists(path) and _sum(path) == expected:
        return path
    with tempfile.TemporaryDirectory() as folder:
        found = {"deb": _from_deb, "pypi": _from_pypi}[kind](name, version, folder)
        for candidate in found:
            if _sum(candidate) == expected:
                shutil.move(candidate, path + ".new")
                os.replace(path + ".new", path)
                return path
    raise Missing("%s %s: no archive with the SHA-256 %s" % (name, version, expected))


def unpacked(path, folder):
    """The one folder that is in an archive."""
    with tarfile.open(path) as stream:
        stream.extractall(folder, filter="tar") if hasattr(tarfile, "tar_filter") else (
            stream.extractall(folder))
    name, = os.listdir(folder)
    return os.path.join(folder, name)


def _proven(one, tree):
    """What the tests of a series say of a tree: a sentence; raises Failed."""
    from patching import applying, series, trial
    verdicts = trial.needed(one, tree)
    wrong = [v for v in verdicts if v.todo]
    if wrong:
        raise Failed("\n".join("%s: %s: %s\n%s" % (one, v.patch, v.word, v.text) for v in wrong))
    first = applying.apply(series.in_order(one), tree)
    if first.notes or not first.changed or applying.apply(one, tree).changed:
        raise Failed("%s: it applies elsewhere than it was written for, or not once: %s" % (
            one, "; ".join(first.notes)))
    # A later patch must not undo what an earlier one does.
    wrong = [v for v in trial.tested(one, tree) if v.todo] if len(verdicts) > 1 else []
    if wrong:
        raise Failed("%s, all applied: %s: %s" % (one, wrong[0].patch, wrong[0].text))
    untested = ["%s: %s" % (v.patch, v.text) for v in verdicts if v.word == "not tested"]
    if untested:
        raise NotRun("; ".join(untested))
    return "%s %d" % (one.component, len(verdicts))


def patches():
    """each patch of the stack applies without fuzz; its test fails without it and passes with it"""
    # Imported here: the other proofs run in trees that have no patches/.
    sys.path.insert(0, os.path.join(SOURCE, "patches"))
    from patching import series
    done, missing = [], []
    run([sys.executable, "-B", os.path.join(SOURCE, "patches/patches.py"), "check"])
    for component, versions in series.components().items():
        for version in versions:
            one = series.load(component, version)
            if not one.patches:
                continue
            if (component, version) not in SOURCES:
                raise Failed("%s: this proof knows no source of it" % one)
            try:
                path = archive(*SOURCES[component, version])
            except Missing as reason:
                missing.append("%s: %s" % (one, reason))
                continue
            with tempfile.TemporaryDirectory() as folder:
                done.append(_proven(one, unpacked(path, folder)))
    text = "needed: " + ", ".join(done)
    if missing:
        raise NotRun("%s; %s" % ("; ".join(missing), text))
    return text
