"""Saved figures and tables: same bytes, right numbers, escaped text, numbered in order."""

import base64
import html
import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import seaborn as sns

from nbhelpers.empty import because
from nbhelpers.errors import InputError
from nbhelpers.palette import PAGE_IN, use_style
from nbhelpers.report import Shown, first_html, published_table, save_figure, save_table
from nbhelpers.report.record import MOST_ROWS, records

FRAME = pd.DataFrame(
    {"benchmark": ["N-body", "a_b & 50 %"], "seconds": [1 / 3, np.nan], "runs": [3, 4]}
)


def drawn(runs):
    """A figure of a column's width, a point a run."""
    figure, axes = plt.subplots(figsize=(3.33, 2.5))
    axes.scatter(runs["cell"], runs["seconds"])
    return figure


def test_same_data_same_bytes_without_a_date(tmp_path, runs):
    for folder in ("one", "two"):
        save_figure(drawn(runs), "compare", "Three cells.", runs, tmp_path / folder)
        save_table(FRAME, "table", "Numbers.", tmp_path / folder)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("one", "two")
    )
    kinds = {
        "compare": ("csv", "json", "pdf", "png", "svg"),
        "table": ("csv", "html", "json", "tex"),
    }
    assert set(first) == {f"{name}.{kind}" for name, all_of in kinds.items() for kind in all_of}
    assert first == second
    assert b"CreationDate" not in first["compare.pdf"] and b"<dc:date>" not in first["compare.svg"]


def test_a_figure_is_no_wider_than_a_page(tmp_path, runs):
    figure = drawn(runs)
    figure.set_figwidth(8.5)  # as seaborn does for a legend outside
    assert save_figure(figure, "wide", "", runs, tmp_path).width_in == PAGE_IN


def test_a_name_with_dollars_is_no_mathematics_and_powers_of_ten_are(tmp_path):
    """A task may be named so; it ended the stage that drew it, or seaborn's layout."""
    name = r"$\frac$kd"
    table = pd.DataFrame({"source": [name], "count": [100.0]})
    use_style()
    grid = sns.relplot(table, x="source", y="count", hue="source", col="source")
    grid.set(yscale="log", ylim=(1, 1000))
    save_figure(grid.figure, "named", "A caption.", table, tmp_path)
    assert [label.get_text() for label in grid.ax.get_xticklabels()] == [name]
    powers = [label for label in grid.ax.get_yticklabels() if label.get_text()]
    assert powers and all(label.get_parse_math() for label in powers)
    assert not grid.ax.set_title(r"$\mathdefault{\frac}$").get_parse_math()


def test_table_text_is_escaped(tmp_path):
    record = save_table(FRAME, "table", "Half of 50 % & more_.", tmp_path)
    tex = (tmp_path / "table.tex").read_text()
    assert r"a\_b \& 50 \%" in tex and r"\caption{Half of 50 \% \& more\_.}" in tex
    assert r"\toprule" in tex and r"\begin{tabular}{lrr}" in tex
    shown = record.to_html(record.caption)
    assert "a_b &amp; 50 %" in shown and "–" in shown
    assert record.frame["seconds"][0] == pytest.approx(1 / 3, rel=1e-9)


def test_ours_stands_beside_the_published_value(tmp_path):
    ours = pd.DataFrame({"benchmark": ["N-body", "other"], "increase_percent": [0.2, 0.1]})
    theirs = published_table("persson2025-table1")
    record = save_table(ours, "tracing", "Tracing.", tmp_path, theirs)
    beside = "increase_percent (published)"
    assert list(record.frame) == ["benchmark", "increase_percent", beside]
    assert record.frame[beside][0] == 0.67 and np.isnan(record.frame[beside][1])
    assert "table 1" in record.caption and "Persson" in record.caption


def test_a_published_table_that_does_not_fit_is_refused(tmp_path):
    other = pd.DataFrame({"x": [1.0]})
    with pytest.raises(InputError, match="nothing to match"):
        save_table(other, "table", "", tmp_path, published_table("persson2025-table1"))
    ours = pd.DataFrame({"benchmark": ["N-body"], "seconds": [0.4]})
    with pytest.raises(InputError, match="several rows"):
        save_table(ours, "table", "", tmp_path, published_table("persson2025-table3"))


@pytest.mark.parametrize("name", ["../up", "with space", "", "-x"])
def test_a_name_that_is_no_file_name_is_refused(tmp_path, name):
    with pytest.raises(InputError, match="not a name"):
        save_table(FRAME, name, "", tmp_path)


def test_records_come_by_stage_and_in_the_order_in_which_they_were_first_saved(tmp_path, runs):
    assert records(tmp_path) == []
    save_table(FRAME, "later", "", tmp_path / "20-b")
    save_table(FRAME, "zulu", "", tmp_path / "10-a")
    save_figure(drawn(runs), "alpha", "", runs, tmp_path / "10-a")
    save_table(FRAME, "mike", "", tmp_path / "10-a")
    save_table(FRAME, "zulu", "again", tmp_path / "10-a")
    (tmp_path / "10-a" / "config.json").write_text("{}")
    found = records(tmp_path)
    names = [f"{record.folder.name} {record.name}" for record in found]
    assert names == ["10-a zulu", "10-a alpha", "10-a mike", "20-b later"]
    assert found[0].caption == "again"


@pytest.mark.parametrize(
    "column, values, shown",
    [
        # as many decimals each
        ("ratio", [0.681, 0.6615, 1.2, 0.0], ["0.6810", "0.6615", "1.2000", "0"]),
        ("ratio", [17.5, 1.27, float("nan")], ["17.500", "1.270", "–"]),
        ("factor", [1050.0, 0.08049], ["1050", "0.08049"]),  # too wide for decimals in common
        ("events", [3.0, 0.0], ["3", "0"]),
        # no number is printed as the zero that it is not
        ("mean_us", [0.0057, 1971.23], ["0.0057", "1971.2"]),
        ("p_value", [0.0, 0.00002, 0.00031, 0.04], ["0.000", "<0.0001", "0.00031", "0.040"]),
        ("change_percent", [-0.000001], [">-0.0001"]),
        ("slow_median", [15_407_739.0, 0.5], ["15,407,739", "0.5"]),
    ],
)
def test_numbers_are_printed_alike_down_a_column_and_never_as_a_zero_that_they_are_not(
    tmp_path, column, values, shown
):
    record = save_table(pd.DataFrame({column: values}), "table", "Numbers.", tmp_path)
    body = (tmp_path / "table.html").read_text()
    assert [html.unescape(cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", body)] == shown
    assert np.array_equal(record.frame[column], values, equal_nan=True)


@pytest.mark.parametrize(
    "columns", [["mitigation", "statistic", "ratio"], ["mitigation", "runs"], ["ratio"], []]
)
@pytest.mark.parametrize(
    "beside",
    [None, pd.DataFrame({"mitigation": ["tcmalloc"], "statistic": ["p95"], "ratio": [0.79]})],
)
def test_a_table_without_rows_says_why_in_every_format(tmp_path, columns, beside):
    why = "no allocator is here: apt-get install libjemalloc2, 5 % & more_"
    frame = because(pd.DataFrame(columns=columns), why)
    record = save_table(frame, "table", "Nothing.", tmp_path, published=beside)
    page, tex, text = ((tmp_path / f"table.{kind}").read_text() for kind in ("html", "tex", "csv"))
    assert f"No rows: {html.escape(why)}</td>" in page
    assert f'colspan="{max(len(columns), 1)}"' in page
    assert r"libjemalloc2, 5 \% \& more\_" in tex
    assert "No rows: no allocator is here" in text and len(record.frame) == 0
    assert list(record.frame.columns) == (columns or ["result"])
    assert [record.name for record in records(tmp_path)] == ["table"]


def test_a_figure_without_data_says_why(tmp_path):
    empty = pd.DataFrame(columns=["cell", "status", "seconds"])
    data = because(empty, "no mitigation can be tried here")
    figure = plt.figure()
    figure.subplots()
    record = save_figure(figure, "compare", "Nothing.", data, tmp_path)
    words = (tmp_path / "compare.svg").read_text()
    assert "axes_1" not in words and not plt.get_fignums(), "no empty axes are shown"
    assert "no mitigation can be tried here" in (tmp_path / "compare.csv").read_text()
    assert (tmp_path / "compare.pdf").stat().st_size and record.width_in == 3.33


def test_an_interval_stands_in_the_cell_of_its_number(tmp_path):
    frame = pd.DataFrame({"case": ["a", "b"], "median_percent": [3.14159, np.nan]})
    frame = frame.assign(median_low_percent=[1.0, np.nan], median_high_percent=[5.5, np.nan])
    frame = frame.assign(gap_ms=[2.0, 3.0], gap_ms_low=[1.0, np.nan], gap_ms_high=[3.0, np.nan])
    frame["low"] = [1.0, 2.0]
    record = save_table(frame, "folded", "Intervals.", tmp_path)
    assert list(record.frame.columns) == list(frame.columns), "the CSV has all columns"
    text = (tmp_path / "folded.tex").read_text()
    assert r"case & median (\%) & gap (ms) & low \\" in text and r"{lrrr}" in text
    assert r"a & 3.1 (1.0~to~5.5) & 2.0 (1.0~to~3.0) & 1 \\" in text
    assert r"b & -- & 3.000 & 2 \\" in text
    shown = record.to_html(record.caption)
    assert "3.1 (1.0\N{NO-BREAK SPACE}to\N{NO-BREAK SPACE}5.5)" in shown
    # 3 to 69 pixels are 1.0 to 5.5 %; beside the row without a number is no plot
    assert shown.count('<svg class="interval" role="img" aria-label="on a scale from 1.00') == 2
    assert "M3.0 6H69.0" in shown and 'cx="34.4"' in shown


def test_all_rows_are_there_and_only_the_key_table_is_not_folded(tmp_path):
    numbers = 1000.5 + np.arange(20 * 24).reshape(20, 24)
    frame = pd.DataFrame(numbers, columns=[f"measured_{i}_percent" for i in range(24)])
    record = save_table(frame.assign(config="Rm").iloc[:, ::-1], "long", "", tmp_path)
    text = Shown(record)._repr_html_()
    assert all(f">{value:.2f}</td>" in text for value in numbers.ravel())
    assert text.startswith("<details><summary>Table <code>long</code> (20 rows)</summary>")
    assert (
        Shown(record, key=True)._repr_html_().startswith('<figure class="noisebook key" id="long"')
    )
    columns = ["measured_3_percent", "config"]
    first = first_html(record.frame, columns)
    assert first.count("<tr>") == 1 + MOST_ROWS and first.count("<th ") == len(columns)
    whole = Shown(record, key=True, first=first)._repr_html_()
    assert "<summary>the whole table: 20 rows, 25 columns</summary>" in whole and first in whole
    assert not first_html(record.frame[:5])
    file = re.search('<a download="long.csv" href="data:text/csv;base64,([^"]*)">CSV</a>', text)
    assert base64.b64decode(file[1]) == (tmp_path / "long.csv").read_bytes()
