# SPDX-License-Identifier: Apache-2.0
"""Test hosts of a proof: new ones each time."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "gen/tools"))
import stack_site  # noqa: E402  (the path must be set first)


def test_hosts_that_a_killed_proof_left_are_not_used_again(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(stack_site, "hosts", lambda *words: asked.append(words[0]))
    monkeypatch.setattr(stack_site, "check_machine", lambda: None)
    monkeypatch.setattr(stack_site, "need", lambda *_: None)
    with stack_site.Site(str(tmp_path / "proof"), "--chroot", "one"):
        assert asked == ["down", "up"]
    assert asked == ["down", "up", "down"]
