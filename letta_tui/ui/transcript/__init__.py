"""The transcript: rows of a conversation, drawn by lines."""

from letta_tui.ui.transcript.view import TranscriptView

__all__ = ["TranscriptView"]
