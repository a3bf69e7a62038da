# SPDX-License-Identifier: Apache-2.0
"""The role gpu and the module gpu_state: hosts with GPUs, without, and with half of what is needed.

No host is changed: apt is a fake that remembers, the driver a library made here, and the
interpreter of the session a script, but for the last test, which takes the build's.
"""

import os
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import yaml  # noqa: E402  (Ansible brings it)
from plays import ANSIBLE, play  # noqa: E402
sys.path.insert(0, os.path.join(ANSIBLE, "library"))
import gpu_state  # noqa: E402

TOP = os.path.dirname(ANSIBLE)
BUILD = os.environ.get("TREENAIL_BUILD_DIR") or os.path.join(TOP, "build")
pytestmark = pytest.mark.skipif(not shutil.which("ansible-playbook"),
                                reason="ansible-playbook is not installed")
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
DEBIAN = {"os_family": "Debian", "distribution": "Debian", "pkg_mgr": "apt",
          "service_mgr": "systemd"}
APT = '''#!/usr/bin/python3
"""Remembers what was installed."""
import os
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {"type": "list", "elements": "str"}, "state": {}},
                       supports_check_mode=True)
changed = False
for name in module.params["name"]:
    path = os.path.join(%r, name)
    wanted = module.params["state"] == "present"
    if os.path.exists(path) != wanted:
        changed = True
        if not module.check_mode:
            open(path, "w").close() if wanted else os.remove(path)
module.exit_json(changed=changed)
'''
DRIVER = r"""
#include <stddef.h>
#include <string.h>
int cuInit(unsigned flags) { return %(init)d; }
int cuDriverGetVersion(int* version) { *version = 12040; return 0; }
int cuDeviceGetCount(int* count) { *count = %(count)d; return 0; }
int cuDeviceGet(int* device, int number) { *device = number; return 0; }
int cuDeviceGetName(char* name, int length, int device) {
  strncpy(name, device == 0 ? "First GPU" : "Second GPU", length);
  return 0;
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) { *bytes = (size_t)80 << 30; return 0; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  *value = attribute == 75 ? (device == 0 ? 9 : 10) : 0;
  return 0;
}
"""
MARK = b"\x7fELF treenail-private-abi-1.0.0-%s\0"


class Host:
    """A host whose driver, libraries and Python are files below a folder."""

    def __init__(self, folder):
        self.folder = folder
        for name in ("installed", "library", "lib"):
            (folder / name).mkdir()
        (folder / "library/apt.py").write_text(APT % str(folder / "installed"))

    def driver(self, init=0, count=2):
        source = self.folder / "driver.c"
        source.write_text(DRIVER % {"init": init, "count": count})
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", self.folder / "lib/libcuda.so.1", source],
                       check=True)

    def session(self, text, status=0):
        """The interpreter, which says this whatever it is to run."""
        python = self.folder / "python"
        python.write_text("#!/bin/sh\ncat <<'END' >&%d\n%s\nEND\nexit %d\n" % (
            2 if status else 1, text, status))
        python.chmod(0o755)

    def treenail(self, core=b"0123456789ab", plugin=b"0123456789ab"):
        (self.folder / "lib/libtreenail.so.1").write_bytes(MARK % core)
        (self.folder / "lib/treenail-1/devices").mkdir(parents=True)
        if plugin:
            (self.folder / "lib/treenail-1/devices/libtreenail-cuda.so").write_bytes(MARK % plugin)

    def play(self, *words, facts=None, **variables):
        variables.setdefault("gpu__python", str(self.folder / "python"))
        return play(self.folder, "gpu", {"one": dict(LOCAL, **variables)}, *words,
                    facts=facts or DEBIAN, environment={
                        "ANSIBLE_LIBRARY": "%s:%s/library" % (self.folder / "library", ANSIBLE)})

    def installed(self):
        return sorted(os.listdir(self.folder / "installed"))

    def state(self):
        """What the module says in a process whose dynamic linker has the host's libraries."""
        program = ("import json, sys; sys.dont_write_bytecode = True; sys.path.insert(0, %r); "
                   "import gpu_state; print(json.dumps(gpu_state.gpu_state([%r])))" % (
                       os.path.join(ANSIBLE, "library"), str(self.folder / "lib")))
        done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, check=True,
                              env=dict(os.environ, LD_LIBRARY_PATH=str(self.folder / "lib")))
        return yaml.safe_load(done.stdout.decode())


@pytest.fixture(name="host")
def _host(tmp_path):
    return Host(tmp_path)


def messages(report, name):
    return [result.get("msg", "") for task, _, result in report.tasks if task == name]


# ---- the role ------------------------------------------------------------------------------------


def test_the_interface_says_what_the_defaults_are():
    def load(*parts):
        with open(os.path.join(ANSIBLE, "roles/gpu", *parts), encoding="utf-8") as stream:
            return yaml.safe_load(stream)
    options = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option.get("default") for name, option in options.items()} == load(
        "defaults/main.yml")


def test_a_host_with_a_gpu_gets_the_plugin_and_no_driver(host):
    host.session("a session computes on 1 GPU(s)")
    report = host.play(gpu__required=True)
    assert report.failure("one") == "" and host.installed() == ["libtreenail1-cuda"]
    assert report.changed("one") == ["Install the plugin"]
    assert host.play(gpu__required=True).changed("one") == []


def test_drivers_and_libraries_that_the_site_names(host):
    host.session("a session computes on 1 GPU(s)")
    host.play(gpu__driver_packages=["nvidia-driver"], gpu__library_packages=["libcufft-13-0"])
    assert host.installed() == ["libcufft-13-0", "libtreenail1-cuda", "nvidia-driver"]


@pytest.mark.parametrize("required", [False, True])
def test_a_host_without_says_what_is_missing_in_a_sentence(host, required):
    reason = "NVIDIA's driver is not there: libcuda.so.1: no such file"
    host.session("W log: something\n" + reason, 1)
    report = host.play(gpu__required=required)
    sentence = "one has no GPU for sessions: " + reason
    assert messages(report, "Say what is missing") == [sentence]
    assert report.failure("one") == (sentence if required else "")
    assert host.installed() == ["libtreenail1-cuda"]


def test_an_interpreter_that_is_not_there(host):
    said = messages(host.play(gpu__python="/nowhere/python"), "Say what is missing")
    assert len(said) == 1 and "/nowhere/python" in said[0]


def test_check_mode_changes_nothing_and_fails_for_nothing(host):
    report = host.play("--check", gpu__required=True, gpu__python="/nowhere/python")
    assert report.failure("one") == "" and host.installed() == []
    assert report.changed("one") == ["Install the plugin"]


def test_absent_removes_the_plugin_alone(host):
    host.session("a session computes on 1 GPU(s)")
    host.play(gpu__driver_packages=["nvidia-driver"])
    report = host.play(gpu__state="absent")
    assert report.changed("one") == ["Remove the plugin"] and host.installed() == ["nvidia-driver"]


def test_another_package(host):
    host.session("a session computes on 1 GPU(s)")
    host.play(gpu__package="treenail-gpu-of-the-site")
    assert host.installed() == ["treenail-gpu-of-the-site"]


@pytest.mark.parametrize("variables, facts, sentence", [
    ({"gpu__state": "maybe"}, DEBIAN, "value of gpu__state must be one of: present, absent"),
    ({"gpu__required": "perhaps"}, DEBIAN, "gpu__required"),
    ({}, dict(DEBIAN, os_family="Suse"), "one is of the family Suse: this role knows Debian and")])
def test_what_is_refused(host, variables, facts, sentence):
    assert sentence in host.play(facts=facts, **variables).failure("one")
    assert host.installed() == []


# ---- the module ----------------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc makes the driver of this test")
def test_what_the_driver_tells(host):
    host.driver()
    state = host.state()
    assert state["gpus"] == [
        {"name": "First GPU", "architecture": "90", "memory_mib": 81920},
        {"name": "Second GPU", "architecture": "100", "memory_mib": 81920}]
    assert state["architectures"] == ["90", "100"]
    assert (state["driver"]["cuda"], state["driver"]["problem"]) == ("12.4", "")


@pytest.mark.skipif(not shutil.which("gcc"), reason="gcc makes the driver of this test")
@pytest.mark.parametrize("init, count, problem", [
    (0, 0, "NVIDIA's driver finds no GPU"), (100, 0, "NVIDIA's driver finds no GPU"),
    (803, 1, "NVIDIA's driver cannot be used: its error 803")])
def test_a_driver_without_gpus(host, init, count, problem):
    host.driver(init, count)
    state = host.state()
    assert state["driver"]["problem"] == problem and state["gpus"] == []
    assert problem in state["problems"]


def test_no_driver(host):
    (host.folder / "lib/libcuda.so.1").write_text("no library")  # whatever this machine has
    state = host.state()
    assert state["driver"]["problem"].startswith("NVIDIA's driver is not there: ")
    assert state["problems"][:2] == ["libtreenail is not installed", state["driver"]["problem"]]


@pytest.mark.parametrize("plugin, sentence", [
    (b"", "the part of Treenail for NVIDIA GPUs is not installed"),
    (b"ba9876543210", "is of build 1.0.0-ba9876543210; "), (b"0123456789ab", "")])
def test_the_plugin_beside_the_library(host, plugin, sentence):
    host.treenail(plugin=plugin)
    state = host.state()
    assert state["libtreenail"] == {"path": str(host.folder / "lib/libtreenail.so.1"),
                                    "build": "1.0.0-0123456789ab"}
    found = [line for line in state["problems"] if "Treenail" in line or "build" in line]
    assert len(found) == bool(sentence) and sentence in "".join(found)


def test_libraries_by_their_sonames():
    files = {"libcublasLt.so.12": "/a/12", "libcublasLt.so.13": "/b/13", "libcufft.so": "/c",
             "libcudnn.so.9.1": "/d", "libcudnn_ops.so.9": "/e", "libcufftw.so.11": "/f"}
    assert gpu_state.libraries(files) == {"cublasLt": "/b/13", "cufft": "", "cudnn": ""}


@pytest.mark.parametrize("text, version", [
    ("NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5\nGCC version: gcc 12\n",
     "550.54.15"),
    ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build\n",
     "580.65.06"), ("something else\n", "")])
def test_the_version_of_the_kernels_module(tmp_path, text, version):
    (tmp_path / "version").write_text(text)
    assert gpu_state.kernel_version(str(tmp_path / "version")) == version
    assert gpu_state.kernel_version(str(tmp_path / "nowhere")) == ""


# ---- a session -----------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists(os.path.join(BUILD, "python3")), reason="there is no build")
@pytest.mark.parametrize("simulated", [False, True])
def test_the_program_that_opens_a_session(simulated):
    """Where the build has the plugin: on the simulated CUDA, and where the driver sees no GPU."""
    libraries = os.path.join(BUILD, "tests/cuda_sim")
    there = os.path.exists(os.path.join(BUILD, "lib/treenail-1/devices/libtreenail-cuda.so"))
    if simulated and not (there and os.path.exists(os.path.join(libraries, "libcuda.so.1"))):
        pytest.skip("the build has no simulated CUDA")
    done = subprocess.run(
        [os.path.join(BUILD, "python3"), os.path.join(ANSIBLE, "roles/gpu/files/sees_gpu.py")],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, check=False,
        env=dict(os.environ, **({"LD_LIBRARY_PATH": libraries} if simulated
                                else {"CUDA_VISIBLE_DEVICES": ""})))
    if simulated:
        assert done.returncode == 0 and done.stdout.startswith("a session computes on ")
    else:
        assert done.returncode == 1 and done.stderr.count("\n") == 1
        assert ("NVIDIA's driver" if there else "is not installed") in done.stderr
