"""Asks `noisebook-priv`, the small program that may do what its user may not.

Owns how it is found, started and spoken to. Nothing is asked where the user's own rights are
enough.
"""

import atexit
import contextlib
import errno
import functools
import os
import socket
import subprocess
import threading

NAME = "noisebook-priv"
PLACES = ("/usr/local/bin/noisebook-priv", "/usr/bin/noisebook-priv")
INSTALL = "sudo make privileged"
TRACEFS = "/sys/kernel/tracing/"
INSTANCES = f"{TRACEFS}instances/"
OSNOISE_OPTIONS = f"{TRACEFS}osnoise/options"
_ANSWER_BYTES = 4096
_PATIENCE_S = 10.0


class Helper:
    """A running `noisebook-priv`; it ends when this process does.

    Parameters
    ----------
    command
        The program, perhaps with sudo before it.

    Raises
    ------
    OSError
        It does not start, or does not answer.
    """

    def __init__(self, command: list[str]):
        self.owner = os.getpid()
        self._turn = threading.Lock()
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        ours.settimeout(_PATIENCE_S)
        try:
            with its:
                self._process = subprocess.Popen(
                    command,
                    stdin=its.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C is for us: it puts back what we changed
                )
            self.request("hello")
        except BaseException as error:
            # refused: any answer shows that the program has started
            if not isinstance(error, OSError) or error.errno != errno.EBADMSG:
                self.close()
                raise

    def request(self, *words: object, fd: int = -1) -> tuple[str, int]:
        """Send a request.

        Parameters
        ----------
        words
            The verb and its arguments, as in workloads/nbpriv.c.
        fd
            A file descriptor that goes with it; −1: none.

        Returns
        -------
        (text, fd) : the answer, and the file descriptor that came with it, or −1.

        Raises
        ------
        OSError
            It was refused, with the reason; or the program has ended.
        """
        request = " ".join(map(str, words)).encode("ascii", "replace")
        with self._turn:
            socket.send_fds(self._socket, [request], [fd] if fd >= 0 else [])
            closed = socket.MSG_CMSG_CLOEXEC
            answer, fds, *_ = socket.recv_fds(self._socket, _ANSWER_BYTES, 1, closed)
        state, _, text = answer.decode("ascii", "replace").partition(" ")
        if state == "ok":
            return text, fds[0] if fds else -1
        if state != "no":
            raise OSError(errno.EPIPE, f"{NAME} does not answer")
        number, _, reason = text.partition(" ")
        raise OSError(int(number), f"{NAME}: {reason}")

    def close(self) -> None:
        """End the program."""
        self._socket.close()
        process = getattr(self, "_process", None)
        if process is not None and os.getpid() == self.owner:
            process.wait()


def helper() -> Helper | None:
    """The helper of this process, started at the first call; None: there is none here.

    It is the program that $NOISEBOOK_PRIV names, or an installed one: with file capabilities, or
    by sudo without a password.
    """
    return _helper(os.getpid()) if os.geteuid() else None


@functools.lru_cache(maxsize=1)
def _helper(pid: int) -> Helper | None:
    for command in _commands():
        with contextlib.suppress(OSError):
            found = Helper(command)
            atexit.register(found.close)
            return found
    return None


def _commands() -> list[list[str]]:
    named = os.environ.get("NOISEBOOK_PRIV")
    found = [path for path in ([named] if named else PLACES) if os.access(path, os.X_OK)]
    return [[path] if _has_capabilities(path) else ["sudo", "-n", path] for path in found]


def _has_capabilities(path: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(os.getxattr(path, "security.capability"))
    return False


def _requested(*words: object, fd: int = -1) -> tuple[str, int]:
    """The answer of the helper; PermissionError where there is none."""
    found = helper()
    if found is None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return found.request(*words, fd=fd)


# ---- what it is asked for ------------------------------------------------------------------------


def write(path: str, value: str) -> None:
    """Give a setting that is on the list a value of its range; or set a flag of osnoise."""
    if path == OSNOISE_OPTIONS:
        _requested("watch", value)
    elif path.startswith(INSTANCES):
        name, _, file = path.removeprefix(INSTANCES).partition("/")
        # events are a word with commas, and nothing is "none"
        _requested("knob", name, file, value.replace("\n", ",") or "none")
    else:
        _requested("write", path, value)


def may_help(path: str, error: OSError) -> bool:
    """Whether the helper may reach what this user could not; which value it writes, it says when
    asked. In tracefs, which may not be mounted, it reaches what is not there for others.
    """
    refused = isinstance(error, PermissionError) or path.startswith(TRACEFS)
    return refused and helper() is not None


def osnoise_options() -> str:
    """The flags of osnoise."""
    return _requested("watch", "show")[0]


def make_instance(path: str) -> None:
    """Make a tracefs instance below /sys/kernel/tracing/instances."""
    _requested("trace", path.removeprefix(INSTANCES))


def remove_instance(path: str) -> None:
    """Remove a tracefs instance of this user's."""
    _requested("untrace", path.removeprefix(INSTANCES))


def open_instance(path: str) -> int:
    """A descriptor of the folder of an instance of this user's, in which it may read."""
    return _requested("look", path.removeprefix(INSTANCES))[1]


def is_hidden_instance(path: str) -> bool:
    """Whether a path is an instance that this user cannot reach by its name, but the helper can."""
    return (
        path.startswith(INSTANCES)
        and not os.access(INSTANCES, os.R_OK | os.X_OK)
        and helper() is not None
    )


def tracepoint(system: str, name: str) -> int:
    """The number of a tracepoint."""
    return int(_requested("event", f"{system}/{name}")[0])


def counter(kind: int, config: int, pid: int, cpu: int, flags: int, group: int = -1) -> int:
    """A perf counter on a thread of this user (0: this one); its descriptor."""
    thread = threading.get_native_id() if pid == 0 else pid
    return _requested("perf", kind, config, thread, cpu, flags, fd=group)[1]


def allow_realtime() -> bool:
    """Let this process, and what it starts from now on, ask for real-time priority."""
    with contextlib.suppress(OSError):
        _requested("realtime", os.getpid())
        return True
    return False


def realtime_refusal(priority: int) -> int:
    """0 if a thread of this process may take SCHED_FIFO at a priority, perhaps with the helper's
    leave; else the number of the error.

    Linux schedules threads: this one tries, and is as before. No process is forked from a kernel
    that runs many of them.
    """
    number = _tried_realtime(priority)
    return _tried_realtime(priority) if number and allow_realtime() else number


def _tried_realtime(priority: int) -> int:
    before = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))
    except OSError as error:
        return error.errno or errno.EPERM
    os.sched_setscheduler(0, *before)
    return 0


def latency(us: int) -> int:
    """The request for wake-ups within so many µs; it holds while the descriptor is open."""
    return _requested("latency", us)[1]
