# SPDX-License-Identifier: Apache-2.0
"""The Ansible modules of the stack, used as functions: sources, steps, prefixes, what is pruned."""

import base64
import datetime
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import ssl
import subprocess
import tarfile
import threading
import xml.etree.ElementTree as ElementTree

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from ansible.errors import AnsibleFilterError  # noqa: E402
from plays import ANSIBLE  # noqa: E402
from stack_fixture import module, stack  # noqa: E402  (Ansible first)
from ansible.module_utils import pip_index  # noqa: E402  (which that makes findable)

source = module("library/stack_source.py")
step = module("library/stack_step.py")
state = module("library/stack_state.py")
unpack = module("library/stack_unpack.py")
commit = module("library/stack_commit.py")
prune = module("library/stack_prune.py")
publish = module("library/stack_publish.py")
share = module("library/stack_share.py")

DATA = b"an archive\n"
SUM = hashlib.sha256(DATA).hexdigest()
WRONG = "0" * 64


def wanted(kind="pypi", name="thing", version="1.0", sha256=SUM):
    return {"kind": kind, "name": name, "version": version, "sha256": sha256}


# ---- sources ---------------------------------------------------------------------------------


def test_a_file_put_into_the_cache_is_found_under_any_name(tmp_path):
    (tmp_path / "whatever.bin").write_bytes(DATA)
    path, _, changed = source.fetched("thing", [wanted()], str(tmp_path), offline=True)
    assert os.path.basename(path) == "whatever.bin" and not changed


def test_a_damaged_file_of_the_cache_is_not_taken(tmp_path):
    folder = tmp_path / SUM
    folder.mkdir()
    (folder / "thing-1.0.tar.gz").write_bytes(b"other bytes")
    with pytest.raises(source.Missing):
        source.fetched("thing", [wanted()], str(tmp_path), offline=True)
    assert [p.name for p in folder.iterdir()] == ["thing-1.0.tar.gz.damaged"]


def test_offline_and_not_there_says_what_to_do(tmp_path):
    with pytest.raises(source.Missing) as caught:
        source.fetched("thing", [wanted("deb"), wanted("pypi")], str(tmp_path), offline=True)
    text = str(caught.value)
    assert "thing 1.0 (sha256 %s) was found nowhere" % SUM in text
    assert "deb: not asked, for the play is offline" in text and "Put the file into" in text


class Index(http.server.BaseHTTPRequestHandler):
    """A package index with one project, in HTML or in JSON."""

    json = True
    secret = None  # user:password
    leads_to = None  # where its pages really are

    def do_GET(self):
        asked = self.headers.get("Authorization")
        if asked != (self.secret and "Basic " + base64.b64encode(self.secret.encode()).decode()):
            self.send_error(401)
            return
        if self.leads_to:
            self.send_response(302)
            self.send_header("Location", self.leads_to + self.path)
            self.end_headers()
            return
        if self.path == "/simple/thing/":
            files = [("thing-1.0.tar.gz", "/files/thing-1.0.tar.gz", SUM),
                     ("thing-0.9.tar.gz", "/files/nowhere", WRONG)]
            if self.json:
                body = json.dumps({"files": [{"filename": n, "url": u, "hashes": {"sha256": s}}
                                             for n, u, s in files]}).encode()
                kind = "application/vnd.pypi.simple.v1+json"
            else:
                body = "".join('<a href="%s#sha256=%s">%s</a>' % (u, s, n)
                               for n, u, s in files).encode()
                kind = "text/html"
        elif self.path == "/files/thing-1.0.tar.gz":
            body, kind = DATA, "application/octet-stream"
        else:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture()
def serve(tmp_path, monkeypatch):
    """Starts indexes with what a test wants of them; each call gives 127.0.0.1 and a port."""
    servers = []

    def started(context=None, handler=Index, **more):
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("H", (handler,), more))
        if context:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return "127.0.0.1:%d" % server.server_port

    for name in [name for name in os.environ if name.startswith("PIP_") or name == "NETRC"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    yield started
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture(params=["json", "html"])
def index(request, serve, monkeypatch):
    monkeypatch.setenv("PIP_INDEX_URL", "http://%s/simple" % serve(json=request.param == "json"))


def test_an_index_is_asked_and_the_cache_filled(index, tmp_path):
    path, origin, changed = source.fetched("thing", [wanted()], str(tmp_path))
    assert changed and origin["kind"] == "pypi"
    assert path == str(tmp_path / SUM / "thing-1.0.tar.gz")
    assert source.fetched("thing", [wanted()], str(tmp_path), offline=True)[2] is False
    assert sorted(p.name for p in tmp_path.iterdir()) == [SUM]


def test_another_checksum_names_both(index, tmp_path):
    with pytest.raises(source.Missing) as caught:
        source.fetched("thing", [wanted(sha256="1" * 64)], str(tmp_path))
    assert "1" * 64 in str(caught.value) and "thing-1.0.tar.gz has " + SUM in str(caught.value)


def test_the_next_source_is_tried(index, tmp_path, monkeypatch):
    def gone(*_):
        raise source.Missing("the repository is gone")

    monkeypatch.setitem(source.FETCH, "deb", gone)
    path, origin, _ = source.fetched("thing", [wanted("deb"), wanted("pypi")], str(tmp_path))
    assert origin["kind"] == "pypi" and os.path.exists(path)


def test_apt_is_asked_for_sources_where_it_has_packages_from(tmp_path):
    parts = tmp_path / "sources.list.d"
    parts.mkdir()
    (tmp_path / "sources.list").write_text(
        "# old\ndeb http://a.example x main\ndeb-src http://b.example x main\n")
    (parts / "d.sources").write_text(
        "Types: deb\nURIs: http://c.example\nSuites: x\nSigned-By: /k.gpg\n")
    (parts / "notes.txt").write_text("deb http://d.example x main\n")
    assert source.source_lists(str(tmp_path)) == {
        "sources.list": "deb-src http://a.example x main\ndeb-src http://b.example x main\n",
        "d.sources": "Types: deb-src\nURIs: http://c.example\nSuites: x\nSigned-By: /k.gpg\n"}


def test_apt_tells_addresses():
    text = "'http://a/x_1%2bds.dsc' x_1+ds.dsc 10 SHA256:ab\n'http://a/y' y 20 SHA256:cd\n"
    assert source.parse_uris(text) == [("http://a/x_1%2bds.dsc", "x_1+ds.dsc", "SHA256:ab"),
                                       ("http://a/y", "y", "SHA256:cd")]


URIS = [("http://a/t.dsc", "thing_2.0+ds-1.dsc", "SHA256:" + "d" * 64),
        ("http://a/o", "thing_2.0+ds.orig.tar.xz", "SHA256:" + "e" * 64),
        ("http://a/p", "thing_2.0+ds-1.debian.tar.xz", "SHA256:" + "f" * 64)]
RECORDS = ["Package: thing\nVersion: 1:1.0-1\nFiles:\n 0 1 thing_1.0-1.dsc\n",
           "Package: thing\nFiles:\n 0 1 thing_2.0+ds-1.dsc\nVersion: 1:2.0+ds-1"]


@pytest.mark.parametrize("kind, sha256", [("deb", "d" * 64), ("deb-orig", "e" * 64)])
def test_the_newest_source_package(kind, sha256, tmp_path, monkeypatch):
    monkeypatch.setattr(source, "source_uris", lambda name, cache: URIS)
    monkeypatch.setattr(source, "source_records", lambda name, cache: RECORDS)
    found = source.newest("thing", [wanted(kind)], str(tmp_path))
    assert (found["version"], found["sha256"]) == ("1:2.0+ds-1", sha256)  # as apt wants it


def test_the_newest_source_package_is_asked_for_anew(tmp_path, monkeypatch):
    """The cache keeps apt's lists, and a job keeps the cache."""
    offered = tmp_path / "offered"
    for name, text in (("apt-get", """case "$*" in
  *update) cp $OFFERED $OFFERED.lists ;;
  *) v=$(cat $OFFERED.lists)
    for f in $v-1.dsc $v.orig.tar.xz; do echo "'http://a/$f' thing_$f 1 SHA256:%s"; done
esac""" % SUM), ("apt-cache", """v=$(cat $OFFERED.lists)
printf 'Version: %s-1\\nFiles:\\n 0 1 thing_%s-1.dsc\\n' $v $v""")):
        (tmp_path / name).write_text("#!/bin/sh\n%s\n" % text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", "%s:%s" % (tmp_path, os.environ["PATH"]))
    monkeypatch.setenv("OFFERED", str(offered))
    monkeypatch.setattr(source, "source_lists", lambda: {"a.list": "deb-src http://a x main\n"})
    for version in "1.0", "2.0":
        offered.write_text(version)
        found = source.newest("thing", [wanted("deb")], str(tmp_path / "cache"))
        assert found["version"] == version + "-1"


def test_the_newest_release_of_a_project(index, tmp_path):
    found = source.newest("thing", [wanted(version="0.9", sha256=WRONG)], str(tmp_path))
    assert (found["version"], found["sha256"]) == ("1.0", SUM)


@pytest.mark.parametrize("deb, pypi, chosen", [
    ("1:1.24.2-1+deb12u1", "2.0", "pypi"), ("1:2.0+ds-1", "1.26.4", "deb"),
    ("1:1.10-1", "1.9", "deb"), ("1.9-2", "1.9", "deb"), (None, "1.0", "pypi")])
def test_the_newest_of_all_sources(tmp_path, monkeypatch, deb, pypi, chosen):
    """A stable distribution has what it had; its epoch says nothing to others."""
    def of(version):
        def found(given, _):
            if version is None:
                raise source.Missing("apt has no source package thing")
            return dict(given, version=version)
        return found

    monkeypatch.setitem(source.NEWEST, "deb", of(deb))
    monkeypatch.setitem(source.NEWEST, "pypi", of(pypi))
    assert source.newest("thing", [wanted("deb"), wanted("pypi")], str(tmp_path))["kind"] == chosen


def test_a_source_without_versions_is_its_newest(tmp_path):
    given = [wanted("cache"), wanted("dist")]
    assert source.newest("thing", given, str(tmp_path)) == given[0]


def test_offline_the_newest_is_what_was_found_before(index, tmp_path, monkeypatch):
    given = [wanted(version="0.9", sha256=WRONG)]
    with pytest.raises(source.Missing, match="thing: the play is offline, and .*newest-thing.json"):
        source.newest("thing", given, str(tmp_path), offline=True)
    found = source.newest("thing", given, str(tmp_path))
    monkeypatch.setitem(source.NEWEST, "pypi", lambda *_: pytest.fail("the index is asked"))
    assert source.newest("thing", given, str(tmp_path), offline=True) == found


def test_the_original_archive_is_not_the_package(tmp_path, monkeypatch):
    monkeypatch.setattr(source, "source_uris", lambda name, cache: URIS)
    with pytest.raises(source.Missing, match="thing_2.0.ds.orig.tar.xz SHA256:e"):
        source.from_deb(wanted("deb-orig", sha256="d" * 64), str(tmp_path))


POOL = "/debian/pool/main/libt/libthing/"


class Mirror(http.server.BaseHTTPRequestHandler):
    """A mirror of Debian with the source packages that a test puts into `files`."""

    files = {}

    def do_GET(self):
        body = self.files.get(self.path)
        if body is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture()
def mirror(serve, monkeypatch):
    """Serves a source package on a machine without apt: (address, {path: content})."""
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.setattr(source, "APT_HELPER", "/nonexistent/apt-helper")
    more = {"libthing_1.0.orig.tar.gz": DATA, "libthing_1.0-2.debian.tar.xz": b"debian"}
    dsc = "Format: 3.0 (quilt)\nChecksums-Sha256:\n%sFiles:\n x 1 y\n" % "".join(
        " %s %d %s\n" % (hashlib.sha256(content).hexdigest(), len(content), name)
        for name, content in more.items())
    files = {POOL + name: content for name, content in more.items()}
    files[POOL + "libthing_1.0-2.dsc"] = dsc.encode()
    return "http://%s/debian/" % serve(handler=Mirror, files=files), files


@pytest.mark.parametrize("kind, dsc, kept", [
    ("deb", True, ["libthing_1.0-2.debian.tar.xz", "libthing_1.0-2.dsc",
                   "libthing_1.0.orig.tar.gz"]),
    ("deb-orig", False, ["libthing_1.0.orig.tar.gz"])])
def test_a_mirror_of_debian_is_asked_where_there_is_no_apt(mirror, tmp_path, kind, dsc, kept):
    address, files = mirror
    sha256 = hashlib.sha256(files[POOL + "libthing_1.0-2.dsc"]).hexdigest() if dsc else SUM
    path, _, changed = source.fetched(
        "thing", [wanted(kind, "libthing", "1:1.0-2", sha256)], str(tmp_path), mirror=address)
    assert changed and sorted(os.listdir(os.path.dirname(path))) == kept
    assert source.digest(path) == sha256


@pytest.mark.parametrize("change, words", [
    ({"libthing_1.0.orig.tar.gz": b"other"}, "orig.tar.gz came with the checksum SHA256:"),
    ({"libthing_1.0-2.dsc": b"Format: 3.0 (quilt)\n"}, "has not the checksum %s: none" % SUM),
    ({"libthing_1.0-2.dsc": None}, "libthing_1.0-2.dsc: 404 Not Found")])
def test_a_mirror_that_has_something_else_is_refused(mirror, tmp_path, change, words):
    address, files = mirror
    files.update({POOL + name: content for name, content in change.items()})
    with pytest.raises(source.Missing) as caught:
        source.fetched("thing", [wanted("deb-orig", "libthing", "1.0-2")], str(tmp_path),
                       mirror=address)
    assert words in str(caught.value) and os.listdir(str(tmp_path)) == []


def test_without_apt_and_without_a_mirror_there_are_no_source_packages(mirror, tmp_path):
    with pytest.raises(source.Missing, match="deb: there is no apt-get on this machine"):
        source.fetched("thing", [wanted("deb")], str(tmp_path))


def test_pip_is_configured_by_files(tmp_path, monkeypatch):
    monkeypatch.delenv("PIP_INDEX_URL", raising=False)
    (tmp_path / "pip.conf").write_text("[global]\nindex-url = https://mirror.example/simple\n")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert pip_index.setting("index-url") == "https://mirror.example/simple"


def refused(cache):
    """What is said of an index that does not give the file."""
    with pytest.raises(source.Missing) as caught:
        source.fetched("thing", [wanted()], str(cache))
    return str(caught.value)


def test_an_index_with_a_password(serve, tmp_path, monkeypatch):
    place = serve(secret="me@home:a:b/c")
    monkeypatch.setenv("PIP_INDEX_URL", "http://me%%40home:a%%3Ab%%2Fc@%s/simple" % place)
    assert source.fetched("thing", [wanted()], str(tmp_path / "cache"))[2]
    for words in ("me:geheim", "me:geheim@geheim"):
        monkeypatch.setenv("PIP_INDEX_URL", "http://%s@%s/simple" % (words, place))
        text = refused(tmp_path / "other")
        assert "pypi: " in text and "%s: Unauthorized" % place in text and "geheim" not in text
    monkeypatch.setenv("PIP_INDEX_URL", "http://%s/simple" % place)
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login me@home password a:b/c\n")
    (tmp_path / ".netrc").chmod(0o600)
    assert source.fetched("thing", [wanted()], str(tmp_path / "other"))[2]


def test_a_password_stays_with_its_host(serve, tmp_path, monkeypatch):
    other = serve(secret=None).replace("127.0.0.1", "localhost")
    place = serve(secret="me:pw", leads_to="http://" + other)
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:pw@%s/simple" % place)
    assert source.fetched("thing", [wanted()], str(tmp_path))[2]


def test_a_password_goes_along_within_its_host(serve, tmp_path, monkeypatch):
    class Moved(Index):
        def do_GET(self):
            self.leads_to = "" if self.path.startswith("/new/") else "/new"
            self.path = self.path.replace("/new/", "/")
            super().do_GET()

    place = serve(handler=Moved, secret="me:pw")
    monkeypatch.setenv("PIP_INDEX_URL", "http://me:pw@%s/simple" % place)
    assert source.fetched("thing", [wanted()], str(tmp_path))[2]


def test_a_further_index_is_asked_behind_the_first(serve, tmp_path, monkeypatch):
    first, further = serve(), serve()
    monkeypatch.setenv("PIP_INDEX_URL", "http://%s/nothing" % first)
    (tmp_path / "pip.conf").write_text(
        "[global]\nextra-index-url =\n    http://%s/simple\n" % further)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    assert source.fetched("thing", [wanted()], str(tmp_path / "cache"))[2]
    assert source.newest("thing", [wanted()], str(tmp_path / "cache"))["version"] == "1.0"
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://%s/no http://pw@[" % further)
    assert "an index that pip is told of: Invalid IPv6 URL" in refused(tmp_path / "other")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://%s/no" % further)
    text = refused(tmp_path / "other")
    assert "%s: Not Found; %s: Not Found" % (first, further) in text


def test_an_answer_that_breaks_off_is_refused(serve, tmp_path, monkeypatch):
    class Broken(Index):
        def end_headers(self):
            self.send_header("Content-Length", "9999")
            super().end_headers()

    place = serve(handler=Broken)
    monkeypatch.setenv("PIP_INDEX_URL", "http://%s/simple" % place)
    assert "%s: IncompleteRead" % place in refused(tmp_path)


def test_an_index_of_an_authority_that_only_pip_knows(serve, tmp_path, monkeypatch):
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key,
                    "-out", certificate, "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"
                    ], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    place = serve(context)
    monkeypatch.setenv("PIP_INDEX_URL", "https://%s/simple" % place)
    assert "%s: [SSL: CERTIFICATE_VERIFY_FAILED]" % place in refused(tmp_path / "none")
    for name, value in (("CERT", certificate), ("TRUSTED_HOST", "127.0.0.1"),
                        ("TRUSTED_HOST", "other.example " + place)):
        with monkeypatch.context() as more:
            more.setenv("PIP_" + name, value)
            assert source.fetched("thing", [wanted()], str(tmp_path / value.replace("/", "-")))[2]
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "nothing"))
    assert "pip is told cert = %s, which cannot be read" % (tmp_path / "nothing") in refused(
        tmp_path / "none")


# ---- steps -----------------------------------------------------------------------------------


def given(tmp_path, *commands, **more):
    found = {"component": "thing", "step": "build", "commands": list(commands),
             "chdir": str(tmp_path), "state": str(tmp_path / "state"),
             "environment": {"PATH": "/usr/bin:/bin"}, "junit": None, "quarantine": []}
    found.update(more)
    return found


def test_a_step_runs_once(tmp_path):
    words = given(tmp_path, "echo x >> ran")
    assert step.perform(words)["changed"] is True
    assert step.perform(words)["changed"] is False
    assert (tmp_path / "ran").read_text() == "x\n"


def test_other_commands_run_again(tmp_path):
    step.perform(given(tmp_path, "true"))
    assert step.perform(given(tmp_path, "true", "true"))["changed"] is True


def test_a_step_that_failed_runs_again_and_shows_its_end(tmp_path):
    result = step.perform(given(tmp_path, "echo the reason >&2", "false", "touch after"))
    assert result["failed"] and "thing: build failed with exit status 1" in result["msg"]
    assert "the reason" in result["msg"] and not (tmp_path / "after").exists()
    assert step.perform(given(tmp_path, "true"))["changed"] is True


@pytest.mark.parametrize("words, sentence", [
    ("ld: final link failed: No space left on device", "the disk is full"),
    ("g++: fatal error: Killed signal terminated program cc1plus", "want of memory")])
def test_well_known_reasons(tmp_path, words, sentence):
    assert sentence in step.perform(given(tmp_path, "echo '%s'; exit 1" % words))["msg"]


def test_a_command_does_not_follow_the_one_before(tmp_path):
    (tmp_path / "below").mkdir()
    step.perform(given(tmp_path, "cd below && touch a", "touch b"))
    assert (tmp_path / "below" / "a").exists() and (tmp_path / "b").exists()


def test_a_step_is_not_tried_when_the_one_before_failed(tmp_path):
    step.perform(given(tmp_path, "false", step="configure"))
    result = step.perform(given(tmp_path, "touch ran", after="configure"))
    assert "build was not tried, for configure failed" in result["msg"]
    assert not (tmp_path / "ran").exists()


def test_nothing_of_the_callers_environment_is_passed(tmp_path, monkeypatch):
    monkeypatch.setenv("CFLAGS", "-march=native")
    step.perform(given(tmp_path, "env > seen"))
    assert "CFLAGS" not in (tmp_path / "seen").read_text()


REPORT = """<testsuite><testcase classname="a" name="good"/>
<testcase classname="a" name="bad"><failure/></testcase></testsuite>"""
KNOWN = {"test": "a::b*", "reason": "x", "link": "https://bugs.example/1", "expires": "2999-01-01"}


def suite(tmp_path, quarantine, status=1):
    (tmp_path / "in.xml").write_text(REPORT)
    return step.perform(given(tmp_path, "cp in.xml out.xml; exit %d" % status, step="suite",
                              tests=True, junit=str(tmp_path / "out.xml"), quarantine=quarantine))


def test_a_failing_test_fails_the_step(tmp_path):
    assert "of 2 tests 1 failed that no quarantine knows: a::bad" in suite(tmp_path, [])["msg"]


def test_a_quarantined_failure_does_not(tmp_path):
    result = suite(tmp_path, [KNOWN])
    assert result["changed"] and result["tests"] == 2 and result["quarantined"] == ["a::bad"]


def test_a_quarantine_ends(tmp_path):
    text = suite(tmp_path, [dict(KNOWN, expires="2001-01-01")])["msg"]
    assert "its quarantine ended on 2001-01-01 (https://bugs.example/1)" in text


def test_a_suite_without_a_report_fails(tmp_path):
    result = step.perform(given(tmp_path, "exit 3", tests=True, junit=str(tmp_path / "none.xml")))
    assert result["failed"] and "exit status 3 and left no report" in result["msg"]


def test_a_suite_that_ended_badly_for_another_reason_fails(tmp_path):
    (tmp_path / "in.xml").write_text("<testsuite><testcase classname='a' name='good'/></testsuite>")
    result = step.perform(given(tmp_path, "cp in.xml out.xml; exit 3", tests=True,
                                junit=str(tmp_path / "out.xml")))
    assert result["failed"] and "exit status 3" in result["msg"]


UTEST = stack.stack_records(os.path.join(ANSIBLE, "roles"))["openblas"][
    "suite"]["build"]["short"]["cases"]


def tried(tmp_path, *commands, known=(), **more):
    return step.perform(given(tmp_path, *commands, step="suite", tests=True, quarantine=[
        dict(KNOWN, test=name) for name in known], **more))


def test_a_suite_without_a_report_is_as_many_tests_as_it_has_commands(tmp_path):
    """Each runs, whatever became of those before."""
    result = tried(tmp_path, "exit 3", "touch second", "touch  third")
    assert "of 3 tests 1 failed that no quarantine knows: exit 3" in result["msg"]
    assert (tmp_path / "third").exists()
    result = tried(tmp_path, "exit 3", "true", known=["exit *"])
    assert (result["tests"], result["quarantined"]) == (2, ["exit 3"])
    assert "no quarantine knows: false" in tried(tmp_path, "exit 3", "false",
                                                 known=["exit *"])["msg"]


def test_what_a_suite_says_of_its_tests(tmp_path):
    """As OpenBLAS's utest does; a program that ends badly for another reason is a failure, too."""
    says = "echo 'TEST 1/3 amax:samax [OK]'; echo 'TEST 2/3 rot:drot [FAIL]'; " \
        "echo 'TEST 3/3 a:b [SKIPPED]'; exit 1"
    assert "of 3 tests 1 failed that no quarantine knows: rot:drot" in tried(
        tmp_path, says, cases=UTEST)["msg"]
    result = tried(tmp_path, says, "true", cases=UTEST, known=["rot:*"])
    assert (result["tests"], result["quarantined"]) == (4, ["rot:drot"])
    well = "echo 'TEST 1/3 amax:samax [OK]'; exit 2"
    assert "of 2 tests 1 failed that no quarantine knows: echo" in tried(
        tmp_path, well, cases=UTEST)["msg"]


def cases(result):
    """{class::name: passed, or what failed or is skipped and why} of the report of a step."""
    root = ElementTree.parse(result["report"]).getroot()
    found, counts = {}, {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for suite_ in root.iter("testsuite"):
        counts = {key: counts[key] + int(suite_.get(key)) for key in counts}
    for case in root.iter("testcase"):
        other = [(node.tag, node.get("message")) for node in case if node.tag in (
            "failure", "error", "skipped")]
        found["%s::%s" % (case.get("classname"), case.get("name"))] = other[0] if other else "ok"
    said = [value[0] for value in found.values() if value != "ok"]
    assert list(counts.values()) == [len(found)] + [
        said.count(tag) for tag in ("failure", "error", "skipped")]
    return found


def test_the_report_of_a_suite_is_its_own(tmp_path):
    """What is known to fail is skipped there, so that it does not spoil what reads it."""
    for quarantine in ([], [dict(KNOWN, expires="2001-01-01")]):
        assert cases(suite(tmp_path, quarantine)) == {"a::good": "ok", "a::bad": ("failure", None)}
    assert cases(suite(tmp_path, [KNOWN])) == {"a::good": "ok", "a::bad": (
        "skipped", "failed, as known until 2999-01-01: x (https://bugs.example/1)")}


def test_a_suite_that_writes_none_gets_a_report(tmp_path):
    says = "echo 'TEST 1/2 amax:samax [OK]'; printf 'TEST 2/2 r\\001:d [FAIL]\\n'; exit 1"
    assert cases(tried(tmp_path, says, "touch a", "exit 4", cases=UTEST, known=["exit *"])) == {
        "thing::amax:samax": "ok", "thing::r?:d": ("failure", "the log says how"),
        "thing::touch a": "ok", "thing::exit 4": (
            "skipped", "failed, as known until 2999-01-01: x (https://bugs.example/1)")}


@pytest.mark.parametrize("command, words", [
    ("exit 3", "exit status 3 and left no report: "),
    ("echo '<testsuite/>' > out.xml", "of 0 tests 0 failed"),
    ("echo '<testsuite><testcase name=\"a\"/></testsuite>' > out.xml; exit 3",
     "thing: suite failed with exit status 3: of 1 tests 0 failed")])
def test_what_failed_beside_the_tests_is_in_the_report(tmp_path, command, words):
    found = cases(tried(tmp_path, command, junit=str(tmp_path / "out.xml")))
    tag, message = found.pop("thing::suite")
    assert tag == "failure" and words in message
    assert set(found.values()) <= {"ok"}


def test_only_tests_that_ran_now_have_a_report(tmp_path):
    assert "report" in tried(tmp_path, "true") and "report" not in tried(tmp_path, "true")
    assert "report" not in step.perform(given(tmp_path, "true"))
    assert "report" not in step.perform(given(tmp_path, "false"))


def test_a_suite_may_be_entered_through_a_program(tmp_path):
    result = tried(tmp_path, "test $VALUE = 7", through=["env", "VALUE=7"])
    assert result["tests"] == 1 and result["changed"]
    again = tried(tmp_path, "test $VALUE = 7", through=["env", "VALUE=8"])
    assert again["changed"] is False, "the way into it makes no other suite of it"


ENTRY = dict(KNOWN, component="low")


@pytest.mark.parametrize("change, words", [
    ({"expires": None}, "it has component, link, reason, test, and needs component, expires"),
    ({"note": "x"}, "it has component, expires, link, note"),
    ({"component": "lwo"}, "there is no component 'lwo'; there are low"),
    ({"link": "see mail"}, "link is 'see mail'; it must lead to"),
    ({"expires": "soon"}, "expires is 'soon'; it must be a day, as 2027-01-31")])
def test_a_quarantine_that_means_nothing_is_refused(change, words):
    entry = {key: value for key, value in dict(ENTRY, **change).items() if value is not None}
    with pytest.raises(AnsibleFilterError) as caught:
        stack.stack_quarantine({"failures": [ENTRY, entry]}, {"low": {}})
    assert words in str(caught.value) and "entry 2 (a::b*)" in str(caught.value)
    day = dict(ENTRY, expires=datetime.date(2999, 1, 1))  # as YAML reads it
    assert stack.stack_quarantine({"failures": [day]}, {"low": {}}) == [ENTRY]


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
