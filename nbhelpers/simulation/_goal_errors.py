"""The errors of a GOAL file that cannot be read: the number of the C reader's problem ─► what,
where, why, what to do.
"""

from pathlib import Path

from .schedule import ScheduleError

_LIMITS = "sizes and tags must stay below 2^63, ranks and cpu below 2^31, nic below 256"
_PROBLEMS = {
    "NO_NUM_RANKS": (
        "'{word}' where `num_ranks` and a number belong",
        "every schedule begins with it",
        "is it a GOAL file?",
    ),
    "TWO_NUM_RANKS": (
        "a second `num_ranks`",
        "",
        "one file holds one schedule: write the second to a file of its own",
    ),
    "NO_RANKS": ("a schedule of 0 ranks",),
    "RANK_RANGE": (
        "rank {place} does not exist",
        "there are {ranks} ranks, 0 to {last}",
        "fix `num_ranks` or the rank",
    ),
    "RANK_TWICE": (
        "a second block of rank {rank}",
        "the first begins in line {place}",
        "put all operations of a rank into one block",
    ),
    "RANK_MISSING": (
        "no block for rank {rank}",
        "the file may be cut off: {ranks} ranks are promised",
        "a rank that does nothing is written `rank {rank} {{ }}`",
    ),
    "OUTSIDE_RANK": (
        "'{word}' outside of any rank",
        "operations and dependencies belong into `rank N {{ … }}`",
    ),
    "INSIDE_RANK": ("a rank begins inside rank {rank}", "", "close rank {rank} with `}}` first"),
    "UNEXPECTED": (
        "'{word}' was not expected here",
        (
            "a line holds `[label:] send N b to R`, `recv N b from R`, `calc N`, each with its tag,"
            " cpu and nic, or `label requires label`, `label irequires label`"
        ),
    ),
    "NOT_A_NUMBER": ("'{word}' where a number belongs",),
    "NEGATIVE": (
        "'{word}': a negative number",
        "only `from -1` (anybody) and a receive's `tag -1` (any tag) are",
    ),
    "OVERFLOW": (
        "'{word}' is too large",
        _LIMITS,
        "sizes are bytes, calculations ns: is the number in another unit?",
    ),
    "PEER_RANGE": ("the peer {place} does not exist", "there are {ranks} ranks, 0 to {last}"),
    "OPTION_TWICE": ("a second '{word}' for the same operation",),
    "OPTION_OF_CALC": ("a calculation has no '{word}'", "it takes only `cpu N`"),
    "LABEL_TWICE": (
        "the label '{word}' is used twice in rank {rank}",
        "it is first used in line {place}: a dependency on it would be ambiguous",
        "rename one of them",
    ),
    "LABEL_UNKNOWN": (
        "rank {rank} has no operation '{word}'",
        "labels belong to their rank; ranks wait for each other by messages only",
    ),
    "LABEL_KEYWORD": ("'{word}' as a label", "it is a word of the language", "call it otherwise"),
    "NEEDS_ITSELF": ("'{word}' depends on itself", "it would never start"),
    "CYCLE": (
        "a cycle of dependencies: operation {place} waits for itself",
        "none of its operations would ever start",
    ),
    "OPEN_RANK": (
        "rank {rank} is not closed",
        "the file ends before its `}}`: it may be cut off",
    ),
    "OPEN_COMMENT": (
        "a comment is not closed",
        "everything after it would be lost",
        "end it with `*/`",
    ),
    "TOO_MANY": ("too many {word}", "at most 2^31 − 1 can be numbered"),
    "LONG_LINE": ("a line of more than a million characters", "it is hardly a GOAL text"),
    "SHORT": ("the file ends within {word}", "it is cut off"),
    "DAMAGED": (
        "{word}",
        "at byte {place}: the file is cut off or damaged",
        "write it again from its text",
    ),
    "INVALIDATED": (
        "a binary that a simulation has used up",
        "the reference's --save-mem counts down the dependencies inside the file",
        "write it again from its text",
    ),
}


def refusal(
    problem: str, path: Path, *, word: str, line: int, rank: int, place: int, ranks: int
) -> Exception:
    """The error for a problem of the C reader, by its name without GOAL_."""
    if problem == "NO_MEMORY":
        return MemoryError(f"{path} needs more memory than there is")
    where = ", ".join([str(path)] + [f"line {line}"] * (line > 0) + [f"rank {rank}"] * (rank >= 0))
    what, why, fix = (
        text.format(word=word, rank=rank, place=place, ranks=ranks, last=ranks - 1)
        for text in (*_PROBLEMS[problem], "", "")[:3]
    )
    return ScheduleError(what, where=where, why=why, fix=fix)
