"""The turn: how it ends, apart from how the connection does."""

from __future__ import annotations

from dataclasses import dataclass

from letta_tui.protocol.frames import Frame
from letta_tui.seam.state import Activity, TurnOutcome


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """One ended turn, reported once. ``duration`` in seconds, None when its start was not seen."""

    outcome: TurnOutcome  # done, cancelled, failed, ended_unseen
    stop_reason: str
    error: str
    turn_id: str
    run_ids: tuple[str, ...]
    client_message_ids: tuple[str, ...]
    duration: float | None
    final_text: str


class Turn:
    """The current turn of one runtime. Times passed in are wall-clock seconds."""

    def __init__(self, agent_id: str, conversation_id: str) -> None: ...

    def connected(self, connection_id: str) -> None:
        raise NotImplementedError

    @property
    def active(self) -> bool:
        raise NotImplementedError

    @property
    def idle_known(self) -> bool:
        """This connection's loop and device status both say: waiting for input, nothing runs."""
        raise NotImplementedError

    @property
    def activity(self) -> Activity:
        raise NotImplementedError

    @property
    def activity_words(self) -> str:
        raise NotImplementedError

    @property
    def started(self) -> float | None:
        raise NotImplementedError

    @property
    def run_ids(self) -> tuple[str, ...]:
        """Run ids of the current turn."""
        raise NotImplementedError

    @property
    def client_message_ids(self) -> tuple[str, ...]:
        """Inputs the current turn consumed, as far as the server has said."""
        raise NotImplementedError

    @property
    def tokens(self) -> int | None:
        """Context tokens of the last usage frame."""
        raise NotImplementedError

    def apply(self, frame: Frame, now: float) -> tuple[TurnEnd, ...]:
        raise NotImplementedError

    def aborting(self, on: bool = True) -> None:
        """``abort_message`` was sent; its end is awaited."""
        raise NotImplementedError
