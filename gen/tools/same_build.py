# SPDX-License-Identifier: Apache-2.0
"""Are these shared libraries of the build that build_info.h describes? Another one is an error.

  same_build.py --header gen/build_info.h --stamp FILE /usr/lib/libtreenail.so
  same_build.py --header gen/build_info.h --open-with /usr/lib/libtreenail.so \
                lib/treenail-1/devices/libtreenail-cuda.so

With --open-with each is a device library, which is loaded, all its symbols bound to that
libtreenail, and asked which build it is of.
"""

import argparse
import ctypes
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
from gen import private_abi  # noqa: E402  (the path must be set first)
from gen.errors import ConfigureError  # noqa: E402

ENTRY = "treenail_device_library"


class DeviceLibrary(ctypes.Structure):
    """The beginning of framework/runtime/kernel/device_library.h."""

    _fields_ = [("abi", ctypes.c_uint32), ("build_id", ctypes.c_char_p),
                ("kind", ctypes.c_char_p)]


def of_header(path):
    with open(path, encoding="utf-8") as stream:
        return re.search(private_abi.NAME + r'([^"]+)"', stream.read()).group(1)


def opened(path, core):
    """(build, kind of devices) that a device library says when it is loaded."""
    try:
        # By its soname it is then the one that the device library needs.
        ctypes.CDLL(os.path.abspath(core), mode=os.RTLD_NOW | os.RTLD_GLOBAL)
        library = ctypes.CDLL(os.path.abspath(path), mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        raise ConfigureError("%s cannot be loaded: %s" % (path, error)) from None
    entry = getattr(library, ENTRY)
    entry.restype = ctypes.POINTER(DeviceLibrary)
    said = entry().contents
    return said.build_id.decode(), said.kind.decode()


def check(options):
    ours = of_header(options.header)
    for path in options.libraries:
        theirs = private_abi.of_library(path)
        if theirs != ours:
            raise ConfigureError(private_abi.differ(path, theirs, ours))
        if options.open_with:
            build, kind = opened(path, options.open_with)
            if build != ours:
                raise ConfigureError("%s says build %s, but was made for %s" % (path, build, ours))
            print("%s opens: devices of kind %s, build %s" % (path, kind, build))
    if options.stamp:
        with open(options.stamp, "w", encoding="utf-8") as stream:
            stream.write(ours + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--header", required=True)
    parser.add_argument("--stamp", default="", help="written when all are")
    parser.add_argument("--open-with", default="", metavar="LIBTREENAIL")
    parser.add_argument("libraries", nargs="+")
    try:
        check(parser.parse_args())
    except (ConfigureError, OSError) as error:
        sys.exit("private ABI: %s" % error)


if __name__ == "__main__":
    main()
