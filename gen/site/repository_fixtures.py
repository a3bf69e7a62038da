# SPDX-License-Identifier: Apache-2.0
"""Throw-away keys, tiny packages and clients without rights, for the tests of the repositories."""

import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile

EPOCH = 1700000000  # the same package twice has the same bytes
SAME = dict(os.environ, SOURCE_DATE_EPOCH=str(EPOCH))

CONTROL = """Package: {name}
Version: {version}
Architecture: {architecture}
Maintainer: Nobody <nobody@example.invalid>
Description: a package for tests
"""

SPEC = """Name: {name}
Version: {version}
Release: 1
Summary: a package for tests
License: Apache-2.0
BuildArch: noarch
AutoReqProv: no
%description
A package for tests.
%install
mkdir -p %{{buildroot}}/usr/share/{name}
echo "{content}" > %{{buildroot}}/usr/share/{name}/content
%files
/usr/share/{name}
"""


def output(command, status=0, **more):
    """What the command wrote, both streams; its exit status must be `status`, None for any."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **more)
    text = done.stdout.decode(errors="replace")
    if status is not None and done.returncode != status:
        raise AssertionError("%s: exit status %d\n%s" % (" ".join(command), done.returncode, text))
    return text


def sha256(path):
    with open(path, "rb") as stream:
        return hashlib.sha256(stream.read()).hexdigest()


class ThrowAwayKey:
    """A key that can sign, in a GNUPGHOME of its own; its path is short: a socket lies there."""

    def __init__(self, name="Throwaway", expiry="never"):
        self.home = tempfile.mkdtemp(prefix="tn-key-")
        output(["gpg", "--homedir", self.home, "--batch", "--passphrase", "",
                "--quick-generate-key", "%s <%s@example.invalid>" % (name, name.lower()), "rsa3072",
                "sign", expiry])
        listing = output(["gpg", "--homedir", self.home, "--with-colons", "--list-keys"])
        self.fingerprint = re.search(r"^fpr:+(\w+):", listing, re.MULTILINE).group(1)

    def public(self):
        return output(["gpg", "--homedir", self.home, "--armor", "--export", self.fingerprint])

    def remove(self):
        output(["gpgconf", "--homedir", self.home, "--kill", "gpg-agent"])
        shutil.rmtree(self.home, ignore_errors=True)


def deb(folder, name="tiny", version="1", content="one", architecture="all"):
    """The path of a new package with one file."""
    with tempfile.TemporaryDirectory() as tree:
        os.chmod(tree, 0o755)
        place = os.path.join(tree, "usr/share", name)
        os.makedirs(place)
        os.makedirs(os.path.join(tree, "DEBIAN"))
        for path, text in ((os.path.join(place, "content"), content + "\n"),
                           (os.path.join(tree, "DEBIAN/control"), CONTROL.format(
                               name=name, version=version, architecture=architecture))):
            with open(path, "w", encoding="utf-8") as stream:
                stream.write(text)
        for here, folders, leaves in os.walk(tree):
            for leaf in folders + leaves:
                os.utime(os.path.join(here, leaf), (EPOCH, EPOCH))
        os.makedirs(folder, exist_ok=True)
        path = os.path.join(folder, "%s_%s_%s.deb" % (name, version, architecture))
        output(["dpkg-deb", "--root-owner-group", "-b", tree, path], env=SAME)
    return path


def rpm(folder, name="tiny", version="1", content="one"):
    """The path of a new package with one file."""
    with tempfile.TemporaryDirectory() as top:
        spec = os.path.join(top, "tiny.spec")
        with open(spec, "w", encoding="utf-8") as stream:
            stream.write(SPEC.format(name=name, version=version, content=content))
        words = [word for value in ("_topdir " + top, "_buildhost reproducible",
                                    "use_source_date_epoch_as_buildtime 1",
                                    "clamp_mtime_to_source_date_epoch 1")
                 for word in ("--define", value)]
        output(["rpmbuild", "-bb", "--quiet", *words, spec], env=SAME)
        leaf = "%s-%s-1.noarch.rpm" % (name, version)
        os.makedirs(folder, exist_ok=True)
        return shutil.copy(os.path.join(top, "RPMS/noarch", leaf), os.path.join(folder, leaf))


def given(paths):
    """The module's option `packages` for these files."""
    return [{"file": os.path.basename(path), "sha256": sha256(path)} for path in paths]


class AptClient:
    """apt with a root of its own: nothing of this machine's configuration, no rights needed."""

    def __init__(self, folder, url, channels, key_text):
        self.top = str(folder)
        for name in ("etc/apt/sources.list.d", "etc/apt/preferences.d", "etc/apt/apt.conf.d",
                     "var/lib/apt/lists/partial", "var/cache/apt/archives/partial",
                     "var/lib/dpkg", "download"):
            os.makedirs(os.path.join(self.top, name), exist_ok=True)
        self._write("var/lib/dpkg/status", "")
        self._write("etc/apt/key.asc", key_text)
        self._write("etc/apt/sources.list.d/tiny.sources", (
            "Types: deb\nURIs: %s/deb\nSuites: %s\nComponents: main\nSigned-By: %s\n" % (
                url, " ".join(channels), os.path.join(self.top, "etc/apt/key.asc"))))

    def _write(self, name, text):
        with open(os.path.join(self.top, name), "w", encoding="utf-8") as stream:
            stream.write(text)
        return os.path.join(self.top, name)

    def run(self, *words, status=0):
        # In a file, for this is read before the machine's own apt.conf.d would be.
        options = {"Dir": self.top, "Dir::State::status": self.top + "/var/lib/dpkg/status",
                   "APT::Update::Error-Mode": "any", "Debug::NoLocking": "1",
                   "APT::Sandbox::User": "", "Acquire::Languages": "none",
                   "APT::Architecture": "amd64"}
        configuration = self._write("apt.conf", "".join(
            '%s "%s";\n' % pair for pair in options.items()))
        return output([*words], status, cwd=os.path.join(self.top, "download"),
                      env=dict(os.environ, LC_ALL="C.UTF-8", APT_CONFIG=configuration))

    def refresh(self, status=0):
        return self.run("apt-get", "update", status=status)

    def fetch(self, name, status=0):
        return self.run("apt-get", "download", name, status=status)

    def fetched(self, name):
        return [leaf for leaf in os.listdir(os.path.join(self.top, "download")) if name in leaf]

    def versions(self, name, status=0):
        """What apt could install, as madison lists it."""
        text = self.run("apt-cache", "madison", name, status=status)
        return [line.split("|")[1].strip() for line in text.splitlines() if "|" in line]

    def forget(self):
        """Nothing of apt's goes on after it."""


class DnfClient:
    """dnf on a root of its own, with one file of repositories."""

    def __init__(self, folder, url, channels, key_text):
        self.top = str(folder)
        os.makedirs(os.path.join(self.top, "repos"), exist_ok=True)
        key = os.path.join(self.top, "key.asc")
        with open(key, "w", encoding="utf-8") as stream:
            stream.write(key_text)
        with open(os.path.join(self.top, "repos/tiny.repo"), "w", encoding="utf-8") as stream:
            for channel in channels:
                stream.write("[tiny-%s]\nname=tiny\nbaseurl=%s/rpm/%s\ngpgkey=file://%s\n"
                             "gpgcheck=1\nrepo_gpgcheck=1\nskip_if_unavailable=0\n" % (
                                 channel, url, channel, key))

    def run(self, *words, status=0):
        settings = ("reposdir=%s/repos" % self.top, "varsdir=/nonexistent",
                    "pluginpath=/nonexistent", "cachedir=%s/cache" % self.top,
                    "logdir=%s" % self.top, "keepcache=0")
        with open(os.path.join(self.top, "dnf.conf"), "w", encoding="utf-8") as stream:
            stream.write("[main]\n")
        return output(["dnf", "-y", "--installroot=%s/root" % self.top, "--releasever=1",
                       "--config=%s/dnf.conf" % self.top,
                       *["--setopt=" + word for word in settings], *words], status,
                      env=dict(os.environ, LC_ALL="C.UTF-8"))

    def refresh(self, status=0):
        self.forget()
        return self.run("makecache", status=status)

    def fetch(self, name, status=0):
        return self.run("install", name, status=status)

    def fetched(self, name):
        return os.path.exists(os.path.join(self.top, "root/usr/share", name))

    def versions(self, name, status=0):
        """What dnf could install."""
        text = self.run("--quiet", "repoquery", "--queryformat=%{name} %{version}-%{release}", name,
                        status=status)
        return [words[1] for words in map(str.split, text.splitlines()) if words[:1] == [name]]

    def forget(self):
        """Drops what dnf has read, and the agents that gpg left behind for its keyrings."""
        for home in glob.glob(os.path.join(self.top, "cache/*/pubring")):
            output(["gpgconf", "--homedir", home, "--kill", "gpg-agent"])
        shutil.rmtree(os.path.join(self.top, "cache"), ignore_errors=True)
