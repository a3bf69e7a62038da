# SPDX-License-Identifier: Apache-2.0
"""Proof of the role repo: a server and its clients on a Debian in a chroot, over HTTP.

The channels hold tiny packages of two versions, and those of `ninja deb` and `ninja rpm` where
they are made. apt and dnf are those of the chroot; dnf is given its repositories by the same role,
which is told that the host is of RHEL's family.
"""

import contextlib
import functools
import glob
import http.server
import os
import re
import shutil
import tempfile
import threading

import chroots
import repository_attacks as attacks
import repository_fixtures as fixtures
import role_host
import rpm_packages
import rpm_proofs
from proving import Failed, NotRun, proof

SERVED = "/srv/treenail"
ATTACKED = "/srv/attacked"
LISTS = "/var/lib/apt/lists"


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def served(folder):
    """The address of a web server for the folder."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(
        _Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield "http://127.0.0.1:%d" % server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Site:
    """The host, the key, the packages, and how the role is called for them."""

    def __init__(self, host, key, folder):
        self.host, self.key, self.folder = host, key, folder
        self.public = os.path.join(folder, "public.asc")
        home = host.path("/srv/signing")
        fixtures.output(["gpgconf", "--homedir", key.home, "--kill", "gpg-agent"])
        shutil.copytree(key.home, home, ignore=shutil.ignore_patterns("S.*"))
        os.chmod(home, 0o700)

    def tiny(self, version):
        """A folder with tiny packages of this version."""
        folder = os.path.join(self.folder, "tiny-" + version)
        if not os.path.isdir(folder):
            fixtures.deb(folder, version=version, content=version)
            fixtures.rpm(folder, version=version, content=version)
        return folder

    def publish(self, *folders, root=SERVED, **more):
        options = {"repo__role": "server", "repo__root": root, "repo__gnupg_home": "/srv/signing",
                   "repo__key_id": self.key.fingerprint, "repo__packages": list(folders),
                   "repo__public_key": self.public}
        return dict(options, **more)

    def client(self, address, **more):
        return dict({"repo__url": address, "repo__public_key": self.public}, **more)


def _same_files(host, root):
    return {name: fixtures.sha256(os.path.join(host.path(root), name))
            for name in _files(host.path(root))}


def _files(folder):
    return sorted(os.path.relpath(path, folder) for path in glob.glob(
        os.path.join(folder, "**"), recursive=True) if os.path.isfile(path))


# ---- published -------------------------------------------------------------------------------


def published(site, real):
    """Release: version 1 and the real packages; nightly: versions 1 and 2; 2 is promoted later."""
    host = site.host
    if host.play("repo", "--check", **site.publish(site.tiny("1"))) == [] or os.path.exists(
            host.path(SERVED)):
        raise Failed("--check on a new host says nothing or writes something")
    release = site.publish(site.tiny("1"), *real, repo__channel="release")
    host.converged("repo", **release)
    before = _same_files(host, SERVED)
    host.converged("repo", **site.publish(site.tiny("1")))
    host.converged("repo", **site.publish(site.tiny("2")))
    if host.play("repo", **release):
        raise Failed("a nightly changes the release")
    changed = [name for name, value in before.items() if not name.endswith(".lock") and
               fixtures.sha256(host.path(SERVED, name)) != value]
    if changed:
        raise Failed("a nightly changes %s" % changed)


def _promoted(site):
    """Exactly version 2, by its sums, goes from nightly to release."""
    lines = ["%s  %s" % (fixtures.sha256(path), os.path.basename(path))
             for path in sorted(glob.glob(os.path.join(site.tiny("2"), "*")))]
    if len(lines) != 2:
        raise Failed("one deb and one rpm should be promoted: %s" % lines)
    site.host.converged("repo", **site.publish(repo__channel="release", repo__promote=lines))
    report = site.host.played("repo", **site.publish(
        repo__channel="release", repo__promote=["0" * 64 + "  tiny_3_all.deb"]))
    if "nightly holds no package with the SHA-256 sum 0000" not in report.failure("host"):
        raise Failed("promotion of what nightly has not: " + report.failure("host"))


# ---- apt -------------------------------------------------------------------------------------


def _version(host, name):
    return host.inside("dpkg-query", "-W", "-f", "${Version}", name, status=None)


def apt_client(site, address, real):
    """From release, by -t from nightly, and back by a pin; then the real packages."""
    host, both = site.host, ["release", "nightly"]
    host.converged("repo", **site.client(address, repo__channels=both))
    wanted = (("1", ["install", "tiny"]), ("2", ["-t", "nightly", "install", "tiny"]))
    for version, words in wanted:
        host.inside("apt-get", "-y", *words)
        if _version(host, "tiny") != version:
            raise Failed("apt-get %s brings %s" % (" ".join(words), _version(host, "tiny")))
    host.converged("repo", **site.client(address, repo__channels=both, repo__pins=[
        {"package": "tiny", "version": "1"}]))
    host.inside("apt-get", "-y", "--allow-downgrades", "upgrade")
    if _version(host, "tiny") != "1":
        raise Failed("the pin does not bring version 1 back")
    said = ""
    if real:
        chroots.apt(host.root, "install", "python3-treenail", "treenail-tools")
        said = host.inside("treenail-info").splitlines()[0]
        if not re.match(r"Treenail|treenail", said):
            raise Failed("treenail-info says " + said)
        host.inside("apt-get", "-y", "purge", "libtreenail*", "python3-treenail", "treenail-tools")
    host.inside("apt-get", "-y", "purge", "tiny")
    host.converged("repo", **site.client(address, repo__state="absent"))
    if glob.glob(host.path("/etc/apt/*/treenail*")):
        raise Failed("the client is not removed: %s" % glob.glob(host.path("/etc/apt/*/tr*")))
    return said


def _apt_tries(host, late):
    """What apt says of the tampered repository, and whether the package came nevertheless."""
    shutil.rmtree(host.path(LISTS))
    os.makedirs(host.path(LISTS, "partial"))
    host.inside("apt-get", "clean")
    text = host.inside("apt-get", "-o", "Dir::Etc::SourceList=/etc/apt/sources.list.d/attacked."
                       "sources", "-o", "Dir::Etc::SourceParts=-", "-o",
                       "APT::Update::Error-Mode=any", "update", status=0 if late else 100)
    text = host.inside("apt-get", "-y", "install", "tiny", status=100) if late else text
    state = host.inside("dpkg-query", "-W", "-f", "${db:Status-Status}", "tiny", status=None)
    return text, state == "installed"


# ---- dnf -------------------------------------------------------------------------------------


def _dnf_ready(host):
    """dnf and its plugin as the distribution has them, and the folders of a host of that family."""
    chroots.apt(host.root, "install", "dnf", "dnf-plugins-core", "gnupg")
    for name in ("/etc/yum.repos.d", "/etc/dnf/vars"):
        os.makedirs(host.path(name), exist_ok=True)
    with open(host.path("/etc/dnf/vars/releasever"), "w", encoding="utf-8") as stream:
        stream.write("1\n")
    # As Debian has it, this plugin keeps what was installed once and installs it from there again.
    with open(host.path("/etc/dnf/plugins/local.conf"), "w", encoding="utf-8") as stream:
        stream.write("[main]\nenabled = false\n[createrepo]\nenabled = false\n")


def _dnf_client(site, address, real):
    """From release, from nightly, down again; kept by a lock; then the real packages."""
    host, family = site.host, role_host.REDHAT
    host.converged("repo", facts=family, **site.client(address))
    if "gpg-pubkey" not in host.inside("rpm", "-qa"):  # else dnf -y would import it itself
        raise Failed("the role does not import the key of the repository")
    host.inside("dnf", "-y", "install", "tiny-1")
    host.converged("repo", facts=family, **site.client(address, repo__channels=["nightly"]))
    host.inside("dnf", "-y", "upgrade", "tiny")
    if "tiny-2-1" not in host.inside("rpm", "-q", "tiny"):
        raise Failed("dnf does not take version 2 from nightly")
    host.inside("dnf", "-y", "downgrade", "tiny")
    # The plugin is Debian's here, so that no package of its name is asked for.
    host.play("repo", "-e", '{"_repo_pin_packages": []}', facts=family, **site.client(
        address, repo__channels=["nightly"], repo__pins=[{"package": "tiny", "version": "1-1"}]))
    host.inside("dnf", "-y", "upgrade")
    if "tiny-1-1" not in host.inside("rpm", "-q", "tiny"):
        raise Failed("the lock does not keep version 1")
    said = _real_rpms(site, address) if real else ""
    host.inside("dnf", "-y", "remove", "tiny")
    host.converged("repo", facts=family, **site.client(address, repo__state="absent"))
    if "gpg-pubkey" in host.inside("rpm", "-qa") or os.listdir(host.path("/etc/yum.repos.d")):
        raise Failed("the client is not removed")
    return said


def _real_rpms(site, address):
    """The RPMs of this build, verified; a package says what Debian's provide to them."""
    host = site.host
    site.host.play("repo", facts=role_host.REDHAT, **site.client(address))
    paths = [path for path in rpm_packages.made(os.path.abspath("rpm"))
             if not path.endswith(".src.rpm")]
    chroots.apt(host.root, "install", "python3-numpy",
                *rpm_proofs.debian_packages(rpm_proofs.required(paths)))
    rpm_proofs.stub_package(host.root, site.folder)
    stub, = glob.glob(os.path.join(site.folder, "repository/*/debian-provides*.rpm"))
    shutil.copy(stub, host.path("/tmp"))
    host.inside("rpm", "-i", "--nodeps", "/tmp/" + os.path.basename(stub))
    host.inside("dnf", "-y", "install", "python3-treenail", "treenail-tools")
    said = host.inside("treenail-info").splitlines()[0]
    host.inside("dnf", "-y", "remove", "python3-treenail", "treenail-tools", "treenail-libs",
                "debian-provides")
    return said


def _dnf_tries(host, late):
    shutil.rmtree(host.path("/var/cache/dnf"), ignore_errors=True)
    text = host.inside("dnf", "-y", "makecache", status=0 if late else 1)
    text = host.inside("dnf", "-y", "install", "tiny", status=1) if late else text
    return text, "is not installed" not in host.inside("rpm", "-q", "tiny", status=None)


# ---- refused ---------------------------------------------------------------------------------


@contextlib.contextmanager
def _restored(folder):
    """Afterwards the folder is as it was."""
    kept = folder + ".kept"
    shutil.copytree(folder, kept, symlinks=True)
    try:
        yield
    finally:
        shutil.rmtree(folder)
        os.rename(kept, folder)


def _refused(site, what, pattern, tried):
    text, installed = tried
    if not re.search(pattern, text) or installed:
        raise Failed("%s: wanted is a refusal with '%s'%s\n%s" % (
            what, pattern, "; it was installed" if installed else "", text))
    return what


def _attacked(site, form, table, tries):
    """Each attack on a repository of its own, then another key, then the end of the validity."""
    host, top = site.host, site.host.path(ATTACKED, form)
    original, = glob.glob(os.path.join(site.tiny("1"), "*." + form))
    done = []
    for attack in table:
        with _restored(top):
            attack.change(top, site.key, original)
            done.append(_refused(site, attack.what, attack.refusal, tries(host, attack.late)))
    options = {"root": ATTACKED, "repo__formats": [form], "repo__public_key": ""}
    other = fixtures.ThrowAwayKey("Other")
    try:
        home = host.path("/srv/other")
        shutil.copytree(other.home, home, ignore=shutil.ignore_patterns("S.*"))
        with _restored(top):
            host.play("repo", **site.publish(site.tiny("1"), **dict(
                options, repo__gnupg_home="/srv/other", repo__key_id=other.fingerprint)))
            done.append(_refused(site, "another key", attacks.OTHER_KEY[form],
                                 tries(host, False)))
        shutil.rmtree(home)
    finally:
        other.remove()
    with _restored(top):
        host.play("repo", **site.publish(site.tiny("1"), **dict(
            options, repo__validity={"release": "0", "nightly": "1s"})))
        done.append(_refused(site, "an expired nightly", attacks.EXPIRED[form],
                             tries(host, False)))
    return done


def _client_of_attacked(site, address, form, facts):
    """The role sets the client up, and refuses where the signature is wrong."""
    host = site.host
    client = site.client(address, repo__name="attacked", repo__channels=["nightly"])
    host.converged("repo", facts=facts, **client)
    top = host.path(ATTACKED, form)
    attack = {"deb": attacks.APT[2], "rpm": attacks.DNF[2]}[form]
    with _restored(top):
        attack.change(top, site.key, "")
        said = host.played("repo", facts=facts, **client).failure("host")
        if not re.search(attack.refusal, said):
            raise Failed("%s: the client's role says '%s'" % (attack.what, said))
    host.play("repo", facts=facts, **client)


def _proven(real):
    """What the real packages say of themselves, and what was refused."""
    kinds = [os.path.basename(folder) for folder in real]
    with contextlib.ExitStack() as stack:
        root = stack.enter_context(tempfile.TemporaryDirectory())
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        key = fixtures.ThrowAwayKey()
        stack.callback(key.remove)
        site = Site(role_host.made(root), key, folder)
        host = site.host
        published(site, real)
        address = stack.enter_context(served(host.path("/srv")))
        said = [apt_client(site, address + "/treenail", "deb" in kinds)]
        _dnf_ready(host)
        said.append(_dnf_client(site, address + "/treenail", "rpm" in kinds))
        _promoted(site)
        host.converged("repo", **site.publish(site.tiny("1"), root=ATTACKED))
        refusals = []
        for form, table, tries, facts in (("deb", attacks.APT, _apt_tries, None),
                                          ("rpm", attacks.DNF, _dnf_tries, role_host.REDHAT)):
            _client_of_attacked(site, address + "/attacked", form, facts)
            refusals += _attacked(site, form, table, tries)
    return said, refusals


@proof
def package_repository():
    """apt and dnf install from signed channels made by the role repo, and refuse 12 forgeries"""
    role_host.needs()
    for program, package in (("rpmbuild", "rpm"), ("createrepo_c", "createrepo-c"),
                             ("gpg", "gnupg"), ("dpkg-deb", "dpkg")):
        if not shutil.which(program):
            raise NotRun("%s is not installed; apt-get install %s" % (program, package))
    real = [os.path.abspath(form) for form, pattern in (
        ("deb", "*.deb"), ("rpm", "RPMS/*/*.rpm")) if glob.glob(os.path.join(form, pattern))]
    try:
        said, refusals = _proven(real)
    except AssertionError as reason:  # of what the proof shares with the quick tests
        raise Failed(str(reason)) from None
    return "%s; refused: %s" % (
        ", ".join(filter(None, said)) or "tiny packages alone: no ninja deb, no ninja rpm",
        ", ".join(refusals))
