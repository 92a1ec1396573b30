"""Signals, threads and children of a Python program; prints the same with and without the probe."""

import hashlib
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np

calls: list[int] = []
stop = time.process_time() + 0.4
every = range(signal.SIGRTMIN, signal.SIGRTMAX + 1)


def compute() -> str:
    matrix = np.arange(90_000, dtype=float).reshape(300, 300) / 1e5
    digest = hashlib.sha256()
    while time.process_time() < stop:
        digest = hashlib.sha256((matrix @ matrix).tobytes())
    return digest.hexdigest()


for number in every:
    signal.signal(number, lambda got, frame: calls.append(got))
signal.setitimer(signal.ITIMER_PROF, 0.05, 0.05)
signal.signal(signal.SIGPROF, lambda got, frame: calls.append(-1))
threads = [threading.Thread(target=compute) for _ in range(3)]
for thread in threads:
    thread.start()
for number in every:
    os.kill(os.getpid(), number)
    time.sleep(0.001)
print(compute())
for thread in threads:
    thread.join()
signal.setitimer(signal.ITIMER_PROF, 0)
print(sorted(call for call in calls if call > 0), -1 in calls)

signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
print(sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
print(signal.sigwait(signal.valid_signals()), signal.sigpending())
signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
print(subprocess.run([sys.executable, "-c", "print(sum(range(10**6)))"], stdout=-1).stdout)
