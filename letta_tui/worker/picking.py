"""Which conversation to open, and in which permission mode: decisions as functions of data."""

from __future__ import annotations

from dataclasses import dataclass

from letta_tui.worker.config import Mode, Target

# From tight to loose. What is not in here is treated as looser than everything we know.
_TIGHT_TO_LOOSE: tuple[Mode, ...] = ("strict", "standard", "acceptEdits", "unrestricted")


@dataclass(frozen=True, slots=True)
class Stored:
    """A conversation this client remembers having had on this server."""

    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class OpenIt:
    """Open this conversation. An empty ``agent_id`` has to be asked of the server first."""

    agent_id: str
    conversation_id: str
    why: str


@dataclass(frozen=True, slots=True)
class CreateIt:
    """Make a new conversation with this agent and store it before anything is sent."""

    agent_id: str
    why: str


@dataclass(frozen=True, slots=True)
class PickAgent:
    """No conversation is known here: take an agent of the server, or set one up."""

    new: bool = False
    default: bool = False


Pick = OpenIt | CreateIt | PickAgent


def pick(target: Target, last: Stored | None, last_of_agent: Stored | None) -> Pick:
    """Choose by the command line first, then by what is stored.

    ``last`` is the last conversation of this client on this server; ``last_of_agent`` the last one it had
    there with ``target.agent_id``. An explicit conversation is never overridden by anything stored.
    """
    if target.conversation_id:
        agent = target.agent_id or (
            last.agent_id if last and last.conversation_id == target.conversation_id else ""
        )
        return OpenIt(agent, target.conversation_id, "you named it")
    agent_id = target.agent_id or (last.agent_id if last else None)
    if target.default:
        if agent_id is None:
            return PickAgent(default=True)
        return OpenIt(agent_id, "default", "you asked for the default conversation")
    if target.new:
        return CreateIt(agent_id, "you asked for a new one") if agent_id else PickAgent(new=True)
    if target.agent_id:
        if last_of_agent is not None:
            return OpenIt(
                last_of_agent.agent_id, last_of_agent.conversation_id, "the last one with this agent here"
            )
        return CreateIt(target.agent_id, "the first one with this agent here")
    if last is not None:
        return OpenIt(last.agent_id, last.conversation_id, "the last one here")
    return PickAgent()


def looseness(mode: str) -> int:
    """Position of ``mode`` from tight (0) to loose; an unknown one counts as the loosest."""
    for position, known in enumerate(_TIGHT_TO_LOOSE):
        if mode == known:
            return position
    return len(_TIGHT_TO_LOOSE)


def resume_mode(explicit: Mode | None, stored: str | None, server: str | None) -> Mode:
    """The mode to send with the start of a conversation that exists already (rule 9).

    What the person named now wins. Else the stored mode (``standard`` when none is stored) is sent only
    if it is not looser than the one the server has; if it is, the server's own is confirmed. A fresh
    server reports ``unrestricted`` without anybody having asked for it, so its word alone never loosens.
    """
    if explicit is not None:
        return explicit
    wanted: str = stored if stored in _TIGHT_TO_LOOSE else "standard"
    if server in _TIGHT_TO_LOOSE and looseness(server) < looseness(wanted):
        wanted = server
    for known in _TIGHT_TO_LOOSE:
        if known == wanted:
            return known
    return "standard"
