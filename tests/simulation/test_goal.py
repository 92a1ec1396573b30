"""GOAL files: what is written is read, in every dialect, and so is the reference's binary; what is
wrong is named.
"""

import gzip
import os
import random
import re
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbhelpers import reading
from nbhelpers.errors import InputError
from nbhelpers.reading import read_yaml
from nbhelpers.simulation import goal, patterns, simulate
from nbhelpers.simulation.goal import read_goal, write_goal
from nbhelpers.simulation.schedule import ANY, CALC, RECV, SEND, Schedule, ScheduleError

from ..sanitizers import build_checked
from .cases import reference_cases, reference_folder
from .comparison import same
from .programs import to_schedule
from .reference import parse_goal

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch):
    """Thousands of small files are written here."""
    monkeypatch.setattr(os, "fsync", lambda handle: None)


# --- random schedules, as plain lists -------------------------------------------------------------


@st.composite
def plans(draw):
    """Ranks of (kind, peer, size, tag, cpu, nic), and dependencies (operation, needed, begun) in
    file order, without cycles.
    """
    ranks = draw(st.integers(1, 5))
    big = st.one_of(st.integers(0, 9), st.sampled_from([2**31, 2**32 - 1, 2**32, 2**63 - 1]))
    small = st.one_of(st.just(0), st.integers(0, 255))
    plan = []
    for _ in range(ranks):
        operations = []
        for _ in range(draw(st.integers(0, 6))):
            kind = draw(st.sampled_from([SEND, RECV, CALC]))
            any_ok = -1 if kind == RECV else 0
            peer = draw(st.integers(any_ok, ranks - 1))
            tag = draw(st.one_of(st.integers(any_ok, 3), st.just(2**31 - 1)))
            operations.append(
                (
                    kind,
                    *(
                        (0, draw(big), 0, draw(small), 0)
                        if kind == CALC
                        else (peer, draw(big), tag, draw(small), draw(small))
                    ),
                )
            )
        order = draw(st.permutations(range(len(operations))))
        pairs = st.tuples(
            st.integers(0, max(0, len(operations) - 1)),
            st.integers(0, max(0, len(operations) - 1)),
            st.booleans(),
        )
        wanted = draw(st.lists(pairs, max_size=8)) if len(operations) > 1 else []
        needs = [(order[max(a, b)], order[min(a, b)], begun) for a, b, begun in wanted if a != b]
        plan.append((operations, needs))
    return plan


def schedule_of(plan):
    counts = [len(operations) for operations, _ in plan]
    start = np.cumsum([0, *counts])
    rows = np.array([row for operations, _ in plan for row in operations], np.int64).reshape(-1, 6)
    edges = {
        which: [
            (start[rank] + a, start[rank] + b)
            for rank, (_, needs) in enumerate(plan)
            for a, b, begun in needs
            if begun == flag
        ]
        for which, flag in (("requires", False), ("irequires", True))
    }
    edges = {
        which: tuple(np.array(pairs, np.int64).reshape(-1, 2).T) for which, pairs in edges.items()
    }
    size, tag, cpu, nic = rows.T[2:] if len(rows) else (0, 0, 0, 0)
    return Schedule.from_arrays(
        counts, rows[:, 0].astype(np.uint8), rows[:, 1], size, tag=tag, cpu=cpu, nic=nic, **edges
    )


LABELS = [
    *("a", "B2", "x_y", "l1", "l2", "l9", "operation", "operation_1", "operation_2"),
    *("tag", "to", "b", "requires", "abcdefgh", "abcdefghi"),
]
NOTHING = ["", " ", "\t", "  ", "/* x: send */", " /**/ ", "\r"]


def handwritten(plan, seed):
    """The plan as somebody may have written it: blocks and lines mixed up, forward references,
    labels of all lengths, options in any order, comments anywhere.
    """
    dice = random.Random(seed)
    gap = lambda: dice.choice([" ", "  ", "\t", " /* to 3 */ "])  # noqa: E731
    blocks, labels = [], []
    for rank, (operations, needs) in enumerate(plan):
        names = dice.sample(LABELS, len(operations))
        labels.append(names)
        lines = []
        for name, (kind, peer, size, tag, cpu, nic) in zip(names, operations, strict=True):
            words = [
                "send" if kind == SEND else "recv" if kind == RECV else "calc",
                f"{size}" if kind == CALC else f"{size}{dice.choice(['', ' '])}b",
            ]
            words += [] if kind == CALC else ["to" if kind == SEND else "from", str(peer)]
            options = [
                (word, value)
                for word, value in (("tag", tag), ("cpu", cpu), ("nic", nic))
                if value or (dice.random() < 0.3 and (kind != CALC or word == "cpu"))
            ]
            dice.shuffle(options)
            words += [f"{word}{gap()}{value}" for word, value in options]
            lines.append(
                dice.choice(NOTHING)
                + name
                + dice.choice(NOTHING)
                + ":"
                + gap().join(["", *words])
                + dice.choice([*NOTHING, " // end"])
            )
        statements = iter(lines)
        dependencies = iter(
            [
                f"{names[a]} {'irequires' if begun else 'requires'}{gap()}{names[b]}"
                for a, b, begun in needs
            ]
        )
        order = [statements] * len(lines) + [dependencies] * len(needs)
        dice.shuffle(order)
        mixed = [next(source) for source in order]
        filler = ["", "// rank 7 {", "/* l1: calc 5\n} */", "   "]
        blocks.append(
            f"rank{gap()}{rank}{gap()}{{ {dice.choice(NOTHING)}\n"
            + "".join(f"{line}\n{dice.choice(filler)}\n" for line in mixed)
            + "}"
            + dice.choice(["", "\n", " // done\n"])
        )
    order = list(range(len(blocks)))
    dice.shuffle(order)
    return "// head\n/* and\n more */ num_ranks" + gap() + str(len(plan)) + "\n" + "\n".join(
        blocks[i] for i in order
    ), [name for names in labels for name in names]


@EXAMPLES
@given(
    plan=plans(),
    seed=st.integers(0, 2**32),
    piece=st.sampled_from([1, 2, 7, 64, 1 << 20]),
    packed=st.booleans(),
)
def test_handwritten_text(plan, seed, piece, packed, tmp_path, monkeypatch):
    text, labels = handwritten(plan, seed)
    path = tmp_path / "x.goal"
    path.write_bytes(gzip.compress(text.encode(), 1) if packed else text.encode())
    with monkeypatch.context() as changed:
        changed.setattr(reading, "_CHUNK", piece)
        schedule = read_goal(path).validate()
    same(schedule, schedule_of(plan))
    lines = re.sub(
        r"/\*.*?\*/", lambda comment: re.sub(r"[^\n]", " ", comment[0]), text, flags=re.S
    ).split("\n")
    for label, line in zip(labels, schedule.line.tolist(), strict=True):
        assert re.match(rf"\s*{label}\s*:", lines[line - 1])


@EXAMPLES
@given(plan=plans(), name=st.sampled_from(["x.goal", "x.goal.gz"]))
def test_round_trips(plan, name, tmp_path):
    schedule = schedule_of(plan)
    again = read_goal(write_goal(schedule, tmp_path / name)).validate()
    same(again, schedule)
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def with_early_receives(schedule):
    """Receives wait for the begin of what they waited for the end of: `irequires`."""
    operation, needed = schedule.edges()
    early = schedule.kind[operation] == RECV
    return Schedule.from_arrays(
        np.diff(schedule.rank_start),
        schedule.kind,
        schedule.peer,
        schedule.column("size"),
        tag=schedule.column("tag"),
        requires=(operation[~early], needed[~early]),
        irequires=(operation[early], needed[early]),
    )


def test_nothing_is_left_of_a_file_that_could_not_be_written(tmp_path, monkeypatch):
    write_goal(patterns.barrier(3), tmp_path / "a.goal")
    before = (tmp_path / "a.goal").read_bytes()
    monkeypatch.setattr(goal, "_block", lambda *_: (_ for _ in [1 / 0]))
    with pytest.raises(ZeroDivisionError):
        write_goal(patterns.barrier(4), tmp_path / "a.goal")
    assert [path.name for path in tmp_path.iterdir()] == ["a.goal"] and (
        tmp_path / "a.goal"
    ).read_bytes() == before


# --- the reference's files ------------------------------------------------------------------------


def reference_binary(plan):
    """The reference's binary, from its description: little endian, packed."""
    ranks = []
    for operations, needs in plan:
        lists = [
            [[a for a, b, begun in needs if b == i and begun == which] for which in (False, True)]
            for i in range(len(operations))
        ]
        waits = [sum(a == i for a, *_ in needs) for i in range(len(operations))]
        roots = [i for i, count in enumerate(waits) if not count]
        appendix, records = [], b""
        for (kind, peer, size, tag, cpu, nic), count, (done, begun) in zip(
            operations, waits, lists, strict=True
        ):
            first = len(appendix)
            appendix += done + begun
            records += struct.pack(
                "<IBIQIBBIIII",
                *(count, kind, peer % 2**32, size, tag % 2**32, cpu, nic),
                *(len(done), first, len(begun), first + len(done)),
            )
        ranks.append(
            struct.pack(f"<II{len(roots)}I", len(operations), len(roots), *roots)
            + records
            + struct.pack(f"<{len(appendix)}I", *appendix)
        )
    rows = [row for operations, _ in plan for row in operations]
    most = [max((row[column] for row in rows), default=0) for column in (4, 5)]  # cpu, nic
    head = struct.pack("<IBB", len(plan), *most)
    place, places = len(head) + 16 * len(ranks), b""
    for rank in ranks:
        places += struct.pack("<QQ", place, place + len(rank))
        place += len(rank)
    return struct.pack("<Q", 4223) + head + places + b"".join(ranks)


@EXAMPLES
@given(plan=plans())
def test_the_binary_is_the_references(plan, tmp_path):
    for name, packed in (("x", bytes), ("y", gzip.compress)):
        (tmp_path / name).write_bytes(packed(reference_binary(plan)))
        same(read_goal(tmp_path / name), schedule_of(plan))


def binary_of(schedule, path):
    """A schedule as the reference's binary, in a file."""
    path.write_bytes(reference_binary(plan_of(schedule)))
    return path


def plan_of(schedule):
    """A schedule as the plain lists that `schedule_of` takes."""
    columns = (schedule.column(name) for name in ("kind", "peer", "size", "tag", "cpu", "nic"))
    rows, ends = list(zip(*(column.tolist() for column in columns))), schedule.rank_start.tolist()
    needs = [[] for _ in ends[1:]]
    for which in ("requires", "irequires"):
        for pair in zip(*(side.tolist() for side in schedule.edges(which))):
            rank = int(schedule.rank_of(np.array(pair[0])))
            needs[rank].append((*(end - ends[rank] for end in pair), which == "irequires"))
    return [(rows[low:high], each) for low, high, each in zip(ends, ends[1:], needs)]


def test_tags_and_cpus_of_any_size_are_numbered_anew(tmp_path):
    """Tags of ATLAHS go beyond 2^31 and its CPUs beyond 255; only which are equal matters."""
    rank_0 = "send 8b to 1 tag T2 cpu C2\nsend 9b to 1 tag T1\ncalc 5 cpu C1\n"
    rank_1 = "recv 9b from 0 tag T1 cpu C2\nrecv 8b from 0 tag -1\ncalc 7 cpu C3\n"
    text = f"{HEAD}{rank_0}}}\nrank 1 {{\n{rank_1}}}\n"
    path, read = tmp_path / "x.goal", []
    for names in ("0 1 1 2 3", f"5000000000 {2**62} 256 999 2000000000"):
        written = text
        for name, number in zip(("T1", "T2", "C1", "C2", "C3"), names.split()):
            written = written.replace(name, number)
        path.write_text(written)
        read.append(read_goal(path))
    assert read[1].tag.tolist() == [2, 1, 0, 1, -1, 0]
    assert read[1].cpu.tolist() == [2, 0, 1, 1, 0, 2]  # from 0 in each rank
    ends = [simulate(schedule).finish_ns.tolist() for schedule in read]
    assert ends[0] == ends[1]
    path.write_text("num_ranks 1\nrank 0 {\ncalc 1 cpu 300\n}\n")
    assert read_goal(path).cpu.tolist() == [1]
    several = "\n".join(f"calc 1 cpu {3 * number}" for number in range(257))
    path.write_text(f"num_ranks 1\nrank 0 {{\n{several}\n}}\n")
    with pytest.raises(ScheduleError, match="more than 256 CPUs"):
        read_goal(path)


def test_all_reference_cases():
    cases = {case["goal"]: case for case in reference_cases()}
    assert len(cases) > 50
    for name, case in cases.items():
        schedule = read_goal(reference_folder() / name).validate()
        same(schedule, to_schedule(parse_goal(reference_folder() / name)))
        assert (schedule.ranks, schedule.events) == (case["num_ranks"], case["events"])


# --- what is wrong --------------------------------------------------------------------------------

HEAD = "num_ranks 2\nrank 0 {\n"
TAIL = "\n}\nrank 1 {\n}\n"

TOO_LARGE = [limit + more for limit in (2**63, 2**64) for more in (0, 1, 10)] + [2**65 + 1, 10**30]


@pytest.mark.parametrize("number", TOO_LARGE + [10**60 + 7])
@pytest.mark.parametrize(
    "text, line",
    [("num_ranks NUMBER\nrank 0 {\n}\n", 1), ("num_ranks 1\nrank NUMBER {\n}\n", 2)]
    + [
        (HEAD + statement + TAIL, 3)
        for statement in (
            "calc NUMBER",
            "send NUMBERb to 1",
            "recv 8b from NUMBER",
            "send 8b to 1 tag NUMBER",
            "calc 8 cpu NUMBER",
            "recv 8b from 1 nic NUMBER",
        )
    ],
)
def test_numbers_do_not_wrap(tmp_path: Path, text: str, line: int, number: int):
    """Above 2^64 a number's last 64 bits may look harmless: 2^64 is 0, and 2^64 + 1 is 1."""
    path = tmp_path / "large.goal"
    path.write_text(text.replace("NUMBER", str(number)))
    with pytest.raises(ScheduleError, match=f"'{number}b?' is too large") as caught:
        read_goal(path)
    assert f"line {line}" in str(caught.value) and "2^63" in str(caught.value)


@pytest.mark.parametrize(
    "text, line, rank, said",
    [
        ("", None, None, "the end of the file"),
        ("rank 0 {\n}\n", 1, None, "num_ranks"),
        ("num_ranks 0\n", 1, None, "0 ranks"),
        ("num_ranks x\n", 1, None, "'x' where a number"),
        ("num_ranks 1\nnum_ranks 1\n", 2, None, "second `num_ranks`"),
        ("num_ranks 1\nrank 1 {\n}\n", 2, None, "rank 1 does not exist"),
        ("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}\n", 4, 0, "second block of rank 0"),
        ("num_ranks 3\nrank 2 {\n}\nrank 0 {\n}\n", None, 1, "no block for rank 1"),
        ("num_ranks 2000000000\nrank 1999999999 {\n}", None, 0, "no block for rank 0"),
        ("num_ranks 1\nl1: calc 5\n", 2, None, "outside of any rank"),
        ("num_ranks 1\nrank 0 {\ncalc 5\n", 2, 0, "not closed"),
        ("num_ranks 1\n/* \n\n", 2, None, "comment is not closed"),
        (HEAD + "rank 1 {\n}\n}\n", 3, 0, "inside rank 0"),
        (HEAD + "\nl1: calc -5" + TAIL, 4, 0, "negative"),
        (HEAD + "l1: send 8b to 2" + TAIL, 3, 0, "peer 2 does not exist"),
        (HEAD + "l1: recv 8b from -2" + TAIL, 3, 0, "negative"),
        (HEAD + "l1: send 8b to 1 tag -1" + TAIL, 3, 0, "negative"),
        (HEAD + "l1: calc -0" + TAIL, 3, 0, "'-0': a negative number"),
        (HEAD + "l1: calc 8 cpu 2147483648" + TAIL, 3, 0, "too large"),
        (HEAD + "l1: send 8b to 1 nic 256" + TAIL, 3, 0, "too large"),
        (HEAD + "l1: send 8 to 1" + TAIL, 3, 0, "'to' was not expected"),
        (HEAD + "l1: send 8b to" + TAIL, 3, 0, "'the end of the line' where a number"),
        (HEAD + "l1: send 8bytes to 1" + TAIL, 3, 0, "'bytes' was not expected"),
        (HEAD + "l1: calc 8 tag 1" + TAIL, 3, 0, "calculation has no 'tag'"),
        (HEAD + "l1: calc 8 cpu 1 cpu 1" + TAIL, 3, 0, "second 'cpu'"),
        (HEAD + "l1: calc 8 l2: calc 9" + TAIL, 3, 0, "'l2' was not expected"),
        (HEAD + "l1: calc 8\nl2: calc 1\nl1: calc 9" + TAIL, 5, 0, "label 'l1' is used twice"),
        (HEAD + "l1: calc 8\n\nl1 requires later" + TAIL, 5, 0, "no operation 'later'"),
        (HEAD + "l1: calc 8\nl1 requires l1" + TAIL, 4, 0, "depends on itself"),
        (HEAD + "send: calc 8" + TAIL, 3, 0, "'send' as a label"),
        (
            HEAD
            + "a: calc 8\nb: calc 8\nc: calc 1\nc requires a\na requires b\nb irequires a"
            + TAIL,
            "[78]",
            0,
            "cycle",
        ),
        (HEAD + "1: calc 8" + TAIL, 3, 0, "'1:' was not expected"),
        (HEAD + "l1: calc 8\0" + TAIL, 3, 0, "not expected"),
        (HEAD + "// " + "x" * 2_000_000 + TAIL, 3, 0, "more than a million"),
        ("num_ranks 1 {\n", 1, None, "'{' was not expected"),
        ("num_ranks 1\nrank 0\n{\n}\n", 2, 0, "was not expected"),
    ],
)
def test_errors_say_what_and_where(text, line, rank, said, tmp_path):
    path = tmp_path / "wrong.goal"
    for content in (text, text.replace("\n", "\r\n")):
        path.write_text(content, newline="")
        with pytest.raises(ScheduleError) as error:
            read_goal(path)
        message = str(error.value)
        assert said in message and str(path) in message
        assert re.search(rf"line {line}\b", message) if line else "line" not in error.value.where
        assert rank is None or f"rank {rank}" in error.value.where


def test_binaries_that_are_used_up_or_cut_off(tmp_path):
    path = binary_of(
        patterns.sequence(patterns.barrier(5), patterns.scan(5, 3)), tmp_path / "x.bin"
    )
    whole = path.read_bytes()
    path.write_bytes(struct.pack("<Q", 2342) + whole[8:])
    with pytest.raises(ScheduleError, match="used up"):
        read_goal(path)
    for length in range(0, len(whole), 3):
        path.write_bytes(whole[:length])
        with pytest.raises(ScheduleError):
            read_goal(path)


@pytest.mark.parametrize(
    "at, value, said",
    [
        (4, 9, "unknown type"),
        (5, 77, "peer"),
        (0, 3, "count of dependencies"),
        (23, 200, "list of dependents"),
        (-4, 3, "roots"),
    ],
)
def test_binaries_that_contradict_themselves(at, value, said, tmp_path):
    path = binary_of(patterns.dissemination(2, 1), tmp_path / "x.bin")
    whole = bytearray(path.read_bytes())
    first_record = 8 + 6 + 2 * 16 + 8 + 4 * 2
    whole[first_record + at] = value
    path.write_bytes(whole)
    with pytest.raises(ScheduleError, match=said):
        read_goal(path)


def test_files_that_are_not_there_and_archives_that_are_damaged(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_goal(tmp_path / "none")
    packed = gzip.compress(b"num_ranks 1\nrank 0 {\n}\n" + b"// comment\n" * 1000)
    for damage in (packed[:-20], packed[:40] + b"\xff\xff" + packed[42:]):
        (tmp_path / "x.gz").write_bytes(damage)
        with pytest.raises(InputError, match="x.gz"):
            read_goal(tmp_path / "x.gz")


# --- damage (and tests/test_readers.py) -----------------------------------------------------------


@pytest.mark.long
def test_the_reader_is_clean_under_the_sanitizers(tmp_path):
    """Twenty thousand mutations of a text and of a binary, in C, under the address and
    undefined-behaviour sanitizers.
    """
    source = REPOSITORY / "simulator_c"
    driver = build_checked(
        tmp_path,
        f"-I{source}",
        *sorted(source.glob("goal*.c")),
        REPOSITORY / "tests/simulation/goal_driver.c",
    )
    body = patterns.sequence(patterns.halo((2, 2), 100), patterns.binomial_bcast(4, 9))
    schedule = with_early_receives(patterns.loop(body, 2, 50))
    seeds = [
        write_goal(schedule, tmp_path / "seed.goal"),
        binary_of(schedule, tmp_path / "seed.bin"),
        tmp_path / "hand.goal",
    ]
    seeds[2].write_text(
        handwritten(
            [
                (
                    [(CALC, 0, 5, 0, 1, 0), (RECV, ANY, 5, ANY, 0, 2), (SEND, 0, 5, 0, 0, 0)],
                    [(0, 1, False), (2, 1, True)],
                )
            ],
            5,
        )[0]
    )
    done = subprocess.run([driver, "20000", *seeds], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and not done.stderr, done.stderr[-2000:]
    refused, read = (int(number) for number in done.stdout.split())
    assert refused > 1000 and read > 100


def test_each_problem_of_the_c_reader_has_its_text():
    texts = read_yaml(goal.KNOWLEDGE, "texts")
    assert {"OK", "NO_MEMORY", *texts} == set(goal._PROBLEM_NAMES.values())
    assert all(one["what"] for one in texts.values())
