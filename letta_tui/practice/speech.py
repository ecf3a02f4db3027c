"""What the practice model answers: a script in the message decides, else its plain words do."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from letta_tui.practice import texts
from letta_tui.practice.script import Step, edit, parse, script_in, shell, write

HUMAN_RATE = 28.0  # fragments a second
SLOW_RATE = 5.0

_REMINDER = re.compile(r"<system-reminder>.*?(?:</system-reminder>|\Z)", re.DOTALL)
_SUMMARY = re.compile(r'^\{"type": ?"system_alert".*$', re.MULTILINE)
_DENIED = re.compile(r"den(?:ied|y)|declined|rejected|not (?:approved|permitted)", re.IGNORECASE)
_REASON = re.compile(r"(?:reason|feedback|message)\s*:\s*(.+)", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ask:
    """What a request asks for. ``user``: the last text a person wrote, reminders left out; ``reply``: how
    many times tools have returned since; ``results``: (tool name, result) of the last round."""

    user: str
    reply: int = 0
    results: tuple[tuple[str, str], ...] = ()
    has_tools: bool = True


def text_of(content: Any) -> str:
    """The text of a message's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(text_of(p.get("text", "")) for p in content if isinstance(p, dict))
    return ""


def read(request: Mapping[str, Any]) -> Ask:
    """Read a chat completion request."""
    messages = [m for m in request.get("messages") or () if isinstance(m, dict)]
    names: dict[str, str] = {}
    user, start = "", -1
    for index, message in enumerate(messages):
        for call in message.get("tool_calls") or ():
            names[str(call.get("id"))] = str((call.get("function") or {}).get("name", ""))
        if message.get("role") == "user":
            # Nobody's words: reminders that the server adds, also on their own after a tool result, and the
            # summary of what came before.
            said = _SUMMARY.sub("", _REMINDER.sub("", text_of(message.get("content")))).strip()
            if said:
                joined = start >= 0 and all(m.get("role") == "user" for m in messages[start:index])
                user, start = (f"{user}\n{said}" if joined else said), index
    later = messages[start + 1 :]
    rounds = [i for i, m in enumerate(later) if m.get("role") == "assistant" and m.get("tool_calls")]
    results: tuple[tuple[str, str], ...] = ()
    if rounds:
        results = tuple(
            (names.get(str(m.get("tool_call_id")), ""), text_of(m.get("content")))
            for m in later[rounds[-1] :]
            if m.get("role") == "tool"
        )
    return Ask(user, len(rounds) if results else 0, results, bool(request.get("tools")))


def answer(ask: Ask) -> tuple[Step, ...]:
    """The steps of the reply."""
    if not ask.has_tools:
        # Titles and summaries: the server asks for those without offering tools.
        return (Step("say", "A conversation with the practice model."),)
    script = script_in(ask.user)
    if script is not None:
        steps = parse(script, ask.reply)
        if steps is not None:
            return steps
        return (Step("say", "TOOLDONE " + " | ".join(_one_line(r, 200) for _, r in ask.results)),)
    if ask.results:
        return _after_tools(ask)
    return _plain(ask.user)


def _one_line(text: str, limit: int) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _human(text: str, rate: float = HUMAN_RATE) -> Step:
    return Step("stream", text, rate=rate)


def denial(result: str) -> str | None:
    """The person's reason when a result says the call was denied; ``""`` for no reason, else ``None``."""
    if not _DENIED.search(result[:200]):
        return None
    found = _REASON.search(result)
    return _one_line(found[1], 300).strip("\"' ") if found else _one_line(result, 300)


def _after_tools(ask: Ask) -> tuple[Step, ...]:
    denials = [reason for _, result in ask.results if (reason := denial(result)) is not None]
    if denials:
        return (
            _human(
                "You said no. The reason that reached me: “" + "”, “".join(denials) + "”. I leave it at that."
            ),
        )
    if "three steps" in ask.user.lower() and ask.reply < 3:
        step = (
            shell("ls -l"),
            shell("date > step-two.txt && cat step-two.txt"),
            write("steps.md", "# Steps\n\n- looked\n- noted the time\n- wrote this\n"),
        )[ask.reply]
        return (_human(f"That was step {ask.reply}. Next one. "), step)
    lines = []
    for name, result in ask.results:
        shown = _result_text(result)
        lines.append(f"`{name or 'The tool'}` returned:\n\n```\n{shown}\n```\n")
    return (_human("It ran. " + "\n".join(lines) + "\nThat is all I wanted to know."),)


def _result_text(result: str) -> str:
    """The result for a person: the server wraps some in JSON."""
    try:
        raw = json.loads(result)
        if isinstance(raw, dict) and isinstance(raw.get("message"), str):
            result = raw["message"]
    except ValueError:
        pass
    cut = result.strip()[:1200]
    return cut.replace("```", "'''") or "(nothing)"


def _plain(user: str) -> tuple[Step, ...]:
    said = user.lower()

    def has(*words: str) -> bool:
        return any(w in said for w in words)

    if has("two tools", "both tools", "tools at once"):
        return (
            _human("Two at once, then; you are asked for each of them. "),
            shell("date > first.txt && cat first.txt"),
            shell("ls -l > second.txt && wc -l second.txt"),
        )
    if has("three steps", "several steps"):
        return (_human("Three steps, one after the other. First I look around. "), shell("ls -l"))
    if has("edit the file", "edit a file", "change the file"):
        return (
            _human("I change the pears in `practice.md`. "),
            edit("practice.md", "- pears", "- pears, twelve of them\n- quinces"),
        )
    if has("write a file", "write the file", "make a file"):
        return (
            _human("I write a small file called `practice.md`. "),
            write("practice.md", "# Practice\n\nWritten by the practice model.\n\n- apples\n- pears\n"),
        )
    if has("look around", "list files", "harmless"):
        return (_human("I look around; reading needs no permission. "), shell("ls -l"))
    if has("run a command", "run the command", "command"):
        return (
            _human("I would like to run a small command. "),
            shell("date > practice.txt && cat practice.txt"),
        )
    if has("think"):
        return (
            Step("reason", texts.THOUGHTS, rate=HUMAN_RATE),
            _human("17 × 23 = **391**. I thought about it."),
        )
    if has("slow"):
        return (_human(texts.SLOW, SLOW_RATE),)
    if has("long answer", "long text", "a lot"):
        return (Step("md", amount=40, rate=250, chunk=24),)
    if has("markdown", "table", "code"):
        return (_human(texts.SHOWCASE, 60),)
    if has("stall", "silence"):
        return (_human("Wait for it… "), Step("sleep", amount=20), _human("there."))
    if has("error", "fail"):
        return (Step("http", "the practice model was asked to fail", 400),)
    if has("help", "what can you", "?"):
        return (_human(texts.HELP, 60),)
    quoted = _one_line(user, 60)
    return (
        _human(
            f"You said “{quoted}”. I am only a script and cannot say much to that. "
            "Try **show me markdown**, **think aloud**, **talk slowly**, **run a command** or "
            "**write a file**; **help** lists everything."
        ),
    )


def call(step: Step, tools: Sequence[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    """Name and arguments of a tool call as the server's own schema wants them."""
    schemas = {}
    for tool in tools:
        function = tool.get("function") or tool
        if isinstance(function, dict) and function.get("name"):
            schemas[str(function["name"])] = function.get("parameters") or {}
    name = _tool_name(step.tool, list(schemas))
    properties = schemas.get(name, {}).get("properties", {})
    arguments = dict(step.arguments)
    if step.tool == "shell":
        key = next((k for k in ("command", "cmd") if k in properties), "command")
        command: Any = arguments.pop("command")
        arguments[key] = ["sh", "-c", command] if properties.get(key, {}).get("type") == "array" else command
    for key in schemas.get(name, {}).get("required", ()):
        if key not in arguments and properties.get(key, {}).get("type", "string") == "string":
            arguments[key] = "a practice call"
    return name, arguments


_KNOWN = {
    "shell": ("Bash", "bash", "shell", "shell_command", "exec_command", "ShellCommand", "run_shell_command"),
    "write": ("Write", "write", "write_file", "WriteFile"),
    "edit": ("Edit", "edit", "replace", "str_replace"),
}


def _tool_name(kind: str, offered: list[str]) -> str:
    known = _KNOWN.get(kind)
    if known is None:
        return kind
    return next((n for n in known if n in offered), known[0])
