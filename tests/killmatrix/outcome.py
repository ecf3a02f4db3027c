"""How a cell went, as plain data that goes from the process that played it to the one that counts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.killmatrix.cells import Cell


@dataclass
class Outcome:
    cell: Cell
    killed: list[str] = field(default_factory=list)  # who died at the step; empty: it was not reached
    delivered: int = 0  # messages in history once
    reran: int = 0  # messages that the server ran again by itself, which the ledger says
    tools: int = 0  # allowed calls that ran once
    chosen: list[str] = field(default_factory=list)  # "unknown: send_new", of what was offered
    restarts: int = 0  # wedged conversations, in which the person took the restart that was offered
    gone: int = 0  # conversations whose file the server had emptied as it was killed
    unlucky: int = 0  # second runs whose risk had been told and taken
    violations: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def reached(self) -> bool:
        return bool(self.killed)

    def line(self) -> str:
        words = "; ".join(self.violations) or "ok"
        extra = [f"the person: {', '.join(self.chosen)}"] if self.chosen else []
        extra += ["the server ran it again, and that is said"] if self.reran else []
        extra += ["the server lost the conversation, and that is said"] if self.gone else []
        extra += ["wedged, restarted"] if self.restarts else []
        extra += [] if self.reached else ["step not reached"]
        told = f" [{'; '.join(extra)}]" if extra else ""
        return f"{self.cell}: {words}{told} ({self.seconds:.0f} s)"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Outcome:
        raw: dict[str, Any] = json.loads(text)
        cell = raw.pop("cell")
        return cls(Cell(cell["step"], cell["state"], tuple(cell["victims"]), cell["back"]), **raw)
