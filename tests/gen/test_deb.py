# SPDX-License-Identifier: Apache-2.0
"""What the proofs of the Debian packages say and run, without a chroot."""

import os
import shutil
import subprocess
import sys
import threading

import pytest
from small_tree import SOURCE

sys.path[:0] = [str(SOURCE / "gen" / "packaging"), str(SOURCE / "gen" / "tools")]
import chroots  # noqa: E402  (the path must be set first)
import clean_room  # noqa: E402
import deb_cross  # noqa: E402
import deb_options  # noqa: E402
import deb_packages  # noqa: E402
import deb_purge  # noqa: E402
import deb_reproducible  # noqa: E402
import package_build  # noqa: E402
from proving import Failed, NotRun  # noqa: E402

BUILDINFO = """Format: 1.0
Source: treenail
Checksums-Sha256:
 %s 2226344 libtreenail1_1.0.0-1_amd64.deb
 %s 1881 treenail_1.0.0-1.dsc
Build-Path: /build/one/tree
Installed-Build-Depends:
 autoconf (= 2.71-3),
 libpng-dev:amd64 (= 1.6.39-2)
Environment:
 DEB_BUILD_OPTIONS="parallel=3"
 LANG="C.UTF-8"
""" % ("a" * 64, "b" * 64)


@pytest.fixture
def buildinfo(tmp_path):
    """A root directory with a .buildinfo in /build/one."""
    place = tmp_path / "build/one"
    place.mkdir(parents=True)
    (place / "treenail_1.0.0-1_amd64.buildinfo").write_text(BUILDINFO)
    return tmp_path


def test_what_a_buildinfo_records(buildinfo):
    path, environment, sums, installed = clean_room.build_information(
        str(buildinfo / "build/one/treenail_1.0.0-1_amd64.buildinfo"))
    assert path == "/build/one/tree"
    assert environment == {"DEB_BUILD_OPTIONS": "parallel=3", "LANG": "C.UTF-8"}
    assert sums == {"libtreenail1_1.0.0-1_amd64.deb": "a" * 64}
    assert installed == {"autoconf": "2.71-3", "libpng-dev:amd64": "1.6.39-2"}


@pytest.fixture
def replaying(buildinfo, monkeypatch):
    """(root, what builds were run with): the chroot's packages and the build are made up."""
    state = {"versions": "autoconf\t2.71-3\nlibpng-dev\t1.6.39-2\n", "sum": "a" * 64, "with": []}

    def built(_root, who, folder, _log, environment):
        state["with"].append((who, folder, environment))
        return {"libtreenail1_1.0.0-1_amd64.deb": state["sum"]}, "no tests"

    monkeypatch.setattr(clean_room, "run", lambda words: state["versions"])
    monkeypatch.setattr(clean_room, "built_inside", built)
    return str(buildinfo), state


def test_a_replay_takes_the_recorded_environment(replaying):
    root, state = replaying
    assert "2 build dependencies" in clean_room.replayed(root, "one", "log")
    assert state["with"] == [("root", "one", {
        "DEB_BUILD_OPTIONS": "parallel=3 nocheck", "LANG": "C.UTF-8"})]


def test_a_replay_with_other_bits_fails(replaying):
    root, state = replaying
    state["sum"] = "c" * 64
    with pytest.raises(Failed, match="gave others: libtreenail1_1.0.0-1_amd64.deb"):
        clean_room.replayed(root, "one", "log")


def test_a_replay_with_other_build_dependencies_fails(replaying):
    root, state = replaying
    state["versions"] = "autoconf\t2.72-1\nlibpng-dev\t1.6.39-2\n"
    with pytest.raises(Failed, match="other versions than .* records: autoconf$"):
        clean_room.replayed(root, "one", "log")
    assert state["with"] == []


@pytest.mark.parametrize("network", [True, False])
def test_the_command_that_enters_a_chroot(network):
    words = chroots.entering("/r", ["true"], "builder", network, "0", {"A": "1"})
    assert words[0] == "unshare" and ("--net" in words) is not network
    assert ("ip link set lo up" in " ".join(words)) is not network
    inside = words[words.index("taskset"):]
    assert inside[:6] == ["taskset", "-c", "0", "chroot", "--userspec=builder", "/r"]
    assert inside[6:8] == ["env", "-i"] and inside[-2:] == ["A=1", "true"]
    assert "HOME=/nonexistent" in inside and "LC_ALL=C.UTF-8" in inside


def test_what_autopkgtest_says():
    summary = "programs             PASS\nblas-swap            SKIP exit status 77"
    assert clean_room.tested(0, "programs PASS", "trixie") == (
        "trixie, as a user: every test passed\nprograms PASS")
    assert "SOME TESTS WERE SKIPPED (1)\n" + summary in clean_room.tested(2, summary, "trixie")
    with pytest.raises(Failed, match="exit status 4\nprograms FAIL"):
        clean_room.tested(4, "programs FAIL", "trixie")


def test_packages_are_those_that_users_get(tmp_path):
    for name in ("libtreenail1_1_amd64.deb", "libtreenail1-dbgsym_1_amd64.deb", "treenail_1.dsc"):
        (tmp_path / name).write_text("")
    assert chroots.packages(str(tmp_path)) == [str(tmp_path / "libtreenail1_1_amd64.deb")]


def test_a_variation_that_cannot_run_is_named(monkeypatch):
    monkeypatch.setattr(deb_reproducible.shutil, "which",
                        lambda name: None if name in ("disorderfs", "faketime") else "/x/" + name)
    monkeypatch.setattr(deb_reproducible.os, "getuid", lambda: 0)
    monkeypatch.setattr(deb_reproducible.os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(deb_reproducible, "other_locale", lambda: "")
    told, varied, not_run = deb_reproducible.variations()
    assert [text.split(" ")[0] for text in not_run] == ["time", "fileordering", "locales"]
    told = told.split(",")
    assert not {"+time", "+fileordering", "+locales"} & set(told)
    assert len(varied) + len(not_run) == len(deb_reproducible.VARIATIONS)
    assert {"+user_group", "user_group.available+=nobody:nogroup"} < set(told)


def test_one_processor_cannot_vary_their_number(monkeypatch):
    monkeypatch.setattr(deb_reproducible.os, "sched_getaffinity", lambda _: {0})
    assert any(text.startswith("num_cpus (without a second processor") for text in
               deb_reproducible.variations()[2])


def test_every_variation_of_reprotest_is_known():
    try:
        done = subprocess.run(["reprotest", "--help"], stdout=subprocess.PIPE, text=True,
                              check=True)
    except OSError:
        pytest.skip("reprotest is not installed")
    listed = done.stdout.split("equivalent to")[1].split("testing all")[0]
    assert {word.strip('+," \n') for word in listed.split()} == set(deb_reproducible.VARIATIONS)


def test_a_kernel_without_the_emulator(monkeypatch):
    monkeypatch.setattr(deb_cross.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(deb_cross, "EMULATORS", {"arm64": "no-such-emulator"})
    with pytest.raises(NotRun, match="apt-get install qemu-user-static binfmt-support"):
        deb_cross.emulated("arm64")


@pytest.mark.parametrize("release, status, said, left", [
    ("trixie", 0, "P: treenail source: no-homepage-field", []),
    ("trixie", 2, "E: libtreenail1: no-copyright-file", ["E: libtreenail1: no-copyright-file"]),
    ("trixie", 0, "W: treenail source: newer-standards-version 9",
     ["W: treenail source: newer-standards-version 9"]),
    ("bookworm", 0, "N: a note\nW: treenail source: newer-standards-version 9", []),
    ("trixie", 1, "", ["exit status 1"])])
def test_what_lintian_says(tmp_path, monkeypatch, release, status, said, left):
    (tmp_path / "lintian").write_text("#!/bin/sh\necho '%s'\nexit %d\n" % (said, status))
    (tmp_path / "lintian").chmod(0o755)
    monkeypatch.setenv("PATH", "%s:/usr/bin:/bin" % tmp_path)
    monkeypatch.setattr(deb_packages.identity, "HOMEPAGE", "")
    text, lines = deb_packages.linted(deb_packages.lint_command(str(tmp_path)), release)
    assert lines == left and "%d unexplained" % len(left) in text


@pytest.mark.parametrize("status, said, verdict, left", [
    (0, "", "every compilation is hardened", []), (1, "No compiler commands!", "nothing was", []),
    (8, "CFLAGS missing (-fstack-protector-strong): gcc x.c", "flags are missing",
     ["CFLAGS missing (-fstack-protector-strong): gcc x.c"])])
def test_what_blhc_says(tmp_path, monkeypatch, status, said, verdict, left):
    (tmp_path / "blhc").write_text("#!/bin/sh\necho '%s'\nexit %d\n" % (said, status))
    (tmp_path / "blhc").chmod(0o755)
    monkeypatch.setenv("PATH", "%s:/usr/bin:/bin" % tmp_path)
    text, lines = deb_packages.hardened("build.log", str(tmp_path))
    assert verdict in text and lines == left


@pytest.mark.parametrize("options, name, verdict, left", [
    ("nocheck terse", "treenail-tools_1_amd64.deb", "not run: terse hides the commands", []),
    ("", "treenail-tools_1_amd64.deb", "build.log shows no compiler commands",
     ["treenail-tools_1_amd64.deb"]),
    ("", "treenail-doc_1_all.deb", "nothing was compiled", [])])
def test_blhc_without_a_command(tmp_path, monkeypatch, options, name, verdict, left):
    (tmp_path / "blhc").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "blhc").chmod(0o755)
    (tmp_path / name).write_text("")
    monkeypatch.setenv("PATH", "%s:/usr/bin:/bin" % tmp_path)
    monkeypatch.setenv("DEB_BUILD_OPTIONS", options)
    text, lines = deb_packages.hardened("build.log", str(tmp_path))
    assert verdict in text and lines == left


GXX = "[1/2] g++ -O2 -g0 %s -c a.cc -o obj/a.cc.o"


@pytest.mark.parametrize("line, is_command", [
    (GXX % "", True), ("/usr/lib/ccache/g++ -o x x.o", True), ("aarch64-linux-gnu-gcc-12 -o x x.c",
                                                               True),
    ("[1/2] CXX obj/a.cc.o", False), ("dh_strip -o x", False), ("checking for g++ -o x", False)])
def test_a_command_of_a_compiler(line, is_command):
    assert bool(deb_packages.COMPILER.match(line)) is is_command


def test_what_noopt_must_not_show():
    """The last -O counts."""
    bad = [GXX % "-O0 -O1", GXX % "", GXX % "-O0 -Os"]
    assert deb_options.optimised([GXX % "-O0", GXX.replace("-O2 ", ""), "g++ -O2 -o x x.o",
                                  *bad]) == bad


@pytest.mark.parametrize("text, count", [
    ("0\t5\t1\ta\tx\n5\t9\t1\tb\ty\n5\t9\t1\tc\ty\n0\t3\t1\td\tz\n", 1),
    ("0\t5\t1\ta\tx\n4\t9\t1\tb\ty\n", 2), ("# ninja log v5\n", 0)])
def test_commands_at_a_time(text, count):
    """Of two runs, and of a command that makes two files."""
    assert deb_options.at_once(text) == count


def test_without_blhc(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert deb_packages.hardened("build.log", ".") == ("blhc: not run: it is not installed", [])


def package(folder, name, fields, program=True):
    """A package of version 1.0.0-1 with or without an ELF file."""
    tree = folder / name
    (tree / "DEBIAN").mkdir(parents=True)
    (tree / "DEBIAN/control").write_text(
        "Package: %s\nVersion: 1.0.0-1\nArchitecture: amd64\nMaintainer: A <a@b.c>\n%s\n"
        "Description: x\n" % (name, fields))
    (tree / "file").write_bytes(b"\x7fELF" if program else b"text")
    subprocess.run(["dpkg-deb", "-b", str(tree), str(folder / (name + "_1.0.0-1_amd64.deb"))],
                   check=True, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("given, wanted", [({}, "/cache/of/a/user"), (
    {"CCACHE_DIR": "/mine"}, "/mine")])
def test_the_compiler_cache_outlives_the_build(tmp_path, monkeypatch, given, wanted):
    """debhelper's HOME is a directory of the tree."""
    seen = {}
    monkeypatch.setattr(deb_packages, "CCACHE", str(tmp_path))
    monkeypatch.setattr(deb_packages.shutil, "which", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(deb_packages, "run", lambda command: "/cache/of/a/user\n")
    monkeypatch.setattr(deb_packages, "logged", lambda *_, env, **__: seen.update(env))
    for name in ("CCACHE_DIR", "CCACHE_DISABLE"):
        monkeypatch.delenv(name, raising=False)
    deb_packages.built(str(tmp_path), ["-b"], "log", **given)
    assert seen["CCACHE_DIR"] == wanted and seen["PATH"].startswith(str(tmp_path) + ":")
    seen.clear()
    monkeypatch.setenv("CCACHE_DISABLE", "1")  # one that is off would cost precompiled headers
    deb_packages.built(str(tmp_path), ["-b"], "log")
    assert "CCACHE_DIR" not in seen and not seen["PATH"].startswith(str(tmp_path))


@pytest.mark.parametrize("wrong, status", [([], 0), (["x.so"], 1)])
def test_verdicts_stand_in_their_order(capsys, wrong, status):
    ready = threading.Event()

    def slow():
        assert ready.wait(60), "the second check waits for the end of the first"
        return "first", []

    def quick():
        ready.set()
        return "second", wrong
    assert package_build.judged(slow, quick) == status
    assert capsys.readouterr().out == "\n".join(["first", "second", *wrong, ""])


@pytest.mark.skipif(not os.path.isdir(os.path.join(deb_packages.SOURCE, "debian")),
                    reason="the source archive has no debian/")
@pytest.mark.parametrize("version", ["%s-1", "%s+ds-2", "1:%s+dfsg1-1.1"])
def test_the_source_archive_has_the_version_of_the_changelog(tmp_path, monkeypatch, version):
    upstream = deb_packages.read("VERSION").strip()
    version %= upstream
    texts = {("VERSION",): upstream + "\n", ("debian", "changelog"):
             "treenail (%s) unstable; urgency=low\n\n -- A <a@b.c>  x\n" % version}
    monkeypatch.setattr(deb_packages, "read", lambda *names: texts[names])
    monkeypatch.setattr(deb_packages.dist, "debian_files", lambda *_: ["debian/changelog"])
    tree = deb_packages.unpacked_source(str(tmp_path / "deb"))
    packaged = version.partition(":")[2] or version
    packaged = packaged.rpartition("-")[0]
    assert os.path.basename(tree) == "treenail-" + packaged and os.path.isfile(tree + "/VERSION")
    assert os.listdir(str(tmp_path / "deb")).count("treenail_%s.orig.tar.gz" % packaged) == 1
    texts["debian", "changelog"] = texts["debian", "changelog"].replace(upstream, "9")
    with pytest.raises(deb_packages.Unusable, match="add an entry with dch -v %s-1" % upstream):
        deb_packages.unpacked_source(str(tmp_path / "deb"))


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_packages_bound_to_their_version(tmp_path):
    package(tmp_path, "libtreenail1", "Provides: treenail-private-abi-1.0.0")
    package(tmp_path, "libtreenail1-grpc", "Depends: libtreenail1 (= 1.0.0-1), libc6")
    package(tmp_path, "libtreenail-dev", "Depends: libc6", program=False)
    package(tmp_path, "python3-treenail",
            "Depends: libtreenail1 (= 1.0.0-1), treenail-private-abi-1.0.0")
    assert deb_packages.bound(str(tmp_path)) == (
        "bound to this version of the library: libtreenail1-grpc, python3-treenail", [])
    package(tmp_path, "treenail-tools",  # a revision may change what is private
            "Depends: libtreenail1 (>= 1.0.0), treenail-private-abi-1.0.0")
    assert deb_packages.bound(str(tmp_path))[1] == ["treenail-tools"]


def test_what_packages_need_of_others(tmp_path):
    if shutil.which("dpkg-deb") is None:
        pytest.skip("there is no dpkg-deb")
    paths = []
    for name, more in (
            ("libx1", "Depends: libc6 (>= 2), liby | libz\nProvides: libx-abi-1 (= 3)\n"),
            ("libx-dev", "Pre-Depends: dpkg (>= 1)\nDepends: libx1 (= 1-1), libx-abi-1\n")):
        tree = tmp_path / name / "DEBIAN"
        tree.mkdir(parents=True)
        tree.joinpath("control").write_text(
            "Package: %s\nVersion: 1-1\nArchitecture: all\nMaintainer: A <a@b.c>\n%s"
            "Description: x\n" % (name, more))
        paths.append(str(tmp_path / (name + ".deb")))
        subprocess.run(["dpkg-deb", "-b", str(tmp_path / name), paths[-1]], check=True,
                       stdout=subprocess.DEVNULL)
    assert deb_purge.dependencies(paths) == (
        "dpkg (>= 1), libc6 (>= 2), liby | libz", ["libx1", "libx-dev"])


@pytest.mark.parametrize("there", [True, False])
def test_without_piuparts_dpkg_does_it(tmp_path, monkeypatch, there):
    (tmp_path / "deb").mkdir()
    (tmp_path / "deb/libtreenail1_1_amd64.deb").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(deb_purge.os, "getuid", lambda: 0)
    monkeypatch.setattr(deb_purge.shutil, "which", lambda name: there)
    monkeypatch.setattr(deb_purge, "by_piuparts", lambda paths, base: "piuparts")
    monkeypatch.setattr(deb_purge, "by_dpkg", lambda paths, base: "dpkg")
    assert deb_purge.deb_purge() == ("piuparts" if there else "dpkg")


@pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="there is no dpkg-deb")
def test_an_older_version_of_a_package(tmp_path):
    """Its own version and that of siblings sink; other packages' do not."""
    tree = tmp_path / "tree/DEBIAN"
    tree.mkdir(parents=True)
    tree.joinpath("control").write_text(
        "Package: libx-dev\nVersion: 1.0.0-1\nArchitecture: all\nMaintainer: A <a@b.c>\n"
        "Depends: libx1 (= 1.0.0-1), libc6 (>= 1.0.0-12)\nDescription: x\n")
    path = tmp_path / "libx-dev_1.0.0-1_all.deb"
    subprocess.run(["dpkg-deb", "-b", str(tmp_path / "tree"), str(path)], check=True,
                   stdout=subprocess.DEVNULL)
    (tmp_path / "older").mkdir()
    deb_purge.older(str(path), str(tmp_path / "older"))
    made = str(tmp_path / "older/libx-dev_1.0.0-1~0_all.deb")
    fields = subprocess.run(["dpkg-deb", "-f", made, "Version", "Depends"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    assert fields == "Version: 1.0.0-1~0\nDepends: libx1 (= 1.0.0-1~0), libc6 (>= 1.0.0-12)\n"
