"""Lines of code, beside the budget: `make check` prints them, `python -m tests.sizes` alone, too.

A line counts that is no docstring, no comment and not blank. Nothing fails here: a budget that is
exceeded is for a person to read.
"""

import ast
from collections import Counter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
BUDGETS = {  # parts of nbhelpers → lines of code at most
    "files records reading errors places progress schemas outcomes empty facts": 830,
    "machine": 2200,
    "measurement workloads speed": 4860,  # fixed work as the ruler: calls of functions
    "tracing account perfetto": 3400,
    "noise injection": 3450,  # two definitions of a delta, three ways to replay a thread
    "statistics attribution": 3000,
    "mitigation": 2000,
    "simulation mpi": 3600,
    "studies": 3050,  # the gate by the share of the excess
    "report paper page answers": 1700,
    "explorers workbench lab": 1300,
    "study stages profiles promise loaded verify stage_records slow_tables": 900,
    "cli artifact referee": 1340,
}
WHOLE = {"nbhelpers": 32_000, "tests": 28_000, "extras": 6_000}


def code_lines(text: str) -> int:
    """How many lines of a module are code.

    Examples
    --------
    >>> code_lines('\"\"\"What it owns.\"\"\"\\n\\n# why\\nx = 1  # counts\\n')
    1
    """
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None
        for line in range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1)
    }
    return sum(
        number not in docstrings and bool(line.strip()) and not line.strip().startswith("#")
        for number, line in enumerate(text.splitlines(), 1)
    )


def counted() -> Counter[tuple[str, str]]:
    """Lines of code by top folder and part."""
    sizes: Counter[tuple[str, str]] = Counter()
    for top in WHOLE:
        for path in (REPOSITORY / top).rglob("*.py"):
            part = path.relative_to(REPOSITORY / top).parts[0].removesuffix(".py")
            if part != "_shipped":
                sizes[top, part] += code_lines(path.read_text())
    return sizes


def report() -> str:
    """A line for each row of the budget."""
    sizes = counted()
    rows = [
        (parts, sum(sizes["nbhelpers", part] for part in parts.split()), most)
        for parts, most in BUDGETS.items()
    ]
    rows += [
        (f"all of {top}", sum(size for (one, _), size in sizes.items() if one == top), most)
        for top, most in WHOLE.items()
    ]
    return "\n".join(
        f"{name[:58]:<58} {size:7,} of {most:6,}{'  over' if size > most else ''}"
        for name, size, most in rows
    )


if __name__ == "__main__":
    print(report())
