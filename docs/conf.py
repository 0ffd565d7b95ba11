"""Configuration of the documentation: ``make docs`` builds it into docs/_build. Nothing is fetched from the network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
os.environ.setdefault("MPLBACKEND", "agg")

import orthonmf  # noqa: E402

project = "orthonmf"
author = "the orthonmf developers"
copyright = "the orthonmf developers"
version = release = orthonmf.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "matplotlib.sphinxext.plot_directive",
    "api_page",
    "mathml",
]
exclude_patterns = ["_build", "_templates", "figures"]
templates_path = ["_templates"]
root_doc = "index"
default_role = "py:obj"  # `name` in a docstring is a link where there is such a name, and code where there is none
language = "en_GB"
highlight_language = "none"  # blocks of code say what they are in

# Markdown
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence", "attrs_inline"]
myst_heading_anchors = 3
myst_all_links_external = False

# The interface
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings hold the types
autodoc_member_order = "bysource"
# scikit-learn makes these for its routing of metadata; their docstrings refer to pages of its own.
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request, set_transform_request, set_inverse_transform_request"}
numpydoc_show_class_members = False  # the template of a class lists them
numpydoc_class_members_toctree = False

# Formulas are MathML, made while building: pages show them offline and without scripts.
html_math_renderer = "mathml"

# Pictures
plot_include_source = False
plot_html_show_source_link = False
plot_html_show_formats = False
plot_formats = [("png", 130)]
plot_basedir = str(HERE)

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": "plot_",
    "example_extensions": {".py"},
    "within_subsection_order": "gallery.Order",
    "download_all_examples": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_",),  # data frames; not where an object lies in memory
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,  # seconds of the machine that builds the pages say nothing to those who read them
    "write_computation_times": False,
    "plot_gallery": True,
    "abort_on_example_error": True,
    "doc_module": ("orthonmf",),
    "reference_url": {"orthonmf": None},
    "inspect_global_variables": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "orthonmf"
html_static_path = ["_static"]
html_css_files = ["orthonmf.css"]
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {
    "logo": {"text": "orthonmf"},
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "tango",
    "pygments_dark_style": "monokai",
}
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "getting_started": []}
