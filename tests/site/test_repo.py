# SPDX-License-Identifier: Apache-2.0
"""The module package_repository: what a channel holds, and what is written when."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
import ansible.module_utils  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, HERE)
ansible.module_utils.__path__.append(os.path.join(TOP, "ansible/module_utils"))
import repository_fixtures as fixtures  # noqa: E402
from ansible.module_utils.package_repository import apt, publication, rpm  # noqa: E402
from ansible.module_utils.package_repository.process import RepositoryError  # noqa: E402
from ansible.module_utils.package_repository.publication import Package  # noqa: E402
from ansible.module_utils.package_repository.publish import (  # noqa: E402
    Request, published, queried)
from ansible.module_utils.package_repository.signing import chosen  # noqa: E402
from ansible.module_utils.package_repository.store import Store, digest, files_below  # noqa: E402

needs_tools = pytest.mark.skipif(
    not all(shutil.which(n) for n in apt.PROGRAMS + rpm.PROGRAMS + ("gpg", "rpmbuild")),
    reason="apt-utils, createrepo-c, rpm or gnupg is not installed")
FORMATS = [pytest.param(name, marks=needs_tools) for name in ("deb", "rpm")]
MAKE = {"deb": fixtures.deb, "rpm": fixtures.rpm}


@pytest.fixture(scope="module", name="key")
def _key():
    key = fixtures.ThrowAwayKey()
    yield key
    key.remove()


class Server:
    """A repository of one format below a folder of its own."""

    def __init__(self, folder, form, key):
        self.root, self.built = str(folder / "srv"), str(folder / "built")
        self.form, self.key = form, key

    def make(self, version="1", content="one", name="tiny"):
        return MAKE[self.form](self.built, name, version, content)

    def request(self, paths=(), **more):
        options = dict(
            root=self.root, format=self.form, channel="nightly", packages=fixtures.given(paths),
            source=self.built, promote=[], withdraw=[], replace=False, keep=3, validity="0",
            origin="Tiny", label="Tiny", description="Tiny packages",
            architectures=["amd64", "arm64"], gnupg_home=self.key.home,
            key_id=self.key.fingerprint)
        return Request(**dict(options, **more))

    def publish(self, *paths, now=None, dry=False, **more):
        return published(self.request(paths, **more), dry, now)

    def store(self):
        return Store(self.root, self.form, {"deb": apt, "rpm": rpm}[self.form].LINKS)

    def state(self, channel="nightly"):
        return self.store().current(channel)[1]

    def tree(self):
        return {name: digest(os.path.join(self.root, name)) for name in files_below(self.root)}

    def pool(self):
        return sorted(n for n in files_below(self.store().top) if n.startswith("pool/"))


@pytest.fixture(params=FORMATS, name="server")
def _server(request, tmp_path, key):
    return Server(tmp_path, request.param, key)


# ---- pure ------------------------------------------------------------------------------------


def package(version, content, name="a"):
    return Package((content * 64)[:64], "%s_%s_all.deb" % (name, version), name, version, "all")


ONE, TWO, THREE = package("1", "1"), package("2", "2"), package("3", "3")


def held(*given, keep=0, **more):
    result = publication.EMPTY
    for one in given:
        result = publication.following(result, one, keep, False, **more)
    return result


def names(holding):
    return [[holding.packages[digest].version for digest in one] for one in holding.sets]


@pytest.mark.parametrize("text, seconds", [("0", 0), ("", 0), ("90s", 90), ("30m", 1800),
                                           ("36h", 129600), ("7d", 604800), ("2w", 1209600)])
def test_duration(text, seconds):
    assert publication.duration(text) == seconds


@pytest.mark.parametrize("text", ["7", "d", "-1d", "1.5h", "7 d", "0d", "7d\n", "1y"])
def test_what_is_no_duration(text):
    with pytest.raises(RepositoryError, match="is no duration: give a number and one of s, m"):
        publication.duration(text)


def test_a_channel_keeps_the_newest_publications():
    assert names(held([ONE], [TWO], [THREE], keep=2)) == [["3"], ["2"]]
    assert names(held([ONE], [TWO], [THREE])) == [["3"], ["2"], ["1"]]


def test_the_same_again_is_the_same():
    assert held([ONE, TWO], [TWO, ONE]) == held([ONE, TWO])


def test_an_older_publication_again_is_the_newest():
    assert names(held([ONE], [TWO], [ONE])) == [["1"], ["2"]]


def test_nothing_given_changes_nothing():
    assert held([ONE], []) == held([ONE])


def test_other_contents_under_the_same_version_are_refused():
    with pytest.raises(RepositoryError, match="a 1 all is published already with other contents "
                                              r"\(111111111111, given 999999999999\): a new build "
                                              "needs a new version"):
        held([ONE], [package("1", "9")])


def test_other_contents_take_the_place_when_that_is_asked_for():
    after = publication.following(held([ONE, TWO]), [package("1", "9")], 0, True)
    assert names(after) == [["1"], ["2"]] and ONE.sha256 not in after.packages


def test_two_of_one_version_at_once_are_refused_even_then():
    with pytest.raises(RepositoryError, match="a 1 all is given twice with different contents"):
        publication.following(publication.EMPTY, [ONE, package("1", "9")], 0, True)


def test_withdrawn_packages_leave_every_publication():
    after = publication.following(held([ONE, TWO], [THREE]), [], 0, False,
                                  [ONE.sha256 + "  whatever", THREE.sha256])
    assert names(after) == [["2"]] and set(after.packages) == {TWO.sha256}


def test_promotion_takes_exactly_what_is_named():
    source = held([ONE, TWO])
    assert publication.promoted([TWO.sha256 + "  a_2_all.deb"], source, "nightly") == [TWO]
    assert publication.promoted([TWO.sha256.upper() + " *a_2_all.deb"], source, "nightly") == [TWO]


@pytest.mark.parametrize("line, message", [
    ("9" * 64 + "  a_9_all.deb", "nightly holds no package with the SHA-256 sum 9+ .a_9_all.deb"),
    (TWO.sha256 + "  a_1_all.deb", "is a_2_all.deb in the channel nightly, not a_1_all.deb"),
    ("a_2_all.deb", "does not begin with a SHA-256 sum of 64 hexadecimal digits"),
    ("", "does not begin with a SHA-256 sum")])
def test_what_promotion_refuses(line, message):
    with pytest.raises(RepositoryError, match=message):
        publication.promoted([line], held([ONE, TWO]), "nightly")


SEC = "sec:%s:3072:1:ABCDEF:1700000000:%s::u:::%s:::::::0:\nfpr:::::::::%s:\n"


@pytest.mark.parametrize("listing, message", [
    ("", "there is no secret key 'me' in /gpg"),
    (SEC % ("u", "", "scSC", "F" * 40) + SEC % ("u", "", "scSC", "E" * 40),
     "names 2 secret keys in /gpg: give one whole fingerprint, F+ or E+"),
    (SEC % ("e", "1700000000", "scSC", "F" * 40), "the key F+ expired on 2023-11-14"),
    (SEC % ("u", "1700000000", "scSC", "F" * 40), "the key F+ expired on 2023-11-14"),
    (SEC % ("r", "", "scSC", "F" * 40), "the key F+ is revoked"),
    (SEC % ("u", "", "cC", "F" * 40), "the key F+ cannot sign")])
def test_keys_that_cannot_be_used(listing, message):
    with pytest.raises(RepositoryError, match=message):
        chosen(listing, "me", "/gpg", 1800000000)


def test_the_fingerprint_of_the_primary_key_is_taken():
    listing = SEC % ("u", "", "scSC", "F" * 40) + "ssb:u:3072:1:AB:1::::::s:\nfpr:::::::::%s:\n" % (
        "A" * 40)
    assert chosen(listing, "me", "/gpg", 1800000000) == "F" * 40


@pytest.mark.parametrize("kind, file, wanted", [
    (apt, "a-b_1%3a2.0~x-1_amd64.deb", ("a-b", "1:2.0~x-1", "amd64")),
    (rpm, "python3-treenail-1.0.0-1.el9.x86_64.rpm", ("python3-treenail", "0:1.0.0-1.el9",
                                                      "x86_64"))])
def test_what_a_file_name_says(kind, file, wanted):
    assert kind.named("0" * 64, file)[2:] == wanted


@pytest.mark.parametrize("kind, file", [(apt, "a.deb"), (rpm, "a-1.noarch.rpm")])
def test_names_that_say_nothing(kind, file):
    with pytest.raises(RepositoryError, match=file + " is not called NAME"):
        kind.named("0" * 64, file)


# ---- written ---------------------------------------------------------------------------------


def test_the_second_publication_of_the_same_writes_nothing(server):
    path = server.make()
    assert server.publish(path)["reason"] == "first publication"
    before = server.tree()
    again = server.publish(path)
    assert not again["changed"] and again["reason"] == "" and server.tree() == before
    # The files may be gone from where they came: the pool has them.
    shutil.rmtree(server.built)
    assert not server.publish(source="", **{"packages": [
        {"file": os.path.basename(path), "sha256": again["packages"][0]["sha256"]}]})["changed"]
    assert server.tree() == before


@needs_tools
def test_an_epoch_that_the_file_name_lacks_is_kept(tmp_path, key):
    server = Server(tmp_path, "deb", key)
    path = server.make("1:2")
    given = os.path.join(server.built, "tiny_2_all.deb")
    os.rename(path, given)
    server.publish(given)
    assert not server.publish(given, source="")["changed"]
    assert [p["version"] for p in server.publish(given, source="")["packages"]] == ["1:2"]


def test_nothing_given_for_a_new_channel_publishes_nothing(server):
    result = server.publish()
    assert not result["changed"] and result["snapshot"] == "" and server.state() is None


def test_everything_can_be_withdrawn(server):
    path = server.make()
    server.publish(path)
    line = "%s  %s" % (digest(path), os.path.basename(path))
    assert server.publish(withdraw=[line])["packages"] == []
    assert server.state()["packages"] == {} and not server.publish(withdraw=[line])["changed"]


def test_nothing_of_the_given_files_changes(server):
    path = server.make()
    before = digest(path), os.stat(path).st_mtime_ns
    server.publish(path)
    assert (digest(path), os.stat(path).st_mtime_ns) == before


def test_check_mode_says_what_would_be_and_writes_nothing(server):
    result = server.publish(server.make(), dry=True)
    assert result["changed"] and result["diff"]["before"] == ""
    assert "tiny" in result["diff"]["after"]
    assert not os.path.exists(server.root)
    server.publish(server.make())
    before = server.tree()
    assert not server.publish(server.make(), dry=True)["changed"]
    assert server.publish(server.make("2"), dry=True)["reason"] == "other packages"
    assert server.tree() == before


def test_each_setting_makes_it_due(server):
    path = server.make()
    server.publish(path)
    for name, value, reason in (("origin", "Other", "another origin"),
                                ("architectures", ["arm64"], "another architectures"),
                                ("validity", "1d", "another valid for")):
        assert server.publish(path, dry=True, **{name: value})["reason"] == reason


def test_the_validity_is_renewed_when_half_of_it_is_over(server):
    path, now = server.make(), time.time()
    server.publish(path, validity="2d", now=now - 86300)
    assert not server.publish(path, validity="2d", now=now, dry=True)["changed"]
    result = server.publish(path, validity="2d", now=now + 200)
    assert result["reason"] == "renewal of the validity"
    assert result["valid_until"] == int(now + 200 + 2 * 86400)


def test_only_what_the_publications_kept_name_stays(server):
    for version in "12345":
        server.publish(server.make(version), keep=1)
    state = server.state()
    assert [p["version"].lstrip("0:")[0] for p in state["packages"].values()] == ["5"]
    # Two snapshots before the present one stay for slow clients, and so do their packages.
    assert len(server.pool()) == 3
    assert len(server.store().earlier("nightly")) == 3


def test_slow_clients_find_the_indices_that_they_know_of(server):
    server.publish(server.make("1"))
    folder, first = server.store().current("nightly")
    server.publish(server.make("2"))
    now, _ = server.store().current("nightly")
    assert now != folder and first["indices"]
    for name in first["indices"]:
        assert digest(os.path.join(now, name)) in name


def test_promotion_publishes_the_same_files_in_the_other_channel(server):
    old, new = server.make("1"), server.make("2")
    server.publish(old)
    server.publish(new)
    lines = ["%s  %s" % (digest(new), os.path.basename(new))]
    pool = server.pool()
    result = server.publish(channel="release", promote=lines, keep=0, source="")
    assert [p["file"] for p in result["packages"]] == [os.path.basename(new)]
    assert server.pool() == pool
    assert not server.publish(channel="release", promote=lines, keep=0, source="")["changed"]
    with pytest.raises(RepositoryError, match="nightly holds no package with the SHA-256 sum 0+"):
        server.publish(channel="release", promote=["0" * 64], keep=0)


def test_the_sums_that_are_published_are_those_of_the_newest_publication(server):
    server.publish(server.make("1"))
    new = server.make("2")
    server.publish(new)
    folder, _ = server.store().current("nightly")
    with open(os.path.join(folder, "SHA256SUMS"), encoding="utf-8") as stream:
        assert stream.read() == "%s  %s\n" % (digest(new), os.path.basename(new))


def test_a_query_names_what_the_pool_lacks(server):
    one, two = server.make("1"), server.make("2")
    assert queried(server.request([one, two]))["missing"] == [
        os.path.basename(path) for path in (one, two)]
    server.publish(one)
    assert queried(server.request([one]))["lacking"] == []
    assert queried(server.request([one, two]))["missing"] == [os.path.basename(two)]


def test_a_damaged_package_is_put_right_from_its_file_only(server):
    path = server.make()
    server.publish(path)
    place = os.path.join(server.store().top, server.pool()[0])
    good = digest(place)
    with open(place, "ab") as stream:
        stream.write(b"x")
    assert queried(server.request([path]))["missing"] == [os.path.basename(path)]
    with pytest.raises(RepositoryError, match="its file in .* is lost or damaged: give the package "
                                              "again, or withdraw it"):
        server.publish(path, source="")
    assert server.publish(path)["reason"].startswith("repair of pool/")
    assert server.form == "rpm" or digest(place) == good
    assert not server.publish(path)["changed"]


def test_a_damaged_index_is_put_right(server):
    path = server.make()
    server.publish(path)
    folder, state = server.store().current("nightly")
    with open(os.path.join(folder, state["indices"][0]), "ab") as stream:
        stream.write(b"x")
    assert server.publish(path)["reason"].startswith("repair of snapshots/nightly/")
    assert not server.publish(path)["changed"]


def test_a_file_that_changed_on_its_way_is_refused(server):
    path = server.make()
    request = server.request([path])
    with open(path, "ab") as stream:
        stream.write(b"\n")
    with pytest.raises(RepositoryError, match="has not the SHA-256 sum .* it changed on its way"):
        published(request, False)
    assert server.state() is None


def test_another_key_signs_everything_anew(server):
    server.publish(server.make("1"))
    server.publish(server.make("2"))
    other = fixtures.ThrowAwayKey("Other")
    try:
        result = server.publish(server.make("2"), gnupg_home=other.home, key_id=other.fingerprint,
                                source="")
        assert result["reason"] == "another fingerprint"
        assert result["fingerprint"] == other.fingerprint
        if server.form == "rpm":
            assert all(p["place"].split("/")[2].endswith(other.fingerprint[-16:].lower())
                       for p in server.state()["packages"].values())
    finally:
        other.remove()


def test_a_full_disk_is_seen_before_anything_is_written(server, monkeypatch):
    path = server.make()
    server.publish(path)
    before = server.tree()
    real = os.statvfs(server.root)
    monkeypatch.setattr(os, "statvfs", lambda _: type("Full", (), {
        "f_bavail": 256, "f_frsize": real.f_frsize}))
    with pytest.raises(RepositoryError, match=r"has 1 MB free and the packages need 17 MB: make "
                                              "room, or keep fewer publications"):
        server.publish(server.make("2"))
    assert server.tree() == before


def test_two_publications_at_once(server):
    path = server.make()
    server.publish(path)
    with server.store().locked():
        with pytest.raises(RepositoryError, match="another publication into .* is under way"):
            server.publish(server.make("2"))


# ---- interrupted -----------------------------------------------------------------------------

INTERRUPTED = """
import json, os, sys
os.environ["PUBLISHER"] = str(os.getpid())
import ansible.module_utils
ansible.module_utils.__path__.append(%r)
from ansible.module_utils.package_repository.publish import Request, published
published(Request(**json.load(sys.stdin)), False)
"""


@pytest.mark.parametrize("program", ["gpg", "indexer"])
@pytest.mark.parametrize("how", ["kill -KILL $PUBLISHER; sleep 1", "exit 3"])
def test_an_interrupted_publication_leaves_the_one_before(server, tmp_path, program, how):
    """The program that indexes, or the one that signs, kills the publisher or fails."""
    server.publish(server.make("1"))
    visible = server.store().current("nightly")
    name = {"gpg": "gpg", "indexer": {"deb": "apt-ftparchive", "rpm": "createrepo_c"}[
        server.form]}[program]
    fake = tmp_path / "bin" / name
    fake.parent.mkdir()
    # Keys are listed and exported as ever.
    fake.write_text('#!/bin/sh\ncase "$*" in *list-secret*|*--export*) exec %s "$@";; esac\n'
                    "%s\n" % (shutil.which(name), how))
    fake.chmod(0o755)
    request = server.request([server.make("2")])
    done = subprocess.run(
        [sys.executable, "-B", "-c", INTERRUPTED % os.path.join(TOP, "ansible/module_utils")],
        input=json.dumps(request._asdict()), encoding="utf-8", stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, check=False,
        env=dict(os.environ, PATH="%s:%s" % (fake.parent, os.environ["PATH"])))
    assert done.returncode == (-signal.SIGKILL if "KILL" in how else 1), done.stderr
    if "KILL" not in how:
        assert re.search(r"(status|signal) [1-9]", done.stderr)
    assert server.store().current("nightly") == visible
    assert server.store().damaged(*visible) == ""
    assert server.publish(server.make("2"))["reason"] == "other packages"
    assert not [n for n in server.tree() if ".new" in n]
