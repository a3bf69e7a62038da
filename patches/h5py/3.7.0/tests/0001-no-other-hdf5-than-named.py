# SPDX-License-Identifier: Apache-2.0
"""h5py's build uses the HDF5 that HDF5_DIR or HDF5_LIBDIR names, or none."""

import os
import sys

import patchtest

# A library that the build asks for its version, and nothing more.
LIBRARY = """int H5get_libversion(unsigned *major, unsigned *minor, unsigned *release) {
  *major = 1; *minor = %d; *release = 0; return 0; }
"""
ASK = """import sys
sys.path.insert(0, sys.argv[1])
import setup_configure
print("HDF5", setup_configure.BuildConfig.from_env().hdf5_version)
"""
NAMES = ("HDF5_DIR", "HDF5_LIBDIR", "HDF5_INCLUDEDIR", "HDF5_PKGCONFIG_NAME", "HDF5_VERSION",
         "HDF5_MPI")


def hdf5(folder, minor):
    """A made-up libhdf5.so of version 1.MINOR.0."""
    os.makedirs(folder)
    with open("library.c", "w", encoding="utf-8") as stream:
        stream.write(LIBRARY % minor)
    patchtest.run(["cc", "-shared", "-fPIC", "library.c", "-o",
                   os.path.join(folder, "libhdf5.so")])


def asked(tree, **settings):
    """What the build says for these variables, with a libhdf5 1.99.0 in the loader's path."""
    environment = dict.fromkeys(NAMES, "")
    environment.update(settings, LD_LIBRARY_PATH=os.path.abspath("system"))
    return patchtest.run([sys.executable, "-B", "-W", "ignore", "-c", ASK, tree], status=None,
                         environment=environment).stdout.strip()


def tree(path):
    patchtest.need("cc", "gcc")
    if not os.path.exists(os.path.join(path, "setup_configure.py")):
        patchtest.cannot_tell("there is no setup_configure.py")
    hdf5("system", 99)
    hdf5("right/lib", 50)
    hdf5("wide/lib64", 64)
    os.makedirs("empty/lib")
    if "HDF5 (1, 50, 0)" not in asked(path, HDF5_DIR=os.path.abspath("right")):
        raise RuntimeError(asked(path, HDF5_DIR=os.path.abspath("right")))
    for name, folder in (("HDF5_DIR", "empty"), ("HDF5_DIR", "missing"),
                         ("HDF5_LIBDIR", "empty/lib")):
        said = asked(path, **{name: os.path.abspath(folder)})
        if "HDF5 (1, 99, 0)" in said:
            patchtest.failed("%s=%s: another libhdf5 is taken, from the loader's path" % (
                name, folder))
        if "there is no libhdf5.so in %s" % os.path.abspath(folder) not in said:
            patchtest.failed("%s=%s: no sentence says what is wrong:\n%s" % (name, folder, said))
    said = asked(path, HDF5_DIR=os.path.abspath("wide"))
    if "HDF5 (1, 64, 0)" not in said:
        patchtest.failed("HDF5_DIR with lib64 alone: " + said)


patchtest.main(tree=tree)
