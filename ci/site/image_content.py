# SPDX-License-Identifier: Apache-2.0
"""What lies in an image: nothing that differs from one build to the next, and the labels that
follow from it."""

import datetime
import glob
import gzip
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
from typing import Any, Dict, Iterator, List

from chroots import entering
from package_build import Unusable
from sbom_licences import UNKNOWN, together

OCI = "org.opencontainers.image."
USER = 1000  # and group; programs run as these
# Emptied of files; the directories stay, for packages count on them.
_EMPTIED = ("dev", "proc", "run", "sys", "tmp", "var/cache", "var/lib/apt", "var/log", "var/tmp")
# Traces of the machine that built, backups, and who the mirror was.
_REMOVED = ("etc/resolv.conf", "etc/hostname", "etc/.pwd.lock", "etc/apt/sources.list",
            "etc/apt/sources.list.d/*", "etc/apt/apt.conf.d/99mmdebstrap", "etc/*-",
            "var/lib/dpkg/*-old", "var/lib/dpkg/lock*", "var/lib/dpkg/triggers/Lock",
            "var/lib/dbus/machine-id", "root/.*")
_MACHINE_ID = "etc/machine-id"
_PROBE = ("import sys, treenail; "
          "print(treenail.__version__, '%d.%d' % sys.version_info[:2])")


def moment(seconds: int) -> str:
    """A time as OCI and SPDX write it."""
    return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime(
        "%Y-%m-%dT%H:%M:%SZ")


def seconds_of(text: str) -> int:
    """The reverse."""
    return int(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(
        tzinfo=datetime.timezone.utc).timestamp())


def tidy(root: str) -> None:
    """Removes what differs between two builds, or tells of the machine that built."""
    for folder in _EMPTIED:
        for path, folders, leaves in os.walk(os.path.join(root, folder)):
            links = [name for name in folders if os.path.islink(os.path.join(path, name))]
            for name in leaves + links:
                os.unlink(os.path.join(path, name))
            if folder in ("dev", "proc", "run", "sys", "tmp", "var/tmp"):
                for name in set(folders) - set(links):
                    shutil.rmtree(os.path.join(path, name))
                folders[:] = []
    for pattern in _REMOVED:
        for path in glob.glob(os.path.join(root, pattern)):
            if not os.path.isdir(path) or os.path.islink(path):
                os.unlink(path)
    if os.path.exists(os.path.join(root, _MACHINE_ID)):
        with open(os.path.join(root, _MACHINE_ID), "w", encoding="ascii"):
            pass


def add_user(root: str) -> None:
    """The unprivileged user that programs run as, and where a bound directory appears. Nobody can
    log in: there is no password, and no service that would ask."""
    for name, line in (("passwd", "treenail:x:%d:%d::/tmp:/bin/sh\n" % (USER, USER)),
                       ("group", "treenail:x:%d:\n" % USER)):
        path = os.path.join(root, "etc", name)
        with open(path, encoding="utf-8") as stream:
            if re.search(r"^[^:]*:[^:]*:%d:" % USER, stream.read(), re.MULTILINE):
                raise Unusable("%s: the number %d is taken" % (path, USER))
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(line)
    os.mkdir(os.path.join(root, "data"))
    os.chmod(os.path.join(root, "data"), 0o755)


def clamp(root: str, latest: int) -> None:
    """No file bears a later time than `latest`, and none a fraction of a second."""
    for path, folders, leaves in os.walk(root, topdown=False):
        for name in [*folders, *leaves, ""]:
            entry = os.path.join(path, name) if name else path
            when = min(int(os.lstat(entry).st_mtime), latest)
            os.utime(entry, (when, when), follow_symlinks=False)


def layer_findings(stream: Any, latest: int) -> Iterator[str]:
    """What a layer (a tar archive, unpacked or gzipped) must not hold."""
    forbidden = [re.compile(r"(?:%s)/.*" % "|".join(map(re.escape, _EMPTIED)))]
    forbidden += [re.compile(re.escape(p).replace(r"\*", "[^/]*")) for p in _REMOVED]
    with tarfile.open(fileobj=stream, mode="r|*") as archive:
        for member in archive:
            name = os.path.normpath(member.name)
            if member.mtime > latest:
                yield "%s is of %s, later than the image" % (name, moment(int(member.mtime)))
            if not member.isdir() and any(f.fullmatch(name) for f in forbidden):
                yield "%s differs from one build to the next" % name
            if name == _MACHINE_ID and member.size:
                yield "%s is filled in" % name
            if member.isfile() and member.mode & stat.S_IWOTH:
                yield "%s can be written by everyone" % name


def inside(root: str, words: List[str], user: int = USER) -> str:
    """The output of a program in the unpacked image, without network."""
    done = subprocess.run(
        entering(root, words, "%d:%d" % (user, user), network=False, environment={
            "HOME": "/tmp", "PYTHONDONTWRITEBYTECODE": "1"}),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise Unusable("%s in the image: exit status %d\n%s" % (
            " ".join(words), done.returncode,
            (done.stdout + done.stderr).decode(errors="replace")[-2000:]))
    return done.stdout.decode()


def installed(root: str) -> Dict[str, Dict[str, str]]:
    """name -> control fields of the packages that dpkg has installed there."""
    found = {}
    with open(os.path.join(root, "var/lib/dpkg/status"), encoding="utf-8") as stream:
        for paragraph in stream.read().split("\n\n"):
            fields = dict(re.findall(r"^([\w-]+): (.*)$", paragraph, re.MULTILINE))
            if fields.get("Status") == "install ok installed":
                found[fields["Package"]] = fields
    return found


def source_of(fields: Dict[str, str]) -> str:
    """The name of the source package."""
    return fields.get("Source", fields["Package"]).split()[0]


def licences(root: str, names: List[str]) -> str:
    """Of these packages, by the bill of materials that each brings along."""
    found = []
    for name in names:
        paths = glob.glob(os.path.join(root, "usr/share/doc", name, "*.spdx.json.gz"))
        if len(paths) != 1:
            raise Unusable("%s brings %d bills of materials; its licence is read there" % (
                name, len(paths)))
        with gzip.open(paths[0], "rt", encoding="utf-8") as stream:
            rows = [p for p in json.load(stream)["packages"] if p["name"] == name]
        if len(rows) != 1 or rows[0]["licenseConcluded"] == UNKNOWN:
            raise Unusable("%s does not say the licence of %s" % (paths[0], name))
        found.append(rows[0]["licenseConcluded"])
    return together(found)


def labels_of(root: str) -> Dict[str, str]:
    """What the content of an unpacked image says of itself. The revision is not there: it is known
    from the source package, when the image is made."""
    packages = installed(root)
    if "python3-treenail" not in packages:
        raise Unusable("python3-treenail is not installed in the image")
    source = source_of(packages["python3-treenail"])
    own = sorted(name for name in packages if source_of(packages[name]) == source)
    info = json.loads(inside(root, ["treenail-info", "--json"]))
    version, python = inside(root, ["python3", "-c", _PROBE]).split()
    if version != info["version"]:
        raise Unusable("the library is Treenail %s, the Python module %s" % (
            info["version"], version))
    return {OCI + "title": source, OCI + "version": version,
            OCI + "licenses": licences(root, own),
            "treenail.levels": " ".join(info["installed_kernel_levels"]),
            "treenail.python": python}
