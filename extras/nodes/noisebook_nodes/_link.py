"""Lines of JSON between the head and the agents of the nodes, over TCP.

Owns the names of what is said: an agent says hello, is given the noise, says ready, is told go,
and says what was observed. A word that only the job knows keeps strangers out.
"""

import json
import secrets
import socket
from typing import Any

VARIABLE = "NOISEBOOK_NODES"  # host:port:word, handed to the ranks
GROUPS = "NOISEBOOK_NODE_GROUPS"  # for trials: groups of ranks of one machine that count as nodes
MOST_BYTES = 1 << 28
GREETING_BYTES, GREETING_S = 1 << 12, 5.0  # of a stranger, before it has said the word


class Link:
    """One end of a connection."""

    def __init__(self, connected: socket.socket):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket, self._file = connected, connected.makefile("rb")

    def say(self, **what: Any) -> None:
        """Send a line."""
        self._socket.sendall(json.dumps(what).encode() + b"\n")

    def hear(self, most: int = MOST_BYTES) -> dict[str, Any]:
        """The next line; empty when the other end is gone, or says no object of JSON."""
        try:
            line = self._file.readline(most)
            said = json.loads(line) if line.endswith(b"\n") else {}
        except (OSError, ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    def knows(self, word: str) -> bool:
        """Whether the other end begins with the word, in time."""
        self._socket.settimeout(GREETING_S)
        said = str(self.hear(GREETING_BYTES).get("word", ""))
        self._socket.settimeout(None)
        return secrets.compare_digest(said.encode(errors="replace"), word.encode())

    def fileno(self) -> int:
        """For `select`."""
        return self._socket.fileno()

    def close(self) -> None:
        """Safe to call again."""
        self._file.close()
        self._socket.close()
