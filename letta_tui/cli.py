"""The command line."""

from __future__ import annotations


def main() -> int:
    """Run the command line and return the process's exit code."""
    return 0
