# SPDX-License-Identifier: Apache-2.0
"""With SOURCE_DATE_EPOCH libhdf5.settings is the same at another time, by another user, elsewhere;
without it, it still says when and by whom."""

import os
import re
import shutil

import patchtest

EPOCH = "1000000000"
SECONDS = "Sun Sep  9 01:46:40 UTC 2001"
OPTIONS = ["--enable-build-mode=production", "--disable-hl", "--disable-tests", "--disable-tools",
           "--disable-fortran", "--disable-cxx", "--prefix=/opt/hdf5"]


def another_machine(number):
    """A folder for PATH whose programs are those of a made-up machine."""
    folder = os.path.abspath("machine-%d" % number)
    os.makedirs(folder)
    answers = {"whoami": "user-%d" % number, "hostname": "host-%d" % number,
               "date": "date-%d" % number, "uname": "Linux host-%d #%d" % (number, number)}
    for name, answer in answers.items():
        real = shutil.which(name)
        # Only what is asked for a person's eyes is made up: uname -a, and date without a time.
        asked = {"uname": '[ "$*" = -a ]', "date": '[ $# = 0 ]'}.get(name, "true")
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write("#!/bin/sh\nif %s; then echo '%s'; else exec '%s' \"$@\"; fi\n" % (
                asked, answer, real))
        os.chmod(path, 0o755)
    return folder


def settings(tree, number, epoch):
    """libhdf5.settings of configure on a made-up machine."""
    folder = os.path.abspath("build-%d" % number)
    os.makedirs(folder)
    environment = {"PATH": another_machine(number) + os.pathsep + os.environ["PATH"],
                   "SOURCE_DATE_EPOCH": epoch, "TZ": "Pacific/Auckland" if number % 2 else "UTC"}
    patchtest.run([os.path.join(tree, "configure"), "--cache-file=" + os.path.abspath("cache"),
                   *OPTIONS], cwd=folder, environment=environment)
    with open(os.path.join(folder, "src/libhdf5.settings"), encoding="utf-8") as stream:
        return stream.read()


def tree(path):
    patchtest.need("make", "make")
    patchtest.need("cc", "gcc")
    if not os.path.exists(os.path.join(path, "configure")):
        patchtest.cannot_tell("there is no configure")
    first, second = (settings(path, number, EPOCH) for number in (1, 2))
    if first != second:
        patchtest.failed("on two machines: " + "; ".join(
            "'%s' and '%s'" % (a.strip(), b.strip())
            for a, b in zip(first.splitlines(), second.splitlines()) if a != b))
    if SECONDS not in first:
        patchtest.failed("SOURCE_DATE_EPOCH=%s is not recorded as %s" % (EPOCH, SECONDS))
    plain = settings(path, 3, "")
    lost = [word for word in ("date-3", "user-3@host-3", "Linux host-3") if word not in plain]
    if lost:
        patchtest.failed("without SOURCE_DATE_EPOCH %s is no longer recorded" % ", ".join(lost))


def prefix(path):
    """Built with SOURCE_DATE_EPOCH, that is."""
    files = [os.path.join(path, "lib/libhdf5.settings")] + [
        os.path.join(path, "lib", name) for name in sorted(os.listdir(os.path.join(path, "lib")))
        if re.fullmatch(r"libhdf5\.(a|so(\.\d+)*)", name)]
    for file in files:
        with open(file, "rb") as stream:
            found = re.search(rb"Configured by: +(\S+@\S+)", stream.read())
        if found:
            patchtest.failed("%s says: configured by %s" % (file, found.group(1).decode()))


patchtest.main(tree=tree, prefix=prefix)
