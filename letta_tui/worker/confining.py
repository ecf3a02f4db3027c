"""A confined server serves one agent alone: what a window must not ask of it. Pure.

It can write to that agent's memory and to nothing of the others: what they did there would be lost, or fail.
"""

from __future__ import annotations

from letta_tui.seam import intents as want


def why_not(confined_to: str, agent_id: str | None) -> str:
    """One sentence; "" when the agent may be talked to. ``confined_to``: "" for a server that is not."""
    if not confined_to or not agent_id or agent_id == confined_to:
        return ""
    return (
        f"This server is confined to the memory of {confined_to} and serves that agent alone; for another "
        "one quit, end it with  letta-tui keeper stop  and start again without --confine."
    )


def refusal(confined_to: str, intent: want.Intent) -> str:
    """The same for what a window wants; a new agent is another one too."""
    match intent:
        case (
            want.OpenConversation(agent_id=agent)
            | want.NewConversation(agent_id=agent)
            | want.ManageConversation(agent_id=agent)
            | want.ManageAgent(agent_id=agent)
        ):
            return why_not(confined_to, agent)
        case want.CreateAgent():
            return why_not(confined_to, "a new agent")
        case _:
            return ""
