"""What is to be done about a call of a tool, from what is known: pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from letta_tui.ledger.values import Approval, ToolCall
from letta_tui.protocol import Delta
from letta_tui.seam.state import ToolView
from letta_tui.tools.values import Tool

# How the server words results that are not the tool's own (0.34.12).
_NOT_OURS = ("External tool execution error:", "External tool call timed out", "User interrupted")


@dataclass(frozen=True, slots=True)
class Run:
    """Begin it. ``allowed_by``: "you" or "the config"."""

    allowed_by: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the person first: the server did not."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """Send the recorded result again; nothing is run."""

    call: ToolCall


@dataclass(frozen=True, slots=True)
class Ignore:
    """It is being worked on."""


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with these words; nothing is run."""

    words: str


Plan = Run | Ask | Repeat | Ignore | Refuse


def plan(
    tool: Tool | None,
    call: ToolCall,
    *,
    new: bool,
    working: bool,
    earlier: Sequence[ToolCall] = (),
    approvals: Sequence[Approval] = (),
    window_id: str = "",
) -> Plan:
    """``new``: this request was not recorded before. ``working``: this process has it in hand.
    ``earlier``: other requests under the same tool call id. ``approvals``: decisions of this conversation."""
    if working:
        return Ignore()
    if not new:
        return _again(call)
    for other in earlier:
        same = other.tool_name == call.tool_name and dict(other.input) == dict(call.input)
        if same and other.state in ("running", "finished", "written", "lost"):
            return _again(other)  # the server asks anew for what it was never told
    if tool is None:
        return Refuse(f"{call.tool_name} is not offered here any more, so it was not run.")
    if tool.approval == "auto":
        return Run("the config")
    if _allowed(call, earlier, approvals, window_id):
        return Run("you")
    return Ask()


def _again(call: ToolCall) -> Plan:
    if call.state in ("finished", "written", "confirmed"):
        return Repeat(call)
    if call.state == "lost" and call.result:
        return Repeat(call)
    if call.state in ("asked", "declined"):
        return Refuse(call.words or f"{call.tool_name} was not run.")
    return Refuse(unknown_words(call.tool_name))


def _allowed(
    call: ToolCall, earlier: Sequence[ToolCall], approvals: Sequence[Approval], window_id: str
) -> bool:
    """The person said yes to this call when the server asked, or to the tool for this session."""
    # A model may use an id again: a yes counts only for calls after it that have not used it up.
    since = max((other.asked.wall for other in earlier), default=float("-inf"))
    for approval in approvals:
        if approval.decision != "allow" or approval.tool_name != call.tool_name:
            continue
        if approval.state not in ("decided", "written", "acknowledged"):
            continue
        if approval.tool_call_id == call.tool_call_id and approval.decided.wall >= since:
            return True
        if approval.suggestion_ids and window_id and approval.window_id == window_id:
            return True
    return False


def unknown_words(name: str) -> str:
    """For the model: it may have run."""
    return (
        f"{name} was begun, and what became of it is not known. It was not run again. "
        "Check what it did before calling it again."
    )


def is_ours(returned: str) -> bool:
    """Whether a tool's result in the conversation is the tool's own, and not the server's word for none."""
    return not returned.lstrip().startswith(_NOT_OURS)


def arrived(tool: ToolView | None, call: ToolCall) -> bool:
    """Whether the conversation's row of a call shows that its answer reached the server."""
    if call.state not in ("finished", "written") or tool is None or tool.state not in ("done", "failed"):
        return False
    return is_ours(tool.result) and (bool(tool.result) or not call.result)


def returns(delta: Delta) -> Iterator[tuple[str, str]]:
    """(tool call id, text) of a return in the stream; the server says both one and a list of them."""
    several = delta.raw.get("tool_returns")
    for raw in (delta.raw, *(several if isinstance(several, list) else ())):
        if not isinstance(raw, Mapping):
            continue
        call_id, text = raw.get("tool_call_id"), raw.get("tool_return")
        if isinstance(call_id, str) and isinstance(text, str):
            yield call_id, text


def lost_note(call: ToolCall) -> str:
    """For the person, about a call whose answer the server never got."""
    if call.state == "asked":
        return f"{call.tool_name} was not run: its turn was cut off before you had decided."
    if call.state == "running":
        return (
            f"{call.tool_name} was running when this program ended. Whether it did its work is not known; "
            "it is not run again."
        )
    return f"{call.tool_name} ran, but its answer did not reach the server. It is not run again."


def changed_note(before: Sequence[str], now: Sequence[str]) -> str:
    """What a server of tools offers now and did not, and what it does not any more; "" when all are there."""
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    notes = [f"New tools: {', '.join(new)}."] if new else []
    return " ".join([*notes, f"Tools no longer offered: {', '.join(gone)}."] if gone else notes)


def session_notes(
    before: Mapping[str, Any],
    *,
    tools: Sequence[str],
    cwd: str,
    device: str,
    mode: str = "",
    missing: Sequence[str] = (),
) -> list[str]:
    """What a reopened conversation has again, and what it has no more. ``before`` is its stored state;
    ``cwd``, ``device`` and ``mode`` are what it has now ("" when not known); ``missing`` says what could not
    be offered."""
    notes = []
    had = _texts(before.get("external_tools"))
    again = [name for name in tools if name in had]
    if again:
        notes.append(f"Tools re-registered: {', '.join(again)}.")
    gone = [name for name in had if name not in tools]
    if gone:
        notes.append(f"Tools no longer offered: {', '.join(gone)}.")
    notes.extend(missing)
    skills, toolset = _texts(before.get("skill_sources")), before.get("toolset")
    as_before = []
    folder = before.get("cwd")
    if isinstance(folder, str) and folder and cwd:
        if folder == cwd:
            as_before.append(f"folder {cwd}")
        else:
            notes.append(f"The folder {folder} is gone: using {cwd}.")
    stored = before.get("mode")
    if isinstance(stored, str) and stored and mode:
        if stored == mode:
            as_before.append(f"mode {mode}")
        else:
            notes.append(f"The permission mode was {stored}; the server's is kept: {mode}.")
    if skills:
        as_before.append(f"skills from {', '.join(skills)}")
    if isinstance(toolset, Mapping):
        as_before.append("the choice of the server's tools")
    where = before.get("device")
    if isinstance(where, str) and where and device and where != device:
        notes.append(f"This conversation was on device {where}; now it is on {device}.")
    # A folder and a mode are sent with every start: that alone is no news.
    if as_before and (again or skills or isinstance(toolset, Mapping)):
        notes.append(f"As before: {', '.join(as_before)}.")
    return notes


def _texts(value: object) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list | tuple) else []
