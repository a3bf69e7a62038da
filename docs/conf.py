# SPDX-License-Identifier: Apache-2.0
"""Sphinx configuration: Markdown pages by myst-parser. `ninja docs` runs it with -W."""

import os

_HERE = os.path.dirname(os.path.abspath(__file__))

project = "Treenail"
author = "The Treenail authors"
copyright = author  # noqa: A001  (the name is Sphinx's)
with open(os.path.join(os.path.dirname(_HERE), "VERSION"), encoding="utf-8") as _stream:
    version = release = _stream.read().strip()

extensions = ["myst_parser"]
source_suffix = {".md": "markdown"}
root_doc = "index"
exclude_patterns = []
myst_heading_anchors = 3
# Pages name files of the tree (`smoke/README.md`) in code, never as links: they read well anywhere.
html_theme = "alabaster"
html_theme_options = {"description": "A machine-learning framework that a distribution can ship"}
html_sidebars = {"**": ["about.html", "navigation.html", "relations.html", "searchbox.html"]}
html_copy_source = False
html_show_sourcelink = False
# The same inputs give the same bytes.
html_last_updated_fmt = None
