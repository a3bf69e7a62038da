# SPDX-License-Identifier: Apache-2.0
"""Who stands behind the packages: the one file that says so.

Nothing here is invented. What does not exist yet is empty or, where a package format wants a value,
an address below `.invalid`, a domain that never exists (RFC 2606). Whoever uploads fills it in;
`ninja check-packaging` then names each line of debian/ and rpm/ that still says otherwise, and
docs/packaging.md lists the lintian and rpmlint tags that an empty field leaves.
"""

MAINTAINER = "Treenail Maintainers <maintainers@treenail.invalid>"
HOMEPAGE = ""  # https://...; with it come a watch file and Homepage/URL fields
REPOSITORY = ""  # where the packaging lives: Vcs-Git and Vcs-Browser
ITP_BUG = ""  # the number of Debian's intent-to-package bug, which the first upload closes
SIGNING_KEY = ""  # fingerprint of the key that signs releases

# What lintian says of a field that is empty, and of a placeholder.
_TAGS = (
    ("MAINTAINER", lambda: MAINTAINER.endswith(".invalid>"), ("bogus-mail-host",)),
    ("HOMEPAGE", lambda: not HOMEPAGE, ("no-homepage-field", "debian-watch-file-is-missing")),
    ("REPOSITORY", lambda: not REPOSITORY, ()),
    ("ITP_BUG", lambda: not ITP_BUG, ("initial-upload-closes-no-bugs",)),
)
