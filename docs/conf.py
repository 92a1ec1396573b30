"""How Sphinx builds these pages: the reference is written from what each package exports.

`make docs` builds them into build/docs. They open without a network: the theme comes with Sphinx,
and no page asks another host for anything.
"""

import inspect
import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx

import nbhelpers

HERE = Path(__file__).resolve().parent
REFERENCE = HERE / "reference"  # written anew by every build, ignored by git

project = "Noisebook"
author = "the authors of Noisebook"
copyright = author
version = release = nbhelpers.__version__
extensions = ["sphinx.ext.autodoc", "numpydoc", "myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
numpydoc_show_class_members = False
autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # the signature has them; a field says what it means
html_theme = "alabaster"
html_theme_options = {
    "description": "Why a parallel program does not take the same time twice",
    "fixed_sidebar": True,
    "page_width": "70em",
    "body_max_width": "48em",
}
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False


def setup(app: Sphinx) -> None:
    """Write the pages of the reference: the public face, and a page a package."""
    app.connect("autodoc-process-docstring", _keep_bars)
    REFERENCE.mkdir(exist_ok=True)
    for page in REFERENCE.glob("*.rst"):
        page.unlink()
    packages = [
        name
        for name in _package_names()
        if getattr(import_module(f"nbhelpers.{name}"), "__all__", None)
    ]
    for package in packages:
        (REFERENCE / f"{package}.rst").write_text(_package_page(package))
    (REFERENCE / "index.rst").write_text(_face_page(packages))


def _package_names() -> list[str]:
    """Packages below nbhelpers, such as `studies.scale`, in order."""
    library = HERE.parent / "nbhelpers"
    folders = [path.parent for path in library.glob("*/**/__init__.py")]
    names = [".".join(folder.relative_to(library).parts) for folder in folders]
    return sorted(name for name in names if not name.startswith("_"))


def _keep_bars(app: Sphinx, what: str, name: str, found: object, options: object, lines: list):
    """An absolute value, |x − 1|, is no substitution of reStructuredText."""
    lines[:] = [re.sub(r"(?<![|`])\|(?=[^\s|])([^|`]*)\|", r"\\|\1\\|", line) for line in lines]


def _face_page(packages: list[str]) -> str:
    """A line for each name of `nbhelpers` itself, then the list of packages."""
    rows = [_face_row(name) for name in nbhelpers.__all__ if name != "__version__"]
    listed = "\n".join(f"   {package}" for package in packages)
    return "\n".join(
        [
            *_title("Reference"),
            "``import nbhelpers as nb``. These names are the public face:",
            "",
            *rows,
            "",
            "Each package exports what others need of it:",
            "",
            ".. toctree::",
            "   :maxdepth: 1",
            "",
            listed,
            "",
        ]
    )


def _face_row(name: str) -> str:
    """The name, which leads to its entry, and its first sentence."""
    found = getattr(nbhelpers, name)
    home = f"{found.__module__.rpartition('.')[0]}.{name}"
    return f"* :py:obj:`nb.{name} <{home}>`: {_first_sentence(found)}"


def _first_sentence(found: object) -> str:
    paragraph = (inspect.getdoc(found) or "").split("\n\n")[0]
    return " ".join(paragraph.split())


def _package_page(package: str) -> str:
    """The package's docstring, then each name that it exports."""
    module = import_module(f"nbhelpers.{package}")
    entries = [_entry(module, name) for name in sorted(module.__all__)]
    return "\n\n".join(["\n".join(_title(package)), inspect.getdoc(module) or "", *entries]) + "\n"


def _entry(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    if inspect.ismodule(found):
        exported = ", ".join(sorted(module.__all__))  # these have entries of their own
        return f".. automodule:: {found.__name__}\n   :exclude-members: {exported}"
    if inspect.isclass(found):
        kind = "autoexception" if issubclass(found, BaseException) else "autoclass"
    else:
        kind = "autofunction" if callable(found) else "autodata"
    return f".. {kind}:: {module.__name__}.{name}"


def _title(text: str) -> list[str]:
    return [text, "=" * len(text), ""]
