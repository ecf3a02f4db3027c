"""letta-tui: a terminal chat client for Letta agents that always knows what happened to a message."""

__version__ = "0.1.0"
