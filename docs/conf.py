"""How the site is built: `make docs` writes it to build/docs/html, without any other host."""

from __future__ import annotations

import hashlib
import os
import sys
from importlib.metadata import version as installed
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

project = "animalcat"
author = "the animalcat developers"
project_copyright = "the animalcat developers"
release = version = installed("animalcat")
root_doc = "index"
language = "en"
highlight_language = "none"  # of blocks that name none, which are commands

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "mathml",
    "generated",
    "llms",
    "outside",
]
exclude_patterns = ["_build", "examples", "data", "systemd", "notebooks/.ipynb_checkpoints"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb"}
nitpicky = True
# Types are shown and not linked: what other packages define is not here.
nitpick_ignore_regex = [(r"py:.*", r".*")]
suppress_warnings = [
    "misc.highlighting_failure",  # csv, and text that only looks like a language
    "myst-nb.lexer",  # of cells, where tutorials are not run
]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "attrs_inline"]
myst_heading_anchors = 4
myst_links_external_new_tab = False


def code_digest() -> str:
    """A digest of all that a tutorial may run: Python, the code, and what lies beside the code."""
    digest = hashlib.sha256(sys.version.encode())
    kinds = {".py", ".yaml", ".toml", ".json", ".csv", ".j2"}
    for folder in ("animalcat", "arena_configs", "doors", "envs", "layouts", "service"):
        for path in sorted((HERE.parent / folder).rglob("*")):
            if path.suffix in kinds:
                digest.update(f"{path.relative_to(HERE.parent)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


# Tutorials are run when the site is built, and again only when they or the code have changed.
nb_execution_mode = os.environ.get("ANIMALCAT_TUTORIALS", "cache")
nb_execution_cache_path = str(HERE.parent / "build" / "tutorials" / code_digest())
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "inherited-members": False}
python_maximum_signature_line_length = 88
napoleon_numpy_docstring = False
napoleon_use_ivar = True
napoleon_custom_sections = [("Options", "params_style")]

html_theme = "pydata_sphinx_theme"
html_title = "animalcat"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "animalcat"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navigation_depth": 3,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": False,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
