"""A Python program with a timed region: `symbols` or `lines`, its first argument."""

import ctypes
import os
import sys
import time


def work(milliseconds):
    until_ns = time.monotonic_ns() + milliseconds * 1_000_000
    while time.monotonic_ns() < until_ns:
        pass


kind = sys.argv[1]
begin, end = {
    "symbols": lambda: (ctypes.CDLL(None).noisebook_begin, ctypes.CDLL(None).noisebook_end),
    "lines": lambda: (lambda: print("Starting the solver"), lambda: print("Solver took long")),
}[kind]()
work(10)
before_ns = time.monotonic_ns()
begin()
begin_ns = time.monotonic_ns() if kind == "symbols" else before_ns
work(10)
end_ns = time.monotonic_ns()
end()
work(5)
with open(os.environ["TRUTH"], "a") as file:
    print(begin_ns, end_ns, file=file)
