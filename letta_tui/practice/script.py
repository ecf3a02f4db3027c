"""The script language that steers the practice model exactly.

Anything between ``[[`` and ``]]`` in a message is a script; the last one wins. Steps are separated by
``;`` and run in order within one reply. ``==>`` separates replies: the part after it answers once the
tools of the part before it have returned.

==========================  ===========================================================================
``say TEXT``                the text in one fragment; ``{n}`` is the number of the request
``esc TEXT``                the same with escapes decoded: ``\\e \\a \\n \\x9b \\u202e``
``words 300 rate=20``       300 words ``w0000 w0001 …``; ``tag=AB`` renames, ``para=60`` words a paragraph
``md 200 rate=0 seed=1``    200 KiB of Markdown in fragments of ``chunk=64`` characters
``reason 50 rate=20``       50 words of reasoning; ``reason TEXT`` exactly that text
``sleep 1.5``               silence, in seconds
``run COMMAND``             a call of the shell tool, up to the next ``;``
``tool COMMAND``            the same, taking the rest of the part, ``;`` included
``write NAME TEXT``         a call of the file writing tool; ``\\n`` in TEXT starts a new line
``call NAME {json}``        a call of any tool with these arguments
``hang``                    stop sending, keep the connection open
``drop``                    cut the connection in the middle
``http 500 WORDS``          answer with an HTTP error (must come first)
``usage 90000``             report so many prompt tokens
==========================  ===========================================================================

``rate`` counts fragments a second; 0, the default, is as fast as possible. Several calls in one reply are
several tool calls in one step.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

_SCRIPT = re.compile(r"\[\[(.*?)\]\]", re.DOTALL)
_OPTION = re.compile(r"(?:^|\s)(rate|tag|para|seed|chunk)=(\S+)")
NEXT_REPLY = "==>"


@dataclass(frozen=True, slots=True)
class Step:
    """One step. ``kind`` is a word of the table above or "call"; ``rate`` in fragments a second."""

    kind: str
    text: str = ""
    amount: float = 0
    rate: float = 0
    tag: str = "w"
    para: int = 60
    seed: int = 1
    chunk: int = 64
    tool: str = ""  # "call": a tool's name, or "shell", "write", "edit", whatever the caller names those
    arguments: dict[str, Any] = field(default_factory=dict)


def script_in(text: str) -> str | None:
    """The last script in a message, without its brackets."""
    found = _SCRIPT.findall(text)
    return found[-1].strip() if found else None


def parse(script: str, reply: int = 0) -> tuple[Step, ...] | None:
    """The steps of reply number ``reply``; ``None`` when the script has no such reply."""
    parts = script.split(NEXT_REPLY)
    if reply >= len(parts):
        return None
    return tuple(_steps(parts[reply].strip()))


def _steps(body: str) -> list[Step]:
    steps: list[Step] = []
    while body:
        word = body.split(None, 1)[0].rstrip(";")
        rest = body[len(word) :].lstrip()
        if word == "tool":
            steps.append(shell(rest))
            break
        if word == "call":
            step, body = _call(rest)
            steps.append(step)
            continue
        head, _, body = body.partition(";")
        body = body.strip()
        if head.strip():
            steps.append(_step(word, head.strip()[len(word) :].strip()))
    return steps


def _call(rest: str) -> tuple[Step, str]:
    name, _, tail = rest.partition(" ")
    try:
        arguments, end = json.JSONDecoder().raw_decode(tail.lstrip())
    except ValueError:
        return Step("say", f"(the script's call of {name} has no JSON arguments)"), ""
    if not isinstance(arguments, dict):
        arguments = {"value": arguments}
    return Step("call", tool=name, arguments=arguments), tail.lstrip()[end:].lstrip(" ;\n")


def _step(word: str, rest: str) -> Step:
    options = dict(_OPTION.findall(rest))
    plain = _OPTION.sub("", rest).strip()
    first = plain.split(None, 1)[0] if plain else ""
    amount = _number(first)
    if word == "run":
        return shell(rest)
    if word == "write":
        name, _, text = rest.partition(" ")
        return write(name, text.replace("\\n", "\n"))
    if word == "esc":
        return Step("say", unescape(rest))
    if word == "say":
        return Step("say", rest)
    if word == "http":
        return Step("http", plain.partition(" ")[2], amount or 500)
    if word == "reason" and amount is None:
        return Step("reason", rest)
    if word not in ("words", "md", "reason", "sleep", "hang", "drop", "usage"):
        return Step("say", f"(unknown step: {word})")
    return Step(
        word,
        amount=amount or 0,
        rate=_number(options.get("rate", "0")) or 0,
        tag=options.get("tag", "w"),
        para=max(1, int(_number(options.get("para", "60")) or 60)),
        seed=int(_number(options.get("seed", "1")) or 0),
        chunk=max(1, int(_number(options.get("chunk", "64")) or 64)),
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def shell(command: str) -> Step:
    """A call of the shell tool, whatever the server calls it."""
    return Step("call", tool="shell", arguments={"command": command})


def write(path: str, text: str) -> Step:
    """A call of the file writing tool."""
    return Step("call", tool="write", arguments={"file_path": path, "content": text})


def edit(path: str, old: str, new: str) -> Step:
    """A call of the file editing tool."""
    return Step("call", tool="edit", arguments={"file_path": path, "old_string": old, "new_string": new})


_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_NAMED = {"e": "\x1b", "a": "\a", "n": "\n", "r": "\r", "t": "\t", "b": "\b", "0": "\0"}


def unescape(text: str) -> str:
    """``\\e``, ``\\x9b``, ``\\u202e`` and friends as the characters they stand for."""

    def one(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else _NAMED.get(match[3], match[3])

    return _ESCAPE.sub(one, text)
