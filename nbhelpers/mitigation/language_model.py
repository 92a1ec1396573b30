"""A language model that explains a factor: off unless configured, and its text is marked.

Owns the one request to an OpenAI-compatible address ($NOISEBOOK_MODEL_URL); nothing is sent unless
that variable is set.
"""

import json
import os
import urllib.error
import urllib.request

from ..errors import InputError, Unavailable
from .knowledge import explain_factor

URL, MODEL, KEY = "NOISEBOOK_MODEL_URL", "NOISEBOOK_MODEL", "NOISEBOOK_MODEL_KEY"
MARK = "[Written by a language model, not checked by anybody]"
QUESTION = (
    "Explain in a few sentences how this would show in a program's run times, and what to look at"
    " next."
)
_LONGEST_BYTES = 1 << 20


def request_explanation(factor: str, question: str = "", timeout_s: float = 60.0) -> str:
    """Ask a language model to explain a factor, with our knowledge of it as the context.

    $NOISEBOOK_MODEL_URL is the address, such as http://127.0.0.1:8080/v1, $NOISEBOOK_MODEL the
    model's name, $NOISEBOOK_MODEL_KEY the key, if the server needs one.

    Parameters
    ----------
    factor
        Id of a factor, or a column of the runs table.
    question
        What to ask; default: how it would show in this program, and what to look at next.
    timeout_s
        Of the whole answer.

    Returns
    -------
    str, beginning with a mark that says who wrote it.

    Raises
    ------
    Unavailable
        No address is configured, or nobody answers there.
    InputError
        The factor is not known, or the answer is not one.
    """
    address = os.environ.get(URL)
    if not address:
        raise Unavailable(
            "no language model is configured",
            why="nothing is sent anywhere unless you say where to",
            fix=f"export {URL}=http://127.0.0.1:PORT/v1 {MODEL}=NAME",
        )
    known = explain_factor(factor)
    request = _request(str(known), question or QUESTION)
    content = _post(address.rstrip("/") + "/chat/completions", request, timeout_s)
    return f"{MARK}\n{content.strip()}"


def _request(known: str, question: str) -> dict:
    instructions = (
        "You explain performance variability to engineers. Say what you do not know. Base the"
        " answer on these facts:\n" + known
    )
    return {
        "model": os.environ.get(MODEL, "default"),
        "temperature": 0,
        "messages": [
            {"role": "system", "content": instructions},
            {"role": "user", "content": question},
        ],
    }


def _post(address: str, body: dict, timeout_s: float) -> str:
    if not address.startswith(("http://", "https://")):
        raise InputError(
            "the address of the language model is not one of the web",
            where=address,
            fix=f"export {URL}=http://127.0.0.1:PORT/v1",
        )
    headers = {"Content-Type": "application/json"} | (
        {"Authorization": f"Bearer {os.environ[KEY]}"} if os.environ.get(KEY) else {}
    )
    request = urllib.request.Request(address, json.dumps(body).encode(), headers)
    try:
        # the address begins with http:// or https://
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # nosec B310
            text = answer.read(_LONGEST_BYTES)
    except urllib.error.HTTPError as error:
        raise Unavailable(
            f"the language model refused: {error.code} {error.reason}", where=address
        ) from None
    except OSError as error:
        raise Unavailable(
            f"the language model does not answer: {getattr(error, 'reason', error)}",
            where=address,
            fix="start it, or unset " + URL,
        ) from None
    try:
        return str(json.loads(text)["choices"][0]["message"]["content"])
    except (ValueError, LookupError, TypeError):
        raise InputError(
            "the answer is not that of an OpenAI-compatible server", where=address
        ) from None
