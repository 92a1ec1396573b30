"""The filter of wide tables: the same from every kind of file, against pandas' rank correlation."""

import numpy as np
import pandas as pd
import pytest

from nbhelpers.attribution import explain, filter_columns
from nbhelpers.errors import InputError


@pytest.fixture(scope="module")
def wide():
    random = np.random.default_rng(0)
    seconds = random.lognormal(0, 0.1, 300)
    table = {"seconds": seconds, "status": ["ok"] * 300, "user_s": 2 * seconds}
    table |= {f"noise{number}": random.poisson(3, 300) for number in range(400)}
    table |= {f"constant{number}": np.zeros(300) for number in range(50)}
    table |= {f"cause{number}": seconds * random.normal(1, 0.1, 300) for number in range(5)}
    table["gappy"] = np.where(random.random(300) < 0.5, np.nan, seconds)
    table["holes"] = np.where(
        random.random(300) < 0.05, np.nan, seconds * random.normal(1, 0.1, 300)
    )
    table["cycles_in_disguise"] = 3e9 * seconds
    return pd.DataFrame(table)


@pytest.mark.parametrize("kind", ["frame", "csv", "parquet"])
def test_the_informative_columns_are_kept(wide, kind, tmp_path):
    source = wide if kind == "frame" else tmp_path / f"wide.{kind}"
    if kind == "csv":
        wide.to_csv(source, index=False)
    elif kind == "parquet":
        wide.to_parquet(source)
    result = filter_columns(source, "seconds", keep=["status"])
    causes = {"holes", *(f"cause{number}" for number in range(5))}
    assert causes <= set(result.columns.index) and len(result.columns) <= len(causes) + 3
    assert (
        result.dropped["does not vary"] == 50
        and result.dropped["missing in too many rows"] == 1
        and result.dropped["follows the run time itself"] == 1
    )
    assert list(result.runs.columns[:2]) == ["seconds", "status"] and len(result.runs) == 300
    for name in causes - {"holes"}:
        assert result.columns.loc[name, "correlation"] == pytest.approx(
            wide["seconds"].corr(wide[name], method="spearman"), abs=1e-6
        )
    assert explain(result.runs, permutations=0).factors.iloc[0]["factor"] in causes


def test_ties_are_ranked_as_pandas_ranks_them(wide):
    from nbhelpers.attribution.wide_tables import _correlation
    from nbhelpers.statistics.order import standard_ranks

    for name in ("noise3", "noise7"):
        ours = _correlation(
            wide[name].to_numpy(np.float32), standard_ranks(wide["seconds"].to_numpy())
        )
        assert ours == pytest.approx(wide["seconds"].corr(wide[name], method="spearman"), abs=1e-9)


def test_noise_alone_is_not_informative():
    random = np.random.default_rng(1)
    found = [
        len(
            filter_columns(
                pd.DataFrame(random.normal(size=(200, 300)), columns=["seconds", *range(299)]),
                "seconds",
            ).columns
        )
        for _ in range(20)
    ]
    assert sum(count > 0 for count in found) <= 4


def test_most_exclude_and_consequences(wide):
    assert filter_columns(wide, "seconds", most=2).runs.shape[1] == 3
    result = filter_columns(wide, "seconds", exclude=["cause0"], consequences={"cause1": True})
    assert not {"cause0", "cause1"} & set(result.columns.index)


@pytest.mark.parametrize(
    "name, words",
    [
        ("there.is.none", "no such file"),
        ("file.xls", "unknown kind"),
        ("file.parquet", "not a readable parquet"),
    ],
)
def test_files_that_can_not_be_read(name, words, tmp_path):
    if name.startswith("file"):
        (tmp_path / name).write_text("x")
    with pytest.raises(InputError, match=words):
        filter_columns(tmp_path / name, "seconds")


def test_a_missing_outcome_is_told(wide):
    with pytest.raises(InputError, match="no column 'sconds'"):
        filter_columns(wide, "sconds")
