# SPDX-License-Identifier: Apache-2.0
"""Making images: a base layer with what the packages need of the distribution, and above it a
layer with Treenail alone, so that versions with the same needs share the base.

Two builds of the same packages give the same digests, for every time in an image comes from what it
is made of: that of the base from the release of the distribution, that of Treenail's layer from
the packages. SOURCE_DATE_EPOCH overrules the former. umoci packs both layers and sorts them.
"""

import contextlib
import email.utils
import fcntl
import glob
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from typing import Dict, Iterator, List, Sequence, Tuple

import image_packages
from chroots import entering
from gen.distro import this_distro
from image_content import (OCI, USER, add_user, clamp, labels_of, moment, seconds_of, tidy)
from image_packages import Package
from oci_layout import Layout, checked_tag
from package_build import Unusable, logged

OCI_ARCHITECTURES = {"armhf": "arm", "i386": "386", "ppc64el": "ppc64le"}  # others: as Debian's
MADE_FROM = "treenail.inputs"  # annotation of a manifest: what need not be made again
GIB = 1 << 30
# Space for the unpacked root and the blob; measured: 300 MB and 110 MB, and apt's downloads.
BASE_NEEDS, IMAGE_NEEDS = 2 * GIB, 1 * GIB
# Images are for running programs: no documentation but copyrights and bills of materials.
WITHOUT = ("path-exclude=/usr/share/doc/*", "path-include=/usr/share/doc/*/copyright",
           "path-include=/usr/share/doc/*/*.spdx.json.gz", "path-exclude=/usr/share/man/*",
           "path-exclude=/usr/share/info/*", "path-exclude=/usr/share/locale/*",
           "path-exclude=/usr/share/lintian/*")


@dataclass(frozen=True)
class Base:
    """The distribution's part. packages: that are named; apt adds what they need."""

    release: str
    architecture: str
    packages: Tuple[str, ...]

    @property
    def tag(self) -> str:
        names = hashlib.sha256("\n".join(sorted(self.packages)).encode()).hexdigest()
        return "base-%s-%s-%s" % (self.release, self.architecture, names[:8])


def say(text: str) -> None:
    """One step, for whoever waits."""
    print("image: " + text, flush=True)


def ran(*words: str) -> str:
    """The output of a program; what it said where it fails."""
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, env=dict(os.environ, LC_ALL="C.UTF-8"),
                          umask=0o022, check=False)
    text = done.stdout.decode(errors="replace")
    if done.returncode:
        raise Unusable("%s: exit status %d\n%s" % (" ".join(words), done.returncode, text[-4000:]))
    return text


def check_space(folder: str, needs: int) -> None:
    """Before minutes are spent."""
    os.makedirs(folder, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < needs:
        raise Unusable("%s has %d MB free, and %d MB are needed: name another place with --layout, "
                       "or make room (ci/image gc removes what no tag needs)" % (
                           folder, free >> 20, needs >> 20))


@contextlib.contextmanager
def locked(layout: Layout) -> Iterator[None]:
    """One writer at a time; umoci itself does not look."""
    os.makedirs(os.path.dirname(layout.path), exist_ok=True)
    with open(layout.path + ".lock", "w", encoding="ascii") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another ci/image, which changes %s" % layout.path)
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def scratch(layout: Layout) -> Iterator[str]:
    """A directory beside the layout, on the same file system; removed whatever happens."""
    folder = tempfile.mkdtemp(prefix=os.path.basename(layout.path) + ".making-",
                              dir=os.path.dirname(layout.path))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(layout: Layout) -> None:
    """What builds left that were killed; call it with the lock held."""
    for path in glob.glob(glob.escape(layout.path) + ".making-*"):
        shutil.rmtree(path)


def tidy_layout(layout: Layout) -> None:
    """Removes blobs that no tag needs; what is left everyone may read, as `list` and `export` do,
    which umoci would not have."""
    ran("umoci", "gc", "--layout", layout.path)
    for folder, _, leaves in os.walk(layout.path):
        for leaf in leaves:
            os.chmod(os.path.join(folder, leaf), 0o644)


@contextlib.contextmanager
def new_tag(layout: Layout) -> Iterator[str]:
    """A tag for what is not whole yet; gone at the end, with blobs that nothing else names."""
    if not layout.exists():
        ran("umoci", "init", "--layout", layout.path)
    name = "making-%d" % os.getpid()
    try:
        yield "%s:%s" % (layout.path, name)
    finally:
        if name in layout.tags():
            ran("umoci", "rm", "--image", "%s:%s" % (layout.path, name))
        tidy_layout(layout)


def keep(layout: Layout, image: str, tag: str, replace: bool) -> bool:
    """Gives the finished image its tag; False where the same was there."""
    made = layout.descriptor(image.rpartition(":")[2])["digest"]
    there = layout.tags().get(tag, {}).get("digest")
    if there == made:
        return False
    if there and not replace:
        raise Unusable("the tag %s exists with other content (%s; this build gives %s): choose "
                       "another --tag, or overwrite it with --replace" % (tag, there, made))
    ran("umoci", "tag", "--image", image, tag)
    return True


def release_here() -> str:
    """Debian's name of this machine's release, for which its packages are built."""
    release = this_distro().codename
    if not release:
        raise Unusable("this is not a Debian: its apt does not say where the packages are from")
    return release


def sources(release: str) -> List[str]:
    """Lines of a sources.list: where this machine's apt has the release, its updates and its
    security from; for another release than its own the same places."""
    own = release_here()
    text = ran("apt-get", "indextargets", "--format", "row $(REPO_URI) $(RELEASE)",
               "Created-By: Packages", "Component: main")
    found = ["deb %s %s main" % (uri, release + suite[len(own):]) for uri, suite in sorted(set(
        re.findall(r"^row (\S+) (%s(?:-updates|-security)?)$" % re.escape(own), text,
                   re.MULTILINE)))]
    if not found:
        raise Unusable("this machine's apt knows no repository of Debian; images are made where "
                       "the packages are installable")
    return found


def released_at(lines: Sequence[str], release: str) -> int:
    """SOURCE_DATE_EPOCH, else the time in the release file of the distribution, which moves
    when a point release changes the packages."""
    if os.environ.get("SOURCE_DATE_EPOCH", "").isdigit():
        return int(os.environ["SOURCE_DATE_EPOCH"])
    uri = next(line.split()[1] for line in lines if line.split()[2] == release)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        path = os.path.join(folder, "InRelease")
        ran("/usr/lib/apt/apt-helper", "-o", "APT::Sandbox::User=root", "download-file",
            "%s/dists/%s/InRelease" % (uri.rstrip("/"), release), path)
        with open(path, encoding="utf-8") as stream:
            date = re.search(r"^Date: (.*)$", stream.read(), re.MULTILINE)
    if not date:
        raise Unusable("the release file of %s at %s bears no date" % (release, uri))
    return int(email.utils.parsedate_to_datetime(date.group(1)).timestamp())


def _packed(image: str, bundle: str, when: int, by: str) -> None:
    """What changed in the bundle becomes the uppermost layer."""
    clamp(os.path.join(bundle, "rootfs"), when)
    ran("umoci", "repack", "--image", image, "--history.created", moment(when),
        "--history.created_by", by, bundle)


def make_base(layout: Layout, base: Base, refresh: bool = False) -> None:
    """The image with the base layer alone, if it is not there yet, or again with what the
    distribution has today."""
    if base.tag in layout.tags() and not refresh:
        return
    check_space(os.path.dirname(layout.path), BASE_NEEDS)
    lines = sources(base.release)
    when = released_at(lines, base.release)
    say("%s: mmdebstrap installs %s and what they need" % (base.tag, ", ".join(base.packages)))
    with scratch(layout) as folder, new_tag(layout) as image:
        bundle = os.path.join(folder, "bundle")
        root = os.path.join(bundle, "rootfs")
        ran("umoci", "new", "--image", image)
        ran("umoci", "unpack", "--image", image, bundle)
        shutil.rmtree(root)  # mmdebstrap makes it, with the right mode
        # Whatever is mounted in the root goes with the process, also when it is killed.
        logged(["unshare", "--mount", "--propagation", "private", "mmdebstrap", "--mode=root",
                "--variant=essential", "--format=directory",
                "--architectures=" + base.architecture, "--include=" + ",".join(base.packages),
                *["--dpkgopt=" + word for word in WITHOUT], base.release, root, *lines],
               layout.path + ".log", re.compile("I: (?!running)"), umask=0o022,
               env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC", TMPDIR=folder,
                        SOURCE_DATE_EPOCH=str(when)))
        tidy(root)
        add_user(root)
        _packed(image, bundle, when, "mmdebstrap " + base.release)
        _configured(image, when, base.architecture, {OCI + "title": "base of treenail",
                                                     OCI + "version": base.release})
        changed = keep(layout, image, base.tag, replace=True)
    say("%s: %s" % (base.tag, "made" if changed else "the same as before"))


def _configured(image: str, when: int, architecture: str, labels: Dict[str, str],
                *more: str) -> None:
    words = ["umoci", "config", "--image", image, "--no-history", "--created", moment(when),
             "--os", "linux", "--architecture", OCI_ARCHITECTURES.get(architecture, architecture),
             "--config.user", "%d:%d" % (USER, USER), "--config.workingdir", "/tmp",
             "--clear", "config.cmd", "--config.cmd", "python3", "--clear", "config.labels"]
    for name, value in (("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", "/tmp"),
                        ("LANG", "C.UTF-8")):
        words += ["--config.env", "%s=%s" % (name, value)]
    for name, value in sorted(labels.items()):
        words += ["--config.label", "%s=%s" % (name, value)]
    ran(*words, *more)


def _install(root: str, packages: Sequence[Package], when: int) -> None:
    """dpkg alone and without network: all that they need is in the base."""
    place = os.path.join(root, "treenail-packages")
    os.mkdir(place)
    for package in packages:
        shutil.copy(package.path, place)
    words = entering(root, ["dpkg", "--install", *[
        "/treenail-packages/" + os.path.basename(p.path) for p in packages]], network=False,
        environment={"DEBIAN_FRONTEND": "noninteractive", "SOURCE_DATE_EPOCH": str(when)})
    done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, umask=0o022, check=False)
    if done.returncode:
        raise Unusable("dpkg could not install the packages upon the base; a newer base may help "
                       "(--refresh-base):\n" + done.stdout.decode(errors="replace")[-4000:])
    shutil.rmtree(place)


def is_made(layout: Layout, tag: str, base: Base, made_from: str) -> bool:
    """Is the image there, of these inputs and upon this base?"""
    tags = layout.tags()
    return (tag in tags and base.tag in tags
            and layout.manifest(tag).get("annotations", {}).get(MADE_FROM) == made_from
            and layout.layers(tag)[0] == layout.layers(base.tag)[0])


@dataclass(frozen=True)
class Wishes:
    """What the command line may say beside packages and layout."""

    tag: str = ""
    revision: str = ""
    include: Tuple[str, ...] = ()
    replace: bool = False
    rebuild: bool = False
    refresh_base: bool = False


def default_tag(packages: Sequence[Package], native: str) -> str:
    """The version of the packages without Debian's revision, and the architecture where it is not
    this machine's."""
    main = next(p for p in packages if p.name == image_packages.ROOTS[0])
    version = re.sub(r"[^A-Za-z0-9_.-]", "_", main.version.split(":")[-1].rpartition("-")[0]
                     or main.version)
    return version if main.architecture == native else "%s-%s" % (version, main.architecture)


def make_image(layout: Layout, folder: str, packages: Sequence[Package], release: str,
               source: str, wishes: Wishes) -> str:
    """The tag of the image, which is made where it is not there."""
    native = ran("dpkg", "--print-architecture").strip()
    tag = checked_tag(wishes.tag or default_tag(packages, native))
    base = Base(release, image_packages.architecture_of(packages),
                tuple(sorted({*image_packages.needed(packages), *wishes.include})))
    revision = wishes.revision or image_packages.revision(folder, packages, source)
    made_from = image_packages.inputs(packages, [revision])
    with locked(layout):
        make_base(layout, base, wishes.refresh_base)
        if not wishes.rebuild and is_made(layout, tag, base, made_from):
            say("%s: nothing to do" % tag)
            return tag
        check_space(os.path.dirname(layout.path), IMAGE_NEEDS)
        say("%s: %s upon %s" % (tag, ", ".join(p.name for p in packages), base.tag))
        with scratch(layout) as place, new_tag(layout) as image:
            bundle = os.path.join(place, "bundle")
            ran("umoci", "tag", "--image", "%s:%s" % (layout.path, base.tag),
                image.rpartition(":")[2])
            ran("umoci", "unpack", "--image", image, bundle)
            root = os.path.join(bundle, "rootfs")
            when = max([seconds_of(layout.config(base.tag)["created"])]
                       + [p.date for p in packages])
            _install(root, packages, when)
            labels = dict(labels_of(root), **{OCI + "revision": revision})
            tidy(root)
            _packed(image, bundle, when, "dpkg --install " + " ".join(p.name for p in packages))
            _configured(image, when, base.architecture, labels,
                        "--manifest.annotation", "%s=%s" % (MADE_FROM, made_from))
            changed = keep(layout, image, tag, wishes.replace)
    say("%s: %s" % (tag, "made" if changed else "the same as before"))
    return tag
