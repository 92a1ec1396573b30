"""One language of colours: fixed ones are kept, and two names never share one by accident."""

import subprocess
import sys

import matplotlib.pyplot as plt
import numpy as np

from nbhelpers import palette


def test_fixed_colours_are_kept_and_others_take_the_free_ones():
    found = palette.colours(["tcmalloc", "baseline", "mimalloc", "injected"])
    assert list(found) == ["tcmalloc", "baseline", "mimalloc", "injected"]
    assert found["baseline"] == palette.SIDES["baseline"]
    assert found["injected"] == palette.SIDES["injected"]
    assert len(set(found.values())) == 4


def test_each_side_class_and_kind_has_a_second_channel():
    names = {*palette.SIDES, *palette.CLASSES, *palette.KINDS}
    assert names == {*palette.MARKERS} == {*palette.DASHES}
    kinds = [(palette.MARKERS[name], palette.DASHES[name]) for name in palette.KINDS]
    assert len(set(kinds)) == len(kinds)


def test_names_of_threads_have_no_colour_of_interrupts_or_classes():
    others = {palette.KINDS["irq"], palette.KINDS["softirq"], *palette.CLASSES.values()}
    assert not others & {*palette.THREADS}
    assert palette.KINDS["thread"] == palette.THREADS[0]


def test_what_differs_in_colour_alone_gets_a_second_channel():
    figure, axes = plt.subplots()
    for colour in (palette.BLUE, palette.VERMILION):
        axes.plot(range(20), color=colour, label=colour)
        axes.plot([1, 2], marker="o", color=colour)
        axes.bar([colour], [1], color=colour)
    axes.legend()
    palette.second_channel(figure)
    plt.close(figure)
    curves, marks = axes.lines[::2], axes.lines[1::2]
    assert [line.get_linestyle() for line in curves] == ["-", "--"]
    assert [line.get_marker() for line in marks] == ["o", "s"]
    assert [bars[0].get_hatch() for bars in axes.containers] == ["", "////"]
    legend = axes.get_legend().get_lines()
    assert [line.get_linestyle() for line in legend] == ["-", "--"]


def test_the_style_is_that_of_the_file_and_scattering_is_seeded():
    state = np.random.get_state()
    with plt.rc_context():
        palette.use_style()
        first = np.random.random()
        palette.use_style()
        assert plt.rcParams["font.size"] == 8 and plt.rcParams["svg.hashsalt"] == "noisebook"
        assert np.random.random() == first
    np.random.set_state(state)


def test_the_palette_loads_nothing_heavy():
    heavy = "import sys, nbhelpers.palette; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", heavy]).returncode == 0
