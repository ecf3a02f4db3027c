"""How the practice model calls itself."""

from __future__ import annotations

MODEL_NAME = "practice"
OWNER = "letta-tui-practice"
