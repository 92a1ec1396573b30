"""The place of ours beside the published results."""

from nbhelpers.report import published_results


def test_ours_stand_in_their_rows_and_the_rest_is_empty():
    ours = {"median": 20.0, "low": 17.0, "high": 22.0, "seeds": 30}
    table = published_results({"ferreira-128": ours}).set_index("result")
    shown = table.loc["ferreira-128", ["published", "reference", "ours", "low", "high", "seeds"]]
    assert shown.tolist() == ["30", "17.3–31.7", 20, 17, 22, 30]
    assert table["ours"].notna().sum() == 1
    assert table.loc[["pop-scale", "one-mib"], "published"].tolist() == ["> 2", "< 1"]
    accepted = table.loc[["POP 1000 Hz x 25 us", "pop-scale"], "accepted"]
    assert accepted.tolist() == ["1.24–1.36", "> 1.99"]
