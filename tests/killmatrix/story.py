"""What is said in a cell: texts, ids, and the steps of the window that dies."""

from __future__ import annotations

from dataclasses import dataclass

from tests.killmatrix.cells import Cell

Steps = list[list[str]]

_EARLIER = {"idle": 0, "busy": 1, "queued": 2, "approval": 1}


@dataclass(frozen=True, slots=True)
class Story:
    """``mark`` is found in every text, after a word of its own: "mine-" for the message it is about."""

    cell: Cell
    mark: str

    @property
    def mine(self) -> str:
        return f"mine-{self.mark}"

    @property
    def text(self) -> str:
        return f"{self.mine} [[say answer-{self.mark}]]"

    @property
    def file(self) -> str:
        """What the tool writes a line into, each time it runs."""
        return f"file-{self.mark}"

    def message(self, name: str, script: str) -> list[str]:
        return ["say", f"{name}-{self.mark} [[{script}]]", f"{name}-{self.mark}"]

    def before(self) -> Steps:
        """Into the state the cell asks for."""
        match self.cell.state:
            case "busy":
                return [self.message("busy", "words 35 rate=10"), ["words"]]
            case "queued" if self.cell.group != "approve":
                following = self.message("next", f"say next-{self.mark}")
                return [
                    self.message("busy", "words 35 rate=10"), ["words"], following, ["queued", following[2]],
                ]  # fmt: skip
            case "approval":
                return [self.message("tool", f"run echo x >> {self.file}"), ["approval"]]
        return []

    def steps(self) -> Steps:
        """All of it, with the message and to the end."""
        say, step = ["say", self.text, self.mine], self.cell.step
        if self.cell.group == "approve":
            if self.cell.state == "approval":
                return [*self.before(), ["allow"], ["through"]]
            tool = self.message("tool", f"words 15 rate=10; run echo x >> {self.file}")
            return [tool, ["words"], say, ["queued", self.mine], ["approval"], ["allow"], ["through"]]
        if step.endswith("_cancel"):
            return [*self.before(), say, ["queued", self.mine], ["cancel", self.mine], ["through"]]
        return [*self.before(), say, ["taken", self.mine], ["through"]]

    def crash(self, *, command: bool = False) -> str:
        """The step as the process counts it: the earlier messages pass it too."""
        point, state, earlier = self.cell.point, self.cell.state, _EARLIER[self.cell.state]
        if self.cell.returning:
            return point
        number = 1
        if self.cell.group in ("send", "acknowledge"):
            number = 1 if command else earlier + 1
        elif self.cell.group == "turn":
            # A turn with an approval can take the message in: then it is the only one that ends.
            number = 1 if (point, state) == ("turn.finished", "approval") else min(earlier, 1) + 1
        elif point == "queue.seen":
            number = 2 if state == "queued" and not command else 1
        elif point == "queue.dequeued":
            number = 2 if state == "queued" else 1
        return f"{point}#{number}"

    def first_kill(self) -> tuple[Steps, str]:
        """For a cell of a return: what leaves the message unconfirmed, and where that dies."""
        steps = [*self.before(), ["say", self.text, self.mine], ["taken", self.mine]]
        return steps, f"send.after_attempt#{_EARLIER[self.cell.state] + 1}"

    def second(self) -> Steps:
        """The steps of the window that comes back and is killed too."""
        chosen = {"resend.after_attempt": "resend", "resend_new.after_supersede": "send_new"}
        if self.cell.group == "choose":
            return [["choose", chosen.get(self.cell.point, "edit"), self.mine], ["through"]]
        return [["through"]]

    @property
    def strange(self) -> bool:
        """Whether the window that comes back must count on nothing, or it would not offer what is chosen."""
        return self.cell.point == "resend_new.after_supersede"
