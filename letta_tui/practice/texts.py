"""Texts the practice model says: generated Markdown of any size, and the fragments a model streams in."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator

_WORDS = """
a river keeps its bed while boats go by and the ferry crosses only when somebody rings since the bank
is near and the water between is wide enough for a quiet thought about ropes tides and lamps
"""
_VOCABULARY = _WORDS.split()


def markdown(kib: float, seed: int = 1) -> str:
    """About ``kib`` KiB of Markdown with every kind of block; the same for the same ``seed``."""
    rnd = random.Random(seed)

    def some(count: int) -> str:
        return " ".join(rnd.choice(_VOCABULARY) for _ in range(count))

    parts: list[str] = []
    size = number = 0
    while size < kib * 1024:
        number += 1
        for block in _section(number, rnd, some):
            parts.append(block)
            size += len(block)
    return "".join(parts)


def _section(number: int, rnd: random.Random, some: Callable[[int], str]) -> Iterator[str]:
    yield f"## {number}. {some(4).capitalize()}\n\n"
    yield f"{some(50).capitalize()}, **bold {number}**, *slanted*, `name_{number}` and "
    yield f"[a link](https://example.org/{number}).\n\n"
    yield f"- {some(7)}\n- {some(9)}\n  - {some(5)}\n  - {some(6)}\n- {some(4)}\n\n"
    yield "| stage | metres | remark |\n|:--|--:|---|\n"
    yield "".join(f"| {some(1)} | {rnd.randint(1, 9999)} | {some(4)} |\n" for _ in range(5)) + "\n"
    yield "```python\n"
    yield "".join(
        f'def stage_{number}_{i}(metres: int) -> int:\n    """{some(4).capitalize()}."""\n'
        f"    return metres * {i + 2} + {rnd.randint(1, 99)}\n\n"
        for i in range(2)
    )
    yield "```\n\n"
    yield f"> {some(18)}\n\n"
    yield f"1. {some(6)}\n2. {some(8)}\n3. {some(5)}\n\n"


_FRAGMENT = re.compile(r"\s*\S{1,7}")


def fragments(text: str) -> list[str]:
    """The text cut as a model streams it: words, and pieces of long ones, each with the space before it."""
    out = _FRAGMENT.findall(text)
    rest = text[sum(map(len, out)) :]
    if rest:
        out.append(rest)
    return out


SHOWCASE = """\
# What Markdown looks like here

A paragraph with **bold**, *italic*, `code`, ~~struck~~ and [a link](https://docs.letta.com).

## A list

- apples
- pears
  - williams
  - conference
1. first
2. second

## A table

| Fruit | Pieces | Remark |
|:------|-------:|--------|
| apple |     12 | from the garden |
| pear  |      7 | ripe *tomorrow* |
| plum  |    130 | all eaten |

## Code

```python
from dataclasses import dataclass


@dataclass(frozen=True)
class Pear:
    grams: int

    def is_ripe(self, day: int) -> bool:
        return day > 3 and self.grams > 120  # by experience
```

```sh
ls -l | sort -k5 -n
```

> A quotation, which may be
> longer than one line.

---

And the last line: 漢字, emoji 🍐 and accents é ü.
"""

HELP = """\
I am the practice model: a script, not a mind. Nothing you type leaves this machine. Try one of these:

- **show me markdown** — headings, a table, code
- **think aloud** — reasoning before the answer
- **talk slowly** — time to send another message, or to press Esc
- **run a command** — asks you first
- **look around** — a harmless command that need not ask
- **write a file**, then **edit the file** — asks you, with a diff
- **two tools at once** — asks twice, one after the other
- **three steps** — several tools in a row
- **a long answer** — 40 KiB of Markdown
- **an error** — the model's service fails
"""

THOUGHTS = (
    "The person wants to see how I think. I could answer at once, but that would show nothing. "
    "Let me count the ways: a list is dull, a joke is risky. A small sum, then: seventeen times "
    "twenty-three is seventeen times twenty, three hundred and forty, plus fifty-one. "
    "That makes three hundred and ninety-one. Good, I am sure enough to say it."
)

SLOW = (
    "I will take my time with this one, so that you can try things while I am at it. Send another "
    "message: it waits in the queue until I am done, and you can still cancel it there. Press Esc: I "
    "stop, and what I have said so far stays. Close the window, even kill it: I go on talking, and when "
    "you come back the whole answer is here. Scroll up: the view stays where you are reading. There, "
    "that was all; a slow minute is longer than one thinks."
)
