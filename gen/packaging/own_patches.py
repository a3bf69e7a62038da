# SPDX-License-Identifier: Apache-2.0
"""The patches of Treenail itself, patches/treenail/VERSION/series, for both kinds of packages."""

import os
import sys

from package_build import SOURCE, Unusable


def _own(version):
    """The module that exports, and the series. Imported here: what of these programs can be used
    without packaging needs no patches/."""
    sys.path.insert(0, os.path.join(SOURCE, "patches"))
    from patching import export, series
    try:
        return export, series.chosen("treenail", version, "patched")
    except series.Refused as reason:
        raise Unusable(str(reason)) from None


def for_debian(version, debian):
    """Writes patches/ into a folder debian."""
    export, own = _own(version)
    export.to_debian(own, debian)


def for_rpm(version, spec, sources):
    """Copies the patches to rpmbuild's SOURCES; the text of the spec must name them."""
    export, own = _own(version)
    if export.spec_text(own, spec) != spec:
        raise Unusable("rpm/treenail.spec does not name what is in patches/treenail/%s/series; run "
                       "patches/patches.py export-rpm treenail %s rpm/treenail.spec" % (
                           version, version))
    export.copied(own, sources)
