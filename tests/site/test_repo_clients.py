# SPDX-License-Identifier: Apache-2.0
"""apt and dnf themselves, without rights, on repositories of files: what they take and refuse."""

import os
import re
import shutil
import time

import pytest

pytest.importorskip("ansible", reason="Ansible is not installed")
from repository_attacks import APT, DNF, EXPIRED, OTHER_KEY  # noqa: E402
from repository_fixtures import AptClient, DnfClient, ThrowAwayKey  # noqa: E402
from test_repo import Server, apt, needs_tools, rpm  # noqa: E402  (the same fixtures)

pytestmark = [needs_tools, pytest.mark.skipif(
    not all(shutil.which(name) for name in ("apt-get", "dnf")),
    reason="apt or dnf is not installed")]
assert apt.KIND == "deb" and rpm.KIND == "rpm"


@pytest.fixture(scope="module", name="key")
def _key():
    key = ThrowAwayKey()
    yield key
    key.remove()


class Clients:
    """Makes a server of a format, and a client with the server's key or another one's."""

    def __init__(self, folder, key):
        self.folder, self.key, self.made = folder, key, []

    def server(self, form):
        return Server(self.folder / "server", form, self.key)

    def client(self, server, *channels):
        kind = {"deb": AptClient, "rpm": DnfClient}[server.form]
        self.made.append(kind(self.folder / ("client%d" % len(self.made)), "file://" + server.root,
                              channels or ("nightly",), self.key.public()))
        return self.made[-1]


@pytest.fixture(name="clients")
def _clients(tmp_path, key):
    clients = Clients(tmp_path, key)
    yield clients
    for client in clients.made:
        client.forget()


@pytest.mark.parametrize("form", ["deb", "rpm"])
def test_a_repository_as_published_is_taken(clients, form):
    server = clients.server(form)
    server.publish(server.make(), validity="1d")
    client = clients.client(server)
    client.refresh()
    client.fetch("tiny")
    assert client.versions("tiny") == [{"deb": "1", "rpm": "1-1"}[form]]


@pytest.mark.parametrize("form, attack", [
    pytest.param(form, attack, id="%s-%s" % (form, attack.what.replace(" ", "-")))
    for form, table in (("deb", APT), ("rpm", DNF)) for attack in table])
def test_what_was_tampered_with_is_refused(clients, form, attack):
    server = clients.server(form)
    original = server.make()
    server.publish(original)
    attack.change(os.path.join(server.root, form), clients.key, original)
    client = clients.client(server)
    if attack.late:
        client.refresh()
        text = client.fetch("tiny", status=None)
    else:
        text = client.refresh(status=None)
    assert re.search(attack.refusal, text), text
    assert not client.fetched("tiny")


@pytest.mark.parametrize("form", ["deb", "rpm"])
def test_the_signature_of_another_key_is_refused(clients, form):
    server = clients.server(form)
    client = clients.client(server)
    server.key = ThrowAwayKey("Other")
    try:
        server.publish(server.make())
        text = client.refresh(status=None)
    finally:
        server.key.remove()
    assert re.search(OTHER_KEY[form], text), text
    assert client.versions("tiny", status=None) == []


@pytest.mark.parametrize("form", ["deb", "rpm"])
def test_an_expired_nightly_is_refused_until_it_is_published_again(clients, form):
    server = clients.server(form)
    path = server.make()
    client = clients.client(server)
    server.publish(path, validity="1s")
    time.sleep(2.1)
    text = client.refresh(status=None)
    assert re.search(EXPIRED[form], text), text
    assert server.publish(path, validity="1d")["changed"]
    client.refresh()


@pytest.mark.parametrize("form", ["deb", "rpm"])
def test_release_and_nightly_side_by_side(clients, form):
    server = clients.server(form)
    server.publish(server.make("1"), channel="release", keep=0)
    server.publish(server.make("2"))
    both = clients.client(server, "release", "nightly")
    both.refresh()
    assert sorted(v[0] for v in both.versions("tiny")) == ["1", "2"]
    only = clients.client(server, "release")
    only.refresh()
    assert [v[0] for v in only.versions("tiny")] == ["1"]


def test_apt_takes_from_nightly_only_when_asked(clients):
    server = clients.server("deb")
    server.publish(server.make("1"), channel="release", keep=0)
    server.publish(server.make("2"))
    client = clients.client(server, "release", "nightly")
    client.refresh()
    text = client.run("apt-cache", "policy", "tiny")
    assert re.search(r"Candidate: 1$", text, re.MULTILINE), text
    assert re.search(r" 2 100$", text, re.MULTILINE), text


def test_dnf_goes_back_to_an_earlier_nightly(clients):
    server = clients.server("rpm")
    server.publish(server.make("1"))
    server.publish(server.make("2"))
    client = clients.client(server)
    client.run("install", "tiny")
    assert "2-1" in client.run("list", "--installed", "tiny")
    client.run("downgrade", "tiny")
    assert "1-1" in client.run("list", "--installed", "tiny")


@pytest.mark.parametrize("attack", [attack for attack in DNF if attack.late],
                         ids=lambda attack: attack.what.replace(" ", "-"))
def test_dnf_refuses_a_package_where_the_key_is_known_already(clients, attack):
    """As on a host of the role repo, which imports the key: dnf has other words there."""
    server = clients.server("rpm")
    original = server.make()
    server.publish(original)
    client = clients.client(server)
    client.run("install", "tiny")
    client.run("remove", "tiny")
    attack.change(os.path.join(server.root, "rpm"), clients.key, original)
    client.refresh()
    text = client.fetch("tiny", status=1)
    assert re.search(attack.refusal, text), text
    assert not client.fetched("tiny")
