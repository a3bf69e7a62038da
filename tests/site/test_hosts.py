# SPDX-License-Identifier: Apache-2.0
"""ci/hosts, as far as it needs neither root nor a host: options, address ranges, the journal,
processes told apart, and the files it writes for other programs."""

import importlib.machinery
import importlib.util
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(TOP, "ci/site"))
import host_inventory  # noqa: E402  (the path must be set first)
import host_machine  # noqa: E402
import host_network  # noqa: E402
import host_slurm  # noqa: E402
import host_state  # noqa: E402
import host_trees  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("hosts", os.path.join(TOP, "ci/hosts"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("hosts", loader))
    loader.exec_module(module)
    return module


hosts = load()
CHROOT = {"name": "a", "kind": "chroot", "arch": "arm64", "root": "/s p/roots/a"}
SSH = {"name": "ssh1", "kind": "ssh", "arch": "amd64", "address": "10.77.0.2",
       "public": "ssh-ed25519 AAAA"}
SLURM = {"name": "login", "kind": "slurm", "arch": "amd64", "address": "10.77.0.3"}


# ---- options ---------------------------------------------------------------------------------


@pytest.mark.parametrize("words, message", [
    ([], "COMMAND"),
    (["up"], "say which hosts: --chroot NAME[:ARCH], --ssh N or --slurm N"),
    (["up", "--chroot", "Upper"], "'Upper' is no name for a host"),
    (["up", "--chroot", "a b"], "'a b' is no name for a host"),
    (["up", "--chroot", "../x"], "'../x' is no name for a host"),
    (["up", "--chroot", ""], "'' is no name for a host"),
    (["up", "--chroot", "ssh1"], "'ssh1' is no name for a host"),
    (["up", "--chroot", "all"], "'all' is no name for a host"),
    (["up", "--chroot", "stack"], "'stack' is no name for a host"),
    (["up", "--chroot", "arm64"], "'arm64' is no name for a host"),
    (["up", "--chroot", "a", "--chroot", "a:arm64"], "there is a host 'a' already"),
    (["up", "--chroot", "a:vax"], "unknown architecture 'vax'; known are amd64, arm64"),
    (["up", "--ssh", "-1"], "take a number of hosts"),
    (["up", "--ssh", "150", "--slurm", "51"], "200 together at most"),
    (["up", "--ssh", "two"], "invalid int value: 'two'"),
    (["up", "--ssh", "1", "--include", "a;b"], "a;b: that is no name of a package"),
    (["run", "a"], "say what to run: ci/hosts run HOST -- CMD"),
    (["run", "a", "--"], "say what to run: ci/hosts run HOST -- CMD"),
    (["link", "a", "sideways"], "invalid choice: 'sideways'"),
    (["upp"], "invalid choice: 'upp'")])
def test_bad_command_lines(words, message, capsys):
    with pytest.raises(SystemExit) as end:
        hosts.parse(words)
    assert end.value.code == 2 and message in capsys.readouterr().err


def test_command_lines():
    options = hosts.parse(["up", "--chroot", "a", "--chroot", "b:arm64", "--ssh", "2"])
    assert options.chroots == {"a": host_trees.native(), "b": "arm64"} and options.ssh == 2
    assert options.state == os.path.join(TOP, "build/hosts")
    assert hosts.parse(["run", "a", "--", "ls", "--", "-l"]).words == ["ls", "--", "-l"]
    assert hosts.parse(["run", "--state", "/s", "a", "ls", "-l"]).words == ["ls", "-l"]


def test_one_set_of_hosts_is_told_from_another():
    def asked(*words):
        return hosts.request(hosts.parse(["up", *words]))
    assert asked("--ssh", "1") == asked("--ssh", "1", "--base", "/elsewhere")
    for other in (["--ssh", "2"], ["--ssh", "1", "--bare"], ["--ssh", "1", "--internet"],
                  ["--ssh", "1", "--include", "gcc"], ["--ssh", "1", "--chroot", "a"]):
        assert asked("--ssh", "1") != asked(*other)


def program(*words, user=None, **options):
    return subprocess.run([os.path.join(TOP, "ci/hosts"), *words], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, universal_newlines=True,
                          user=user, **options)


def test_only_root_makes_hosts(tmp_path):
    if os.getuid() == 0:
        user = 65534
        # Asked as that user: root may read everything, and a tree below /root is root's alone.
        program_file = os.path.join(TOP, "ci/hosts")
        readable = ["test", "-r", program_file, "-a", "-x", program_file]
        if subprocess.run(readable, check=False, user=user).returncode:
            pytest.skip("the tree cannot be read by another user")
        tmp_path.chmod(0o777)
        for parent in list(tmp_path.parents)[:3]:
            parent.chmod(parent.stat().st_mode | 0o055)
    else:
        user = None
    done = program("up", "--ssh", "1", "--state", str(tmp_path / "s"), user=user)
    assert done.returncode == 1 and "only root can make hosts" in done.stdout
    assert not (tmp_path / "s").exists()


def test_nothing_is_up(tmp_path):
    done = program("status", "--state", str(tmp_path / "s"))
    assert done.returncode == 1 and "nothing is up in %s" % tmp_path in done.stdout
    done = program("down", "--state", str(tmp_path / "s"))
    assert done.returncode == 0 and "nothing is up in %s" % tmp_path in done.stdout
    done = program("run", "--state", str(tmp_path / "s"), "a", "--", "true")
    assert done.returncode == 1 and "no hosts are up in %s" % tmp_path in done.stdout
    assert not (tmp_path / "s").exists()


def test_help_names_every_command():
    text = program("--help").stdout
    for command in ("up", "down", "status", "run", "link"):
        assert "\n    %s " % command in text


# ---- addresses -------------------------------------------------------------------------------


def used(*texts):
    return {ipaddress.ip_network(text): "interface " + text for text in texts}


def test_the_first_free_range_is_taken():
    assert str(host_network.free_range("", {}, 3)) == "10.77.0.0/24"
    assert str(host_network.free_range("", used("10.77.0.0/24", "10.77.1.128/25"), 3)) == (
        "10.77.2.0/24")
    with pytest.raises(host_network.HostsError, match="no address range .* is free"):
        host_network.free_range("", used("10.0.0.0/8"), 3)


@pytest.mark.parametrize("asked, message", [
    ("10.1.2.0/24", "in use by interface 10.1.0.0/16; leave the option out"),
    ("10.9.0.1/24", "has host bits set"), ("10.9.0.0", "too few addresses for 3 hosts"),
    ("10.9.0.0/30", "too few addresses for 3 hosts"), ("lan", "--network lan: "),
    ("fd00::/64", "--network fd00::/64: ")])
def test_ranges_that_cannot_be(asked, message):
    with pytest.raises(host_network.HostsError, match=message):
        host_network.free_range(asked, used("10.1.0.0/16"), 3)


def test_a_range_that_was_asked_for():
    assert str(host_network.free_range("192.168.5.0/28", used("10.1.0.0/16"), 3)) == (
        "192.168.5.0/28")


# ---- processes and mounts --------------------------------------------------------------------


def test_a_number_used_again_is_another_process(tmp_path):
    child = subprocess.Popen(["sleep", "1000"])
    try:
        now = {"pid": child.pid, "start": host_machine.start_time(child.pid)}
        assert host_machine.is_running(now)
        earlier = dict(now, start=str(int(now["start"]) - 1))
        assert not host_machine.is_running(earlier)
        host_machine.end(earlier)
        assert child.poll() is None
        host_machine.end(now)
        assert child.wait() == -signal.SIGKILL and not host_machine.is_running(now)
    finally:
        child.kill()


def test_the_start_time_of_a_process_with_a_strange_name(tmp_path):
    (tmp_path / "7").mkdir()
    rest = " ".join(str(number) for number in range(4, 53))
    (tmp_path / "7/stat").write_text("7 (a) S 1 (x) S %s\n" % rest)
    assert host_machine.start_time(7, str(tmp_path)) == "22"
    (tmp_path / "7/stat").write_text("7 (a) Z %s\n" % rest)
    assert host_machine.start_time(7, str(tmp_path)) == ""
    assert host_machine.start_time(8, str(tmp_path)) == ""


def test_a_daemon_is_recorded_before_it_runs(tmp_path):
    marker = tmp_path / "ran"
    seen = []
    process = host_machine.started(
        ["sh", "-c", 'touch "$0"; exec sleep 1000', str(marker)],
        lambda entry: seen.append((entry, marker.exists())), str(tmp_path / "log"))
    try:
        assert seen == [(process, False)]
        while not marker.exists():
            assert host_machine.is_running(process)
    finally:
        host_machine.end(process)
    assert not host_machine.is_running(process)


def test_a_daemon_that_nobody_could_record_does_not_run(tmp_path):
    marker = tmp_path / "ran"
    seen = []

    def fail(entry):
        seen.append(entry)
        raise OSError("disk full")
    with pytest.raises(OSError):
        host_machine.started(["touch", str(marker)], fail, str(tmp_path / "log"))
    assert host_machine.ended(seen[0], 10) and not marker.exists()


def test_mounts_below_a_directory(tmp_path):
    info = tmp_path / "mountinfo"
    info.write_text("".join("20 1 0:2%d / %s rw - tmpfs tmpfs rw\n" % row for row in enumerate(
        ("/", "/a", "/a/b", "/ab", "/a/with\\040blank", "/a"))))
    assert host_machine.mounts_at("/a", str(info)) == ["/a", "/a/with blank", "/a/b", "/a"]
    assert host_machine.mounts_at("/c", str(info)) == []


@pytest.mark.parametrize("tries, patience", [(3, 10), (1000, 0)])
def test_what_the_kernel_has_not_let_go_of_is_unmounted_later(tries, patience, tmp_path,
                                                              monkeypatch):
    umount = tmp_path / "umount"
    umount.write_text('#!/bin/sh\nd=%s/tries; echo >> $d; [ $(wc -l < $d) -ge %d ] || '
                      '{ echo "umount: $1: target is busy."; exit 32; }\n' % (tmp_path, tries))
    umount.chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    monkeypatch.setattr(host_machine, "mounts_at", lambda path: [path])
    place = str(tmp_path / "place")
    if patience:
        host_machine.unmount(place, patience)
        assert (tmp_path / "tries").read_text() == "\n" * tries
    else:
        with pytest.raises(host_machine.HostsError, match="cannot be unmounted: .* is busy"):
            host_machine.unmount(place, patience)


def test_what_a_process_starts_while_it_is_ended_is_ended_too(monkeypatch):
    sweeps, killed = [[{"pid": 1}, {"pid": 2}], [{"pid": 3}], []], []
    monkeypatch.setattr(host_machine, "all_inside", lambda root: sweeps.pop(0))
    monkeypatch.setattr(host_machine, "end", lambda process: killed.append(process["pid"]))
    host_machine.end_all_inside("/x")
    assert killed == [1, 2, 3] and not sweeps


def test_a_missing_program_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(host_machine.shutil, "which", lambda *_args, **_words: None)
    for check in (host_slurm.check_programs, lambda: host_machine.need("ip", "iproute2")):
        with pytest.raises(host_machine.HostsError, match="is not installed; .*install"):
            check()


def test_too_little_room(tmp_path):
    with pytest.raises(host_machine.HostsError, match=r"a tree needs \d+ MB, and .* MB left"):
        host_machine.need_room(str(tmp_path), 10 ** 9, "a tree")


# ---- the state -------------------------------------------------------------------------------


def test_undoing_goes_backwards_and_removes_the_directory(tmp_path):
    state = host_state.State(str(tmp_path / "s"))
    with state.locked():
        outer = state.tree("outer")
        state.tree("outer", "inner")
        state.write("file", "text")
        state.save({"hosts": [CHROOT]})
        assert [entry["path"] for entry in state.entries()][0] == outer
        state.record("tree", path=state.at("hosts.json"))
        state.undo()
        assert state.load() == {}
    assert not os.path.exists(state.path)


def test_what_resists_stays_in_the_journal(tmp_path, monkeypatch):
    def refuse(entry):
        raise host_machine.HostsError("%s is busy" % entry["path"])
    monkeypatch.setitem(host_state.UNDO, "mount", refuse)
    state = host_state.State(str(tmp_path / "s"))
    with pytest.raises(host_machine.HostsError, match="/x is busy"), state.locked():
        state.tree("made")
        state.record("mount", path="/x")
        state.write("file", "text")
        state.undo()
    assert state.entries() == [{"kind": "mount", "path": "/x"}]
    assert not os.path.exists(state.at("made")) and not os.path.exists(state.at("file"))


def test_a_line_of_the_journal_that_was_cut_off(tmp_path):
    state = host_state.State(str(tmp_path))
    state.record("tree", path="/x")
    with open(state.at("journal"), "a", encoding="utf-8") as stream:
        stream.write('{"kind": "tr')
    assert state.entries() == [{"kind": "tree", "path": "/x"}]


def test_one_at_a_time(tmp_path):
    path = str(tmp_path / "s")
    with host_state.State(path).locked():
        with pytest.raises(host_machine.HostsError, match="another ci/hosts is at work"):
            with host_state.State(path).locked():
                pass


def test_somebody_elses_directory_is_left_alone(tmp_path):
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(host_machine.HostsError, match="is not empty, and ci/hosts did not make it"):
        with host_state.State(str(tmp_path)).locked():
            pass
    assert os.listdir(tmp_path) == ["thesis.tex"]


def test_processes_of_an_earlier_boot_are_not_looked_for(tmp_path):
    child = subprocess.Popen(["sleep", "1000"])
    try:
        entry = {"pid": child.pid, "start": host_machine.start_time(child.pid), "boot": "another"}
        host_state.UNDO["process"](entry)
        assert child.poll() is None
    finally:
        child.kill()
        child.wait()


def test_every_kind_of_resource_can_be_undone():
    """Each kind that is recorded anywhere in ci/site has its undoing."""
    folder = os.path.join(TOP, "ci/site")
    text = ""
    for leaf in os.listdir(folder):
        if leaf.startswith("host_") and leaf.endswith(".py"):
            with open(os.path.join(folder, leaf), encoding="utf-8") as stream:
                text += stream.read()
    import re
    assert set(re.findall(r'\.record\(\s*"(\w+)"', text)) == set(host_state.UNDO)


def test_unknown_host(tmp_path):
    state = host_state.State(str(tmp_path))
    state.save({"hosts": [CHROOT, SSH]})
    assert state.host("a") == CHROOT
    with pytest.raises(host_machine.HostsError, match="there is no host 'b' in .*; it has a, ssh1"):
        state.host("b")


# ---- files for other programs ----------------------------------------------------------------


def test_the_inventory_is_yaml_with_groups():
    yaml = pytest.importorskip("yaml")
    text = host_inventory.inventory([CHROOT, SSH, SLURM], "/s p/ssh_config", "/run/x/cp")
    groups = yaml.safe_load(text)["all"]["children"]
    assert set(groups) == {"chroot", "ssh", "amd64", "arm64", "stack"}
    assert set(groups["stack"]["children"]) == {"chroot", "ssh"}  # what site.yml builds on
    assert groups["chroot"]["hosts"] == {"a": {
        "ansible_connection": "community.general.chroot", "ansible_host": "/s p/roots/a",
        "ansible_python_interpreter": "/usr/bin/python3"}}
    assert groups["ssh"]["hosts"]["ssh1"]["ansible_host"] == "10.77.0.2"
    assert groups["ssh"]["hosts"]["ssh1"]["ansible_ssh_common_args"] == "-F '/s p/ssh_config'"
    assert groups["ssh"]["hosts"]["ssh1"]["ansible_control_path_dir"] == "/run/x/cp"
    assert set(groups["amd64"]["hosts"]) == {"ssh1"}  # Ansible does not reach the cluster's nodes
    assert yaml.safe_load(host_inventory.inventory([SLURM], "/c", "/cp")) == {"all": {}}


def test_ssh_reads_its_configuration(tmp_path):
    path = tmp_path / "config"
    path.write_text(host_inventory.ssh_config([CHROOT, SSH], "/s/key", "/s/known_hosts"))
    if shutil.which("ssh") is None:
        pytest.skip("there is no ssh")
    by_name, by_address = [subprocess.run(
        ["ssh", "-G", "-F", str(path), name], stdout=subprocess.PIPE, check=True,
        universal_newlines=True).stdout for name in ("ssh1", "10.77.0.2")]
    assert by_name.replace("host ssh1\n", "host 10.77.0.2\n") == by_address
    text = by_name.splitlines()
    for line in ("hostname 10.77.0.2", "user root", "identityfile /s/key",
                 "userknownhostsfile /s/known_hosts", "stricthostkeychecking true"):
        assert line in text
    assert host_inventory.known_hosts([CHROOT, SSH]) == "ssh1,10.77.0.2 ssh-ed25519 AAAA\n"


def test_the_configuration_of_slurm():
    text = host_slurm.configuration("/run/x", "10.0.0.2", {"node1": "10.0.0.3",
                                                           "node2": "10.0.0.4"}, 4, 1000)
    lines = text.splitlines()
    assert "SlurmctldHost=login(10.0.0.2)" in lines and "SlurmdSpoolDir=/run/x/spool/%n" in lines
    assert ("NodeName=node2 NodeAddr=10.0.0.4 Sockets=1 CoresPerSocket=4 RealMemory=1000 "
            "State=UNKNOWN") in lines
    assert lines[-1].startswith("PartitionName=all Nodes=node1,node2 ")
    assert not [line for line in lines if line.startswith(" ")]


def test_an_emulator_is_found_as_its_package_registers_it(tmp_path):
    line = ":qemu-aarch64:M::\\x7fELF:\\xff\\xff:/usr/libexec/x:OPF"
    (tmp_path / "qemu-aarch64-static.conf").write_text("# comment\n" + line + "\n")
    assert host_trees.emulator("aarch64", (str(tmp_path / "none"), str(tmp_path))) == line
    assert host_trees.emulator("s390x", (str(tmp_path),)) == ""


def test_facts_are_written_as_a_whole(tmp_path):
    state = host_state.State(str(tmp_path))
    assert state.load() == {}
    state.save({"hosts": [CHROOT]})
    assert state.load()["hosts"] == [CHROOT] and os.listdir(tmp_path) == ["hosts.json"]
    assert isinstance(json.loads((tmp_path / "hosts.json").read_text())["made"], int)
