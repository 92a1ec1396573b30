"""Tables of a hand-made trace, against sums by hand."""

import pandas as pd
import pytest

from nbhelpers.mpi import Calls, call_times, collective_sizes, time_shares


def row(rank, call, start_ns, end_ns, kind="other", size=0, received=0, comm=0):
    return {
        "rank": rank,
        "call": call,
        "kind": kind,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "bytes": size,
        "received_bytes": received,
        "comm": comm,
    }


def collective(rank, call, start_ns, end_ns, size, received, comm=0):
    return row(rank, call, start_ns, end_ns, "collective", size, received, comm)


@pytest.fixture
def calls():
    rows = [
        row(0, "MPI_Init", -5000, 0),
        row(0, "MPI_Send", 1000, 3000, "send", 8),
        collective(0, "MPI_Bcast", 4000, 5000, 16, 0),
        collective(0, "MPI_Allreduce", 6000, 10000, 8, 8),
        row(0, "MPI_Finalize", 20000, 30000),
        row(1, "MPI_Init", -4000, 2000),
        row(1, "MPI_Recv", 2000, 4000, "receive", received=8),
        collective(1, "MPI_Bcast", 5000, 6000, 0, 16),
        collective(1, "MPI_Allreduce", 7000, 9000, 8, 8),
        collective(1, "MPI_Barrier", 9000, 10000, 0, 0, comm=1),
        row(1, "MPI_Finalize", 12000, 30000),
    ]
    return Calls(pd.DataFrame(rows), pd.DataFrame(), {0: (0, 1), 1: (1,)}, 2)


def test_the_share_of_communication(calls):
    shares = time_shares(calls)
    assert shares["seconds"].tolist() == pytest.approx([20e-6, 10e-6])
    assert shares["communication_share"].tolist() == pytest.approx([7 / 20, 6 / 10])


def test_a_rank_that_died_counts_to_its_last_call(calls):
    cut = calls.table[~((calls.table["rank"] == 1) & (calls.table["call"] == "MPI_Finalize"))]
    shares = time_shares(Calls(cut, pd.DataFrame(), calls.comms, 2))
    assert shares["seconds"].tolist() == pytest.approx([20e-6, 8e-6])


def test_time_by_function(calls):
    times = call_times(calls).set_index("call")
    assert times["seconds"].to_dict() == pytest.approx(
        {
            "MPI_Allreduce": 6e-6,
            "MPI_Send": 2e-6,
            "MPI_Recv": 2e-6,
            "MPI_Bcast": 2e-6,
            "MPI_Barrier": 1e-6,
        }
    )
    assert times.index[0] == "MPI_Allreduce"
    assert times.loc["MPI_Allreduce", "share_of_communication"] == pytest.approx(6 / 13)
    assert times.loc["MPI_Allreduce", "share_of_time"] == pytest.approx(6 / 30)
    assert times.loc["MPI_Allreduce", ["mean_us", "p50_us", "max_us"]].tolist() == [3, 3, 4]


def test_an_operation_of_all_ranks_counts_one_time(calls):
    sizes = collective_sizes(calls).set_index("call")
    assert sizes["operations"].to_dict() == dict.fromkeys(
        ("MPI_Allreduce", "MPI_Barrier", "MPI_Bcast"), 1
    )
    assert sizes["bytes"].to_dict() == {"MPI_Allreduce": 8, "MPI_Barrier": 0, "MPI_Bcast": 16}
    assert sizes["ranks"].to_dict() == {"MPI_Allreduce": 2, "MPI_Barrier": 1, "MPI_Bcast": 2}
