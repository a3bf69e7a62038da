# SPDX-License-Identifier: Apache-2.0
"""An authority for tests and proofs, made by openssl: nothing that it signs is of use elsewhere."""

import os
import subprocess


def _openssl(*words):
    done = subprocess.run(["openssl", *map(str, words)], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    if done.returncode:
        raise AssertionError("openssl %s: exit status %d\n%s" % (words[0], done.returncode,
                                                                 done.stdout))


class Authority:
    """Signs certificates of hosts. `certificate`: its own, in PEM."""

    def __init__(self, folder):
        os.makedirs(folder, exist_ok=True)
        self.certificate, self.key = (os.path.join(folder, "authority." + kind)
                                      for kind in ("pem", "key"))
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                 "-nodes", "-days", 2, "-subj", "/CN=Authority of a test", "-keyout", self.key,
                 "-out", self.certificate)

    def signed(self, folder, name, kind="DNS"):
        """(certificate, key), new ones, for a host of this name; kind: IP where it is an
        address."""
        paths = [os.path.join(folder, name + end) for end in (".pem", ".key", ".csr", ".cnf")]
        certificate, key, request, extensions = paths
        with open(extensions, "w", encoding="utf-8") as stream:
            stream.write("subjectAltName=%s:%s\nextendedKeyUsage=serverAuth,clientAuth\n" % (
                kind, name))
        _openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                 "-subj", "/CN=" + name, "-keyout", key, "-out", request)
        _openssl("x509", "-req", "-in", request, "-days", 2, "-CA", self.certificate, "-CAkey",
                 self.key, "-CAcreateserial", "-extfile", extensions, "-out", certificate)
        return certificate, key
