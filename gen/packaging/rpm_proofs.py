# SPDX-License-Identifier: Apache-2.0
"""Proofs of the RPM packages: installed and used where nothing of ours was, and built twice.

No Fedora is needed. The packages are installed by dnf into a chroot of Debian, from a repository
that createrepo_c made. What the chroot's own libraries provide, rpm does not know, for Debian's
packages are not in its database: a package without files says it, in the words that rpm's own
generators find.
"""

import glob
import os
import re
import shutil
import stat
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor

import chroots
import rpm_packages
import shipped
from package_build import digest, other_locale
from proving import SOURCE, Failed, NotRun, debian_repository, proof, run
from gen.deps import DEPENDENCIES
from gen.distro import this_distro

NOBODY = 65534

STUB = """Name: debian-provides
Version: 1
Release: 1
Summary: What the libraries of this chroot provide
License: Apache-2.0
%(provides)s
%%description
Computed by rpm's generators from the files of Debian's packages.
%%install
for folder in %(folders)s; do mkdir -p %%{buildroot}$folder; done
%%files
%(directories)s
"""

# What an older release has and the newer one does not: an upgrade must take it away.
GONE = "/usr/share/doc/%s/of-the-older-release"

OLDER = """Name: %(name)s
Version: %(version)s
Release: 0
Summary: x
License: Apache-2.0
%(relations)s
AutoReqProv: no
%%global debug_package %%{nil}
%%global __os_install_post %%{nil}
%%global _build_id_links none
%%description
The files of another package, as an older release.
%%install
cp -a %(root)s/. %%{buildroot}
%%files
%(files)s
"""

# Directories that Fedora's packages filesystem and pkgconf-pkg-config own.
FOLDERS = ("%{_datadir}/licenses", "%{_libdir}/pkgconfig")


def packages(folder):
    """Those of `ninja rpm` where they are of this very tree, else new ones; without tests, which
    change nothing in them."""
    topdir = os.path.abspath("rpm")
    with tempfile.TemporaryDirectory() as scratch:
        fresh = rpm_packages.source_archive(scratch)
        known = os.path.join(topdir, "SOURCES", os.path.basename(fresh))
        spec = os.path.getmtime(rpm_packages.SPEC)
        found = rpm_packages.made(topdir)
        if (found and os.path.exists(known) and digest(known) == digest(fresh)
                and all(os.path.getmtime(path) > spec for path in found)):
            return found
    try:
        os.makedirs(folder, exist_ok=True)
        return rpm_packages.build(folder, ("tests",), True)
    except rpm_packages.Unusable as reason:
        raise Failed(str(reason)) from None


def need_tools(*names):
    """(program, Debian package) that must be there, and root."""
    missing = sorted({package for program, package in names if not shutil.which(program)})
    if this_distro().family != "debian":
        raise NotRun("it needs a Debian machine: its packages are what is installed into")
    if missing:
        raise NotRun("missing here: apt-get install " + " ".join(missing))
    if os.getuid() != 0:
        raise NotRun("only root can enter another root directory or become another user")


# ---- installed -------------------------------------------------------------------------------


def required(paths):
    """The sonames that the packages need and none of them provides."""
    need, have = set(), set()
    for path in paths:
        need.update(re.findall(r"^(lib\S+\.so\S*?)\(", run(["rpm", "-qp", "--requires", path]),
                               re.MULTILINE))
        have.update(re.findall(r"^(lib\S+\.so\S*?)\(", run(["rpm", "-qp", "--provides", path]),
                               re.MULTILINE))
    return sorted(need - have)


def debian_packages(sonames):
    """Debian's packages that hold these libraries, as far as this machine's dpkg knows."""
    cache = dict(re.findall(r"^\s*(\S+) \([^)]*\) => (\S+)$", run(["ldconfig", "-p"]),
                            re.MULTILINE)[::-1])
    found = set()
    for soname in sonames:
        if soname not in cache:
            raise NotRun("%s, which the packages need, is not installed here" % soname)
        path = os.path.realpath(cache[soname])
        owner = ""
        for name in (path, re.sub("^/usr/lib", "/lib", path)):
            owner = owner or run(["dpkg", "-S", name], status=None).split(":", maxsplit=1)[0]
            owner = "" if owner.startswith("dpkg-query") else owner
        if not owner:
            raise NotRun("%s belongs to no package here" % path)
        found.add(owner)
    return sorted(found)


def provided(root):
    """What rpm's generators say of the files in the chroot, and what Fedora's packages say in
    words: glibc's rtld(GNU_HASH), programs by their paths, packages needed at run time."""
    files = []
    for top in ("usr/lib", "usr/lib64"):
        for folder, _, leaves in os.walk(os.path.join(root, top)):
            paths = [os.path.join(folder, leaf) for leaf in leaves if ".so" in leaf]
            files += [path for path in paths if os.path.isfile(path) and not os.path.islink(path)]
    rpmdeps = os.path.join(run(["rpm", "--eval", "%{_rpmconfigdir}"]).strip(), "rpmdeps")
    done = subprocess.run([rpmdeps, "--provides"], input="\n".join(sorted(files)) + "\n",
                          stdout=subprocess.PIPE, encoding="utf-8", check=True)
    words = set(done.stdout.splitlines())
    for path in glob.glob(os.path.join(root, "usr/bin/python3.*")):
        words.add(run(["rpm", "--eval", "%%{__python_provides %s}" % path]).strip())
    words.update("/usr/bin/" + name for name in os.listdir(os.path.join(root, "usr/bin")))
    installed = run(["chroot", root, "dpkg-query", "-W", "-f", "${Package}\n"]).split()
    words.update(dep.fedora for dep in DEPENDENCIES
                 if dep.use == "run" and dep.debian in installed)
    return sorted(words | {"rtld(GNU_HASH)"})


def stub_package(root, folder):
    """The package that says what the chroot provides; returns how many things."""
    spec = os.path.join(folder, "debian-provides.spec")
    words = provided(root)
    with open(spec, "w", encoding="utf-8") as stream:
        stream.write(STUB % {"provides": "\n".join("Provides: " + word for word in words),
                             "folders": " ".join(FOLDERS),
                             "directories": "\n".join("%dir " + name for name in FOLDERS)})
    run(["rpmbuild", "--load", os.path.join(SOURCE, "rpm/macros.debian"), "--define",
         "_topdir " + os.path.join(folder, "stub"), "--define",
         "_rpmdir " + os.path.join(folder, "repository"), "-bb", spec])
    return len(words)


def dnf(root, folder, *words):
    """dnf upon the chroot, with our repository alone and no file of this machine's. Its cache and
    log lie in the chroot's /tmp."""
    config = os.path.join(folder, "dnf.conf")
    with open(config, "w", encoding="utf-8") as stream:
        stream.write("[main]\n")
    settings = ("reposdir=/nonexistent", "varsdir=/nonexistent", "pluginpath=/nonexistent",
                "cachedir=%s/tmp/dnf" % root, "logdir=%s/tmp" % root, "gpgcheck=0")
    return run(["dnf", "-y", "--installroot=" + root, "--releasever=1",
                "--repofrompath=treenail,file://" + os.path.join(folder, "repository"),
                "--repo=treenail", "--config=" + config,
                *["--setopt=" + word for word in settings], *words])


def inside(root, *words):
    """The output of a command that a user without rights runs in the chroot."""
    return run(chroots.entering(root, words, "%d:%d" % (NOBODY, NOBODY),
                                environment={"HOME": "/tmp"}))


def tree(root):
    """The chroot, but for what is rpm's and dnf's own, and what is temporary."""
    return chroots.tree(root, ("var/lib/rpm", "root/.rpmdb", "var/lib/dnf", "etc/dnf", "var/cache",
                               "proc", "tmp"))


def older(path, folder):
    """The package repacked in `folder` as release 0 of itself, with one file more and with
    relations to its siblings to match. Returns its path."""
    def asked(*words):
        return run(["rpm", "-qp", *words, path]).splitlines()

    name, version, release, arch = asked(
        "--qf", "%{NAME}\\n%{VERSION}\\n%{RELEASE}\\n%{ARCH}\\n")
    root, gone = os.path.join(folder, name), GONE % name
    shipped.unpacked(path, root)
    os.makedirs(os.path.dirname(root + gone), exist_ok=True)
    with open(root + gone, "w", encoding="utf-8"):
        pass
    relations = [kind + line for kind, option in (("Requires: ", "--requires"), (
        "Provides: ", "--provides")) for line in asked(option) if not line.startswith("rpmlib(")]
    own = re.compile(r" = %s-%s\Z" % (re.escape(version), re.escape(release)))
    files = []
    for line in asked("--qf", "[%{FILEMODES:octal} %{FILENAMES}\\n]"):
        mode, leaf = line.split(" ", 1)
        files.append('%sattr(%s,root,root) "%s"' % (
            "%dir %" if stat.S_ISDIR(int(mode, 8)) else "%", mode[-4:], leaf))
    spec = os.path.join(folder, name + ".spec")
    with open(spec, "w", encoding="utf-8") as stream:
        # rpm itself says what a package provides by its own name.
        stream.write(OLDER % {
            "name": name, "version": version, "root": root, "files": "\n".join(files + [gone]),
            "relations": "\n".join(own.sub(" = %s-0" % version, line) for line in relations if
                                   not re.match(r"Provides: %s[ (]" % re.escape(name), line))})
    run(["rpmbuild", "-bb", "--target", arch, "--define", "_topdir " + folder, spec])
    made, = glob.glob(os.path.join(folder, "RPMS/*/%s-%s-0.*.rpm" % (name, version)))
    return made


def versions(root, names):
    """What rpm says is installed of these, without names."""
    return sorted(set(run(["rpm", "--root=" + root, "-q", "--qf", "%{VERSION}-%{RELEASE}\\n",
                           *names]).split()))


def upgraded(root, folder, paths):
    """Installs older releases of the packages, upgrades to those of the repository and removes
    them; returns from which release to which."""
    place = os.path.join(folder, "older")
    os.makedirs(place)
    names = [run(["rpm", "-qp", "--qf", "%{NAME}", path]) for path in paths]
    dnf(root, folder, "install", *[older(path, place) for path in paths])
    first = versions(root, names)
    dnf(root, folder, "upgrade", *names)
    second = versions(root, names)
    if len(first) != 1 or len(second) != 1 or first == second:
        raise Failed("installed were %s, and after dnf upgrade %s" % (first, second))
    kept = [GONE % name for name in names if os.path.exists(root + GONE % name)]
    if kept:
        raise Failed("the upgrade left files of the older release: " + ", ".join(kept))
    unaltered(root, names)
    dnf(root, folder, "remove", *names, "debian-provides")
    return "%s to %s" % (first[0], second[0])


def unaltered(root, names):
    changed = run(["rpm", "--root=" + root, "-V", *names], status=None).strip()
    if changed:
        raise Failed("installed files differ from those of the packages:\n" + changed)


def trained(root):
    """Both smoke networks, from files outside what is compared."""
    place = os.path.join(root, "tmp/smoke")
    shutil.copytree(os.path.join(SOURCE, "smoke"), place)
    said = []
    for network in ("mlp", "cnn"):
        text = inside(root, "python3", "/tmp/smoke/train.py", network, "--quiet")
        said.append("%s on %s" % (network, re.search(r"\w+: test accuracy [\d.]+", text).group()))
    shutil.rmtree(place)
    return said


@proof
def rpm_install():
    """the RPMs, put by dnf into a new Debian, train both networks; upgraded, removed: no trace"""
    need_tools(("mmdebstrap", "mmdebstrap"), ("dnf", "dnf"), ("createrepo_c", "createrepo-c"),
               ("rpmbuild", "rpm"))
    release, _ = debian_repository()
    folder = os.path.abspath("rpm-install")
    shutil.rmtree(folder, ignore_errors=True)
    paths = [path for path in packages(os.path.join(folder, "build"))
             if not path.endswith(".src.rpm")]
    os.makedirs(os.path.join(folder, "repository"))
    for path in paths:
        shutil.copy(path, os.path.join(folder, "repository"))
    libraries = debian_packages(required(paths))
    with tempfile.TemporaryDirectory() as root:
        chroots.made(root, release, "--variant=minbase", "--include=" + ",".join(
            libraries + ["python3-numpy", "pkg-config"]))
        count = stub_package(root, folder)
        run(["createrepo_c", "--quiet", os.path.join(folder, "repository")])
        before = tree(root)
        names = [re.sub(r"-\d[^-]*-\d[^-]*$", "", os.path.basename(path)) for path in paths]
        dnf(root, folder, "install", "python3-treenail", "treenail-tools")
        known = run(["rpm", "--root=" + root, "-qa"])
        if "treenail-devel" in known or "treenail-libs" not in known:
            raise Failed("python3-treenail brought these with it:\n" + known)
        accuracies = trained(root)
        dnf(root, folder, "install", *names)
        unaltered(root, names)
        dnf(root, folder, "remove", *names, "debian-provides")
        chroots.require_unchanged(before, tree(root), "installing and removing")
        releases = upgraded(root, folder, paths)
        chroots.require_unchanged(before, tree(root), "installing, upgrading and removing")
    return "%d packages over %d things of Debian's; %s; upgraded from %s; nothing left" % (
        len(paths), count, ", ".join(accuracies), releases)


# ---- built twice -----------------------------------------------------------------------------


def wrappers(topdir):
    """Words to put before a command, for each part of its surroundings that takes a program."""
    return (
        ("hostname", ["unshare", "--uts", "sh", "-c", 'hostname another && exec "$@"', "sh"]),
        # The file system's own process would keep the namespace, and itself, for ever.
        ("file order", ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                        'disorderfs --quiet --multi-user=yes --sort-dirents=yes '
                        '--reverse-dirents=yes "$0" "$1" >&2 || exit; top=$1; shift; "$@"; '
                        'status=$?; umount "$top"; exit $status',
                        os.path.join(topdir, "plain"), os.path.join(topdir, "BUILD")]),
        ("user", ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"]),
        # The monotonic clock goes along: where it does not, poll() fails now and then.
        ("time", ["env", "NO_FAKE_STAT=1", "faketime", "-f", "+400d"]),
    )


def usable_wrappers(topdir):
    """The words of all that work here, the names of these, and the others with the reason."""
    words, varied, not_run = [], [], []
    for name, wrapper in wrappers(topdir):
        try:
            done = subprocess.run([*wrapper, "true"], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, check=False)
            text = done.stdout.decode(errors="replace").strip().splitlines()
        except OSError as error:
            done, text = None, [str(error)]
        if done is None or done.returncode:
            not_run.append("%s (%s)" % (name, text[-1] if text else "it fails here"))
        else:
            words += wrapper
            varied.append(name)
    return words, varied, not_run


def prepared(topdir):
    """A directory for rpmbuild with source archive, spec and macros."""
    for name in ("SOURCES", "BUILD", "plain"):
        os.makedirs(os.path.join(topdir, name))
    rpm_packages.source_archive(os.path.join(topdir, "SOURCES"))
    shutil.copytree(os.path.join(SOURCE, "rpm"), os.path.join(topdir, "rpm"))


def built_in(topdir, wrapper, jobs, umask, settings, log):
    """{name: SHA-256} of the packages built there."""
    runs = rpm_packages.commands(topdir, ("tests",), (("_smp_build_ncpus", jobs),),
                                 os.path.join(topdir, "rpm"))
    try:
        paths = rpm_packages.built(topdir, [[*wrapper, *words] for words in runs], dict(
            settings, HOME=topdir, PATH="/usr/sbin:/usr/bin:/sbin:/bin"), log, True, umask)
    except rpm_packages.Unusable as reason:
        raise Failed(str(reason)) from None
    return {os.path.basename(path): digest(path) for path in paths}


def explained(kept, names):
    """What diffoscope says of packages that differ, in files beside them."""
    if not shutil.which("diffoscope"):
        return "diffoscope is not installed"
    for name in names:
        run(["diffoscope", "--text", os.path.join(kept, name + ".txt"),
             os.path.join(kept, "one", name), os.path.join(kept, "two", name)], status=None)
    return "diffoscope's words are in " + kept


@proof
def rpm_reproducible():
    """two RPM builds by other users, in other places, times, languages, ...: the same bytes"""
    if not shutil.which("rpmbuild"):
        raise NotRun("rpmbuild is not installed")
    rpm_packages.require(("tests",))
    kept = os.path.abspath("rpm-reproducible")
    shutil.rmtree(kept, ignore_errors=True)
    cores = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as scratch:
        os.chmod(scratch, 0o755)
        places = os.path.join(scratch, "one"), os.path.join(scratch, "a-longer-name", "two")
        for place, name in zip(places, ("one", "two")):
            prepared(place)
            os.makedirs(os.path.join(kept, name))
        wrapper, varied, not_run = usable_wrappers(places[1])
        if "user" in varied:
            run(["chown", "-R", "%d:%d" % (NOBODY, NOBODY), places[1]])
        other = {"TZ": "Asia/Kathmandu", "LC_ALL": other_locale() or "C"}
        if other["LC_ALL"] == "C":
            not_run.append("locale (this machine has C and English alone)")
        else:
            varied.append("locale (%s)" % other["LC_ALL"])
        varied += ["path", "umask", "time zone", "-j"]
        with ThreadPoolExecutor(2) as pool:
            going = [
                pool.submit(built_in, places[0], [], cores, 0o022,
                            {"TZ": "UTC", "LC_ALL": "C.UTF-8"}, os.path.join(kept, "one.log")),
                pool.submit(built_in, places[1], wrapper, cores + 1, 0o077, other,
                            os.path.join(kept, "two.log"))]
            one, two = [build.result() for build in going]
        for place, name in zip(places, ("one", "two")):
            for path in rpm_packages.made(place):
                shutil.copy(path, os.path.join(kept, name))
        differing = sorted(name for name in set(one) | set(two) if one.get(name) != two.get(name))
        if differing:
            raise Failed("%d of %d differ: %s; %s" % (
                len(differing), len(set(one) | set(two)), ", ".join(differing),
                explained(kept, differing)))
    return "%d packages, the same bytes; varied: %s; not run: %s" % (
        len(one), ", ".join(varied), ", ".join(not_run) or "none")
