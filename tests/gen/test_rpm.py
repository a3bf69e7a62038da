# SPDX-License-Identifier: Apache-2.0
"""RPM packages: what is said when something is wrong, and that the proofs can fail.

Nothing here reads rpm/ of the tree: an archive may lack it.
"""

import os
import shutil
import subprocess
import sys

import pytest
from small_tree import SOURCE

sys.path[:0] = [str(SOURCE / "gen" / "packaging"), str(SOURCE / "gen" / "tools")]
import chroots  # noqa: E402  (the path must be set first)
import rpm_packages  # noqa: E402
import rpm_proofs  # noqa: E402


@pytest.fixture
def packaging(tmp_path, monkeypatch):
    (tmp_path / "rpm").mkdir()
    (tmp_path / "VERSION").write_text("2.5.0\n")
    monkeypatch.setattr(rpm_packages, "SOURCE", str(tmp_path))
    monkeypatch.setattr(rpm_packages, "SPEC", str(tmp_path / "rpm" / "treenail.spec"))
    return tmp_path


def test_the_version_is_that_of_the_spec(packaging):
    spec = packaging / "rpm" / "treenail.spec"
    with pytest.raises(rpm_packages.Unusable, match="no RPM packaging"):
        rpm_packages.version()
    spec.write_text("Name: treenail\nVersion:   2.5.0\n")
    assert rpm_packages.version() == "2.5.0"
    spec.write_text("Name: treenail\nVersion:   2.4.0\n")
    with pytest.raises(rpm_packages.Unusable, match=r"2\.4\.0, VERSION says 2\.5\.0"):
        rpm_packages.version()


def fake(folder, name, script):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("#!/bin/sh\n" + script)
    (folder / name).chmod(0o755)


def test_lint_leaves_what_no_empty_field_explains(tmp_path, monkeypatch):
    fake(tmp_path / "bin", "rpmlint", "echo 'a.src: W: no-url-tag'\n"
         "echo 'a.x86_64: E: no-binary'\necho ' 1 packages and 1 specfiles checked; 1 errors'\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setitem(rpm_packages.IDENTITY_TAGS, "no-url-tag", ("HOMEPAGE", True))
    verdict, left = rpm_packages.lint([])
    assert "no-url-tag (HOMEPAGE)" in verdict and left == ["a.x86_64: E: no-binary"]
    monkeypatch.setitem(rpm_packages.IDENTITY_TAGS, "no-url-tag", ("HOMEPAGE", False))
    assert len(rpm_packages.lint([])[1]) == 2
    fake(tmp_path / "bin", "rpmlint", "echo Traceback\nexit 1\n")
    assert "Traceback" in rpm_packages.lint([])[1][0]


def test_a_failing_build_shows_the_end_of_its_log(tmp_path, capsys):
    log = tmp_path / "log"
    with pytest.raises(rpm_packages.Unusable, match="(?s)exit status 3; .*the very end"):
        rpm_packages.built(str(tmp_path), [["sh", "-c", "echo 'Executing(%build): x'; pwd"], [
            "sh", "-c", "echo the very end; exit 3"]], None, str(log))
    assert log.read_text().splitlines()[1:] == [str(tmp_path), "the very end"]
    assert capsys.readouterr().out == "Executing(%build): x\n"


def test_the_source_package_knows_no_path_of_the_build():
    source, binary = rpm_packages.commands("/some/where", ("docs",), (("_smp_build_ncpus", 7),),
                                           "/tree/rpm")
    assert not any("/some/where" in word for word in source) and source[-2] == "-bs"
    assert "_topdir /some/where" in binary and "_smp_build_ncpus 7" in binary
    assert source[-1] == binary[-1] == "/tree/rpm/treenail.spec" and binary[-2] == "-bb"


def test_packages_are_found_in_both_directories(tmp_path):
    for name in ("RPMS/x86_64/b.rpm", "SRPMS/a.src.rpm", "RPMS/noarch/c.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("12345")
    found = rpm_packages.made(str(tmp_path))
    assert [os.path.basename(path) for path in found] == ["a.src.rpm", "b.rpm"]


def test_what_a_removal_leaves_is_seen(tmp_path):
    """But not what rpm and dnf remember, nor what is temporary."""
    (tmp_path / "var/lib/rpm").mkdir(parents=True)
    (tmp_path / "tmp").mkdir()
    before = rpm_proofs.tree(str(tmp_path))
    (tmp_path / "var/lib/rpm/db").write_text("")
    (tmp_path / "tmp/x").write_text("")
    (tmp_path / "proc").mkdir()
    assert rpm_proofs.tree(str(tmp_path)) == before
    (tmp_path / "var/lib/left").mkdir()
    with pytest.raises(rpm_proofs.Failed, match="^removing left var/lib/left, took nothing and ch"):
        chroots.require_unchanged(before, rpm_proofs.tree(str(tmp_path)), "removing")


def test_what_a_removal_takes_or_changes_is_seen(tmp_path):
    for name in ("same", "changed", "taken"):
        (tmp_path / name).write_text("1")
    (tmp_path / "link").symlink_to("same")
    before = chroots.tree(str(tmp_path), ())
    chroots.require_unchanged(before, chroots.tree(str(tmp_path), ()), "nothing")
    (tmp_path / "changed").write_text("2")
    (tmp_path / "taken").unlink()
    (tmp_path / "same").chmod(0o700)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("changed")
    with pytest.raises(rpm_proofs.Failed, match="left nothing, took taken and changed changed, "
                                                "link, same$"):
        chroots.require_unchanged(before, chroots.tree(str(tmp_path), ()), "removing")


@pytest.mark.skipif(shutil.which("rpmbuild") is None, reason="there is no rpmbuild")
def test_an_older_release_of_a_package(tmp_path):
    """Its own release and that of siblings sink; other packages' do not."""
    spec = tmp_path / "x.spec"
    spec.write_text(
        "Name: x-libs\nVersion: 1.2\nRelease: 1\nSummary: x\nLicense: MIT\nBuildArch: noarch\n"
        "Requires: x-sib = 1.2-1\nRequires: other = 1.2-12\nProvides: thing = 7\n%description\nx\n"
        "%install\nmkdir -p %{buildroot}/usr/x\ntouch %{buildroot}/usr/x/f\n%files\n%dir /usr/x\n"
        "%attr(700,root,root) /usr/x/f\n")
    subprocess.run(["rpmbuild", "-bb", "--define", "_topdir %s" % tmp_path, str(spec)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (tmp_path / "older").mkdir()
    made = rpm_proofs.older(str(tmp_path / "RPMS/noarch/x-libs-1.2-1.noarch.rpm"),
                            str(tmp_path / "older"))
    assert os.path.basename(made) == "x-libs-1.2-0.noarch.rpm"

    def asked(*words):
        return subprocess.run(["rpm", "-qp", *words, made], check=True, text=True,
                              stdout=subprocess.PIPE).stdout.splitlines()
    assert {line for line in asked("--requires") if not line.startswith("rpmlib(")} == {
        "x-sib = 1.2-0", "other = 1.2-12"}
    assert asked("--provides") == ["thing = 7", "x-libs = 1.2-0"]
    assert [line.lstrip("0") for line in asked("--qf", "[%{FILEMODES:octal} %{FILENAMES}\\n]")] == [
        "100644 /usr/share/doc/x-libs/of-the-older-release", "40755 /usr/x", "100700 /usr/x/f"]


def test_a_variation_that_cannot_run_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(rpm_proofs, "wrappers", lambda topdir: (
        ("one", ["env", "A=1"]), ("two", ["sh", "-c", "echo no such right; exit 1"]),
        ("three", ["no-such-program-at-all"])))
    words, varied, not_run = rpm_proofs.usable_wrappers(str(tmp_path))
    assert words == ["env", "A=1"] and varied == ["one"]
    assert not_run[0] == "two (no such right)" and not_run[1].startswith("three (")


def test_different_packages_fail_the_proof(tmp_path, monkeypatch):
    results = [{"a.rpm": "1", "b.rpm": "2"}, {"a.rpm": "1", "b.rpm": "3"}]
    monkeypatch.chdir(tmp_path)
    fake(tmp_path / "bin", "rpmbuild", "")
    fake(tmp_path / "bin", "diffoscope", "echo differs > \"$2\"\nexit 1\n")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=os.pathsep)
    monkeypatch.setattr(rpm_packages, "require", lambda without: None)
    monkeypatch.setattr(rpm_proofs, "prepared", os.makedirs)
    monkeypatch.setattr(rpm_proofs, "usable_wrappers", lambda topdir: ([], [], ["user (why)"]))
    monkeypatch.setattr(rpm_proofs, "built_in", lambda topdir, *rest: results[
        os.path.basename(topdir) == "two"])
    with pytest.raises(rpm_proofs.Failed, match="1 of 2 differ: b.rpm"):
        rpm_proofs.rpm_reproducible()
    assert (tmp_path / "rpm-reproducible" / "b.rpm.txt").read_text() == "differs\n"
    results[1]["b.rpm"] = "2"
    assert "2 packages, the same bytes" in rpm_proofs.rpm_reproducible()
    assert "not run: user (why)" in rpm_proofs.rpm_reproducible()
