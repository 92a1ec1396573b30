"""Many fast changes in a real kernel: the view ends at the controls' last values, and what lay
between is left out.
"""

import json
import re
import sys
import time

import pytest
from jupyter_client.manager import KernelManager

CHANGES = 60
SETUP = """
import json, time
from nbhelpers.explorers._base import Explorer
from nbhelpers.explorers._controls import Slider

class Slow(Explorer):
    drawn = 0
    def controls(self):
        return (Slider("a", "a", 0, 0, 100, 1), Slider("b", "b", 0, 0, 100, 1))
    def draw(self, state):
        time.sleep(0.1)
        self.drawn += 1
        return f"<i>{state['a'] + state['b']:g}</i>"

slow = Slow()
one, two, shown = slow.widget().children
"""
STATE = "json.dumps([one.value, two.value, shown.value, slow.drawn])"


@pytest.fixture
def kernel():
    manager = KernelManager()
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    client = manager.client()
    client.start_channels()
    client.wait_for_ready(60)
    yield client
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def value_of(kernel, expression):
    reply = kernel.execute("", user_expressions={"it": expression}, reply=True, timeout=60)
    return eval(reply["content"]["user_expressions"]["it"]["data"]["text/plain"])


def send(kernel, comm, value, subshell):
    content = {
        "comm_id": comm,
        "data": {"method": "update", "state": {"value": value}, "buffer_paths": []},
    }
    message = kernel.session.msg("comm_msg", content)
    if subshell:
        message["header"]["subshell_id"] = subshell
    kernel.shell_channel.send(message)


def subshell_of(kernel):
    """A thread of its own for comms, as JupyterLab asks for."""
    message = kernel.session.msg("create_subshell_request", {})
    kernel.control_channel.send(message)
    return kernel.control_channel.get_msg(timeout=60)["content"]["subshell_id"]


@pytest.mark.parametrize("where", ["the cells' thread", "a subshell"])
def test_the_last_change_wins(kernel, where):
    kernel.execute(SETUP, reply=True, timeout=120)
    comms = [value_of(kernel, f"{name}.comm.comm_id") for name in ("one", "two")]
    subshell = subshell_of(kernel) if where == "a subshell" else None
    for change in range(1, CHANGES + 1):
        send(kernel, comms[change % 2], change, subshell)
        time.sleep(0.005)
    until = time.monotonic() + 60
    seen = []
    while time.monotonic() < until and (len(seen) < 2 or seen[-1] != seen[-2]):
        time.sleep(0.5)
        seen.append(json.loads(value_of(kernel, STATE)))
    one, two, shown, drawn = seen[-1]
    assert (one, two) == (CHANGES, CHANGES - 1)
    assert f"<i>{one + two:g}</i>" in shown
    state = json.loads(re.search('data-state="([^"]+)"', shown)[1].replace("&quot;", '"'))
    assert state == {"a": one, "b": two}
    assert drawn < CHANGES / 2
