"""Configuration of the documentation site, which `make docs` builds without a network."""

import inspect
import logging
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE)]

import reference_pages
from contents import with_contents
from sphinx.addnodes import pending_xref

import streaming_moments

# the builder of the gallery prints all that is logged
logging.getLogger("streaming_moments").setLevel(logging.WARNING)

project = "streaming-moments"
author = copyright = "The streaming-moments authors"
version = release = streaming_moments.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["README.md", "gallery.md", "gallery/*", "gallery_backreferences"]
myst_enable_extensions = ["deflist", "colon_fence"]
myst_heading_anchors = 3
# single backticks of docstrings are code, as Markdown has them
default_role = "literal"
nitpicky = False

autodoc_member_order = "bysource"
# the sections of docstrings say types and shapes
autodoc_typehints = "none"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_rtype = False
# else names such as weights_ lose their last character, and properties would be described twice
napoleon_custom_sections = [("Attributes", "params_style")]

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["examples"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    # only what an example prints, not the objects of matplotlib
    "capture_repr": (),
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 1e6,
    "within_subsection_order": "FileNameSortKey",
}

html_theme = "furo"
html_title = f"streaming-moments {release}"
html_favicon = "static/icon.svg"
html_static_path = ["static"]
templates_path = ["templates"]
html_css_files = ["site.css"]
html_js_files = [("site.js", {"defer": "defer"})]
html_copy_source = False
html_show_sourcelink = False
# no page loads anything from elsewhere
html_theme_options = {"top_of_page_buttons": []}
# addresses of pages that have moved, each with the present one
MOVED = {"guides/other_data": "kinds/index"}
CAPTION = 'class="caption" role="heading"', 'class="caption" role="heading" aria-level="2"'


def skip_inherited(app, what, name, member, skip, options):
    """Leave out what scikit-learn and other packages define and document."""
    if skip:
        return True
    function = member.fget if isinstance(member, property) else inspect.unwrap(member)
    module = getattr(function, "__module__", None) or ""
    return True if callable(function) and not module.startswith("streaming_moments") else None


def escape_types(app, what, name, member, options, lines):
    """Escape names such as `n_features_in_` in types: reStructuredText takes them for links."""
    for number, line in enumerate(lines):
        if re.match(r"\w[\w, ]* : ", line):
            lines[number] = re.sub(r"(\w)_(?!\w)(?=[^:]*$)", r"\1\\_", line)


def unlink_shapes(app, doctree):
    """Keep shapes such as `(rows, k)` in types as text; Sphinx links their words to attributes."""
    for link in list(doctree.findall(pending_xref)):
        if link.get("reftype") == "class" and link["reftarget"].islower():
            link.replace_self(link.children)


def set_heading_levels(app, page, template, context, doctree):
    """Give captions of tables of contents a level: Sphinx writes headings without one."""
    for part in ("body", "toctree"):
        if isinstance(context.get(part), str):
            context[part] = context[part].replace(*CAPTION)


def redirect_moved(app, failed):
    """Write a page at each old address that leads to the present one."""
    for old, link in MOVED.items() if failed is None else ():
        page = Path(app.outdir, f"{old}.html")
        page.parent.mkdir(exist_ok=True)
        refresh = f'<meta http-equiv="refresh" content="0; url={link}.html">'
        text = f'This page has moved to <a href="{link}.html">{link}</a>.'
        head = f'<!doctype html><html lang="en"><title>Moved</title>{refresh}'
        page.write_text(f"{head}<main><h1>Moved</h1><p>{text}</p></main>", encoding="utf-8")


def setup(app):
    """Write the pages of the reference from the code before Sphinx reads any page."""
    generated = [path.stem for path in reference_pages.write(Path(app.srcdir) / "reference")]

    def append_contents(app, name, source):
        source[0] = with_contents(name, source[0], generated)

    app.connect("source-read", append_contents)
    app.connect("autodoc-skip-member", skip_inherited)
    # before napoleon reads them
    app.connect("autodoc-process-docstring", escape_types, priority=400)
    app.connect("doctree-read", unlink_shapes)
    app.connect("html-page-context", set_heading_levels)
    app.connect("build-finished", redirect_moved)
