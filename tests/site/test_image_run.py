# SPDX-License-Identifier: Apache-2.0
"""ci/image run: its options, the configuration that it gives to a container, and the choice of the
runtime, on made-up control groups. gen/site/image_proof.py runs programs in real containers."""

import fcntl
import json
import os
import sys

import pytest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(SOURCE, name) for name in (
    "ci/site", "gen/packaging", "gen/tools", "")]
import image_run  # noqa: E402  (the path must be set first)
from oci_layout import Layout  # noqa: E402
from package_build import Unusable  # noqa: E402


def refused(function, *arguments):
    with pytest.raises(Unusable) as caught:
        function(*arguments)
    return str(caught.value)


@pytest.mark.parametrize("text, expected", [
    ("512M", 512 << 20), ("512MiB", 512 << 20), ("1.5g", 3 << 29), ("67108864", 1 << 26),
    ("33000K", 33000 << 10)])
def test_memory(text, expected):
    assert image_run.parse_memory(text) == expected


@pytest.mark.parametrize("text", ["", "0", "31M", "-1G", "lots", "1P", "1e9"])
def test_no_memory(text):
    assert "at least 32M" in refused(image_run.parse_memory, text)


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "two", "100000"])
def test_no_cpus(text):
    assert "a number from 0.01 to" in refused(image_run.parse_cpus, text)


@pytest.mark.parametrize("text", ["0", "0:5", "5:0", "root", "", "-1", "1:2:3"])
def test_no_user(text):
    assert "nothing runs as root" in refused(image_run.parse_user, text)


def test_users():
    assert image_run.parse_user("1000") == (1000, 1000)
    assert image_run.parse_user("1000:100") == (1000, 100)


def test_binds(tmp_path):
    path = str(tmp_path)
    assert image_run.parse_bind(path) == (path, True)
    assert image_run.parse_bind(path + ":ro") == (path, False)
    assert "is no directory" in refused(image_run.parse_bind, path + "/none")


def job(**more):
    return image_run.Job(("true",), image_run.Limits(1 << 28, 1.5, 64), (1000, 1000), **more)


def test_a_directory_that_the_program_cannot_write(tmp_path):
    os.chmod(tmp_path, 0o755)
    if os.stat(tmp_path).st_uid == 1000:
        pytest.skip("this directory belongs to the container's user")
    text = refused(image_run.check_bind, job(bind=str(tmp_path)))
    assert "runs as 1000:1000" in text and "--user" in text and "may not write" in text
    image_run.check_bind(job(bind=str(tmp_path), writable=False))
    os.chmod(tmp_path, 0o700)
    assert "may not read" in refused(image_run.check_bind, job(bind=str(tmp_path), writable=False))
    image_run.check_bind(image_run.Job((), job().limits, (os.stat(tmp_path).st_uid, 5),
                                       str(tmp_path)))


def spec():
    """What umoci writes, in small."""
    return {"process": {"terminal": True, "args": ["python3"], "cwd": "/tmp", "env": ["A=1", "B=2"],
                        "capabilities": {"bounding": ["CAP_KILL"], "effective": ["CAP_KILL"]}},
            "root": {"path": "rootfs"}, "hostname": "umoci-default", "mounts": [],
            "linux": {"resources": {"devices": [{"allow": False, "access": "rwm"}]},
                      "namespaces": [{"type": "pid"}, {"type": "network"}, {"type": "mount"}]}}


def test_the_bundle_is_narrow():
    made = image_run.bundle_config(spec(), job(bind="/srv", writable=False, environment=("B=3",)),
                                   "/root-of-image", "treenail-7", swap=True)
    assert made["root"] == {"path": "/root-of-image", "readonly": True}
    process, resources = made["process"], made["linux"]["resources"]
    assert process["user"]["uid"] == 1000 and process["noNewPrivileges"]
    assert set(map(tuple, process["capabilities"].values())) == {()}
    assert process["env"] == ["A=1", "B=3"] and process["args"] == ["true"]
    assert process["cwd"] == "/data"
    assert {"type": "network"} in made["linux"]["namespaces"]
    assert resources["memory"] == {"limit": 1 << 28, "swap": 1 << 28}
    assert resources["cpu"] == {"quota": 150000, "period": 100000}
    assert resources["pids"] == {"limit": 64} and resources["devices"]
    assert [m["options"][-1] for m in made["mounts"] if m["destination"] == "/data"] == ["ro"]
    assert not made["linux"]["cgroupsPath"].startswith("/")


def test_the_hosts_network_only_on_request():
    made = image_run.bundle_config(spec(), job(network="host"), "/r", "g", swap=False)
    assert {"type": "network"} not in made["linux"]["namespaces"]
    assert made["linux"]["resources"]["memory"] == {"limit": 1 << 28}


MOUNTS_1 = """30 20 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu
31 20 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
32 20 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids
33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
MOUNTS_2 = "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"


def groups(root, mounts, cgroup, files):
    """A made-up /proc of process 7, and its control groups."""
    texts = dict({"proc/self/mountinfo": mounts, "proc/7/cgroup": cgroup}, **files)
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return image_run.not_in_force(7, image_run.Limits(1 << 28, 1.5, 64), str(root))


def version_1(**more):
    names_1 = {"memory": "memory/g/memory.limit_in_bytes", "quota": "cpu/g/cpu.cfs_quota_us",
               "period": "cpu/g/cpu.cfs_period_us", "pids": "pids/g/pids.max"}
    values = dict({"memory": "268435456\n", "quota": "150000\n", "period": "100000\n",
                   "pids": "64\n"}, **more)
    return {"sys/fs/cgroup/" + names_1[key]: value for key, value in values.items()}


CGROUP_1 = "4:memory:/g\n3:pids:/g\n1:cpu:/g\n0::/g\n"


def test_limits_in_force_by_version_1(tmp_path):
    assert groups(tmp_path, MOUNTS_1, CGROUP_1, version_1()) == ""


@pytest.mark.parametrize("more, text", [
    ({"memory": "9223372036854771712\n"}, "memory: the control group has '9223372036854771712'"),
    ({"quota": "-1\n"}, "CPUs: the control group has '-1 100000', not 150000 100000"),
    ({"pids": "max\n"}, "processes: the control group has 'max', not 64")])
def test_limits_not_in_force(tmp_path, more, text):
    assert text in groups(tmp_path, MOUNTS_1, CGROUP_1, version_1(**more))


def test_limits_in_force_by_version_2(tmp_path):
    files = {"sys/fs/cgroup/s/g/memory.max": "268435456\n", "sys/fs/cgroup/s/g/pids.max": "64\n",
             "sys/fs/cgroup/s/g/cpu.max": "150000 100000\n"}
    assert groups(tmp_path, MOUNTS_2, "0::/s/g\n", files) == ""


def test_no_controllers_anywhere(tmp_path):
    text = groups(tmp_path, MOUNTS_2, "0::/g\n", {})
    assert text.count("has 'no such limit'") == 3


def trial(tmp_path, monkeypatch, runtimes, problem):
    """The choice where each container has this problem, told its arguments."""
    class Fake(image_run.Container):
        def problem(self, limits):
            with open(os.path.join(self.bundle, "config.json"), encoding="utf-8") as stream:
                process = json.load(stream)["process"]
            assert not process["terminal"]
            return problem(process["args"])

    monkeypatch.setattr(image_run, "Container", Fake)
    return image_run.chosen_runtime(str(tmp_path), spec(), job().limits, "name", runtimes)


def test_why_no_runtime_will_do(tmp_path, monkeypatch):
    text = refused(trial, tmp_path, monkeypatch, ("no-such-runtime", "sh"),
                   lambda arguments: "cgroups in hybrid mode not supported")
    assert "no-such-runtime: not installed" in text and "sh: cgroups in hybrid mode" in text
    assert "256 MiB, 1.5 CPUs, 64 processes" in text


def test_which_runtime_and_why(tmp_path, monkeypatch):
    container, text = trial(tmp_path, monkeypatch, ("no-such-runtime", "sh"), lambda arguments: "")
    assert container.command[0] == "sh" and text == "sh (no-such-runtime: not installed)"
    assert json.loads((tmp_path / "config.json").read_text()) == spec()


def test_a_program_that_is_not_there_is_not_the_runtimes_fault(tmp_path, monkeypatch):
    text = refused(trial, tmp_path, monkeypatch, ("sh",),
                   lambda arguments: "" if arguments == ["true"] else "exec: not found")
    assert text == "python3 cannot be started: exec: not found"


def test_unpacked_roots_go_when_no_tag_names_them_and_nobody_uses_them(tmp_path):
    layout = Layout(str(tmp_path / "images"))
    layout.tags = lambda: {"1.0.0": {"digest": "sha256:named"}}
    for name in ("named", "unused", "used"):
        (tmp_path / "images.roots" / name).mkdir(parents=True)
    handle = os.open(tmp_path / "images.roots/used", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        assert image_run.remove_unused_roots(layout) == (1, 1)
        assert sorted(os.listdir(tmp_path / "images.roots")) == ["named", "used"]
    finally:
        os.close(handle)
    assert image_run.remove_unused_roots(layout) == (1, 0)


@pytest.mark.parametrize("text, expected", [
    ('a\ntime="2026" level=error msg="exec: \\"x\\": not found"\n', 'exec: "x": not found'),
    ("cgroups in hybrid mode\n", "cgroups in hybrid mode"), ("", "")])
def test_what_a_runtime_said(text, expected):
    assert image_run.spoken(text) == expected
