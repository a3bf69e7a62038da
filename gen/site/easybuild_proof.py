# SPDX-License-Identifier: Apache-2.0
"""Proof that EasyBuild installs Treenail: PyPI's, in a virtual environment that is thrown away, as
an unprivileged user, with the system's compiler; Lmod loads the module that it writes."""

import hashlib
import json
import os
import pwd
import re
import shutil
import tempfile

import dist
from archive import epoch
from gen.distro import this_distro
from gen.facts import DISTRIBUTION_PYTHON
from proving import SOURCE, Failed, NotRun, proof, run

LMOD = "/usr/share/lmod/lmod"
USERS = ("builder", "nobody")  # the first that there is
# A build with a compiler cache says so itself; nothing else of the environment goes in.
_KEPT = ("CC", "CXX", "CCACHE_DIR", "CCACHE_NOHASHDIR", "http_proxy", "https_proxy", "no_proxy",
         "PIP_INDEX_URL", "PIP_CONFIG_FILE")


class Site:
    """A directory of the builder's own, and commands that run as the builder."""

    def __init__(self, folder):
        there = {entry.pw_name: entry for entry in pwd.getpwall()}
        self.user = next((there[name] for name in USERS if name in there), None)
        if self.user is None:
            raise NotRun("there is neither a user builder nor nobody, and EasyBuild refuses root")
        self.folder = folder
        os.chown(folder, self.user.pw_uid, self.user.pw_gid)

    def path(self, *names):
        return os.path.join(self.folder, *names)

    def own(self, path):
        os.chown(path, self.user.pw_uid, self.user.pw_gid)
        return path

    def command(self, words):
        settings = {
            "HOME": self.folder, "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "USER":
            self.user.pw_name, "LMOD_CMD": LMOD + "/libexec/lmod", "EASYBUILD_MODULES_TOOL": "Lmod",
            "EASYBUILD_PREFIX": self.path("easybuild"), "EASYBUILD_SOURCEPATH":
            self.path("sources"), "EASYBUILD_TMPDIR": self.path("tmp"),
            "EB_PYTHON": self.path("venv/bin/python")}
        settings.update((name, os.environ[name]) for name in _KEPT if name in os.environ)
        return ["setpriv", "--reuid=%d" % self.user.pw_uid, "--regid=%d" % self.user.pw_gid,
                "--clear-groups", "env", "-i", *["%s=%s" % pair for pair in settings.items()],
                *words]

    def run(self, *words, status=0):
        return run(self.command(words), cwd=self.folder, status=status)

    def eb(self, *words, status=0):
        return self.run(self.path("venv/bin/eb"), self.path("treenail.eb"), *words, status=status)

    def loaded(self, script):
        """The output of a shell that has the module."""
        return self.run("bash", "-c", ". %s/init/bash && module use %s/modules/all && "
                        "module load treenail && %s" % (LMOD, self.path("easybuild"), script))


def _installed(site):
    """EasyBuild from PyPI, and its version."""
    site.run(DISTRIBUTION_PYTHON, "-m", "venv", site.path("venv"))
    try:
        site.run(site.path("venv/bin/pip"), "-q", "install", "--no-cache-dir", "easybuild")
    except Failed as reason:
        raise NotRun("PyPI gives no EasyBuild: %s" % str(reason).strip().splitlines()[-1]) from None
    return told_version(site.eb("--version"))


def told_version(text):
    """Of `This is EasyBuild 5.1.1 (framework: 5.1.1, easyblocks: 5.1.1) on host NAME.`"""
    return re.search(r"^This is EasyBuild (\S+) ", text, re.MULTILINE).group(1)


def _refuses_another_archive(site, name, version):
    """A source that is not what the checksum says stops the build before it begins."""
    os.mkdir(site.path("tampered"))
    site.own(site.path("tampered"))
    shutil.copy(site.path("sources", name), site.path("tampered"))
    with open(site.path("tampered", name), "ab") as stream:
        stream.write(b"\0")
    text = site.eb("--sourcepath", site.path("tampered"), "--force", status=None)
    if not re.search("Checksum verification for .* failed", text) or os.path.exists(
            site.path("easybuild/software/treenail", version, "bin")):
        raise Failed("an archive with another checksum was not refused:\n" + text[-2000:])


def _trained(site, prefix):
    """What `module load` gives, shown by a process that uses it."""
    told = site.loaded("treenail-info --version && command -v treenail-info && /usr/bin/python3 -c "
                       "'import treenail; print(treenail.__file__)'").split()
    for path in told[1:]:
        if not path.startswith(prefix + "/"):
            raise Failed("%s is in use, not what lies in %s" % (path, prefix))
    after = site.loaded("module unload treenail && echo \"[$PYTHONPATH][$EBROOTTREENAIL]\"")
    if prefix in after:
        raise Failed("module unload leaves " + after)
    shutil.copytree(os.path.join(SOURCE, "smoke"), site.path("smoke"))
    report = site.path("smoke.json")
    site.loaded("/usr/bin/python3 -B smoke/train.py mlp --quiet --report " + report)
    maps = site.loaded("/usr/bin/python3 -B -c 'import treenail; treenail.build_info(); "
                       "print(open(\"/proc/self/maps\").read())'")
    library = {line.split()[-1] for line in maps.splitlines() if "libtreenail.so" in line}
    if not library or not all(path.startswith(prefix + "/") for path in library):
        raise Failed("the process has %s, not the library in %s" % (sorted(library), prefix))
    with open(report, encoding="utf-8") as stream:
        return told[0], json.load(stream)["accuracy"]


@proof
def easybuild():
    """EasyBuild builds treenail.eb as a builder; Lmod loads the module, and a network trains"""
    if os.getuid() != 0:
        raise NotRun("only root can become the builder")
    if not os.path.exists(LMOD + "/init/bash"):
        raise NotRun("Lmod is not installed; " + this_distro().install_hint("lmod"))
    with tempfile.TemporaryDirectory(prefix="treenail-eb-") as folder:
        return built(Site(folder))


def built(site):
    with open(os.path.join(SOURCE, "VERSION"), encoding="utf-8") as stream:
        version = stream.read().strip()
    name = "treenail-%s.tar.gz" % version
    archive = dist.archive(SOURCE, version, epoch(SOURCE))
    os.mkdir(site.path("sources"))
    site.own(site.path("sources"))
    with open(site.path("sources", name), "wb") as stream:
        stream.write(archive)
    site.own(shutil.copy(os.path.join(SOURCE, "contrib/easybuild/treenail.eb"), site.folder))
    release = _installed(site)
    site.eb("--inject-checksums-to-json", "sha256")
    with open(site.path("checksums.json"), encoding="utf-8") as stream:
        if json.load(stream) != {name: hashlib.sha256(archive).hexdigest()}:
            raise Failed("checksums.json does not hold the digest of " + name)
    _refuses_another_archive(site, name, version)
    text = site.eb("--enforce-checksums")
    prefix = site.path("easybuild/software/treenail", version)
    if "COMPLETED" not in text or not os.path.isdir(prefix):
        raise Failed(text[-4000:])
    minutes = re.search(r"Installation ended successfully \(took (.*?)\)", text)
    again = site.eb("--enforce-checksums")
    if "already installed" not in again:
        raise Failed("a second run builds again:\n" + again[-2000:])
    told, accuracy = _trained(site, prefix)
    if told != version:
        raise Failed("the module gives Treenail %s" % told)
    return "EasyBuild %s as %s, %s: module load treenail, MLP %.4f" % (
        release, site.user.pw_name, minutes.group(1) if minutes else "built", accuracy)
