"""The two small helpers that all command builders share."""

from __future__ import annotations

from typing import Any

Command = dict[str, Any]


def command(command_type: str, request_id: str | None, **fields: Any) -> Command:
    """A command with those fields that are not None."""
    built: Command = {"type": command_type}
    if request_id is not None:
        built["request_id"] = request_id
    built.update(given(**fields))
    return built


def given(**fields: Any) -> Command:
    """The fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}
