# SPDX-License-Identifier: Apache-2.0
"""An authority of the test's own, and what it signs: by the openssl program."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None,
                                   reason="needs the openssl program")


def _openssl(*arguments: object, given: str = "") -> None:
    done = subprocess.run(["openssl", *map(str, arguments)], input=given, capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


class Authority:
    """Signs certificates into `folder`: NAME.pem and NAME.key."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.certificate = folder / (name + ".pem")
        self._key = folder / (name + ".key")
        self._database = folder / (name + ".index")
        self._database.write_text("")
        self._settings = folder / (name + ".cnf")
        self._settings.write_text("[ca]\ndefault_ca = own\n[own]\ndatabase = %s\ncrlnumber = %s\n"
                                  "default_md = sha256\ndefault_crl_days = 7\n"
                                  % (self._database, folder / (name + ".number")))
        (folder / (name + ".number")).write_text("01\n")
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-days", 7, "-subj", "/CN=" + name, "-addext", "keyUsage=keyCertSign,cRLSign",
                 "-keyout", self._key, "-out", self.certificate)

    def sign(self, name: str, alternative_names: str, days: int = 7) -> Path:
        """The certificate's file. alternative_names: as "DNS:localhost,IP:127.0.0.1"; "": none."""
        key, request, made = (self.folder / (name + end) for end in (".key", ".csr", ".pem"))
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-subj", "/CN=" + name, "-keyout", key, "-out", request)
        extensions = self.folder / (name + ".ext")
        extensions.write_text("subjectAltName=%s\n" % alternative_names if alternative_names
                              else "basicConstraints=CA:FALSE\n")
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key,
                 "-CAcreateserial", "-days", days, "-extfile", extensions, "-out", made)
        key.chmod(0o600)
        return made

    def revoke(self, certificate: Path, directory: Path) -> None:
        """Its number goes into the authority's list in `directory`."""
        _openssl("ca", "-config", self._settings, "-cert", self.certificate, "-keyfile", self._key,
                 "-revoke", certificate)
        self.write_list(directory)

    def write_list(self, directory: Path) -> None:
        """The list of revoked certificates, as it is, into `directory`."""
        directory.mkdir(exist_ok=True)
        _openssl("ca", "-config", self._settings, "-cert", self.certificate, "-keyfile", self._key,
                 "-gencrl", "-out", directory / "list.pem")
        _openssl("rehash", directory)

    def credentials(self, name: str, **more: object) -> Path:
        """A credentials file of the certificate `name`; `more`: further lines, None: left out."""
        lines = {"certificate": name + ".pem", "key": name + ".key",
                 "authority": self.certificate, **more}
        path = self.folder / (name + ".credentials")
        path.write_text("".join("%s = %s\n" % (key.replace("_", "-"), value)
                                for key, value in lines.items() if value is not None))
        return path
