# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/regex.cc. Oracle: Python's re, on patterns that mean the same to both."""

import re

import numpy as np
from treenail import _treenail as core

from harness import no_case, op
from texts import each, text


def replace(x, pattern, rewrite, replace_global=True):
    pattern = pattern.item() if isinstance(pattern, np.ndarray) else pattern.encode()
    rewrite = rewrite.item() if isinstance(rewrite, np.ndarray) else rewrite.encode()
    rewrite = re.sub(rb"\\(\d)", rb"\\g<\1>", rewrite)

    def one(s):
        done = re.sub(pattern.decode(), rewrite.decode(), s.decode(), count=0 if replace_global else 1,
                      flags=re.ASCII)
        return done.encode()

    return each(one, x)


def match(x, pattern):
    pattern = pattern.item() if isinstance(pattern, np.ndarray) else pattern.encode()
    return each(lambda s: re.fullmatch(pattern.decode(), s.decode(), re.ASCII) is not None, x).astype(bool)


WORDS = text([[b"abba", b"", b"aa bb  cc"], [b"x=1, yy=22", "\u03b1\u03b2\u20ac\u03b1".encode(), b"a\nb\n"]])
REPLACEMENTS = [
    (b"b", b"-"), (b"(a)(b*)", b"<\\2\\1\\0>"), (b"[a-z]+", b""), (b"^", b">"), (b"\\w+", b"[\\0]"),
    (b"(\\w+)=(\\d+)", b"\\2=\\1"), ("\u03b1".encode(), b"alpha"), (b".", b"."), (b"(?i)A", b"\\\\"), (b"\\bb", b"B"), (b"", b"."), (b"(?s).+", b"all"),
]
BAD = [(b"(", r"Invalid pattern: \"\(\", error: missing \)"), (b"a**", "bad repetition"), (b"(?P<n", "invalid"),
       (b"\\1", "invalid escape"), (b"(?=a)", "invalid perl operator"), (b"[z-a]", "invalid character class range"),
       (b"a{1001}", "invalid repetition size"), (b"((((a{100}){100}){100}){100}){100}", "invalid repetition size|too large"),
       (b"\\pL{1000}" * 20, "too large"), (b"\xff", "invalid UTF-8"), (b"\x1b[", r"\\x1b\[")]
NAMES = ("RegexReplace", "StaticRegexReplace", "RegexFullMatch", "StaticRegexFullMatch")

if "re2" in core.__features__:  # build_info() would open devices, which no child of a fork can use
    dynamic = op("RegexReplace", replace)
    static = op("StaticRegexReplace", replace)
    for pattern, rewrite in REPLACEMENTS:
        for each_match in (True, False):
            dynamic.case(WORDS, text(pattern), text(rewrite), replace_global=each_match)
            static.case(WORDS, pattern=pattern.decode(), rewrite=rewrite.decode(), replace_global=each_match)
    dynamic.case(np.zeros((0, 2), object), text(b"a"), text(b"b")).case(text(b"a" * 100000), text(b"a"), text(b"\\0\\0"))
    for pattern, why in BAD:
        dynamic.error("InvalidArgument", why, WORDS, text(pattern), text(b""))
    for rewrite in (b"\\3", b"\\", b"\\x"):
        dynamic.error("InvalidArgument", "Invalid rewrite: .* error: ", WORDS, text(b"(a)(b)"), text(rewrite))
    dynamic.error("InvalidArgument", "rank", WORDS, text([b"a"]), text(b""))
    static.error("InvalidArgument", "Invalid pattern", WORDS, pattern="(", rewrite="").error(
        "InvalidArgument", "Invalid rewrite", WORDS, pattern="a", rewrite="\\1"
    ).error("InvalidArgument", "Invalid pattern", np.zeros((0,), object), pattern="(", rewrite="")

    dynamic = op("RegexFullMatch", match)
    static = op("StaticRegexFullMatch", match)
    for pattern in (b"a.*", b"", b"abba", b"bb", b"(?i)ABBA|.*22", ".*\u03b1".encode(), b"(?s).*", b"\\w+=\\d, .*"):
        dynamic.case(WORDS, text(pattern))
        static.case(WORDS, pattern=pattern.decode())
    dynamic.case(np.zeros((2, 0), object), text(b"a")).error(
        "InvalidArgument", "Invalid pattern", WORDS, text(b"(")
    )
    static.error("InvalidArgument", "Invalid pattern", WORDS, pattern="(")
else:
    for name in NAMES:
        no_case(name, "built without RE2")
