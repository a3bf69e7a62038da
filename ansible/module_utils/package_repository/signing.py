# SPDX-License-Identifier: Apache-2.0
"""The OpenPGP key that signs a repository: found, checked, used through gpg.

The key stays in its GNUPGHOME on the host that publishes. An agent that gpg starts for it ends
with the publication, unless one was there before.
"""

import contextlib
import time
from typing import NamedTuple

from ansible.module_utils.package_repository.process import RepositoryError, output

PROGRAMS = ("gpg", "gpgconf", "gpg-connect-agent")


class Key(NamedTuple):
    """A secret key: where it lies, and the fingerprint of its primary key."""

    home: str
    fingerprint: str

    def _gpg(self, *words):
        return ["gpg", "--homedir", self.home, "--batch", "--yes", "--no-tty", "--local-user",
                self.fingerprint, "--digest-algo", "SHA512", *words]

    def sign_clear(self, source, target):
        output(self._gpg("--clear-sign", "--output", target, source), what="sign " + source)

    def sign_detached(self, source, target, seconds=0):
        """An armoured signature; `seconds`: how long it is good, 0 for ever."""
        limit = ["--default-sig-expire", "seconds=%d" % seconds] if seconds else []
        output(self._gpg(*limit, "--armor", "--detach-sign", "--output", target, source),
               what="sign " + source)

    def public(self):
        """The public key, armoured."""
        return output(["gpg", "--homedir", self.home, "--batch", "--armor", "--export-options",
                       "export-minimal", "--export", self.fingerprint],
                      what="export the public key").decode()


def secret_keys(listing):
    """(fingerprint, validity, expiry, capabilities) of each primary key in gpg's --with-colons."""
    found, waiting = [], None
    for line in listing.splitlines():
        fields = line.split(":")
        if fields[0] == "sec":
            waiting = (fields[1], int(fields[6] or 0), fields[11])
        elif fields[0] == "fpr" and waiting:
            found.append((fields[9], *waiting))
            waiting = None
    return found


def chosen(listing, key_id, home, now):
    """The fingerprint of the one key there that can sign now."""
    keys = secret_keys(listing)
    if not keys:
        raise RepositoryError("there is no secret key '%s' in %s" % (key_id, home))
    if len(keys) > 1:
        raise RepositoryError("'%s' names %d secret keys in %s: give one whole fingerprint, %s" % (
            key_id, len(keys), home, " or ".join(key[0] for key in keys)))
    fingerprint, validity, expiry, capabilities = keys[0]
    if validity == "r":
        raise RepositoryError("the key %s is revoked" % fingerprint)
    if validity == "e" or 0 < expiry <= now:
        raise RepositoryError("the key %s expired on %s: prolong it, or sign with another one" % (
            fingerprint, time.strftime("%Y-%m-%d", time.gmtime(expiry))))
    if "S" not in capabilities:
        raise RepositoryError("the key %s cannot sign" % fingerprint)
    return fingerprint


@contextlib.contextmanager
def opened(home, key_id, now):
    """The key; afterwards the agent that was started for it ends."""
    connect = ["gpg-connect-agent", "--homedir", home, "--no-autostart", "/bye"]
    try:
        output(connect)
        running = True
    except RepositoryError:
        running = False
    try:
        try:
            text = output(["gpg", "--homedir", home, "--batch", "--with-colons",
                           "--list-secret-keys", key_id]).decode(errors="replace")
        except RepositoryError as reason:
            raise RepositoryError("there is no secret key '%s' in %s (%s)" % (
                key_id, home, reason)) from None
        yield Key(home, chosen(text, key_id, home, now))
    finally:
        if not running:
            output(["gpgconf", "--homedir", home, "--kill", "gpg-agent"], what="end gpg-agent")
