"""Deltas that are remarks about the turn, not part of it: errors, retries, status, commands."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Literal

from letta_tui.conversation import content
from letta_tui.protocol.events import Delta

END_WORDS = {
    "max_steps": "The turn stopped: it reached the limit of steps.",
    "max_tokens_exceeded": "The turn stopped: the reply reached the limit of tokens.",
    "insufficient_credits": "The turn stopped: the account has no credits left.",
    "context_window_overflow_in_system_prompt": (
        "The turn stopped: the agent's memory is too long for the model."
    ),
    "invalid_llm_response": "The turn stopped: the model's answer could not be read.",
    "invalid_tool_call": "The turn stopped: the model asked for a tool in a way that could not be read.",
    "no_tool_call": "The turn stopped: the model called no tool where it had to.",
    "llm_api_error": "The turn failed: the model's provider answered with an error.",
    "error": "The turn failed.",
}


# The server makes an agent with any model, and finds out only when it is talked to (0.34.12).
NO_PROVIDER = "/model chooses another model, /setup connects a provider."


@dataclass(frozen=True, slots=True)
class Remark:
    """A row of the client's own. The same ``key`` again replaces it."""

    key: str
    kind: Literal["notice", "error"]
    text: str
    when: float | None = None


def remark_of(delta: Delta, turn: int) -> Remark | None:
    """The remark of a delta, or None for deltas of another kind. ``turn`` numbers turns of this session."""
    raw, what = delta.raw, delta.message_type
    when = content.seconds(raw.get("date"))
    if what in ("loop_error", "error_message"):
        text = content.error_text(delta.message)
        detail = content.error_text(raw.get("api_error")) or content.error_text(raw.get("detail"))
        if detail and detail not in text:
            text = f"{text}\n{detail}" if text else detail
        if "provider is not configured" in text.lower():
            text = f"{text.rstrip('. ')}. {NO_PROVIDER}"
        fatal = what == "error_message" or raw.get("is_terminal") is not False
        return Remark(
            f"error:{delta.id or _digest(delta.run_id or '', text, *delta.client_message_ids)}",
            "error" if fatal else "notice",
            text or "The server reported an error without words.",
            when,
        )
    if what == "retry":
        attempt, most = raw.get("attempt"), raw.get("max_attempts")
        count = (
            f" (attempt {attempt} of {most})" if isinstance(attempt, int) and isinstance(most, int) else ""
        )
        words = delta.message.strip().rstrip(".") or "The model's provider did not answer"
        return Remark(f"retry:{turn}", "notice", f"{words}. Trying again{count}.", when)
    if what == "status":
        words = delta.message.strip()
        return Remark(f"status:{delta.id or _digest(words)}", "notice", words, when) if words else None
    if what in ("command_start", "command_end", "slash_command_start", "slash_command_end"):
        name = content.text_of(raw.get("input"))
        output = content.text_of(raw.get("output"))
        failed = raw.get("success") is False
        command = content.text_of(raw.get("command_id")) or _digest(name)
        return Remark(
            f"command:{command}", "error" if failed else "notice", f"{name}\n{output}".strip(), when
        )
    return None


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "replace")).hexdigest()[:16]
