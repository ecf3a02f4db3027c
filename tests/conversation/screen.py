"""A transcript and the view of it, side by side."""

from __future__ import annotations

from typing import Any

from letta_tui.conversation.places import SendState
from letta_tui.conversation.transcript import Transcript
from tests.conversation import view
from tests.conversation.view import loop

IDLE = "WAITING_ON_INPUT"
BUSY = "PROCESSING_API_RESPONSE"


class Screen:
    """A transcript and the view of it, which must agree after every step."""

    def __init__(self) -> None:
        self.transcript = Transcript(view.AGENT, view.CONVERSATION)
        self.transcript.connected("c1")
        self.view = view.View()
        self(loop(IDLE))

    def __call__(self, *frames: Any) -> Screen:
        for frame in frames:
            self.take(self.transcript.apply(frame))
        return self

    def take(self, updates: list[Any]) -> list[Any]:
        self.view.apply(updates)
        assert self.view.rows == list(self.transcript.rows)
        return updates

    def history(
        self, *rows: dict[str, Any], newest: bool = True, has_more: bool = False, asked: int | None = None
    ) -> Screen:
        """``rows`` oldest first."""
        mark = self.transcript.mark() if asked is None else asked
        self.take(
            self.transcript.merge_history(rows, asked=mark, order="asc", newest=newest, has_more=has_more)
        )
        return self

    def send(self, text: str, delivery: Any = "started", cmid: str = "s1", **more: Any) -> Screen:
        self.take(self.transcript.put_send(SendState(cmid, text, delivery, **more)))
        return self

    @property
    def texts(self) -> list[str]:
        return [r.text for r in self.view.rows]

    @property
    def keys(self) -> list[str]:
        return [r.key for r in self.view.rows]

    @property
    def tool(self) -> Any:
        return next(r.tool for r in self.view.rows if r.tool)
