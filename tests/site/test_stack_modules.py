# SPDX-License-Identifier: Apache-2.0
"""The Ansible modules that unpack, put into place, prune and copy, used as functions."""

import base64
import hashlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from stack_fixture import module  # noqa: E402  (Ansible first)

state = module("library/stack_state.py")
unpack = module("library/stack_unpack.py")
commit = module("library/stack_commit.py")
prune = module("library/stack_prune.py")
publish = module("library/stack_publish.py")
share = module("library/stack_share.py")


# ---- archives and prefixes -------------------------------------------------------------------


def archive(tmp_path, *names):
    path = str(tmp_path / "x.tar.gz")
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            (tmp_path / "file").write_text(name)
            tar.add(str(tmp_path / "file"), name)
    return path


def test_an_archive_is_unpacked_whole(tmp_path):
    unpack.unpacked(archive(tmp_path, "x-1/a", "x-1/b/c"), str(tmp_path / "out" / "source"))
    assert (tmp_path / "out" / "source" / "b" / "c").read_text() == "x-1/b/c"
    assert os.listdir(str(tmp_path / "out")) == ["source"]


@pytest.mark.parametrize("names, words", [
    (("a", "b"), "2 things at its top"), (("a",), "1 things")])
def test_an_archive_without_a_directory_is_refused(tmp_path, names, words):
    with pytest.raises(OSError, match=words):
        unpack.unpacked(archive(tmp_path, *names), str(tmp_path / "out" / "source"))
    assert os.listdir(str(tmp_path / "out")) == []


PATCH = """Description: why
--- a/%s
+++ b/%s
@@ -1 +1 @@
-%s
+%s
"""


def source_package(tmp_path, patches):
    """A .dsc by dpkg-source's own rules, of an original archive, a component's and debian/."""
    built = tmp_path / "pool"
    built.mkdir()
    for name, files in (
            ("x_1.orig.tar.gz", {"x-1/a": "one\n", "x-1/more/old": "old\n", "x-1/debian/y": ""}),
            ("x_1.orig-more.tar.gz", {"other/b": "two\n"}),
            ("x_1-1.debian.tar.gz", {"debian/rules": "", **{
                "debian/patches/" + name: text for name, text in patches.items()}})):
        with tarfile.open(str(built / name), "w:gz") as tar:
            for path, text in files.items():
                entry = tarfile.TarInfo(path)
                entry.size = len(text)
                tar.addfile(entry, io.BytesIO(text.encode()))
    rows = ["%s %d %s" % (hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size,
                          path.name) for path in sorted(built.iterdir())]
    (built / "x_1-1.dsc").write_text(
        "Format: 3.0 (quilt)\nSource: x\nVersion: 1-1\nChecksums-Sha256:\n %s\nFiles:\n 0 0 z\n"
        % "\n ".join(rows))
    return str(built / "x_1-1.dsc")


def test_a_source_package_is_unpacked_without_dpkg_source(tmp_path, monkeypatch):
    """Its package excludes another architecture's cross compilers, as in an emulated chroot."""
    farm = tmp_path / "bin"
    farm.mkdir()
    for name in ("tar", "gzip", "patch"):
        (farm / name).symlink_to(shutil.which(name))
    dsc = source_package(tmp_path, {
        "series": "# first\none # why\nmore\n", "one": PATCH % ("a", "a", "one", "1"),
        "more": PATCH % ("more/b", "more/b", "two", "2")})
    monkeypatch.setenv("PATH", str(farm))
    unpack.unpacked(dsc, str(tmp_path / "out" / "source"))
    tree = tmp_path / "out" / "source"
    files = {str(path.relative_to(tree)) for path in tree.rglob("*") if path.is_file()}
    assert files == {"a", "more/b", "debian/rules", "debian/patches/series", "debian/patches/one",
                     "debian/patches/more"}
    assert (tree / "a").read_text() + (tree / "more/b").read_text() == "1\n2\n"
    assert (tree / "a").stat().st_mtime == (tree / "more/b").stat().st_mtime


@pytest.mark.parametrize("change, words", [
    (lambda dsc: dsc.write_text(dsc.read_text().replace("3.0 (quilt)", "1.0")),
     r"has the format 1\.0: only 3\.0 \(quilt\) is known"),
    (lambda dsc: (dsc.parent / "x_1.orig.tar.gz").write_bytes(b""),
     r"x_1\.orig\.tar\.gz has not the checksum that .*x_1-1\.dsc tells")], ids=["format", "sum"])
def test_a_source_package_that_is_refused(tmp_path, change, words):
    dsc = source_package(tmp_path, {"series": ""})
    change(pathlib.Path(dsc))
    with pytest.raises(OSError, match=words):
        unpack.unpacked(dsc, str(tmp_path / "out" / "source"))


def test_a_source_package_whose_patch_does_not_apply_is_refused(tmp_path):
    dsc = source_package(tmp_path, {"series": "one\n", "one": PATCH % ("a", "a", "three", "3")})
    with pytest.raises(OSError, match="x_1-1.dsc, one cannot be unpacked: .*FAILED"):
        unpack.unpacked(dsc, str(tmp_path / "out" / "source"))
    assert os.listdir(str(tmp_path / "out")) == []


def test_what_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x.tar").write_text("no")
    with pytest.raises(OSError, match="cannot be unpacked"):
        unpack.unpacked(str(tmp_path / "x.tar"), str(tmp_path / "out" / "source"))


def instance(prefix, **more):
    found = {key: "" for key in ("name", "version", "mode", "isa", "variant", "recipe", "sources",
                                 "patches", "flags", "steps", "license", "module")}
    found.update({"name": "low", "mode": "build", "prefix": str(prefix), "disk": 10}, **more)
    return found


def installed(tmp_path, name):
    prefix = tmp_path / "root" / "gcc-12" / "low" / name
    stage = tmp_path / "stage"
    folder = str(stage) + str(prefix)
    os.makedirs(folder + "/lib")
    with open(folder + "/lib/liblow.so", "w", encoding="utf-8") as stream:
        stream.write(name)
    commit.commit(instance(prefix), str(stage), {"times": {"build": 5}})
    return prefix


def test_a_staged_installation_is_put_into_place(tmp_path):
    prefix = installed(tmp_path, "1-aa")
    content = state.record(str(prefix))
    assert content["files"] == {"lib/liblow.so": hashlib.sha256(b"1-aa").hexdigest()}
    found = state.state([instance(prefix), instance(str(prefix) + "2")], str(tmp_path / "root"))
    assert found["complete"] == [str(prefix)] and found["to_build"] == ["low"]
    assert found["needed_mib"] == 10 and found["expected"] == {"low ": {"build": 5}}


def test_each_instruction_set_has_its_own_times():
    built = [{"name": "low", "isa": isa, "built": when, "times": {"build": seconds}}
             for isa, when, seconds in (
                 ("x86-64-v3", 2, 60), ("x86-64", 3, 5), ("x86-64-v3", 1, 9))]
    assert state.expected(built) == {"low x86-64-v3": {"build": 60}, "low x86-64": {"build": 5}}


def test_before_the_compilers_are_known_nothing_is_missed_that_any_of_them_built(tmp_path):
    installed(tmp_path, "1-aa")
    root = str(tmp_path / "root")
    unknown = instance(root + "/unknown/low/1-bb")
    assert state.state([unknown], root)["to_build"] == ["low"]
    assert state.state([unknown], root, least=True)["to_build"] == []
    for change in ({"version": "2"}, {"isa": "x86-64"}, {"name": "high"}):
        found = state.state([dict(unknown, **change)], root, least=True)
        assert found["needed_mib"] == 10, change


def test_an_installation_that_wrote_nothing_is_refused(tmp_path):
    with pytest.raises(OSError, match="wrote nothing"):
        commit.commit(instance(tmp_path / "p"), str(tmp_path / "stage"), {})


def environment(root, name, files):
    """One with these module files, and a stack-env that tells its name."""
    folder = root / "environments" / name
    for path, text in dict({"bin/stack-env": name}, **{
            "modulefiles/" + module: text for module, text in files.items()}).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (root / "bin").mkdir(exist_ok=True)
    return str(folder)


def seen(root):
    """What users have: {name: text}, stack-env among it."""
    found = publish.module_files(str(root / "modulefiles"))
    return dict(found, env=(root / "bin" / "stack-env").read_text())


def test_an_environment_takes_the_place_of_the_one_before(tmp_path):
    first = environment(tmp_path, "1", {"low/1": "a", "high/1": "module load low/1"})
    assert publish.publish(str(tmp_path), first, False) and not (tmp_path / "current").exists()
    assert publish.publish(str(tmp_path), first, True)
    assert seen(tmp_path) == {"env": "1", "low/1": "a", "high/1": "module load low/1"}
    assert publish.publish(str(tmp_path), first, True) is False
    second = environment(tmp_path, "2", {"low/1": "b", "high/1": "module load low/1; b"})
    assert seen(tmp_path)["low/1"] == "a", "what is not published yet is seen by nobody"
    assert publish.publish(str(tmp_path), second, True)
    assert seen(tmp_path) == {"env": "2", "low/1": "b", "high/1": "module load low/1; b"}


def test_another_version_stays_with_what_it_was_built_on(tmp_path):
    publish.publish(str(tmp_path), environment(tmp_path, "1", {
        "low/1": "conflict low; 1a", "same/1": "x", "mid/1": "prereq low/1",
        "high/1": "if { ![is-loaded mid/1] } { module load mid/1 }; module load same/1"}), True)
    for name in "23":
        publish.publish(str(tmp_path), environment(tmp_path, name, {
            "low/1": "conflict low; 1" + name, "same/1": "x", "mid/1": "prereq low/1 " + name,
            "high/2": "module load low/1"}), True)
        found = seen(tmp_path)
        aside = found["high/1"].split()[3].rstrip("]")
        assert aside.startswith("mid/.1-") and found["high/1"] == (
            "if { ![is-loaded %s] } { module load %s }; module load same/1" % (aside, aside))
        low = found[aside].split()[-1]
        assert low.startswith("low/.1-") and found[low] == "conflict low; 1a"
        assert found["low/1"] == "conflict low; 1" + name and found["high/2"].endswith(" low/1")
        assert len(found) == 8, "nothing that no other version loads is kept aside"


def test_files_of_a_play_without_environments_are_taken_over(tmp_path):
    (tmp_path / "modulefiles/low").mkdir(parents=True)
    (tmp_path / "modulefiles/low/0").write_text("old")
    publish.publish(str(tmp_path), environment(tmp_path, "1", {"low/1": "a"}), True)
    assert seen(tmp_path) == {"env": "1", "low/0": "old", "low/1": "a"}


def manifest(tmp_path, name, *prefixes):
    with open(str(tmp_path / "root" / name), "w", encoding="utf-8") as stream:
        json.dump({"components": [{"prefix": str(p)} for p in prefixes] + [
            {"prefix": ""}, {"prefix": "", "build_directory": str(tmp_path / "root/build/tried")}]},
                  stream)


def test_prune_removes_what_no_manifest_names(tmp_path):
    old, before, now, kept = (installed(tmp_path, n) for n in ("1-aa", "1-bb", "1-cc", "1-dd"))
    root = tmp_path / "root"
    manifest(tmp_path, "manifest.json", now)
    manifest(tmp_path, "manifest.previous.json", before)
    for name in ("ee", "ff"):
        environment(root, name, {"low/old": "prepend-path PATH %s/bin\n" % old,
                                 "low/now": "prepend-path PATH %s/bin\n" % now})
    publish.publish(str(root), str(root / "environments" / "ff"), True)
    (root / "build" / "low-1-ee").mkdir(parents=True)
    (root / "build" / "tried").mkdir()
    (root / "gcc-12" / "notes").mkdir()
    would = prune.prune(str(root), [str(kept)], False)
    assert old.exists() and would == prune.prune(str(root), [str(kept)], True)
    assert not old.exists() and before.exists() and now.exists() and kept.exists()
    assert os.listdir(str(root / "modulefiles" / "low")) == ["now"]
    assert os.listdir(str(root / "environments")) == ["ff"]
    assert os.listdir(str(root / "build")) == ["tried"], "its suite would run again"
    assert (root / "gcc-12" / "notes").exists()


@pytest.mark.parametrize("spelling", ["root", "root/", "root//", "./root", "link"])
def test_prune_knows_the_stack_however_its_root_is_spelled(tmp_path, spelling):
    old, now, kept = (installed(tmp_path, n) for n in ("1-aa", "1-cc", "1-dd"))
    manifest(tmp_path, "manifest.json", now)
    (tmp_path / "link").symlink_to("root")
    root = os.path.join(str(tmp_path), spelling)
    for name in ("ee", "ff"):
        environment(tmp_path / "root", name, {"low/old": "prepend-path PATH %s\n" % old,
                                              "low/now": "prepend-path PATH %s\n" % now})
    publish.publish(str(tmp_path / "root"), str(tmp_path / "root/environments/ff"), True)
    (tmp_path / "root/build/tried").mkdir(parents=True)
    prune.prune(root, ["%s/link/gcc-12/low/%s/" % (tmp_path, kept.name)], True)
    assert not old.exists() and now.exists() and kept.exists()
    assert os.listdir(str(tmp_path / "root/environments")) == ["ff"]
    assert os.listdir(str(tmp_path / "root/modulefiles/low")) == ["now"]
    assert os.listdir(str(tmp_path / "root/build")) == ["tried"]


def test_prune_of_a_stack_that_was_moved_removes_nothing(tmp_path):
    prefix = installed(tmp_path, "1-aa")
    manifest(tmp_path, "manifest.json", prefix)
    os.rename(str(tmp_path / "root"), str(tmp_path / "moved"))
    with pytest.raises(prune.Unusable, match="name prefixes, as .*/1-aa, and none of them is"):
        prune.prune(str(tmp_path / "moved"), [], True)
    assert os.listdir(str(tmp_path / "moved/gcc-12/low")) == ["1-aa"]


@pytest.mark.parametrize("text, words", [(None, "has no manifest.json"), ("{", "cannot be read")])
def test_prune_without_a_manifest_removes_nothing(tmp_path, text, words):
    prefix = installed(tmp_path, "1-aa")
    if text is not None:
        (tmp_path / "root" / "manifest.json").write_text(text)
    with pytest.raises(prune.Unusable, match=words):
        prune.prune(str(tmp_path / "root"), [], True)
    assert prefix.exists()


# ---- what is copied --------------------------------------------------------------------------


def test_folders_become_those_of_the_archive(tmp_path):
    made, into = tmp_path / "made", tmp_path / "into"
    (made / "one/deep").mkdir(parents=True)
    (made / "one/deep/program").write_text("1")
    (made / "one/deep/program").chmod(0o755)
    (made / "one/text").write_text("2")

    def shared(really=True):
        packed = subprocess.run(["tar", "-C", str(made), "-cz", "one"], stdout=subprocess.PIPE,
                                check=True).stdout
        return share.shared(base64.b64encode(packed).decode(), str(into), really)

    assert shared(False) == ["one/deep/program", "one/text"] and not into.exists()
    assert shared() == ["one/deep/program", "one/text"] and shared() == []
    assert (into / "one/deep/program").stat().st_mode & 0o777 == 0o755
    (into / "one/text").write_text("3")
    (into / "one/stale").write_text("")
    (into / "another").write_text("")
    (into / "one/deep/program").chmod(0o644)
    assert shared() == ["one/deep/program", "one/stale", "one/text"] and shared() == []
    assert sorted(os.listdir(str(into / "one"))) == ["deep", "text"]
    assert (into / "another").exists() and (into / "one/text").read_text() == "2"
