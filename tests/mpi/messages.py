"""Which send belongs to which receive, and what was never received.

Owns the matching rule: messages of one sender, receiver, communicator and tag are received in the
order in which they were sent (MPI 4.1, section 3.5).
"""

import pandas as pd

from nbhelpers.mpi import Calls

_STREAM = ["sender", "receiver", "comm", "tag"]


def matched_messages(calls: Calls) -> pd.DataFrame:
    """All messages between ranks, each with its two calls.

    Parameters
    ----------
    calls
        Of all ranks.

    Returns
    -------
    pandas.DataFrame
        One row a message: `sender`, `receiver`, `comm`, `tag`; `send_row` and `receive_row` (of
        `calls.table`; −1: never sent, or never received); `bytes` as sent and `received_bytes`
        (0 where there is no such call). A receive that was cancelled, or never completed, is no
        message.
    """
    table = calls.table.reset_index(names="row")
    sends = table[table["kind"].isin(("send", "both")) & (table["peer"] >= 0)]
    receives = table[table["kind"].isin(("receive", "both")) & (table["source"] >= 0)]
    sent = sends.rename(columns={"rank": "sender", "peer": "receiver", "row": "send_row"})
    received = receives.drop(columns="tag").rename(
        columns={
            "source": "sender",
            "rank": "receiver",
            "received_tag": "tag",
            "row": "receive_row",
        }
    )
    sent = sent[[*_STREAM, "send_row", "bytes"]].copy()
    received = received[[*_STREAM, "receive_row", "received_bytes"]].copy()
    for side in (sent, received):
        side["nth"] = side.groupby(_STREAM).cumcount()
    messages = sent.merge(received, how="outer", on=[*_STREAM, "nth"])
    rows = ["send_row", "receive_row"]
    messages[rows] = messages[rows].fillna(-1).astype("int64")
    counts = ["bytes", "received_bytes"]
    messages[counts] = messages[counts].fillna(0).astype("int64")
    return messages.sort_values(rows, ignore_index=True)[[*_STREAM, *rows, *counts]]
