# SPDX-License-Identifier: Apache-2.0
"""ci/image: what it reads of packages, refuses, normalises and verifies, on made-up packages,
trees and layouts. test_image_run.py has its runs; gen/site/image_proof.py makes real images."""

import gzip
import hashlib
import io
import json
import os
import shutil
import stat
import subprocess
import sys
import tarfile

import pytest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, name) for name in (
    "ci/site", "gen/packaging", "gen/tools", "")]
import image_build  # noqa: E402  (the path must be set first)
import image_content  # noqa: E402
import image_packages  # noqa: E402
import image_verify  # noqa: E402
from oci_layout import Layout, checked_tag  # noqa: E402
from package_build import Unusable  # noqa: E402

PROGRAM = os.path.join(SOURCE, "ci/image")
LATEST = 1_700_000_000


def refused(function, *arguments):
    with pytest.raises(Unusable) as caught:
        function(*arguments)
    return str(caught.value)


# ---- packages ---------------------------------------------------------------------------------


def deb(folder, name, version="1.0.0-1", architecture="amd64", stamp=LATEST, **fields):
    """A .deb that dpkg-deb packs, without files."""
    if not shutil.which("dpkg-deb"):
        pytest.skip("dpkg-deb is not installed")
    tree = folder / ("tree-" + name + architecture + version)
    (tree / "DEBIAN").mkdir(parents=True)
    rows = dict({"Package": name, "Version": version, "Architecture": architecture,
                 "Source": "treenail", "Maintainer": "Nobody <nobody@treenail.invalid>",
                 "Description": "made up"}, **fields)
    (tree / "DEBIAN/control").write_text("".join("%s: %s\n" % row for row in rows.items()))
    path = folder / ("%s_%s_%s.deb" % (name, version, architecture))
    subprocess.run(["dpkg-deb", "--root-owner-group", "-b", str(tree), str(path)], check=True,
                   stdout=subprocess.DEVNULL, env=dict(os.environ, SOURCE_DATE_EPOCH=str(stamp)))
    return path


@pytest.fixture
def packages(tmp_path):
    deb(tmp_path, "libtreenail1", Depends="libblas3 | libblas.so.3, libc6 (>= 2.35)",
        Recommends="libopenblas0-pthread", Provides="treenail-private-abi-1.0.0")
    deb(tmp_path, "python3-treenail", stamp=LATEST + 5,
        Depends="python3 (<< 3.12), python3:any, libtreenail1 (>= 1.0.0), "
        "treenail-private-abi-1.0.0, python3-numpy")
    deb(tmp_path, "treenail-tools", Depends="libc6 (>= 2.34), libtreenail1 (>= 1.0.0)")
    deb(tmp_path, "libtreenail-dev", Depends="libtreenail1 (= 1.0.0-1), libc6-dev")
    deb(tmp_path, "libtreenail1-dbgsym")
    return tmp_path


def test_an_image_gets_the_module_the_programs_and_what_they_depend_on(packages):
    found = image_packages.chosen(str(packages))
    assert [p.name for p in found] == ["libtreenail1", "python3-treenail", "treenail-tools"]
    assert image_packages.needed(found) == ["libblas3", "libc6", "libopenblas0-pthread", "python3",
                                            "python3-numpy"]
    assert [p.date for p in found] == [LATEST, LATEST + 5, LATEST]
    assert {p.source for p in found} == {"treenail"}


def test_a_package_can_be_added(packages):
    found = image_packages.chosen(str(packages), ["libtreenail-dev"])
    assert "libtreenail-dev" in [p.name for p in found]
    assert "libc6-dev" in image_packages.needed(found)


def test_no_packages(tmp_path):
    assert "ninja deb makes them" in refused(image_packages.chosen, str(tmp_path))


def test_an_unknown_package_is_told_with_those_there_are(packages):
    text = refused(image_packages.chosen, str(packages), ["treenail-cuda"])
    assert "holds no package treenail-cuda" in text and "libtreenail-dev" in text


def test_two_versions_of_a_package(packages):
    deb(packages, "libtreenail1", "1.1.0-1")
    text = refused(image_packages.chosen, str(packages))
    assert "libtreenail1_1.0.0-1_amd64.deb and libtreenail1_1.1.0-1_amd64.deb" in text


def test_two_architectures(packages):
    (packages / "treenail-tools_1.0.0-1_amd64.deb").unlink()
    deb(packages, "treenail-tools", architecture="arm64", Depends="libtreenail1")
    assert "amd64 and arm64" in refused(image_packages.chosen, str(packages))


def test_what_is_no_package(packages):
    (packages / "broken_1_all.deb").write_bytes(b"!<arch>\nnothing")
    assert "is no Debian package" in refused(image_packages.chosen, str(packages))


def test_versions_with_the_same_needs_have_one_base(packages):
    one = image_packages.needed(image_packages.chosen(str(packages)))
    base = image_build.Base("bookworm", "amd64", tuple(one))
    assert base.tag == image_build.Base("bookworm", "amd64", tuple(reversed(one))).tag
    others = [image_build.Base("bookworm", "amd64", (*one, "libc6-dev")),
              image_build.Base("trixie", "amd64", tuple(one)),
              image_build.Base("bookworm", "arm64", tuple(one))]
    assert len({base.tag, *[other.tag for other in others]}) == 4
    assert checked_tag(base.tag) == base.tag


def test_the_default_tag_is_the_version(tmp_path):
    for version, architecture, expected in (
            ("1.0.0-1", "amd64", "1.0.0"), ("1:1.1~rc1+b2-1", "amd64", "1.1_rc1_b2"),
            ("2.0", "amd64", "2.0"), ("1.0.0-1", "arm64", "1.0.0-arm64")):
        one = image_packages.Package("", "python3-treenail", version, architecture, "treenail",
                                     (), (), 0)
        assert image_build.default_tag([one], "amd64") == expected


# ---- the revision -----------------------------------------------------------------------------


def git(folder, *words):
    settings = dict(os.environ, GIT_AUTHOR_DATE="@%d +0000" % LATEST,
                    GIT_COMMITTER_DATE="@%d +0000" % LATEST, GIT_CONFIG_GLOBAL="/dev/null",
                    GIT_CONFIG_SYSTEM="/dev/null")
    return subprocess.run(["git", "-c", "user.name=Nobody", "-c", "user.email=nobody@invalid",
                           "-C", str(folder), *words], check=True, stdout=subprocess.PIPE,
                          env=settings).stdout.decode().strip()


def archive(path, files, top=""):
    with tarfile.open(path, "w:gz") as made:
        for name, data in files.items():
            info = tarfile.TarInfo(top + name)
            info.size, info.mtime = len(data), LATEST
            made.addfile(info, io.BytesIO(data))


def sums(*paths):
    return "Checksums-Sha256:\n" + "".join(" %s %d %s\n" % (
        hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size, path.name)
        for path in paths)


@pytest.fixture
def built(packages):
    """The packages with the traces of their source, and the repository that it came from."""
    repository = packages / "repository"
    (repository / "debian").mkdir(parents=True)
    (repository / "a.txt").write_text("text\n")
    (repository / "debian/rules").write_text("all:\n")
    git(repository, "init", "-q")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "one")
    commit = git(repository, "rev-parse", "HEAD")
    orig = packages / "treenail_1.0.0.orig.tar.gz"
    archive(orig, {"a.txt": b"text\n", "PKG-INFO": b"Name: treenail\n"}, "treenail-1.0.0/")
    archive(packages / "treenail_1.0.0-1.debian.tar.gz", {"debian/rules": b"all:\n"})
    described(packages)
    return packages, repository, commit


def described(folder):
    dsc = folder / "treenail_1.0.0-1.dsc"
    dsc.write_text("Format: 3.0 (quilt)\n" + sums(*sorted(folder.glob("*.tar.gz"))))
    (folder / "treenail_1.0.0-1_amd64.buildinfo").write_text(
        "Format: 1.0\n" + sums(dsc, *sorted(folder.glob("*.deb"))) + "Build-Origin: Debian\n")


def revision(folder, repository):
    return image_packages.revision(str(folder), image_packages.chosen(str(folder)),
                                   str(repository))


def test_revision_is_the_commit_with_the_same_files(built):
    folder, repository, commit = built
    assert revision(folder, repository) == commit
    (repository / "b.txt").write_text("later\n")
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "two")
    assert revision(folder, repository) == commit != git(repository, "rev-parse", "HEAD")


def test_revision_of_files_that_no_commit_has_is_the_digest_of_the_archive(built):
    folder, repository, _ = built
    orig = folder / "treenail_1.0.0.orig.tar.gz"
    archive(orig, {"a.txt": b"changed, not committed\n"}, "treenail-1.0.0/")
    described(folder)
    assert revision(folder, repository) == (
        "sha256:" + hashlib.sha256(orig.read_bytes()).hexdigest())


def test_no_revision_where_the_checksums_are_of_other_packages(built):
    folder, repository, _ = built
    deb_path = folder / "libtreenail1_1.0.0-1_amd64.deb"
    deb_path.write_bytes(deb_path.read_bytes() + b"\n")
    assert "give --revision" in refused(revision, folder, repository)


def test_no_revision_where_the_source_was_changed_since(built):
    folder, repository, _ = built
    archive(folder / "treenail_1.0.0.orig.tar.gz", {"a.txt": b"other"}, "treenail-1.0.0/")
    assert "give --revision" in refused(revision, folder, repository)


# ---- normalisation ----------------------------------------------------------------------------


def tree(root):
    for name in ("dev", "etc", "proc", "run/lock", "tmp", "usr/bin", "var/cache/apt/archives",
                 "var/lib/apt/lists", "var/lib/dpkg", "var/log/apt", "data-kept"):
        (root / name).mkdir(parents=True)
    for name in ("etc/resolv.conf", "etc/hostname", "etc/passwd-", "etc/machine-id", "tmp/.x",
                 "run/lock/y", "var/cache/apt/archives/p.deb", "var/lib/apt/lists/l",
                 "var/lib/dpkg/status-old", "var/lib/dpkg/status", "var/log/apt/term.log",
                 "usr/bin/program"):
        (root / name).write_text("text")
    (root / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\n")
    (root / "etc/group").write_text("root:x:0:\n")
    (root / "var/lock").symlink_to("/run/lock")
    (root / "tmp/link").symlink_to("/usr")
    return root


def names(root):
    return {os.path.relpath(os.path.join(folder, leaf), root)
            for folder, _, leaves in os.walk(root) for leaf in leaves}


def test_tidy_removes_what_differs_and_keeps_the_rest(tmp_path):
    root = tree(tmp_path)
    image_content.tidy(str(root))
    assert names(root) == {"etc/passwd", "etc/group", "etc/machine-id", "usr/bin/program",
                           "var/lib/dpkg/status"}
    assert (root / "etc/machine-id").read_text() == ""
    assert (root / "var/lock").is_symlink() and (root / "var/cache/apt/archives").is_dir()
    assert list((root / "tmp").iterdir()) == list((root / "run").iterdir()) == []


def test_clamp_leaves_no_later_time_and_no_fraction(tmp_path):
    root = tree(tmp_path)
    os.utime(root / "usr/bin/program", (LATEST - 9.5, LATEST - 9.5))
    image_content.clamp(str(root), LATEST)
    times = {str(path): os.lstat(path).st_mtime_ns for path in [root, *root.rglob("*")]}
    assert times.pop(str(root / "usr/bin/program")) == (LATEST - 10) * 10 ** 9
    assert set(times.values()) == {LATEST * 10 ** 9}


def test_the_user_is_there_once(tmp_path):
    root = tree(tmp_path)
    image_content.add_user(str(root))
    assert "treenail:x:1000:1000:" in (root / "etc/passwd").read_text()
    assert stat.S_IMODE((root / "data").stat().st_mode) == 0o755
    assert "the number 1000 is taken" in refused(image_content.add_user, str(root))


def layer(*members):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as out:
        for name, data, more in members:
            info = tarfile.TarInfo(name)
            info.size, info.mtime, info.mode = len(data), LATEST, 0o644
            for key, value in more.items():
                setattr(info, key, value)
            out.addfile(info, io.BytesIO(data))
    return made.getvalue()


@pytest.mark.parametrize("member, text", [
    (("usr/bin/a", b"", {"mtime": LATEST + 1}), "usr/bin/a is of 2023-11-14T22:13:21Z, later than"),
    (("var/log/dpkg.log", b"x", {}), "var/log/dpkg.log differs"),
    (("./var/cache/ldconfig/aux-cache", b"x", {}), "aux-cache differs"),
    (("etc/resolv.conf", b"x", {}), "etc/resolv.conf differs"),
    (("etc/machine-id", b"0123", {}), "etc/machine-id is filled in"),
    (("usr/bin/a", b"", {"mode": 0o666}), "usr/bin/a can be written by everyone")])
def test_what_a_layer_must_not_hold(member, text):
    found = list(image_content.layer_findings(io.BytesIO(layer(member)), LATEST))
    assert len(found) == 1 and text in found[0]


def test_a_clean_layer_has_no_findings():
    clean = layer(("usr/bin/a", b"x", {}), ("etc/machine-id", b"", {}),
                  ("var/log", b"", {"type": tarfile.DIRTYPE, "mode": 0o755}))
    assert list(image_content.layer_findings(io.BytesIO(gzip.compress(clean)), LATEST)) == []


def test_times_as_oci_writes_them():
    assert image_content.moment(LATEST) == "2023-11-14T22:13:20Z"
    assert image_content.seconds_of("2023-11-14T22:13:20Z") == LATEST


def test_licences_are_those_of_the_bills_of_materials(tmp_path):
    for name, licence in (("libtreenail1", "Apache-2.0"),
                          ("python3-treenail", "Apache-2.0 AND BSD-3-Clause")):
        folder = tmp_path / "usr/share/doc" / name
        folder.mkdir(parents=True)
        with gzip.open(folder / (name + ".amd64.spdx.json.gz"), "wt") as stream:
            json.dump({"packages": [{"name": name, "licenseConcluded": licence}]}, stream)
    own = ["libtreenail1", "python3-treenail"]
    assert image_content.licences(str(tmp_path), own) == "Apache-2.0 AND BSD-3-Clause"
    assert "treenail-tools brings 0" in refused(image_content.licences, str(tmp_path),
                                                own + ["treenail-tools"])


# ---- layouts ----------------------------------------------------------------------------------


def blob(folder, data):
    digest = hashlib.sha256(data).hexdigest()
    (folder / "blobs/sha256" / digest).write_bytes(data)
    return {"digest": "sha256:" + digest, "size": len(data)}


@pytest.fixture
def layout(tmp_path):
    """An image of two layers, written by hand."""
    folder = tmp_path / "images"
    (folder / "blobs/sha256").mkdir(parents=True)
    tars = [layer(("usr/bin/sh", b"x", {})), layer(("usr/bin/treenail-info", b"y", {}))]
    config = {"created": "2023-11-14T22:13:20Z", "architecture": "amd64", "os": "linux",
              "config": {"Labels": {image_content.OCI + "version": "1.0.0",
                                    "treenail.levels": "x86-64", "treenail.python": "3.11"}},
              "rootfs": {"type": "layers", "diff_ids": [
                  "sha256:" + hashlib.sha256(data).hexdigest() for data in tars]}}
    manifest = {"schemaVersion": 2, "config": blob(folder, json.dumps(config).encode()),
                "layers": [blob(folder, gzip.compress(data, mtime=0)) for data in tars],
                "annotations": {image_build.MADE_FROM: "inputs"}}
    entry = dict(blob(folder, json.dumps(manifest).encode()),
                 annotations={"org.opencontainers.image.ref.name": "1.0.0"})
    (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [entry]}))
    return Layout(str(folder))


def test_a_whole_image_has_no_problems(layout):
    assert list(layout.problems("1.0.0")) == []


def test_a_changed_blob_is_found(layout):
    path = layout.blob_path(layout.layers("1.0.0")[1]["digest"])
    with open(path, "r+b") as stream:
        stream.seek(20)
        stream.write(b"\xff")
    (found,) = layout.problems("1.0.0")
    assert path in found and "has the digest" in found


def test_a_cut_and_a_missing_blob_are_found(layout):
    one, two = [layout.blob_path(part["digest"]) for part in layout.layers("1.0.0")]
    os.truncate(one, 5)
    os.unlink(two)
    found = list(layout.problems("1.0.0"))
    assert "has 5 bytes, its descriptor says" in found[0] and "is missing" in found[1]


def test_a_layer_that_the_configuration_does_not_name_is_found(layout):
    config = layout.config("1.0.0")
    config["rootfs"]["diff_ids"][0] = "sha256:" + "0" * 64
    layout.config = lambda tag: config
    (found,) = layout.problems("1.0.0")
    assert "unpacks to sha256:" in found


def test_an_unknown_tag_is_told_with_those_there_are(layout):
    assert "no image '2.0'; it has: 1.0.0" in refused(layout.descriptor, "2.0")


def test_a_digest_is_no_path(layout):
    assert "is no SHA-256 digest" in refused(layout.blob_path, "sha256:../../etc/passwd")


@pytest.mark.parametrize("text", ["", "-x", ".x", "a b", "a/b", "a:b", "ä", "x" * 129])
def test_what_is_no_tag(text):
    assert "is no tag" in refused(checked_tag, text)


def test_what_is_made_need_not_be_made_again(layout):
    base = image_build.Base("bookworm", "amd64", ("python3",))
    tags = layout.tags()
    layout.tags = lambda: dict(tags, **{base.tag: tags["1.0.0"]})
    assert image_build.is_made(layout, "1.0.0", base, "inputs")
    assert not image_build.is_made(layout, "1.0.0", base, "other inputs")
    assert not image_build.is_made(layout, "2.0.0", base, "inputs")


def test_labels_that_disagree_with_the_content():
    said = {"treenail.levels": "x86-64 x86-64-v3", "treenail.python": "3.11",
            image_content.OCI + "revision": "0" * 40}
    assert list(image_verify.label_findings(said, {"treenail.python": "3.11"})) == []
    (found,) = image_verify.label_findings(said, {"treenail.levels": "x86-64"})
    assert found == ("the label treenail.levels is 'x86-64 x86-64-v3', the content says 'x86-64'")
    said[image_content.OCI + "revision"] = "the latest"
    (found,) = image_verify.label_findings(said, {})
    assert "neither a commit nor a digest" in found


def test_a_disk_without_room_is_told_before_anything_is_made(tmp_path, monkeypatch):
    usage = type("Usage", (), {"free": 5 << 20})
    monkeypatch.setattr(image_build.shutil, "disk_usage", lambda path: usage)
    text = refused(image_build.check_space, str(tmp_path), image_build.BASE_NEEDS)
    assert "has 5 MB free, and 2048 MB are needed" in text and "ci/image gc" in text


def test_scratch_is_removed_whatever_happens(layout):
    for error in (ValueError, KeyboardInterrupt):
        with pytest.raises(error):
            with image_build.scratch(layout) as folder:
                open(os.path.join(folder, "x"), "w", encoding="ascii").close()
                raise error
        assert not os.path.exists(folder)


def test_what_a_killed_build_left_is_removed(layout):
    abandoned = layout.path + ".making-x"
    os.mkdir(abandoned)
    image_build.remove_abandoned(layout)
    assert not os.path.exists(abandoned) and layout.exists()


# ---- the program ------------------------------------------------------------------------------


def program(*words, path=None):
    done = subprocess.run([sys.executable, PROGRAM, *words], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, encoding="utf-8", check=False,
                          env=dict(os.environ, **({"PATH": path} if path else {})))
    return done.returncode, done.stdout + done.stderr


def test_help_names_every_command():
    status, text = program("--help")
    assert status == 0
    for name in ("build", "list", "run", "verify", "export", "gc"):
        assert "\n    %s " % name in text and program(name, "--help")[0] == 0


def test_a_missing_program_is_told_with_its_package(layout, tmp_path):
    status, text = program("--layout", layout.path, "export", "1.0.0", str(tmp_path / "x.tar"),
                           path=str(tmp_path))
    assert status == 1 and "skopeo is not installed; " in text and "skopeo" in text.split("; ")[1]


def test_list_of_a_layout_and_of_none(layout, tmp_path):
    status, text = program("--layout", layout.path, "list", "--json")
    assert status == 0 and json.loads(text)[0]["levels"] == "x86-64"
    assert json.loads(text)[0]["tag"] == "1.0.0"
    assert "1.0.0  1.0.0    amd64" in program("--layout", layout.path, "list")[1]
    assert program("--layout", str(tmp_path / "none"), "list") == (
        0, "%s holds no images\n" % (tmp_path / "none"))


@pytest.mark.parametrize("words, status, text", [
    (["run", "--pids", "1", "1.0.0"], 125, "--pids is 1: at least 8"),
    (["--layout", "/tmp/a:b", "list"], 1, "with ':'"),
    (["export", "none", "/nonexistent/x.tar"], 1, "")])
def test_refusals(words, status, text):
    found, said = program(*words)
    assert found == status and text in said and "Traceback" not in said
