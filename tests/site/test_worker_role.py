# SPDX-License-Identifier: Apache-2.0
"""The role worker: what it refuses, what a host gets, and that a second run changes nothing.

No host is changed: files go below a folder of the test, and systemctl and apt are fakes that
remember. Certificates are of an authority made here. Where there is a build, its treenail-worker
runs with what the role wrote, as a unit would run it. The proof `worker` runs the role where the
packages are installed: new, again, with renewed certificates, with other tasks, without any.
"""

import os
import pwd
import re
import shutil
import subprocess
import sys

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import yaml  # noqa: E402  (Ansible brings it)
from free_ports import free_ports  # noqa: E402
from plays import ANSIBLE, play  # noqa: E402
from worker_authority import Authority  # noqa: E402
sys.path.insert(0, os.path.join(ANSIBLE, "filter_plugins"))
import worker  # noqa: E402

TOP = os.path.dirname(ANSIBLE)
pytestmark = pytest.mark.skipif(
    not shutil.which("ansible-playbook") or not shutil.which("openssl"),
    reason="ansible-playbook or openssl is not installed")
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": "/usr/bin/python3"}
DEBIAN = {"os_family": "Debian", "distribution": "Debian", "pkg_mgr": "apt",
          "service_mgr": "systemd"}
JOBS = [{"name": "ps", "group": "all", "port": 2222, "options": {"cpus": 2}}]

SYSTEMCTL = """#!/bin/sh
cd %s || exit 1
case $1 in show|is-enabled) ;; *) echo "$*" >> calls;; esac
case $1 in
show)
  echo LoadState=loaded
  if [ -e "active $2" ]; then echo ActiveState=active; else echo ActiveState=inactive; fi;;
is-enabled) if [ -e "enabled $2" ]; then echo enabled; else echo disabled; exit 1; fi;;
enable) : > "enabled $2";;
disable) rm "enabled $2";;
start|restart) : > "active $2";;
stop) rm "active $2";;
esac
"""
APT = '''#!/usr/bin/python3
"""Remembers what was installed."""
import os
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({"name": {"type": "raw"}, "state": {}, "update_cache": {}},
                       supports_check_mode=True)
path = os.path.join(%r, "installed " + str(module.params["name"]))
changed = not os.path.exists(path)
if changed and not module.check_mode:
    open(path, "w").close()
module.exit_json(changed=changed)
'''
OWN = pwd.getpwuid(os.getuid()).pw_name


class Site:
    """Two hosts, the fakes that stand for theirs, and an authority."""

    def __init__(self, folder, authority):
        self.folder = folder
        self.state = folder / "state"
        for name in ("state", "bin", "library", "site"):
            (folder / name).mkdir()
        (folder / "bin/systemctl").write_text(SYSTEMCTL % self.state)
        (folder / "bin/systemctl").chmod(0o755)
        (folder / "library/apt.py").write_text(APT % str(self.state))
        (folder / "unit").write_text("")
        self.files = {}
        for host in ("one", "two"):
            self.files[host] = authority.signed(folder / "site", host)
        self.authority = str(folder / "site/authority.pem")
        shutil.copy(authority.certificate, self.authority)

    def host(self, name, **more):
        certificate, key = self.files[name]
        return dict(LOCAL, worker__jobs=JOBS, worker__certificate=certificate, worker__key=key,
                    worker__authority=self.authority, **more)

    def play(self, *words, hosts=None, **variables):
        hosts = hosts or {name: dict(self.host(name), **variables) for name in self.files}
        moved = {"_worker_folder": "etc/treenail", "_worker_units": "etc/systemd/system"}
        extra = [word for name, path in moved.items() for word in (
            "-e", "%s=%s/{{ inventory_hostname }}/%s" % (name, self.folder, path))]
        for name in self.files:
            (self.folder / name / "etc/systemd/system").mkdir(parents=True, exist_ok=True)
        return play(self.folder, "worker", hosts, "-e", "_worker_unit=%s/unit" % self.folder,
                    "-e", "_worker_owner=" + OWN,
                    *extra, *words, facts=DEBIAN, environment={
                        "ANSIBLE_LIBRARY": "%s:%s/library" % (self.folder / "library", ANSIBLE),
                        "PATH": "%s:%s" % (self.folder / "bin", os.environ["PATH"])})

    def calls(self):
        """What was asked of systemctl since the last time."""
        path = self.state / "calls"
        text = path.read_text() if path.exists() else ""
        path.write_text("")
        return sorted(text.replace("treenail-worker@", "").replace(".service", "").splitlines())

    def tree(self, host):
        """{path: (mode, text)} of the host's files."""
        top = self.folder / host / "etc"
        return {str(path.relative_to(top)): ("%o" % (path.stat().st_mode & 0o777),
                                             path.read_text())
                for path in top.rglob("*") if path.is_file()}


@pytest.fixture(scope="module", name="authority")
def _authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(name="site")
def _site(tmp_path, authority):
    return Site(tmp_path, authority)


def test_the_interface_says_what_the_defaults_are():
    def load(*parts):
        with open(os.path.join(ANSIBLE, "roles/worker", *parts), encoding="utf-8") as stream:
            return yaml.safe_load(stream)
    options = load("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert {name: option.get("default") for name, option in options.items()} == load(
        "defaults/main.yml")


def test_what_a_host_gets_and_that_it_is_kept(site):
    hosts = {"one": site.host("one")}
    report = site.play(hosts=hosts)
    assert report.failure("one") == ""
    name = "treenail-ps-0"
    files = site.tree("one")
    assert sorted(files) == sorted(
        ["treenail/%s.conf" % name,
         "systemd/system/treenail-worker@%s.service.d/credentials.conf" % name]
        + ["treenail/treenail.%s.pem" % kind for kind in ("authority", "certificate", "key")])
    place = "/run/credentials/treenail-worker@treenail-ps-0.service/"
    assert files["treenail/treenail-ps-0.conf"] == ("644", (
        "# Ansible managed\n# Of treenail-worker@treenail-ps-0, which is to be restarted after a "
        "change.\ncluster = ps=one:2222\njob = ps\ntask = 0\ncertificate = %scertificate\n"
        "key = %skey\nauthority = %sauthority\ncpus = 2\n" % (place, place, place)))
    assert "LoadCredential=key:%s/one/etc/treenail/treenail.key.pem\n" % site.folder in (
        files["systemd/system/treenail-worker@treenail-ps-0.service.d/credentials.conf"][1])
    with open(site.files["one"][1], encoding="utf-8") as stream:
        assert files["treenail/treenail.key.pem"] == ("600", stream.read())
    assert site.calls() == ["daemon-reload", "enable " + name, "start " + name]
    again = site.play(hosts=hosts)
    assert again.failure("one") == "" and again.changed("one") == [] and site.calls() == []


def test_with_a_user_of_its_own_certificates_are_renewed_without_a_restart(site, authority):
    # A user that there is: none is made here.
    extra = ["-e", "worker__user=nobody"] if os.getuid() == 0 else []
    hosts = {"one": site.host("one", worker__user=OWN)}
    assert site.play(*extra, hosts=hosts).failure("one") == ""
    files = site.tree("one")
    name = "treenail-ps-0"
    folder = "%s/one/etc/treenail/treenail." % site.folder
    assert ("certificate = %scertificate.pem\nkey = %skey.pem\nauthority = %sauthority.pem\n"
            % (folder, folder, folder)) in files["treenail/%s.conf" % name][1]
    drop_in = files["systemd/system/treenail-worker@%s.service.d/credentials.conf" % name][1]
    user = "nobody" if extra else OWN
    assert drop_in.endswith("[Service]\nUser=%s\n" % user) and "LoadCredential" not in drop_in
    key = site.folder / "one/etc/treenail/treenail.key.pem"
    assert key.owner() == user and files["treenail/treenail.key.pem"][0] == "600"
    site.calls()
    certificate, renewed = authority.signed(site.folder / "site", "one")
    hosts["one"].update(worker__certificate=certificate, worker__key=renewed)
    report = site.play(*extra, hosts=hosts)
    assert report.failure("one") == "" and len(report.changed("one")) == 1
    assert site.calls() == []  # neither restarted nor reloaded
    with open(renewed, encoding="utf-8") as stream:
        assert key.read_text() == stream.read() and key.owner() == user
    # Back to copies of root's files: a restart.
    hosts["one"]["worker__user"] = ""
    assert site.play(hosts=hosts).failure("one") == "" and key.owner() == OWN
    assert site.calls() == ["daemon-reload", "restart " + name]


# ---- with the program ------------------------------------------------------------------------

BUILD = os.path.abspath(os.environ.get("TREENAIL_BUILD_DIR", os.path.join(TOP, "build")))
PROGRAM = os.path.join(BUILD, "bin/treenail-worker")
# Three steps of gradient descent on a variable at ps, computed at worker: from whatever was there.
TRAINING = """
import sys
import treenail as tn
with tn.device("/job:ps/task:0"):
    v = tn.get_variable("v", initializer=tn.constant(8.0))
with tn.device("/job:worker/task:0"):
    change = 0.5 * v
step = v.assign_sub(change)
limit = tn.RunOptions(timeout_in_ms=60000)
config = tn.ConfigProto(credentials=sys.argv[2])
try:
    with tn.Session(sys.argv[1], config=config) as session:
        session.run(v.initializer, options=limit)
        for _ in range(3):
            value = session.run(step, options=limit)
    print("trained to", value)
except tn.errors.OpError as error:
    print(type(error).__name__, error)
"""


class Service:
    """A task as its unit runs it: systemd's part, the copies of its credentials, done here."""

    def __init__(self, site, host, name):
        place = "/run/credentials/treenail-worker@%s.service" % name
        copies = site.folder / ("copies of " + name)
        shutil.rmtree(copies, ignore_errors=True)
        copies.mkdir()
        top = site.folder / host / "etc"
        drop_in = (top / ("systemd/system/treenail-worker@%s.service.d/credentials.conf" % name))
        for kind, source in re.findall(r"^LoadCredential=(\w+):(.+)$", drop_in.read_text(),
                                       re.MULTILINE):
            shutil.copyfile(source, copies / kind)
            (copies / kind).chmod(0o440)
        config = copies / "conf"
        config.write_text((top / "treenail" / (name + ".conf")).read_text().replace(
            place, str(copies)))
        self.process = subprocess.Popen(
            [PROGRAM, "--config=%s" % config], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            encoding="utf-8", env=dict(os.environ, CREDENTIALS_DIRECTORY=str(copies)))
        line = self.process.stdout.readline()
        assert "listens at" in line, line

    def end(self):
        self.process.terminate()
        self.process.communicate(timeout=30)


def trained(target, folder, certificate, key, authority):
    """What a client with this certificate says of its training."""
    credentials = folder / "client"
    credentials.write_text("certificate = %s\nkey = %s\nauthority = %s\n" % (
        certificate, key, authority))
    os.chmod(key, 0o600)
    done = subprocess.run([os.path.join(BUILD, "python3"), "-c", TRAINING, target,
                           str(credentials)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          encoding="utf-8", check=False, timeout=100)
    return done.stdout


@pytest.mark.skipif(not os.path.exists(PROGRAM), reason="there is no build with gRPC")
def test_the_program_runs_what_the_role_wrote_before_and_after_a_renewal(site, authority):
    ports = free_ports(2)
    jobs = [{"name": name, "group": "all", "port": port}
            for name, port in zip(("ps", "worker"), ports)]
    names = ["treenail-ps-0", "treenail-worker-0"]
    alice = authority.signed(site.folder, "user:alice", "URI")
    stranger = Authority(site.folder / "foreign").signed(site.folder / "foreign", "user:alice",
                                                         "URI")

    def played():
        certificate, key = authority.signed(site.folder / "site", "localhost")
        report = site.play(hosts={"one": dict(
            site.host("one"), worker__jobs=jobs, worker__address="localhost",
            worker__certificate=certificate, worker__key=key)})
        assert report.failure("one") == ""
        return certificate

    target = "grpc://localhost:%d" % ports[1]
    for restarted in (False, True):
        with open(played(), encoding="utf-8") as stream:
            renewed = stream.read()
        assert ("restart " + names[0] in site.calls()) == restarted
        services = [Service(site, "one", name) for name in names]
        try:
            shown = subprocess.run(
                ["openssl", "s_client", "-connect", "localhost:%d" % ports[0], "-cert", alice[0],
                 "-key", alice[1]], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, encoding="utf-8", check=False, timeout=30).stdout
            assert renewed.strip() in shown
            assert trained(target, site.folder, *alice, site.authority) == "trained to 1.0\n"
            if not restarted:
                said = trained(target, site.folder, *stranger, site.authority)
                assert said.startswith("UnavailableError") and "may not accept" in said, said
        finally:
            for service in services:
                service.end()


def test_each_of_these_is_refused_in_a_sentence(site, authority):
    """All of them in one run, each on a host of its own, before anything changes there."""
    stranger = Authority(site.folder / "foreign").signed(site.folder / "foreign", "one")
    secret = str(site.folder / "secret.key")
    subprocess.run(["openssl", "pkey", "-in", site.files["one"][1], "-aes128", "-passout",
                    "pass:x", "-out", secret], check=True)
    other = site.files["two"]
    table = {
        "foreign": ({"worker__certificate": stranger[0], "worker__key": stranger[1]},
                    "is no certificate for one that .*authority.pem signed"),
        "name": ({"worker__certificate": other[0], "worker__key": other[1]},
                 "is no certificate for one that"),
        "key": ({"worker__key": other[1]}, "is not the unencrypted key of"),
        "secret": ({"worker__key": secret}, "is not the unencrypted key of"),
        "missing": ({"worker__key": "/nowhere.key"},
                    "worker__key is '/nowhere.key': give a file on the controller"),
        "plain": ({"worker__certificate": ""}, "or say worker__plain_text=true where nobody"),
        "none": ({"worker__jobs": []}, "worker__jobs is empty: say which groups"),
        "user": ({"worker__user": "root"}, "worker__user is 'root': give the name of a system "),
        "cluster": ({"worker__cluster": "a-b"}, "worker__cluster is 'a-b': give small letters"),
        "state": ({"worker__state": "gone"}, "value of worker__state must be one of")}
    hosts = {name: dict(site.host("one"), worker__address="one",
                        worker__jobs=[{"name": "ps", "group": "all", "port": 2000 + number,
                                       "tasks": 1}])
             for number, name in enumerate(table)}
    for name, (variables, _) in table.items():
        hosts[name].update(variables)
    # Each is the only one of its cluster.
    report = site.play("--check", "-e", "_worker_tried={{ worker__jobs | worker_tasks("
                       "{'all': [inventory_hostname]}, hostvars, worker__cluster) }}", hosts=hosts)
    for name, (_, sentence) in table.items():
        assert re.search(sentence, report.failure(name)), (name, report.failure(name))
        assert report.changed(name) == []


def test_another_family_is_refused(site):
    report = play(site.folder, "worker", {"suse": LOCAL}, facts={"os_family": "Suse"})
    assert report.failure("suse") == (
        "suse is of the family Suse: this role knows Debian and RedHat")


# ---- the tasks of a cluster ------------------------------------------------------------------

GROUPS = {"all": ["one", "two"], "some": ["two"]}


def told(jobs, addresses=None):
    return worker.tried(jobs, GROUPS, {host: ({"worker__address": addresses[host]} if addresses
                                              else {}) for host in GROUPS["all"]}, "c")


def test_the_cluster_follows_from_the_groups():
    found = told([{"name": "ps", "group": "some", "port": 1},
                  {"name": "worker", "group": "all", "port": 7, "tasks": 2}],
                 {"one": "10.0.0.1", "two": "[::2]"})
    assert found["refused"] == "" and worker.cluster_text(found["value"]) == (
        "ps=[::2]:1;worker=10.0.0.1:7,10.0.0.1:8,[::2]:7,[::2]:8")
    assert [(task["name"], task["host"]) for task in found["value"]] == [
        ("c-ps-0", "two"), ("c-worker-0", "one"), ("c-worker-1", "one"), ("c-worker-2", "two"),
        ("c-worker-3", "two")]


@pytest.mark.parametrize("change, sentence", [
    ({"group": "gone"}, "job ps is of the group gone, and the inventory has no host in it"),
    ({"port": 65535, "tasks": 2}, "job ps has port: 65535: give the port"),
    ({"port": "2222"}, "job ps has port: 2222: give the port"),
    ({"tasks": 0}, "job ps has tasks: 0: give how many"),
    ({"name": "a;b"}, "has the name 'a;b': give letters"),
    ({"options": {"task": 3}}, "the option task, which the role writes itself"),
    ({"options": {"cpus": "1\nplain-text = yes"}}, "without --, a line each"),
    ({"options": {"--cpus": 1}}, "without --, a line each"),
    ({"options": [1]}, "give a mapping"), ({"hosts": "all"}, "give name, group and port"),
    ({"name": "worker"}, "has the name worker twice"),
    ({"port": 3334}, r"c-ps-0 and c-worker-1 are both to listen at one:3334")])
def test_jobs_that_make_no_cluster(change, sentence):
    found = told([dict({"name": "ps", "group": "all", "port": 2222}, **change),
                  {"name": "worker", "group": "all", "port": 3333, "tasks": 2}])
    assert found["value"] == [] and re.search(sentence, found["refused"]), found


@pytest.mark.parametrize("address", ["a b", "one:2222", "a;b", "::1", ""])
def test_addresses_that_are_none(address):
    found = told([{"name": "ps", "group": "all", "port": 1}], {"one": address, "two": "two"})
    assert found["refused"] == ("worker__address of one is '%s': give a name or an address, an "
                                "IPv6 address in brackets" % address)


def test_the_example_of_an_inventory_is_one(tmp_path):
    """Its cluster, as ansible-inventory and the filter see it."""
    done = subprocess.run(
        ["ansible", "-i", os.path.join(ANSIBLE, "inventory/worker.yml"), "node2.example.org",
         "-m", "ansible.builtin.debug", "-a",
         "msg={{ (worker__jobs | worker_tasks(groups, hostvars, 'c')).value | worker_cluster }}"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
        cwd=ANSIBLE, env=dict(os.environ, ANSIBLE_CONFIG=os.path.join(ANSIBLE, "ansible.cfg"),
                              ANSIBLE_LOCAL_TEMP=str(tmp_path)))
    assert ("ps=server1.example.org:2222;worker=node1.example.org:2223,192.0.2.12:2223"
            in done.stdout), done.stdout
