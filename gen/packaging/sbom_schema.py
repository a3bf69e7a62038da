# SPDX-License-Identifier: Apache-2.0
"""The proof `sbom-schema`: SPDX's own tools read the bills of materials and find nothing wrong.

They are spdx-tools from PyPI, in an environment of their own below the build. Besides their
validation, what they have read is written again and must be what was given: a property that the
schema does not know would be lost.
"""

import glob
import json
import os
import subprocess
import sys
import tempfile

from proving import TOOLS, Failed, NotRun, proof, run

HERE = os.path.dirname(os.path.abspath(__file__))

PACKAGE = "spdx-tools==0.8.5"
PARTS = ("runtime", "grpc", "openmpi", "mpich", "development", "tools", "worker", "python")
VALIDATE = """
import json, sys
from spdx_tools.spdx.jsonschema.document_converter import DocumentConverter
from spdx_tools.spdx.parser.error import SPDXParsingError
from spdx_tools.spdx.parser.parse_anything import parse_file
from spdx_tools.spdx.validation.document_validator import validate_full_spdx_document

def wrong(path):
    try:
        document = parse_file(path)
    except SPDXParsingError as error:
        return error.messages
    found = [m.validation_message for m in validate_full_spdx_document(document)]
    def ordered(value):
        if isinstance(value, dict):
            return {key: ordered(item) for key, item in value.items()}
        if isinstance(value, list):
            return sorted(map(ordered, value), key=lambda item: json.dumps(item, sort_keys=True))
        return value
    with open(path, encoding="utf-8") as stream:
        if ordered(json.load(stream)) != ordered(DocumentConverter().convert(document)):
            found.append("read and written again, it is another document")
    return found

print(json.dumps([wrong(path) for path in sys.argv[1:]]))
"""


def interpreter(fetch=True):
    """One that has spdx-tools; raises NotRun where PyPI is out of reach. fetch: from there, where
    this build does not have them yet."""
    folder = os.path.abspath("spdx-venv")
    python = os.path.join(folder, "bin/python")
    ready = os.path.join(folder, PACKAGE)
    if os.path.exists(ready):
        return python
    if not fetch:
        raise NotRun("%s is not here yet: the proof shipped-packages has it from PyPI" % PACKAGE)
    for command in ([sys.executable, "-m", "venv", "--clear", folder],
                    [python, "-m", "pip", "install", "-q", "--no-input",
                     "--disable-pip-version-check", PACKAGE]):
        try:
            done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  check=False, universal_newlines=True, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotRun(str(error)) from None
        if done.returncode:
            raise NotRun("%s cannot be had from PyPI: %s" % (PACKAGE, done.stdout.strip()[-300:]))
    with open(ready, "w", encoding="utf-8"):
        pass
    return python


def judged(python, paths):
    """What is wrong with each document."""
    return json.loads(run([python, "-c", VALIDATE, *paths]).splitlines()[-1])


def damaged(path, folder):
    """Copies with one slip each; were they accepted, the validation would show little."""
    def copy(name, change):
        with open(path, encoding="utf-8") as stream:
            document = json.load(stream)
        change(document)
        target = os.path.join(folder, name + ".spdx.json")
        with open(target, "w", encoding="utf-8") as stream:
            json.dump(document, stream)
        return target

    return [copy("unknown-property", lambda d: d["packages"][0].update(colour="red")),
            copy("no-licence", lambda d: d["files"][0].update(licenseConcluded="Free-As-Air")),
            copy("no-element", lambda d: d["relationships"][0].update(
                relatedSpdxElement="SPDXRef-Nowhere")),
            copy("no-hash", lambda d: d["files"][0]["checksums"][0].update(checksumValue="12"))]


@proof
def sbom_schema():
    """bills of materials of what is installed are valid SPDX 2.3 by SPDX's own tools, from PyPI"""
    python = interpreter()
    with tempfile.TemporaryDirectory() as scratch:
        root = os.path.join(scratch, "root")
        run([sys.executable, "-B", os.path.join(TOOLS, "install.py"), "--manifest",
             "gen/install.json"], environment={"DESTDIR": root})
        with open("gen/install.json", encoding="utf-8") as stream:
            there = {entry["package"] for entry in json.load(stream)["entries"]}
        for part in sorted(there & set(PARTS)):
            run([sys.executable, "-B", os.path.join(HERE, "sbom.py"), "--build", ".", "--root",
                 root, "--parts", part, "--name", "treenail-" + part, "--output",
                 os.path.join(scratch, part + ".spdx.json")])
        written = sorted(glob.glob(os.path.join(scratch, "*.spdx.json")))
        wrong = {os.path.basename(path): found for path, found in zip(
            written, judged(python, written)) if found}
        if wrong:
            raise Failed("\n".join("%s: %s" % (name, "; ".join(map(str, found[:5])))
                                   for name, found in wrong.items()))
        slips = damaged(written[0], scratch)
        accepted = [os.path.basename(path) for path, found in zip(slips, judged(python, slips))
                    if not found]
        if accepted:
            raise Failed("accepted although damaged: " + ", ".join(accepted))
        return "%s: %s; %d damaged ones refused" % (PACKAGE, ", ".join(
            os.path.basename(path) for path in written), len(slips))
