# SPDX-License-Identifier: Apache-2.0
"""The virtual environment on top of a stack: a wheel and a source distribution from the cache."""

import hashlib
import io
import os
import subprocess
import tarfile
import zipfile

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from plays import play  # noqa: E402  (Ansible first)
from stack_fixture import PAIR, made_stack  # noqa: E402

INIT = "/usr/share/lmod/lmod/init/bash"
META = "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n"


def wheel(folder, name, word):
    path = folder / (name + "-1.0-py3-none-any.whl")
    info = name + "-1.0.dist-info/"
    with zipfile.ZipFile(str(path), "w") as archive:
        archive.writestr(name + ".py", "WORD = %r\n" % word)
        archive.writestr(info + "METADATA", META % name)
        archive.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n"
                                         "Tag: py3-none-any\n")
        archive.writestr(info + "RECORD", "%s.py,,\n%sMETADATA,,\n%sWHEEL,,\n%sRECORD,,\n" % (
            name, info, info, info))
    return path


def sdist(folder, name, word):
    path = folder / (name + "-1.0.tar.gz")
    with tarfile.open(str(path), "w:gz") as archive:
        for leaf, text in ((name + ".py", "WORD = %r\n" % word), ("PKG-INFO", META % name), (
                "setup.py", "from setuptools import setup\nsetup(name=%r, version='1.0', "
                "py_modules=[%r])\n" % (name, name))):
            member = tarfile.TarInfo("%s-1.0/%s" % (name, leaf))
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def sources(*paths):
    return [{"cache": "%s 1.0 %s" % (path.name.partition("-")[0], hashlib.sha256(
        path.read_bytes()).hexdigest())} for path in paths]


def made(folder, packages):
    """Tasks that changed something, and what the venv's python says of the packages."""
    report = play(folder, "python", {"localhost": {
        "ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_become": False, "stack__prefix": str(folder / "stack"), "stack__builder": "root",
        "stack__cache": str(folder / "cache"), "stack__offline": True,
        "python__venv": str(folder / "venv"), "python__packages": packages}},
        facts={"ansible_os_family": "Debian"}, tasks_from="packages venv")
    assert not report.failure("localhost")
    done = subprocess.run(
        [str(folder / "stack/bin/stack-env"), str(folder / "venv/bin/python"), "-c",
         "import built, ready; print(built.WORD, ready.WORD)"], stdout=subprocess.PIPE, text=True,
        env={"PATH": "/usr/bin:/bin"}, check=True)
    return report.changed("localhost"), done.stdout.strip()


def test_packages_are_installed_once_and_again_where_the_file_is_another(tmp_path):
    if not os.path.exists(INIT):
        pytest.skip("Lmod is not installed")
    if subprocess.run(["/usr/bin/python3", "-I", "-c", "import setuptools, wheel"],
                      check=False, stderr=subprocess.DEVNULL).returncode:
        pytest.skip("python3-setuptools and python3-wheel are not installed")
    made_stack(str(tmp_path / "stack"), PAIR, INIT, {})
    cache, other = tmp_path / "cache", tmp_path / "cache" / "other"
    other.mkdir(parents=True)
    packages = sources(wheel(cache, "ready", "wheel"), sdist(cache, "built", "source"))
    assert made(tmp_path, packages) == (
        ["Let the builder have the place", "Make the virtual environment", "Install packages"],
        "source wheel")
    assert made(tmp_path, packages) == ([], "source wheel")
    packages[:1] = sources(wheel(other, "ready", "another"))
    os.rename(str(other), str(cache / packages[0]["cache"].split()[2]))
    assert made(tmp_path, packages) == (["Install packages"], "source another")
