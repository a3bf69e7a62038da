# SPDX-License-Identifier: Apache-2.0
"""The in-tree build backend of PEP 517: configure, `ninja wheel`, and hand over the result.

The module is built for the interpreter that runs the backend. Options for configure.py go through
`config_settings`, as in: pip install . --config-settings=configure=--isa-baseline=x86-64-v2
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _run(command):
    """Show the command's output; a failure ends the build with its status."""
    subprocess.run(command, cwd=SOURCE, check=True)


def _options(config_settings):
    value = (config_settings or {}).get("configure", "")
    words = value if isinstance(value, list) else [value]
    return [option for word in words for option in shlex.split(word)]


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Build in a temporary directory; TREENAIL_WHEEL_BUILD_DIR names one to keep."""
    kept = os.environ.get("TREENAIL_WHEEL_BUILD_DIR")
    build = kept or tempfile.mkdtemp(prefix="treenail-wheel-")
    try:
        _run([sys.executable, "configure.py", "--build-dir=" + build,
              "--python=" + sys.executable] + _options(config_settings))
        _run(["ninja", "-C", build, "wheel"])
        names = [n for n in os.listdir(os.path.join(build, "dist")) if n.endswith(".whl")]
        name = max(names, key=lambda n: os.stat(os.path.join(build, "dist", n)).st_mtime)
        shutil.copy(os.path.join(build, "dist", name), os.path.join(wheel_directory, name))
        return name
    finally:
        if not kept:
            shutil.rmtree(build, ignore_errors=True)


def build_sdist(sdist_directory, config_settings=None):
    """The archive of `ninja dist`, which carries PKG-INFO."""
    _run([sys.executable, "-B", os.path.join("gen", "tools", "dist.py"), "--source", ".", "--into",
          sdist_directory])
    with open(os.path.join(SOURCE, "VERSION"), encoding="utf-8") as stream:
        return "treenail-%s.tar.gz" % stream.read().strip()


def get_requires_for_build_wheel(config_settings=None):
    return []


def get_requires_for_build_sdist(config_settings=None):
    return []
