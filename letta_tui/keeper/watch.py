"""What the keeper learns from the frames it hears: who is busy, what waits, how turns ended. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from letta_tui.keeper.ends import End
from letta_tui.protocol import Frame
from letta_tui.protocol.events import Delta, DeviceStatus

Place = tuple[str, str]  # agent, conversation

_REMEMBERED = 256


@dataclass(slots=True)
class Scene:
    """One conversation as last heard of."""

    active: bool = False
    processing: bool = False
    queued: int = 0  # items that will run by themselves; paused ones wait for a person
    approvals: set[str] = field(default_factory=set)
    began: float | None = None
    asked: dict[str, str] = field(default_factory=dict)  # tool call id: tool name, in this turn
    ran: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    trouble: str = ""
    inputs: Mapping[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # of each run, as the server said last

    @property
    def busy(self) -> bool:
        """Whether something would be lost if nobody stayed subscribed."""
        return self.active or self.processing or self.queued > 0 or bool(self.approvals)


class Watch:
    """Feed it every frame; it returns what is worth noting."""

    def __init__(self) -> None:
        self.scenes: dict[Place, Scene] = {}
        self._noted: dict[str, None] = {}  # turns and approvals already noted, oldest first

    @property
    def busy(self) -> tuple[Place, ...]:
        # Copied first: a thread may ask while frames are heard.
        return tuple(place for place, scene in tuple(self.scenes.items()) if scene.busy)

    def server_gone(self, now: float, words: str) -> list[End]:
        """The server process has ended: everything that was open is over."""
        ends = [End(now, "server", a, c, words=words) for a, c in self.busy]
        self.scenes.clear()
        return ends or [End(now, "server", words=words)]

    def apply(self, frame: Frame, now: float) -> list[End]:
        if frame.runtime is None or frame.runtime.agent_id is None or frame.is_answer:
            return []
        place = (frame.runtime.agent_id, frame.runtime.conversation_id)
        scene = self.scenes.setdefault(place, Scene())
        ends: list[End] = []
        if (loop := frame.loop_status) is not None:
            scene.active = not loop.idle
            scene.inputs = loop.client_message_ids_by_run_id
            if scene.active and scene.began is None:
                scene.began = now
        elif (queue := frame.queue) is not None:
            scene.queued = sum(1 for item in queue.items if not item.paused)
        elif (device := frame.device_status) is not None:
            ends += self._device(place, scene, device, now)
        elif (request := frame.control_request) is not None:
            scene.approvals.add(request.request_id)
            ends += self._approval(place, request.request_id, request.tool_name, now)
        elif (delta := frame.delta) is not None:
            _delta(scene, delta)
        elif (finished := frame.turn_finished) is not None and self._first(f"turn {finished.turn_id}"):
            ends.append(
                End(
                    now,
                    "turn",
                    *place,
                    stop_reason=finished.stop_reason,
                    turn_id=finished.turn_id,
                    run_id=finished.run_id or "",
                    tools=tuple(scene.ran.values()),
                    denied=tuple(scene.refused.values()),
                    inputs=scene.inputs.get(finished.run_id or "", ()),
                    seconds=None if scene.began is None else round(now - scene.began, 1),
                    words=finished.error or scene.trouble,
                )
            )
            self.scenes[place] = Scene(
                scene.active, scene.processing, scene.queued, scene.approvals, inputs=scene.inputs
            )
        return ends

    def _device(self, place: Place, scene: Scene, device: DeviceStatus, now: float) -> list[End]:
        scene.processing = device.is_processing
        scene.approvals = {request.request_id for request in device.pending}
        ends: list[End] = []
        for request in device.pending:
            ends += self._approval(place, request.request_id, request.tool_name, now)
        return ends

    def _approval(self, place: Place, request_id: str, tool: str, now: float) -> list[End]:
        if not self._first(f"approval {place} {request_id}"):
            return []
        return [End(now, "approval", *place, tools=(tool,))]

    def _first(self, key: str) -> bool:
        if key in self._noted:
            return False
        self._noted[key] = None
        if len(self._noted) > _REMEMBERED:
            del self._noted[next(iter(self._noted))]
        return True


def _delta(scene: Scene, delta: Delta) -> None:
    if delta.subagent_id:
        return
    raw, kind = delta.raw, delta.message_type
    call_id = str(raw.get("tool_call_id") or "")
    if kind in ("approval_request_message", "tool_call_message"):
        call = raw.get("tool_call")
        if isinstance(call, dict) and call.get("tool_call_id"):
            # Some servers send the name once and the arguments in pieces.
            name = call.get("name") or scene.asked.get(str(call["tool_call_id"]), "")
            scene.asked[str(call["tool_call_id"])] = str(name)
    elif kind == "client_tool_start":
        scene.ran[call_id] = str(raw.get("tool_name") or scene.asked.get(call_id, "a tool"))
    elif kind == "tool_return_message" and call_id and call_id not in scene.ran:
        # It returned without ever having been started: somebody said no.
        scene.refused[call_id] = scene.asked.get(call_id, "a tool")
    elif kind in ("loop_error", "error_message"):
        scene.trouble = delta.message
