"""The fixtures of the repository's own tests: programs that are built, and nothing left behind; and
where the score of the bench lies.
"""

import sys
from pathlib import Path

from tests.conftest import binaries, nothing_left

sys.path.append(str(Path(__file__).parents[3] / "benchmarks" / "known_causes"))

__all__ = ["binaries", "nothing_left"]
