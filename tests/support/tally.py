"""What a loop of ``letta-tui send`` has seen, in numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Counts:
    started: int = 0
    killed: int = 0
    servers_killed: int = 0
    forgot: int = 0  # answers that a killed server had spoken and not written
    lost: int = 0  # conversations whose record a killed server left unreadable
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)  # (kind, code or "while away: code")
    violations: list[str] = field(default_factory=list)
    messages: int = 0

    def line(self) -> str:
        return (
            f"{self.messages} messages, {self.started} commands, {self.killed} killed, "
            f"{self.servers_killed} servers killed, "
            f"{self.forgot} answers and {self.lost} conversations lost by them; "
            f"{len(self.violations)} violations"
        )

    def table(self, kinds: Iterable[str]) -> str:
        heads = sorted({code for _, code in self.codes})
        rows = [["", *heads]] + [
            [kind, *(str(self.codes[kind, code] or "") for code in heads)]
            for kind in kinds
            if any(k == kind for k, _ in self.codes)
        ]
        widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows
        )
