"""What happened while the keeper watched, one JSON object a line. No text of a message is ever in it."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

KEEP_DAYS = 30.0
KEEP_LINES = 5000


@dataclass(frozen=True, slots=True)
class End:
    """Something that happened in a conversation while the keeper watched.

    ``kind``: "turn" (ended; ``stop_reason``, ``tools`` run, ``denied`` tools, ``inputs``: client message ids
    its last run answered, as far as the server named them), "approval" (a tool waits;
    ``tools`` names it), "error" (``words`` says it), "server" (the server ended or was restarted; with a
    conversation, that was open then), "left" (the last window that showed the conversation went).
    ``at``: seconds since the epoch; ``seconds``: how long the turn took.
    """

    at: float
    kind: str
    agent_id: str = ""
    conversation_id: str = ""
    stop_reason: str = ""
    turn_id: str = ""
    run_id: str = ""
    tools: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    inputs: tuple[str, ...] = ()
    seconds: float | None = None
    words: str = ""

    def to_json(self) -> dict[str, Any]:
        """Without the fields that say nothing."""
        return {k: v for k, v in asdict(self).items() if v not in ("", (), None)}

    @classmethod
    def from_json(cls, raw: object) -> End | None:
        """Lenient: unknown fields are left out, and what is no end at all is ``None``."""
        if not isinstance(raw, dict):
            return None
        at, kind, seconds = raw.get("at"), raw.get("kind"), raw.get("seconds")
        if not isinstance(at, int | float) or not isinstance(kind, str):
            return None
        values: dict[str, Any] = {
            f.name: str(raw.get(f.name, "")) for f in fields(cls) if f.name not in ("at", "kind", "seconds")
        }
        for name in ("tools", "denied", "inputs"):
            values[name] = tuple(map(str, raw.get(name) or ()))
        took = float(seconds) if isinstance(seconds, int | float) else None
        return cls(at=float(at), kind=kind, seconds=took, **values)


class EndLog:
    """The file. Appending never fails the caller: what a full disk does not take is kept in memory, and
    written with the next note that it takes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._unwritten: deque[End] = deque(maxlen=KEEP_LINES)

    def note(self, end: End) -> bool:
        """``False`` when it is only in memory so far."""
        self._unwritten.append(end)
        lines = "".join(json.dumps(each.to_json(), ensure_ascii=False) + "\n" for each in self._unwritten)
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                size = os.fstat(fd).st_size
                torn = size > 0 and os.pread(fd, 1, size - 1) != b"\n"
                data = (b"\n" if torn else b"") + lines.encode()
                whole = os.write(fd, data) == len(data)
            finally:
                os.close(fd)
        except OSError:
            return False
        if whole:
            self._unwritten.clear()
        return whole

    def since(
        self, at: float, agent_id: str | None = None, conversation_id: str | None = None
    ) -> tuple[End, ...]:
        """Ends after ``at``, oldest first, each turn's once; of one agent or conversation if named."""
        return tuple(
            end
            for end in _once([*self._read(), *self._unwritten])
            if end.at > at
            and (agent_id is None or end.agent_id == agent_id)
            and (conversation_id is None or end.conversation_id == conversation_id)
        )

    def trim(self, now: float) -> None:
        """Drop what is older than 30 days, or more than 5,000 lines ago."""
        ends = list(self._read())
        kept = [end for end in ends if end.at > now - KEEP_DAYS * 86400][-KEEP_LINES:]
        if len(kept) < len(ends):
            self._rewrite(kept)

    def forget(self, agent_id: str, conversation_id: str) -> None:
        """Erase every note of a conversation."""
        others = [
            end
            for end in (*self._read(), *self._unwritten)
            if (end.agent_id, end.conversation_id) != (agent_id, conversation_id)
        ]
        self._rewrite(others)
        self._unwritten.clear()

    def _rewrite(self, ends: list[End]) -> None:
        from letta_tui.keeper.files import write_private

        lines = (json.dumps(end.to_json(), ensure_ascii=False) + "\n" for end in ends)
        write_private(self._path, "".join(lines))

    def _read(self) -> Iterator[End]:
        try:
            text = self._path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return
        for line in text.splitlines():
            try:
                end = End.from_json(json.loads(line))
            except ValueError:
                continue  # a line torn by a power cut
            if end is not None:
                yield end


def _once(ends: Iterable[End]) -> Iterator[End]:
    """Without what was noted twice: by a torn write, or by two keepers while one took over from the other."""
    seen: set[object] = set()
    for end in ends:
        key = (end.agent_id, end.conversation_id, end.turn_id) if end.kind == "turn" and end.turn_id else end
        if key not in seen:
            seen.add(key)
            yield end
