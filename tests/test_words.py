"""The words that we do not use (docs/glossary.md has those that we use).

A word of `NAMES` may not be part of a name in the code. A phrase of `PROSE` may not stand where a
reader reads it: docstrings, error texts, README, CONTRIBUTING, data/README, docs, notebooks. Pages,
and the first paragraphs of docstrings, have short sentences.
"""

import ast
import json
import re
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
PARTS = sorted(
    path.stem if path.is_file() else path.name
    for path in (REPOSITORY / "nbhelpers").iterdir()
    if path.suffix == ".py" or (path.is_dir() and (path / "__init__.py").exists())
)
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "data/README.md",
    *sorted(
        str(path.relative_to(REPOSITORY))
        for folder, pattern in (("docs", "**/*.md"), ("notebooks", "*.ipynb"))
        for path in (REPOSITORY / folder).glob(pattern)
    ),
]
WRITTEN = [
    *PAGES,
    "CHANGELOG.md",
    *sorted(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("tests/**/README.md")),
]
LONGEST_SENTENCE = 25  # words

# Words that say nothing of the subject; as a part of a name (snake_case or CamelCase).
NAMES = frozenset(
    """
    feel feels felt kept story voice told said tell mend mends owes forgetful afflicted fly wide
    once given beside own closed ask asked
    """.split()  # noqa: SIM905
)
# Names that are right as they are, and why.
RIGHT_NAMES = {
    "closed_forms": "a closed form is a formula: a term of mathematics",
    "run_once": "one run, and no campaign",
    "closed": "a property that files and sockets have",
}
# Private idioms, and what is written instead.
PROSE = {
    r"\bfeels?\b|\bfelt\b": "observed loss",
    r"\bmends?\b|\bmended\b(?!`)": "fix",
    r"\bowes?\b": "has still to do",
    r"\bforgetful\b": "without memory",
    r"\bafflict": "disturbed",
    r"\bvoices?\b|\bstor(?:y|ies)\b": "summary, description, message",
    r"\bis no data\b|\bare no data\b|\bno data are\b": "is excluded",
    r"\b(?:goes|go|went|gone|going) with (?:the )?slow\b": "is associated with",
    r"\bwhich counters go with\b": "are associated with",
    r"(?<=[\d.…] )us\b(?![\w/])": "µs",
}
# Texts that are right as they are, and why.
RIGHT_TEXTS = {
    r"\d Hz x [\d.]+ us\b": "the name of a noise in recorded tables",
    r"# quantum: \S+ us\b": "the file format of Netgauge",
}


def parts_of_name(name: str) -> set[str]:
    """The words of a name in snake_case or CamelCase."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)}


def names_in(tree: ast.AST) -> set[str]:
    """What is defined: functions, classes, parameters, fields of classes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
        if isinstance(node, ast.arg):
            names.add(node.arg)
        if isinstance(node, ast.ClassDef):
            names |= {
                field.target.id
                for field in node.body
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
            }
    return names


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def files_of(part: str) -> list[Path]:
    folder = REPOSITORY / "nbhelpers"
    return sorted((folder / part).rglob("*.py")) or [folder / f"{part}.py"]


def texts_of(tree: ast.AST) -> list[str]:
    """Docstrings, and the texts of errors, warnings and everything else that is shown."""
    inside = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
        for part in node.values
    }
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside
    ]
    formatted = [
        "".join(part.value if isinstance(part, ast.Constant) else "0" for part in node.values)
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr)
    ]
    return [text for text in [*texts, *formatted] if " " in text]


def text_of(page: str) -> str:
    """The Markdown of a page; of a notebook that of its cells."""
    text = (REPOSITORY / page).read_text()
    if not page.endswith(".ipynb"):
        return text
    cells = json.loads(text)["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def prose_of(page: str) -> str:
    """The text of a page without its code."""
    return re.sub(r"```.*?```|`[^`\n]*`|^    .*$", " ", text_of(page), flags=re.S | re.M)


def sentences_in(text: str) -> list[str]:
    """What stands between full stops, colons and semicolons in the paragraphs of a page.

    Blocks of code, tables and quotations are left out; a code span is one word.
    """
    text = re.sub(r"^```\{glossary\}$(.*?)^```$", r"\1", text, flags=re.S | re.M)
    text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    text = re.sub(r"^(?:    |\||>).*$", "", text, flags=re.M)
    text = re.sub(r"(`+).+?\1", "code", text, flags=re.S)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\b(e\.g|i\.e|et al|sec|vs)\.", r"\1", text)
    paragraphs = re.split(r"\n\s*\n|^ *(?:[-*#]+|\d+\.) ", text, flags=re.M)
    return [
        sentence
        for paragraph in paragraphs
        for sentence in re.split(r"(?<=[.!?:;])[*)”]*\s+", " ".join(paragraph.split()))
        if sentence
    ]


def words_in(sentence: str) -> int:
    return len(re.findall(r"[A-Za-z0-9µ][\w.,%'/-]*", sentence))


def long_sentences(text: str) -> list[str]:
    """The sentences of a page that have too many words, with their number."""
    return [
        f"{words_in(sentence)} words: {sentence}"
        for sentence in sentences_in(text)
        if words_in(sentence) > LONGEST_SENTENCE
    ]


def phrases_in(texts: list[str]) -> list[str]:
    found = []
    for text in texts:
        plain = " ".join(re.sub(r"`[^`]*`", " ", text).split())
        for right in RIGHT_TEXTS:
            plain = re.sub(right, " ", plain)
        for pattern, better in PROSE.items():
            found += [
                f"…{plain[max(match.start() - 30, 0) : match.end() + 20]}… → {better}"
                for match in re.finditer(pattern, plain, re.I)
            ]
    return found


@pytest.mark.parametrize("part", PARTS)
def test_names_say_what_they_are(part):
    bad = {
        f"{path.relative_to(REPOSITORY)}: {name}"
        for path in files_of(part)
        for name in {*names_in(tree_of(path)), path.stem}
        if name not in RIGHT_NAMES and parts_of_name(name) & NAMES
    }
    assert not bad, "\n".join(sorted(bad))


@pytest.mark.parametrize("part", PARTS)
def test_docstrings_and_messages_are_plain(part):
    texts = [text for path in files_of(part) for text in texts_of(tree_of(path))]
    bad = phrases_in(texts)
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("part", PARTS)
def test_docstrings_begin_with_short_sentences(part):
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)
    docstrings = [
        ast.get_docstring(node) or ""
        for path in files_of(part)
        for node in ast.walk(tree_of(path))
        if isinstance(node, defined)
    ]
    long = long_sentences("\n\n".join(text.split("\n\n")[0] for text in docstrings))
    assert not long, "\n".join(long)


@pytest.mark.parametrize("page", PAGES)
def test_pages_are_plain(page):
    bad = phrases_in([prose_of(page)])
    assert not bad, "\n".join(bad)


@pytest.mark.parametrize("page", WRITTEN)
def test_sentences_are_short(page):
    long = long_sentences(text_of(page))
    assert not long, "\n".join(long)
