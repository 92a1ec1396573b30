"""Numbers as they were: what functions give for fixed samples is compared with what they once gave.

The other tests say what a number means; these notice that one has changed which nobody meant to
change. They run where arithmetic is as it was where the numbers were written. Another version of
NumPy, another processor or another BLAS round otherwise; then counts of random draws differ, too.
After a change that was meant, `NOISEBOOK_RENEW=1 pytest TEST` writes the numbers anew: read
the difference before you commit it.
"""

import dataclasses
import enum
import json
import math
import os
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm, t

from nbhelpers.files import digest

FOLDER = Path(__file__).with_name("data") / "unchanged"
RENEW = "NOISEBOOK_RENEW"
_LONGEST, _LONGEST_TEXT = 24, 600  # of what is written in full


def plain(value: object) -> object:
    """Tables, arrays and records as lists and dictionaries; long arrays by four of their sums."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        names = [one.name for one in dataclasses.fields(value) if not one.name.startswith("_")]
        return {name: plain(getattr(value, name)) for name in names}
    if isinstance(value, pd.DataFrame):
        return {str(name): plain(value[name]) for name in value.columns}
    if isinstance(value, pd.Series):
        return plain(
            value.astype(object).to_numpy() if value.dtype.name == "category" else value.to_numpy()
        )
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:80]} … {digest(value)}"
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return type(value).__name__


def _array(values: np.ndarray) -> object:
    if values.size <= _LONGEST or values.dtype.kind not in "iufb":
        return [plain(one) for one in values.tolist()][:_LONGEST]
    numbers = np.nan_to_num(values.ravel().astype(float), posinf=1e300, neginf=-1e300)
    weights = np.cos(np.arange(numbers.size))  # the order counts
    return {
        "size": numbers.size,
        "sum": float(numbers.sum()),
        "weighted": float(weights @ numbers),
        "least": float(numbers.min()),
        "most": float(numbers.max()),
    }


def differences(before: object, now: object, where: str = "") -> list[str]:
    """What differs, by more than rounding."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [*before, *(name for name in now if name not in before)]
        return [
            line
            for name in names
            for line in differences(before.get(name), now.get(name), f"{where}.{name}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        return [
            line
            for number, (old, new) in enumerate(zip(before, now))
            for line in differences(old, new, f"{where}[{number}]")
        ]
    if isinstance(before, float | int) and isinstance(now, float | int):
        same = math.isclose(before, now, rel_tol=1e-6, abs_tol=1e-9)
        return (
            []
            if same and isinstance(before, bool) == isinstance(now, bool)
            else [f"{where}: {before!r} is now {now!r}"]
        )
    return [] if before == now else [f"{where}: {before!r} is now {now!r}"]


@cache
def arithmetic() -> dict[str, str]:
    """Versions of what computes, and digests of how it rounds here."""
    random = np.random.default_rng(0)
    values = random.normal(size=(140, 12))
    narrow = values.astype(np.float32)
    results = {
        "float32 products": [narrow.T @ narrow, narrow[:5] @ narrow[:5].T, narrow @ narrow[0]],
        "products": [values.T @ values, values[:, 0] @ values[:, 1], values @ values[0]],
        "Fourier": [np.fft.rfft(values, axis=0).view(float)],
        "functions": [
            function(np.abs(values)) for function in (np.exp, np.log, np.log1p, np.sqrt, np.cos)
        ],
        "sums": [values.sum(axis=0), values.mean(axis=1), values.std(axis=0), narrow.std(axis=0)],
        "linear": [np.linalg.solve(values[:12], values[12:24]), np.linalg.svd(values)[1]],
        "distributions": [norm.logsf(values), chi2.logsf(np.abs(values), 3), t.cdf(values, 5)],
    }
    rounding = {
        name: digest(*(np.ascontiguousarray(one).tobytes() for one in arrays))
        for name, arrays in results.items()
    }
    names = ("numpy", "scipy", "pandas", "scikit-learn")
    return {name: version(name) for name in names} | rounding


def _require_the_same_arithmetic() -> None:
    written = json.loads((FOLDER / "arithmetic.json").read_text())
    other = [name for name, value in arithmetic().items() if written.get(name) != value]
    if other:
        pytest.skip(
            f"arithmetic is not as where the numbers were written: {', '.join(other)}"
            " (on x86 perhaps for the BLAS only: OPENBLAS_CORETYPE=Haswell)"
        )


def check(name: str, values: Mapping[str, object]) -> None:
    """Compare with data/unchanged/NAME.json, or write it."""
    path = FOLDER / f"{name}.json"
    if not os.environ.get(RENEW):
        _require_the_same_arithmetic()
    now = json.loads(json.dumps(plain(values), ensure_ascii=False))
    if os.environ.get(RENEW):
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [f'"{key}": {json.dumps(one, ensure_ascii=False)}' for key, one in now.items()]
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        (FOLDER / "arithmetic.json").write_text(json.dumps(arithmetic(), indent=1) + "\n")
    found = differences(json.loads(path.read_text()), now)
    assert not found, "\n".join(found[:30])
