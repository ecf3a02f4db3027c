"""What Markdown's block structure is made of: containers, leaves, and the shape leaves of a table share."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

LeafKind = Literal["para", "heading", "fence", "table", "rule"]


@dataclass(slots=True)
class Container:
    """A quote, or an item of a list. ``width`` is the indentation its content has."""

    kind: Literal["quote", "item"]
    width: int = 0
    marker: str = ""  # what an item shows: "•", "3."
    family: str = ""  # bullet character or delimiter: items of one list share it
    number: int = 0
    shown: bool = False  # the marker has been used by a leaf
    task: str = ""  # "x", " " or ""
    empty_start: bool = False  # the marker was alone on its line
    depth: int = 0  # of item, for the look of its bullet

    def copy(self) -> Container:
        return replace(self)


@dataclass(slots=True)
class Leaf:
    """A block without blocks inside. ``lines`` is its source without the containers' marks."""

    kind: LeafKind
    lines: list[str]
    first: tuple[str, ...] = ()  # prefix of its first line, a piece per container
    rest: tuple[str, ...] = ()
    gap: bool = False  # a blank line before it
    gap_prefix: tuple[str, ...] = ()
    level: int = 0
    language: str = ""
    continued: bool = False  # goes on from the leaf before
    open: bool = True
    size: int = 0  # characters
    shape: TableShape | None = None
    done: str = ""  # task marker

    def copy(self) -> Leaf:
        """One that can grow without this one; what is settled is shared."""
        shape = self.shape
        if shape is not None and not shape.settled:
            shape = replace(shape, rows=list(shape.rows))
        return replace(self, lines=list(self.lines), shape=shape)


@dataclass(slots=True)
class TableShape:
    """What all leaves of one table share. ``widths`` is settled once per screen width."""

    alignments: list[str]
    header: list[str]
    rows: list[list[str]] = field(default_factory=list)  # of the first leaf
    settled: bool = False
