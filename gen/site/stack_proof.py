# SPDX-License-Identifier: Apache-2.0
"""Proofs of ansible/: the stack built in a new Debian by the play that a site runs, without a
network once its sources are there, again without a change, and with one flag changed."""

import glob
import json
import os
import platform
import shutil
import subprocess

from proving import SOURCE, Failed, NotRun, need, proof, run

ANSIBLE = os.path.join(SOURCE, "ansible")
HOSTS = os.path.join(SOURCE, "ci/hosts")


class Site:
    """Test hosts, and plays run on them."""

    def __init__(self, name, *hosts):
        if os.getuid() != 0:
            raise NotRun("only root can make test hosts")
        need("ansible-community", "ansible")
        need("mmdebstrap", "mmdebstrap")
        self.base = os.path.abspath(name)
        self.state = os.path.join(self.base, "hosts")
        self.reports = os.path.join(self.base, "reports")
        shutil.rmtree(self.reports, ignore_errors=True)
        os.makedirs(self.reports)
        self.hosts = hosts

    def __enter__(self):
        run([HOSTS, "up", "--state", self.state, *self.hosts])
        return self

    def __exit__(self, *_):
        run([HOSTS, "down", "--state", self.state])

    def play(self, name, *words, network=True, status=0, playbook="site.yml"):
        """The report of a play: what changed, which steps ran, what failed."""
        command = ["ansible-playbook", "-i", os.path.join(self.state, "inventory.yml"), playbook,
                   "-e", "stack__reports=" + self.reports, *words]
        if not network:
            command = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh",
                       *command]
        before = set(glob.glob(os.path.join(self.reports, "report-*.json")))
        log = os.path.join(self.base, name + ".log")
        with open(log, "wb") as stream:
            done = subprocess.run(command, cwd=ANSIBLE, stdout=stream, stderr=subprocess.STDOUT,
                                  stdin=subprocess.DEVNULL, check=False, env=dict(
                                      os.environ, NO_COLOR="1"))
        made = set(glob.glob(os.path.join(self.reports, "report-*.json"))) - before
        if (done.returncode == 0) != (status == 0) or len(made) != 1:
            with open(log, encoding="utf-8", errors="replace") as stream:
                raise Failed("%s: exit status %d, %d reports; %s ends with:\n%s" % (
                    name, done.returncode, len(made), log, stream.read()[-4000:]))
        with open(made.pop(), encoding="utf-8") as stream:
            report = json.load(stream)
        print("%s: %d s" % (name, report["seconds"]), flush=True)
        return report

    def manifest(self, host):
        """What the last play left of a host's stack."""
        with open(os.path.join(self.reports, "manifest-%s.json" % host), encoding="utf-8") as text:
            return json.load(text)


def built(report):
    """Components of which a step ran."""
    return {step["component"] for step in report["steps"] if step["ran"]}


def changes(report):
    return sum(host["changed"] for host in report["hosts"].values())


@proof
def stack():
    """Ansible: the stack fetched, built offline, run again without a change, one flag changed"""
    with Site("stack-proof", "--chroot", "stack") as site:
        fetched = site.play("fetch", "--tags", "fetch")
        whole = site.play("build", "-e", "stack__offline=true", network=False)
        wanted = {"openblas", "fftw", "hdf5", "treenail"}
        if not wanted <= built(whole):
            raise Failed("built were %s" % ", ".join(sorted(built(whole))))
        again = site.play("again", "-e", "stack__offline=true", network=False)
        if changes(again) or built(again):
            raise Failed("the second run changed %d things and built %s" % (
                changes(again), ", ".join(sorted(built(again))) or "nothing"))
        flag = site.play("flag", "-e", "stack__offline=true", "-e",
                         json.dumps({"fftw__flags": ["--disable-fma"]}), network=False)
        if built(flag) != {"fftw", "treenail"}:
            raise Failed("a flag of FFTW rebuilt %s" % ", ".join(sorted(built(flag))))
        site.play("prune", playbook="prune.yml")
        kept = site.play("kept", "-e", "stack__offline=true", "-e",
                         json.dumps({"fftw__flags": ["--disable-fma"]}), network=False)
        if built(kept):
            raise Failed("prune removed what the manifest names: %s" % ", ".join(
                sorted(built(kept))))
    return ("fetched in %d s; built without a network in %d s (%s); again in %d s, nothing "
            "changed; with another flag of FFTW: %s in %d s; %d checks of what is loaded" % (
                fetched["seconds"], whole["seconds"], ", ".join(sorted(built(whole))),
                again["seconds"], ", ".join(sorted(built(flag))), flag["seconds"],
                len(whole["checks"])))


@proof
def stack_arm64():
    """Ansible: the same roles in an arm64 chroot under qemu-user, C libraries by cross compilers"""
    if platform.machine() != "x86_64":
        raise NotRun("the cross compilers are those of x86_64")
    need("qemu-aarch64-static", "qemu-user-static")
    with Site("stack-arm64", "--chroot", "arm:arm64") as site:
        options = ("-e", "toolchain__architecture=amd64")
        whole = site.play("build", *options)
        wanted = {"openblas", "fftw", "hdf5", "treenail"}
        manifest = site.manifest("arm")
        if not wanted <= built(whole) or manifest["machine"] != "aarch64":
            raise Failed("built for %s were %s" % (
                manifest["machine"], ", ".join(sorted(built(whole)))))
        again = site.play("again", *options)
        if changes(again) or built(again):
            raise Failed("the second run changed %d things" % changes(again))
    return "%s for %s in %d s, again in %d s; %s" % (
        ", ".join(sorted(built(whole))), manifest["machine"], whole["seconds"], again["seconds"],
        "; ".join(check["says"] for check in whole["checks"]))


def _skipped(*kept):
    """Options that leave out everything but these."""
    return {name + "__mode": "skip" for name in (
        "openblas", "fftw", "hdf5", "numpy", "h5py", "scipy", "treenail") if name not in kept}


@proof
def stack_modules():
    """Ansible: environment-modules serves as Lmod does; a stack takes another's HDF5 as module"""
    with Site("stack-modules", "--chroot", "modules") as site:
        report = site.play("build", "-e", json.dumps(dict(
            _skipped("hdf5"), modules__implementation="environment-modules")))
        if built(report) != {"hdf5"}:
            raise Failed("built were %s" % ", ".join(sorted(built(report))))
        first, = (c for c in site.manifest("modules")["components"] if c["name"] == "hdf5")
        options = dict(_skipped("hdf5"), modules__implementation="environment-modules",
                       stack__prefix="/opt/second", modules__paths=["/opt/stack/modulefiles"],
                       hdf5__mode="module", hdf5__module=first["module"])
        taken = site.play("taken", "-e", json.dumps(options))
        second, = (c for c in site.manifest("modules")["components"] if c["name"] == "hdf5")
        if built(taken) or (second["mode"], second["module"]) != ("module", first["module"]):
            raise Failed("built %s; the manifest has %r" % (built(taken), second))
        says = taken["checks"][0]["says"]
        if first["prefix"] not in says:
            raise Failed("loaded was %s, and %s is in %s" % (
                says, first["module"], first["prefix"]))
        for name, more, words in (
                ("version", {"hdf5__version": "1.14"}, "it is version %s" % first["version"]),
                ("absent", {"hdf5__module": "hdf5/0.9"}, "could be loaded: hdf5/0.9")):
            text = " ".join(f["message"] for f in site.play(
                name, "-e", json.dumps(dict(options, **more)), status=1)["failures"])
            if words not in text:
                raise Failed("%s: %r does not say %r" % (name, text, words))
        return "; ".join(check["says"] for check in report["checks"] + taken["checks"])


# What is refused: a name, options, words of the sentence.
REFUSALS = (
    ("mode", {"fftw__mode": "biuld"}, "fftw__mode is 'biuld'; it must be one of"),
    ("misspelt", {"fttw__mode": "skip"}, "did you mean fftw__mode?"),
    ("version", {"hdf5__version": "9.9"}, "whose sources are not known; known are 1.10.8"),
    ("checksum", {"fftw__sources": [{"deb-orig": "fftw3 3.3.10-1 " + "0" * 64}]},
     "has not the checksum 000"),
    ("missing", {"fftw__sources": [{"cache": "fftw-9.tar.gz 9 " + "1" * 64}]}, "was found nowhere"),
    ("level", {"stack__isa": "x86-64-v9"}, "this processor does not run it"),
    ("variant", {"stack__variant": "best"}, "it must be one of patched, pinned, upstream"),
)


@proof
def stack_refusals():
    """wrong modes, versions, checksums and levels: a sentence each, before anything is built"""
    with Site("stack-refusals", "--chroot", "refusals") as site:
        for name, options, words in REFUSALS:
            report = site.play(name, "-e", json.dumps(options), status=1)
            text = " ".join(f["message"] for f in report["failures"])
            if words not in text:
                raise Failed("%s: %r does not say %r" % (name, text, words))
            if built(report):
                raise Failed("%s: %s was built all the same" % (name, ", ".join(built(report))))
    return "%d refusals, each with its sentence" % len(REFUSALS)
