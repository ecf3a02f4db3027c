"""Every sign the transcript uses, with a plain form for terminals without Unicode: one table."""

from __future__ import annotations

from letta_tui.seam.state import Delivery, ToolState

# delivery: (glyph, plain glyph, word, style)
DELIVERY: dict[Delivery, tuple[str, str, str, str]] = {
    "prepared": ("○", "o", "not sent", "pending"),
    "unconfirmed": ("◌", ".", "unconfirmed", "pending"),
    "accepted": ("→", ">", "server has it", "pending"),
    "queued": ("⋯", "~", "queued", "pending"),
    "started": ("▶", ">", "started", "pending"),
    "delivered": ("✓", "+", "", "quiet"),
    "rejected": ("✗", "x", "refused", "bad"),
    "failed": ("✗", "x", "failed", "bad"),
    "cancelled": ("∅", "-", "taken back", "quiet"),
    "vanished": ("!", "!", "lost", "bad"),
    "unknown": ("!", "!", "not known", "bad"),
    "superseded": ("↷", "-", "sent again below", "quiet"),
    "discarded": ("∅", "-", "discarded", "quiet"),
    "redacted": ("▒", "#", "erased", "quiet"),
}

# tool state: (glyph, plain glyph, word, style)
TOOL: dict[ToolState, tuple[str, str, str, str]] = {
    "requested": ("○", "o", "requested", "quiet"),
    "awaiting": ("?", "?", "waits for you", "pending"),
    "running": ("▶", ">", "running", "pending"),
    "done": ("✓", "+", "", "good"),
    "failed": ("✗", "x", "failed", "bad"),
    "denied": ("⊘", "-", "denied", "bad"),
    "closed": ("∅", "-", "no result", "quiet"),
}

FOLDED = ("▸", ">")
UNFOLDED = ("▾", "v")
BAR = ("▌", "|")
