"""A folder of somebody else's traces: written here in the published form, with noise whose sums are
known.
"""

import re
import shutil

import pytest

from nbhelpers.errors import InputError, LostEvents
from nbhelpers.noise import NoiseConfig, average_noise, delta_noise
from nbhelpers.tracing.foreign import read_foreign_traces

HEAD = "# tracer: osnoise\n#\n"


def line(cpu: int, kind: str, source: str, start_us: int, duration_ns: int) -> str:
    start_ns = 100_000_000_000 + start_us * 1000
    end_us = (start_ns + duration_ns) // 1000
    return (
        f"           <...>-77      [{cpu:03d}] d.h..   {end_us // 10**6}.{end_us % 10**6:06d}:"
        f" {kind}_noise: {source} start {start_ns // 10**9}.{start_ns % 10**9:09d} duration"
        f" {duration_ns} ns\n"
    )


def trace(timer_ns: int, burner_ns: int = 0) -> str:
    # the program itself: its first event begins the run
    lines = [line(0, "thread", "nbody:50", 0, 1000)]
    lines += [line(0, "irq", "local_timer:236", 4000 * at, timer_ns) for at in range(1, 20)]
    lines += [line(1, "thread", "burner:99", 30_000, burner_ns)] if burner_ns else []
    return HEAD + "".join(lines)


@pytest.fixture
def folder(tmp_path):
    for number, (seconds, burner_ns) in enumerate([(0.08, 0), (0.081, 0), (0.1, 20_000_000)]):
        (tmp_path / f"nbody-{number}.trace").write_text(trace(3000, burner_ns))
        printed = f"PASS\nTotal Duration: {seconds} seconds\n"
        (tmp_path / f"nbody-{number}.benchout").write_text(printed)
    return tmp_path


def test_the_folder_goes_through_the_same_pipeline(folder):
    runs, events = read_foreign_traces(folder, "nbody")
    assert runs["seconds"].tolist() == [0.08, 0.081, 0.1]
    assert set(events["source"]) == {"local_timer", "burner"}
    timer = events[events["source"] == "local_timer"].groupby("run")["duration_ns"].sum()
    assert (timer == 19 * 3000).all()
    delta = delta_noise(events, average_noise(events, runs), runs)
    assert delta.attrs["run"] == 2
    kept = NoiseConfig.from_events(delta).events()
    burner = kept[kept["source"] == "burner"]
    # the average run has a third of such an event, that is none to take off
    assert burner["duration_ns"].sum() == 20_000_000
    assert set(burner["cpu"]) == {1}


def test_the_length_may_stand_in_the_trace_itself(tmp_path):
    (tmp_path / "a.txt").write_text(trace(3000) + "Total Duration: 0.08 seconds\n")
    assert read_foreign_traces(tmp_path, "nbody")[0]["seconds"].tolist() == [0.08]


def test_what_cannot_be_read_is_named(folder, tmp_path):
    with pytest.raises(InputError, match="no trace"):
        read_foreign_traces(tmp_path / "nothing", "nbody")
    with pytest.raises(InputError, match="name of the program"):
        read_foreign_traces(folder, "")
    with pytest.raises(InputError, match="no thread named 'minife'"):
        read_foreign_traces(folder, "minife")
    (folder / "nbody-1.trace").write_text(trace(3000) + "CPU:1 [LOST 5 EVENTS]\n")
    with pytest.raises(LostEvents, match="nbody-1"):
        read_foreign_traces(folder, "nbody")


def test_real_traces_of_the_osnoise_tracer_become_a_config(data, tmp_path):
    """Two runs of the emulated machine; the second was disturbed by a burner of 0.12 s that carries
    the name of the shell that began it.
    """
    for number in ("000", "003"):
        shutil.copy(data / f"osnoise-run-{number}.trace.gz", tmp_path / f"run-{number}.trace.gz")
        printed = (data / f"osnoise-run-{number}.printed").read_text()
        elapsed = re.search(r"elapsed ([\d.]+)", printed)[1]
        (tmp_path / f"run-{number}.benchout").write_text(f"Total Duration: {elapsed} seconds\n")
    runs, events = read_foreign_traces(tmp_path, "wl_omp")
    assert runs["seconds"].round(2).tolist() == [2.81, 2.99]
    assert runs["trace"].tolist() == ["run-000.trace.gz", "run-003.trace.gz"]
    delta = delta_noise(events, average_noise(events, runs), runs)
    config = NoiseConfig.from_events(delta)
    assert delta.attrs["run"] == 1 and set(config.cpus) == {0, 1}
    assert "wl_omp" not in set(config.events()["source"])
    left, traced = (
        table.query("source == 'bash'")["duration_ns"].sum()
        for table in (config.events(), events[events["run"] == 1])
    )
    # of two runs the average holds half of the burner, and takes it off
    assert traced > 0.08e9 and 0.4 < left / traced < 1
