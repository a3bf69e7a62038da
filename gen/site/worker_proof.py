# SPDX-License-Identifier: Apache-2.0
"""Proof of the role worker: on a Debian in a chroot with the packages of `ninja deb`. systemd does
not run there: it judges the units, and their command is run by hand."""

import glob
import os
import re
import signal
import subprocess
import tempfile
import time

import chroots
import role_host
from proving import Failed, NotRun, debian_repository, proof
from worker_authority import Authority

PACKAGES = ("libtreenail1", "libtreenail1-grpc", "treenail-worker", "python3-treenail")
JOBS = [{"name": "ps", "group": "all", "port": 28222},
        {"name": "worker", "group": "all", "port": 28333, "options": {"cpus": 2}}]
FOLDER, UNITS = "/etc/treenail", "/etc/systemd/system"
SESSION = """
import treenail as tn
with tn.device("/job:ps/task:0"):
    v = tn.get_variable("v", initializer=tn.constant([1.0, 2.0]))
with tn.device("/job:worker/task:0/device:CPU:1"):
    y = v * 3.0
with tn.Session("grpc://127.0.0.1:28333") as session:
    limit = tn.RunOptions(timeout_in_ms=60000)
    session.run(v.initializer, options=limit)
    print("found", session.run(y, options=limit).tolist())
"""


def packages():
    """The paths of the packages that `ninja deb` made."""
    found = [glob.glob(os.path.join("deb", name + "_*.deb")) for name in PACKAGES]
    if not all(found):
        raise NotRun("deb/ has no %s: ninja deb makes it" % PACKAGES[found.index([])])
    return [max(paths, key=os.path.getmtime) for paths in found]


def host_with_packages(root):
    release, _ = debian_repository()
    chroots.made(root, release, "--variant=apt", "--include=python3,python3-apt,python3-numpy,"
                 "systemd,man-db,passwd,openssl")
    chroots.install(root, packages())
    return role_host.Host(root)


def _files(host):
    return {path: (os.stat(host.path(path)).st_mode & 0o777)
            for folder in (FOLDER, UNITS) for path in (
                os.path.relpath(found, host.root) for found in glob.glob(
                    host.path(folder, "**"), recursive=True))
            if "treenail" in path and os.path.isfile(host.path(path))}


def _need(held, text, *given):
    if not held:
        raise Failed(text % given)


def not_by_the_package(host):
    """What installing the package left alone."""
    _need(_files(host) == {}, "the package itself made %s", _files(host))
    said = host.inside("systemctl", "is-enabled", "treenail-worker@treenail-ps-0", status=None)
    _need("disabled" in said, "the package enables its service: %s", said)


def encrypted(host, authority, folder):
    """New in check mode, in earnest, again, and with a renewed certificate."""
    def options():
        certificate, key = authority.signed(folder, "host")
        return {"worker__jobs": JOBS, "worker__certificate": certificate, "worker__key": key,
                "worker__authority": authority.certificate}
    given = options()
    _need(host.play("worker", "--check", **given) and _files(host) == {},
          "--check on a new host says nothing or writes something")
    host.converged("worker", **given)
    _need(host.play("worker", "--check", **given) == [], "--check on a finished host has changes")
    files = _files(host)
    key = FOLDER.lstrip("/") + "/treenail.key.pem"
    _need(files.get(key) == 0o600 and len(files) == 7, "it wrote %s", files)
    for name in ("treenail-ps-0", "treenail-worker-0"):
        unit = "treenail-worker@%s.service" % name
        said = host.inside("systemctl", "is-enabled", unit, status=None)
        _need(said.strip().endswith("enabled"), "%s is %s", unit, said)
        host.inside("systemd-analyze", "verify", unit)
        host.inside("systemd-analyze", "security", "--offline=yes", "--threshold=30", unit)
    renewed = set(host.play("worker", **options()))
    _need("Copy the certificates" in renewed and "Write what each task is" not in renewed,
          "a renewed certificate changes %s", renewed)
    return len(files)


def _served(host):
    """The units' command for each file, and a session over both."""
    unit = host.inside("cat", "/usr/lib/systemd/system/treenail-worker@.service")
    words = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE).group(1)
    running = [subprocess.Popen(chroots.entering(host.root, words.replace("%i", name).split()),
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
               for name in ("treenail-ps-0", "treenail-worker-0")]
    try:
        time.sleep(1)
        return host.inside("timeout", "100", "python3", "-c", SESSION, status=None)
    finally:
        for process in running:
            process.send_signal(signal.SIGTERM)
            process.kill() if process.poll() is None else None
            process.wait()


def plain(host):
    """Without certificates on loopback: the tasks serve what the files say."""
    options = {"worker__jobs": JOBS, "worker__plain_text": True, "worker__address": "127.0.0.1"}
    host.converged("worker", **options)
    _need(len(_files(host)) == 2, "in plain text there are %s", _files(host))
    said = _served(host)
    _need("found [3.0, 6.0]" in said, "a session at the services says: %s", said)
    fewer = host.play("worker", **dict(options, worker__jobs=JOBS[:1]))
    _need("Stop them" in fewer and not [path for path in _files(host) if "worker-0" in path],
          "a task that went elsewhere left %s", _files(host))
    host.converged("worker", worker__state="absent")
    _need(_files(host) == {}, "absent leaves %s", _files(host))


def proven(host, folder):
    os.environ["SYSTEMD_OFFLINE"] = "1"  # systemctl writes links, and starts nothing
    not_by_the_package(host)
    count = encrypted(host, Authority(os.path.join(folder, "authority")), folder)
    plain(host)
    return ("%d files for two tasks; again, and in check mode, without a change; the units "
            "verified, and below 3.0 of exposure; a renewed certificate; a session over both "
            "tasks; removed" % count)


@proof
def worker():
    """The role worker: tasks as services from the packages, certificates, twice, moved, removed"""
    role_host.needs()
    packages()
    with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as folder:
        return proven(host_with_packages(root), folder)
