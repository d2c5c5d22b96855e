"""How Sphinx makes the pages: `make docs`. Nothing is fetched from the network."""

import inspect
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

import spinney

DOCS = Path(__file__).parent

project = "Spinney"
author = "The Spinney developers"
version = release = spinney.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
templates_path: list[str] = []

html_theme = "furo"
html_title = f"Spinney {version}"
html_static_path = ["_static"]
html_css_files = ["spinney.css"]
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False

myst_heading_anchors = 3  # [rpart](coming-from.md#coming-from-rpart) works here as it does on GitHub
highlight_language = "text"  # a fence without a language is output
default_role = "py:obj"  # `fit` in a docstring
autodoc_member_order = "groupwise"
autodoc_typehints = "none"  # the Parameters of a docstring say more
napoleon_google_docstring = False
napoleon_use_param = False  # parameters described together stay together
napoleon_custom_sections = [("Attributes", "params_style")]  # as Parameters; properties have entries of their own
napoleon_use_rtype = False

# Pages link to files of the repository beside docs/; the site has them under these names.
BESIDE = {
    "../CHANGELOG.md": "project/changelog.md",
    "../CONTRIBUTING.md": "project/contributing.md",
    "../SECURITY.md": "project/security.md",
    "../benchmarks/RESULTS.md": "project/benchmarks.md",
}


def write_api_pages(_app: Sphinx) -> None:
    """One page per public name, in docs/api: none can be forgotten."""
    folder = DOCS / "api"
    folder.mkdir(exist_ok=True)
    names = [name for name in spinney.__all__ if name != "__version__"]
    pages = {name: _api_page(name) for name in names}
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:  # an unchanged page is not built again
            path.write_text(text, encoding="utf-8")


def _api_page(name: str) -> str:
    value = getattr(spinney, name)
    if inspect.ismodule(value):
        kind, options = "module", ["members"]
    elif inspect.isclass(value) and issubclass(value, Exception):
        kind, options = "exception", []
    elif inspect.isclass(value):
        kind, options = "class", ["members", "inherited-members"]
    else:
        kind, options = "function", []
    lines = [name, "=" * len(name), "", f".. auto{kind}:: spinney.{name}", *(f"   :{option}:" for option in options)]
    return "\n".join(lines) + "\n"


def leave_out_foreign_members(
    _app: Sphinx, _what: str, name: str, value: object, _skip: object, _options: object
) -> bool | None:
    """Leave out what scikit-learn's base classes bring along: `get_params` and its like, documented there."""
    home = getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None) or ""
    return True if home.startswith("sklearn") or name.endswith("_request") else None


def leave_out_tables_of_files(
    _app: Sphinx, what: str, _name: str, _value: object, _o: object, lines: list[str]
) -> None:
    """Leave out the table of its files at a folder's head: Markdown, and for who reads the source."""
    if what == "module":
        lines[:] = [line for line in lines if not line.startswith("|")]


def link_files_beside_docs(_app: Sphinx, page: str, source: list[str]) -> None:
    """Turn links to files beside docs/ into links to their pages."""
    up = "../" * page.count("/")
    for file, target in BESIDE.items():
        source[0] = source[0].replace(f"]({up}{file}", f"]({up}{target}")


class LinkPublicNames(SphinxTransform):
    """`CARTClassifier` or `spinney.CARTClassifier` in a text becomes a link to its page."""

    default_priority = 200

    def apply(self, **_: Any) -> None:
        """Wrap each such literal in a reference that Sphinx resolves later."""
        for literal in list(self.document.findall(nodes.literal)):
            text = literal.astext()
            name = text.removeprefix("spinney.")
            is_linked = isinstance(literal.parent, nodes.reference | addnodes.pending_xref)
            is_word = text.isalpha() and text.islower()  # `trace` may be a command, or a parameter
            if is_linked or is_word or name.split(".")[0] not in spinney.__all__:
                continue
            target = f"spinney.{name}"
            link = addnodes.pending_xref(
                "", refdomain="py", reftype="obj", reftarget=target, refdoc=self.env.docname, refexplicit=True
            )
            literal.replace_self(link)
            link += literal


def setup(app: Sphinx) -> None:
    """Add the steps above."""
    app.connect("builder-inited", write_api_pages)
    app.connect("autodoc-skip-member", leave_out_foreign_members)
    app.connect("autodoc-process-docstring", leave_out_tables_of_files)
    app.connect("source-read", link_files_beside_docs)
    app.add_transform(LinkPublicNames)
