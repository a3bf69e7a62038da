# SPDX-License-Identifier: Apache-2.0
"""Servers that know their callers: certificates, tokens, and what each may do. docs/security.md."""

import os
import re
import subprocess
import time

import numpy as np
import pytest

import treenail as tn
from certificates import Authority, needs_openssl
from free_ports import free_ports

TOOL = os.path.join(os.environ.get("TREENAIL_BUILD_DIR", ""), "bin", "treenail-worker")
pytestmark = [needs_openssl,
              pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                 reason="this build has no gRPC")]
needs_tool = pytest.mark.skipif(not os.path.exists(TOOL),
                                reason="TREENAIL_BUILD_DIR names no build with gRPC")
LIMIT_S = 30


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """An authority with the certificates of a host and of users, and their credentials files."""
    authority = Authority(tmp_path_factory.mktemp("site"))
    for name, names in (("host", "DNS:localhost,IP:127.0.0.1"), ("alice", "URI:user:alice"),
                        ("bob", "URI:user:bob"), ("nameless", "")):
        authority.sign(name, names)
        authority.credentials(name)
    return authority


def credentials(site, name):
    return tn.ConfigProto(credentials=str(site.folder / (name + ".credentials")))


def a_server(site, **options):
    return tn.train.Server({"w": ["localhost:0"]},
                           credentials=str(site.folder / "host.credentials"), **options)


class Program:
    """treenail-worker as one task with the host's certificate."""

    def __init__(self, site, *options, authority=True):
        port, = free_ports(1)
        self.target = "grpc://localhost:%d" % port
        files = ["--certificate=%s" % (site.folder / "host.pem"),
                 "--key=%s" % (site.folder / "host.key")]
        if authority:
            files.append("--authority=%s" % site.certificate)
        self._process = subprocess.Popen(
            [TOOL, "--cluster=w=localhost:%d" % port, "--job=w", *files, *options],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def __enter__(self):
        assert "listens at" in self._process.stdout.readline()
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.communicate(timeout=LIMIT_S)


def opened(target, config):
    """A session at the target, with a graph of its own and a variable "v" in it."""
    graph = tn.Graph()
    with graph.as_default():
        graph.v = tn.get_variable("v", initializer=tn.constant(0.0))
        return tn.Session(target, graph=graph, config=config)


def refusal(target, config):
    """What the server says, as "class: text"."""
    with pytest.raises(tn.errors.OpError) as raised:
        opened(target, config)
    return "%s: %s" % (type(raised.value).__name__, raised.value)


def test_state_belongs_to_whom_the_certificate_names(site):
    server = a_server(site)
    sessions = {}
    for value, name in enumerate(("alice", "bob"), 1):
        sessions[name] = opened(server.target, credentials(site, name))
        sessions[name].run(sessions[name].graph.v.assign(value))
    for value, name in enumerate(("alice", "bob"), 1):
        with opened(server.target, credentials(site, name)) as again:
            assert again.run(again.graph.v) == value
    tn.Session.reset(server.target, config=credentials(site, "bob"))
    assert sessions["alice"].run(sessions["alice"].graph.v) == 1
    with pytest.raises(tn.errors.AbortedError):
        sessions["bob"].run(sessions["bob"].graph.v)
    with opened(server.target, credentials(site, "bob")) as again:
        with pytest.raises(tn.errors.FailedPreconditionError):
            again.run(again.graph.v)
    server.stop()


def test_whoever_is_unknown_is_told_so(site, tmp_path):
    server = a_server(site, open_to=["user:alice"])
    opened(server.target, credentials(site, "alice")).close()
    assert "PermissionDeniedError" in refusal(server.target, credentials(site, "bob"))
    said = refusal(server.target, credentials(site, "nameless"))
    assert "UnauthenticatedError" in said and "none was shown that has a name" in said
    only_authority = tmp_path / "reader"
    only_authority.write_text("authority = %s\n" % site.certificate)
    said = refusal(server.target, tn.ConfigProto(credentials=str(only_authority)))
    assert "UnavailableError" in said and "may not accept the other's certificate" in said
    other = Authority(tmp_path / "other", "other")
    other.sign("mallory", "URI:user:alice")
    other.credentials("mallory", authority=site.certificate)
    assert "may not accept" in refusal(server.target, credentials(other, "mallory"))
    # A server that another authority signed for is none.
    other.credentials("mallory")
    assert "may not accept" in refusal(server.target, credentials(other, "mallory"))
    opened(server.target, None).close()  # this process's own server
    server.stop()


@needs_tool
def test_a_certificate_of_another_host_is_refused(site):
    site.sign("elsewhere", "DNS:elsewhere.example")
    port, = free_ports(1)
    with subprocess.Popen(
            [TOOL, "--cluster=w=localhost:%d" % port, "--job=w",
             "--certificate=%s" % (site.folder / "elsewhere.pem"),
             "--key=%s" % (site.folder / "elsewhere.key"), "--authority=%s" % site.certificate],
            stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        said = refusal("grpc://localhost:%d" % port, credentials(site, "alice"))
        process.terminate()
    assert "UnavailableError" in said and "localhost" in said


def test_plain_text_and_encryption_do_not_mix(site):
    plain = tn.train.Server.create_local_server()
    assert "UnavailableError" in refusal(plain.target, credentials(site, "alice"))
    plain.stop()
    with Program(site) as program:
        assert "credentials are needed" in refusal(program.target, None)


def test_a_server_needs_what_it_is_to_know_callers_by(site, tmp_path):
    with pytest.raises(tn.errors.InvalidArgumentError, match="needs to know its callers"):
        path = tmp_path / "half"
        path.write_text("certificate = %s\nkey = %s\n" % (site.folder / "host.pem",
                                                          site.folder / "host.key"))
        tn.train.Server({"w": ["localhost:0"]}, credentials=str(path))
    with pytest.raises(tn.errors.InvalidArgumentError, match="needs a certificate"):
        path.write_text("authority = %s\n" % site.certificate)
        tn.train.Server({"w": ["localhost:0"]}, credentials=str(path))
    with pytest.raises(tn.errors.NotFoundError, match="no op \"Prnt\""):
        tn.train.Server({"w": ["localhost:0"]}, allow_ops=["Prnt"])
    with pytest.raises(tn.errors.InvalidArgumentError, match="did you mean \"sessions\""):
        tn.train.Server({"w": ["localhost:0"]}, limits={"session": 3})
    with pytest.raises(TypeError, match="allow_paths is a list of names"):
        tn.train.Server({"w": ["localhost:0"]}, allow_paths="/tmp")


@needs_tool
def test_tokens_over_tls(site, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text("cluster 0123456789abcdef0123\ncarol carolcarolcarolcarol\n")
    tokens.chmod(0o600)
    own = tmp_path / "own"
    own.write_text("carol carolcarolcarolcarol\n")
    own.chmod(0o600)
    (tmp_path / "carol").write_text("authority = %s\ntoken-file = own\n" % site.certificate)
    carol = tn.ConfigProto(credentials=str(tmp_path / "carol"))
    with Program(site, "--token-file=%s" % tokens, authority=False) as program:
        with opened(program.target, carol) as session:
            session.run(session.graph.v.assign(3.0))
            assert session.run(session.graph.v) == 3
            # A token that is taken away is one no more.
            tokens.write_text("cluster 0123456789abcdef0123\n")
            with pytest.raises(tn.errors.UnauthenticatedError, match="not one of them"):
                session.run(session.graph.v)
        said = refusal(program.target, carol)
        assert "UnauthenticatedError" in said and "carolcarol" not in said
    own.chmod(0o644)
    with pytest.raises(tn.errors.PermissionDeniedError, match="chmod 600"):
        opened("grpc://localhost:1", carol)


@needs_tool
def test_files_only_below_what_is_allowed(site, tmp_path):
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for directory in (inside, outside):
        directory.mkdir()
    (inside / "link").symlink_to(outside)
    with Program(site, "--allow-path=%s" % inside) as program:
        with opened(program.target, credentials(site, "alice")) as session:
            graph = session.graph
            with graph.as_default():
                saver = tn.train.Saver([graph.v])
                value = tn.convert_to_tensor(graph.v)
            session.run(graph.v.assign(7.0))
            saver.save(session, str(inside / "model"), write_meta_graph=False)
            session.run(graph.v.assign(0.0))
            saver.restore(session, str(inside / "model"))
            assert session.run(value) == 7
            for place in (outside / "model", inside / ".." / "outside" / "model",
                          inside / "link" / "model"):
                with pytest.raises(tn.errors.PermissionDeniedError, match="is not below"):
                    saver.save(session, str(place), write_meta_graph=False)
            assert not list(outside.iterdir())
            with graph.as_default():
                said = tn.Print(value, [value])
            with pytest.raises(tn.errors.PermissionDeniedError, match="--allow-ops=Print"):
                session.run(said)
    with Program(site, "--allow-ops=Print") as program:
        with opened(program.target, credentials(site, "alice")) as session:
            with session.graph.as_default():
                said = tn.Print(tn.constant(2.0), ["hello"])
                saver = tn.train.Saver([session.graph.v])
            assert session.run(said) == 2
            session.run(session.graph.v.initializer)
            with pytest.raises(tn.errors.PermissionDeniedError, match="--allow-path"):
                saver.save(session, str(inside / "more"), write_meta_graph=False)


@needs_tool
def test_what_plugins_bring_has_to_be_allowed_by_name(site):
    plugin = os.path.join(os.environ["TREENAIL_BUILD_DIR"], "tests/plugins/libtreenail-example.so")
    if not os.path.exists(plugin):
        pytest.skip("TREENAIL_BUILD_DIR names no build with the plugins of the tests")
    tn.load_op_library(plugin)
    for options, allowed in (([], False), (["--allow-ops=Cube"], True)):
        with Program(site, "--plugin=%s" % plugin, *options) as program:
            with opened(program.target, credentials(site, "alice")) as session:
                with session.graph.as_default():
                    x = tn.constant([2.0, -1.0])
                    y = tn.raw_ops.Cube(x=x)
                    other = tn.raw_ops.ZeroOut(x=x)
                if allowed:
                    assert session.run(y).tolist() == [8, -1]
                for refused in (other,) if allowed else (y, other):
                    with pytest.raises(tn.errors.PermissionDeniedError,
                                       match="--allow-ops=" + refused.op.type):
                        session.run(refused)

    def check(*options, environment=()):
        done = subprocess.run([TOOL, "--cluster=w=localhost:0", "--job=w", "--check", *options],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False, env={**os.environ, **dict(environment)}, timeout=LIMIT_S)
        return done.returncode, done.stdout + done.stderr
    status, said = check("--plugin=" + plugin, "--allow-ops=Cube")
    assert status == 0 and "plugins  %s\n" % plugin in said and " ZeroOut" in said
    status, said = check("--allow-ops=Cube")
    assert status == 2 and 'no op "Cube"' in said
    assert check("--allow-ops=Cube", environment={"TREENAIL_PLUGIN_PATH": plugin})[0] == 0
    status, said = check("--plugin=/nowhere/a.so")
    assert status == 2 and "/nowhere/a.so" in said
    status, said = check("--plugin=" + __file__)
    assert status == 1 and __file__ in said


@needs_tool
def test_bodies_of_functions_are_looked_into(site):
    with Program(site) as program:
        with opened(program.target, credentials(site, "alice")) as session:
            with session.graph.as_default():
                x = tn.constant(3.0)
                hidden = tn.cond(x > 1, lambda: tn.Print(x, ["secret"]), lambda: x)
            with pytest.raises(tn.errors.PermissionDeniedError, match="in function"):
                session.run(hidden)


def test_its_own_process_may_do_what_it_can_do(site, tmp_path):
    server = a_server(site)
    with opened(server.target, None) as session:
        with session.graph.as_default():
            saver = tn.train.Saver([session.graph.v])
            called = tn.py_func(lambda x: x * np.float32(2), [tn.constant(1.0)], tn.float32)
        session.run(session.graph.v.initializer)
        saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
        assert session.run(called) == 2
    server.stop()


def test_a_cluster_by_certificates_gives_the_bits_of_one_process(site, tmp_path):
    ports = free_ports(2)
    cluster = {"ps": ["localhost:%d" % ports[0]], "worker": ["localhost:%d" % ports[1]]}
    files = str(site.folder / "host.credentials")
    servers = [tn.train.Server(cluster, job, 0, credentials=files) for job in cluster]
    x = np.random.RandomState(1).randn(64, 32).astype(np.float32)
    results = []
    for target in ("", servers[1].target):
        graph = tn.Graph()
        with graph.as_default():
            with tn.device("/job:ps/task:0"):
                w = tn.get_variable("w", initializer=tn.constant(x.T.copy()))
            with tn.device("/job:worker/task:0"):
                loss = tn.reduce_sum(tn.tanh(tn.matmul(tn.constant(x), w)))
            train = tn.train.GradientDescentOptimizer(0.1).minimize(loss)
            config = credentials(site, "alice")
            config.allow_soft_placement = True
            with tn.Session(target, graph=graph, config=config) as session:
                session.run(w.initializer)
                for _ in range(3):
                    session.run(train)
                results.append(session.run(w))
    assert results[0].tobytes() == results[1].tobytes()
    for server in servers:
        server.stop()


@needs_tool
def test_certificates_and_revocations_are_read_again(site, tmp_path):
    for name in ("server", "dave"):
        site.sign(name, "DNS:localhost" if name == "server" else "URI:user:dave")
        site.credentials(name)
    lists = tmp_path / "lists"
    site.write_list(lists)
    port, = free_ports(1)
    target = "grpc://localhost:%d" % port
    process = subprocess.Popen(
        [TOOL, "--cluster=w=localhost:%d" % port, "--job=w",
         "--certificate=%s" % (site.folder / "server.pem"),
         "--key=%s" % (site.folder / "server.key"), "--authority=%s" % site.certificate,
         "--revoked=%s" % lists], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        process.stdout.readline()
        with opened(target, credentials(site, "dave")) as session:
            session.run(session.graph.v.initializer)
            site.revoke(site.folder / "dave.pem", lists)
            assert eventually(lambda: refused(target, credentials(site, "dave")))
            with pytest.raises(tn.errors.UnauthenticatedError, match="was revoked"):
                session.run(session.graph.v)
        opened(target, credentials(site, "alice")).close()
        # Another authority takes over: its certificate is there in a moment, and alice's is none.
        after = Authority(tmp_path / "after", "after")
        after.sign("server", "DNS:localhost")
        after.sign("erin", "URI:user:erin")
        after.credentials("erin")
        for end in ("key", "pem"):
            os.replace(after.folder / ("server." + end), site.folder / ("server." + end))
        before = site.certificate.read_bytes()
        try:
            site.certificate.write_bytes(after.certificate.read_bytes())
            assert eventually(lambda: not refused(target, credentials(after, "erin")))
        finally:
            site.certificate.write_bytes(before)
    finally:
        process.terminate()
        process.communicate(timeout=LIMIT_S)


def refused(target, config):
    try:
        opened(target, config).close()
    except (tn.errors.UnavailableError, tn.errors.UnauthenticatedError):
        return True
    return False


def eventually(holds):
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.2)
    return False


def test_one_takes_what_he_may_and_the_other_works_on(site):
    server = a_server(site, limits={"held_bytes": 4 << 20})
    assert server.held_bytes == {}
    sessions = {}
    for name in ("alice", "bob"):
        graph = tn.Graph()
        with graph.as_default():
            graph.x = tn.placeholder(tn.uint8, [None])
            graph.queue = tn.FIFOQueue(100, [tn.uint8])
            graph.put = graph.queue.enqueue([graph.x])
            graph.take = graph.queue.dequeue()
        sessions[name] = tn.Session(server.target, graph=graph, config=credentials(site, name))
    alice, bob = sessions["alice"], sessions["bob"]
    one = {alice.graph.x: np.zeros(1 << 20, np.uint8), bob.graph.x: np.zeros(1 << 10, np.uint8)}
    with pytest.raises(tn.errors.ResourceExhaustedError, match='the sessions of "user:alice" at '
                       r'/job:w/replica:0/task:0 hold 3\d{6} bytes and ask for 1048640 more; they '
                       'may hold 4194304'):
        for _ in range(10):
            alice.run(alice.graph.put, {alice.graph.x: one[alice.graph.x]})
            bob.run(bob.graph.put, {bob.graph.x: one[bob.graph.x]})
    for _ in range(5):
        bob.run(bob.graph.put, {bob.graph.x: one[bob.graph.x]})
    held = server.held_bytes
    assert held["user:alice"] > 3 << 20 > held["user:bob"] > 5 << 10
    assert alice.run(alice.graph.take).shape == (1 << 20,)
    alice.run(alice.graph.put, {alice.graph.x: one[alice.graph.x]})
    tn.Session.reset(server.target, config=credentials(site, "alice"))
    until = time.monotonic() + LIMIT_S
    while server.held_bytes["user:alice"] and time.monotonic() < until:
        time.sleep(0.01)
    assert server.held_bytes["user:alice"] == 0 and server.held_bytes["user:bob"] > 5 << 10
    server.stop()
    with pytest.raises(RuntimeError, match="does not run"):
        assert server.held_bytes


@needs_tool
def test_check_says_what_is_open_to_whom(site, tmp_path):
    def check(*options):
        return subprocess.run([TOOL, "--cluster=w=localhost:0", "--job=w", "--check", *options],
                              stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "the users and programs of this machine, without a password" in check()
    assert "files    none" in check()
    said = check("--certificate=%s" % (site.folder / "host.pem"),
                 "--key=%s" % (site.folder / "host.key"), "--authority=%s" % site.certificate,
                 "--open-to=user:alice,user:bob", "--allow-path=%s" % tmp_path,
                 "--allow-ops=Print", "--max-sessions=7", "--max-memory-bytes=1000")
    assert "user:alice, user:bob with a certificate that is signed by %s; encrypted" % (
        site.certificate) in said
    assert "files    below %s" % tmp_path in said
    assert re.search(r"^may run .* Print", said, re.MULTILINE)
    assert re.search(r"^refused .*PyFunc", said, re.MULTILINE)
    assert "sessions 7," in said and "memory 1000," in said
    assert re.search(r", held \d{6,}, ", said) and ", held none, " in check()
