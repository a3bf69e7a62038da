# SPDX-License-Identifier: Apache-2.0
"""Write the wheel described by a manifest, one per interpreter: sorted, with one time stamp."""

import argparse
import base64
import hashlib
import io
import json
import os
import time
import zipfile

from archive import epoch, write_whole

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def record_line(name, data):
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return "%s,sha256=%s,%d\n" % (name, digest, len(data))


def pack(wheel, stamp):
    date = time.gmtime(max(stamp, 315532800))[:6]  # zip knows nothing before 1980
    content = {}
    for entry in wheel["entries"]:
        with open(entry["from"], "rb") as stream:
            content[entry["to"]] = (stream.read(), 0o755 if entry["kind"] == "module" else 0o644)
    for name, text in wheel["texts"].items():
        content["%s/%s" % (wheel["info"], name)] = (text.encode(), 0o644)
    record = wheel["info"] + "/RECORD"
    lines = [record_line(name, content[name][0]) for name in sorted(content)] + [record + ",,\n"]
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(content) + [record]:
            data, mode = content.get(name, ("".join(lines).encode(), 0o644))
            info = zipfile.ZipInfo(name, date)
            info.external_attr = (0o100000 | mode) << 16
            info.compress_type, info.create_system = zipfile.ZIP_DEFLATED, 3
            archive.writestr(info, data)
    return raw.getvalue()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--manifest", required=True)
    parser.add_argument("--into", required=True)
    options = parser.parse_args()
    with open(options.manifest, encoding="utf-8") as stream:
        wheels = json.load(stream)
    for wheel in wheels:
        path = os.path.join(options.into, wheel["file"])
        write_whole(path, pack(wheel, epoch(SOURCE)))
        print("wrote %s" % os.path.abspath(path))


if __name__ == "__main__":
    main()
