# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration of `ninja docs`: every Markdown page of this folder."""

import os

with open(os.path.join(os.path.dirname(__file__), "..", "VERSION"), encoding="utf-8") as _stream:
    version = release = _stream.read().strip()

project = "Treenail"
author = "the Treenail developers"
project_copyright = author
extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
myst_heading_anchors = 3
html_theme = "alabaster"
html_copy_source = False
html_last_updated_fmt = None  # the same bytes from the same pages
