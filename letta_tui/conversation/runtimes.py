"""Which frames concern a conversation."""

from __future__ import annotations

from letta_tui.protocol.frames import Frame


def concerns(frame: Frame, agent_id: str, conversation_id: str) -> bool:
    """Whether a frame belongs to this conversation of this agent.

    A frame without a runtime belongs to the socket's only conversation; a runtime without an agent is
    told apart by its conversation alone.
    """
    runtime = frame.runtime
    if runtime is None:
        return True
    if runtime.conversation_id != conversation_id:
        return False
    return not runtime.agent_id or not agent_id or runtime.agent_id == agent_id
