"""Reading the server's message contents as text for people. Everything is data: odd shapes give text too."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

IMAGE = "[image]"
_REMINDER = re.compile(r"\s*<system-reminder>.*?</system-reminder>[ \t]*\n*", re.DOTALL)
_ANSWER = re.compile(r"<ask-user-question-response>(.*?)</ask-user-question-response>", re.DOTALL)
_NOTIFICATION = re.compile(r"\s*<task-notification>(.*?)</task-notification>\s*", re.DOTALL)
_SUMMARY = re.compile(r"<summary>(.*?)</summary>", re.DOTALL)


def text_of(content: object, joiner: str = "") -> str:
    """Text of a ``content`` that is a string, one part, or a list of parts; images become ``[image]``."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        if len(content) == 1:
            return text_of(content[0])
        return joiner.join(p for p in (text_of(part) for part in content) if p)
    if isinstance(content, Mapping):
        return _part(content)
    return ""


def _part(part: Mapping[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text" and isinstance(text := part.get("text"), str):
        return text
    if kind in ("image", "image_url", "input_image"):
        return IMAGE
    for name in ("text", "content", "tool_return"):
        value = part.get(name)
        if isinstance(value, str):
            return value
        if isinstance(value, list | Mapping):
            return text_of(value)
    return ""


def without_reminders(text: str) -> str:
    """``text`` without the ``<system-reminder>`` blocks at its beginning, which no person wrote."""
    at = 0
    if "<system-reminder>" not in text:
        return text
    while match := _REMINDER.match(text, at):
        at = match.end()
    return text[at:]


def user_text(content: object) -> str:
    """What a person wrote in a user message; empty when it holds nothing but reminders."""
    if isinstance(content, list | tuple):
        parts = (without_reminders(text_of(part)) for part in content)
        return "\n".join(p for p in parts if p.strip())
    text = without_reminders(text_of(content))
    return text if text.strip() else ""


def notification(text: str) -> tuple[bool, str]:
    """``(is one, words)`` for a user message that a program wrote: ``<task-notification>``.

    An answer to the agent's question comes as "question: answer" lines, anything else as its summary.
    """
    match = _NOTIFICATION.fullmatch(text) if "<task-notification>" in text else None
    if match is None:
        return False, ""
    answer = _ANSWER.search(text)
    if answer is not None:
        words = _answers(html.unescape(answer.group(1)))
        if words:
            return True, words
    summary = _SUMMARY.search(match.group(1))
    inner = summary.group(1) if summary else re.sub(r"<[^>]*>", " ", match.group(1))
    return True, " ".join(html.unescape(inner).split())


def _answers(payload: str) -> str:
    data = _json(payload)
    if not isinstance(data, Mapping):
        return ""
    if data.get("status") == "dismissed":
        return "You dismissed the question."
    answers = data.get("answers")
    if not isinstance(answers, Mapping):
        return ""
    return "\n".join(f"{question}: {text_of(value, ', ') or value}" for question, value in answers.items())


def result_text(value: object) -> str:
    """A tool's result as text; a question receipt becomes the question and its options."""
    if isinstance(value, str):
        if value.startswith("{") and '"ask_user_question"' in value[:200]:
            return _receipt(value) or value
        return value
    if isinstance(value, Mapping) and not any(k in value for k in ("text", "content", "type")):
        return json.dumps(value, ensure_ascii=False, indent=2)
    return text_of(value, "\n")


def _receipt(value: str) -> str:
    data = _json(value)
    if not isinstance(data, Mapping) or data.get("type") != "ask_user_question":
        return ""
    lines: list[str] = []
    for question in _mappings(data.get("questions")):
        lines.append(f"Asked: {question.get('question') or question.get('header') or '?'}")
        for option in _mappings(question.get("options")):
            described = option.get("description")
            lines.append(f"  - {option.get('label', '?')}" + (f": {described}" if described else ""))
    return "\n".join(lines)


def seconds(date: object) -> float | None:
    """Seconds since the epoch of an ISO date; None when it is none."""
    if not isinstance(date, str) or not date:
        return None
    try:
        return datetime.fromisoformat(date.replace("Z", "+00:00")).timestamp()
    except (ValueError, OverflowError):
        return None


def error_text(value: object) -> str:
    """One line or two of an error: a string, an object with a message, or a string that ends in one."""
    if isinstance(value, str):
        text = value.strip()
        start = text.find("{") if text.endswith("}") else -1
        inner = error_text(_json(text[start:])) if start >= 0 else ""
        return f"{text[:start].strip()} {inner}".strip() if inner else text
    if isinstance(value, Mapping):
        for name in ("message", "detail", "error", "description", "reason"):
            words = error_text(value.get(name))
            if words:
                return words
    return ""


def is_json(text: str) -> bool:
    """Whether ``text`` is one whole JSON object."""
    return isinstance(_json(text), Mapping)


def _json(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [v for v in value if isinstance(v, Mapping)] if isinstance(value, list | tuple) else []
