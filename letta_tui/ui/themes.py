"""The two palettes. Everything else refers to colours by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from textual.theme import Theme

DARK = Theme(
    name="letta-dark",
    primary="#8ab4f8",
    secondary="#9a8cff",
    accent="#f2b36d",
    foreground="#d7dae0",
    background="#14161b",
    surface="#191c22",
    panel="#23272f",
    success="#7fc88d",
    warning="#e5b567",
    error="#ee7a78",
    dark=True,
    variables={
        "block-cursor-foreground": "#14161b",
        "border": "#3a404c",
        "footer-key-foreground": "#8ab4f8",
        "quiet": "#8a91a0",
        "screen-selection-background": "#35507f",
        "screen-selection-foreground": "#f0f2f6",
        "input-selection-background": "#35507f",
        "chosen": "#2c3a52",
        "add-bg": "#17301f",
        "remove-bg": "#3a1d20",
    },
)

LIGHT = Theme(
    name="letta-light",
    primary="#1d5fbf",
    secondary="#5b45c9",
    accent="#a85b00",
    foreground="#22262e",
    background="#fbfbf9",
    surface="#f4f4f0",
    panel="#e9e9e3",
    success="#1d7a3c",
    warning="#8f5c00",
    error="#b3262b",
    dark=False,
    variables={
        "block-cursor-foreground": "#fbfbf9",
        "border": "#c4c6c0",
        "footer-key-foreground": "#1d5fbf",
        "quiet": "#666b75",
        "screen-selection-background": "#bcd4f7",
        "screen-selection-foreground": "#14161b",
        "input-selection-background": "#bcd4f7",
        "chosen": "#d9e6fa",
        "add-bg": "#dcf3e0",
        "remove-bg": "#fbe0df",
    },
)


def usual(environ: Mapping[str, str]) -> Literal["dark", "light"]:
    """The palette that goes with the terminal, as far as it tells: ``COLORFGBG`` ends in the background."""
    return "light" if environ.get("COLORFGBG", "").rpartition(";")[2] in ("7", "15") else "dark"
