"""Netgauge's files, and what is refused of them."""

import pytest

from nbhelpers.errors import InputError
from nbhelpers.tracing.netgauge import read_netgauge

# As Netgauge 2.4.7 lays its selfish output out: header, detours, trailer.
NETGAUGE = """# Netgauge noise, method selfish
# number of recorded samples: 3
# min. cycle length [ns]: 10.014891
# threshold [% min cycle]: 900
0\t233
3714771\t3217
3736821\t243.4
# CPU overhead due to noise: 0.08%
# Measurement period: 0.0046 s
"""


def test_a_file_of_netgauge_with_header_and_trailer(tmp_path):
    (tmp_path / "n").write_text(NETGAUGE)
    detours = read_netgauge(tmp_path / "n")
    assert detours[["start_ns", "duration_ns"]].values.tolist() == [
        [0, 233],
        [3714771, 3217],
        [3736821, 243],
    ]
    assert detours.attrs["seconds"] == 0.0046
    (tmp_path / "n").write_text("0 233\n1000000 500000\n")
    assert read_netgauge(tmp_path / "n").attrs["seconds"] == 0.0015


@pytest.mark.parametrize(
    "text, message",
    [
        ("# nothing\n", "no detour in"),
        ("1 2 3\n", "detour 1"),
        ("0 10\nx y\n", "no detour trace"),
        ("5 1\n4 1\n", "before the one above"),
        ("-1 5\n", "make sense"),
        ("nan 1\n", "make sense"),
        ("1e300 1\n", "make sense"),
        ("0 0\n", "no length"),
    ],
)
def test_damaged_files(tmp_path, text, message):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(InputError, match=message):
        read_netgauge(tmp_path / "bad")
