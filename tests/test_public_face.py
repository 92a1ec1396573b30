"""The public face: the names of nbhelpers itself, each with an example that runs."""

import doctest
import inspect
import sys

import numpy as np
import pandas as pd
import pytest

import nbhelpers

from .processes import run_python

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def test_a_name_that_is_not_there_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'measrue'"):
        nbhelpers.measrue  # noqa: B018


def test_import_loads_no_part():
    code = "import sys, nbhelpers; print(*(n for n in sys.modules if n.startswith('nbhelpers.')))"
    assert run_python(code, check=True).stdout.split() == []


@pytest.mark.parametrize("name", nbhelpers.__all__)
def test_the_example_of_each_name_runs(name, binaries, tmp_path, monkeypatch):
    found = getattr(nbhelpers, name)
    text = inspect.getdoc(found) or ""
    monkeypatch.chdir(tmp_path)
    names = {**vars(sys.modules[found.__module__]), "np": np, "pd": pd, name: found}
    parsed = doctest.DocTestParser().get_doctest(text, names, name, None, 0)
    assert parsed.examples, f"the example of {name} runs nothing"
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    said: list[str] = []
    runner.run(parsed, out=said.append)
    assert not runner.failures, "".join(said)
