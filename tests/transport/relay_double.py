"""A stand-in for the hosted service: its REST listing, and its relay in front of a real server.

Written from the documentation and the agent SDK's transport. A machine ("device") holds one connection to
a server for as long as it lives, whoever looks on; each relay socket gets the same feed, every delivery
numbered with a ``seq`` of that socket and repeated until it is acknowledged there.

``violations`` has what a client must never do, in words; it has to be empty at the end of a test.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import websockets
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

TOKEN = "hosted-key"


@dataclass
class Trouble:
    """What goes wrong on the way, by chance. Delays are seconds."""

    seed: int = 1
    duplicate: float = 0.0  # a delivery is made twice at once
    drop: float = 0.0  # a delivery gets lost; it is repeated because no receipt comes
    delay: float = 0.0  # each socket is late by up to so much, so that they overtake each other


@dataclass
class Subscriber:
    socket: ServerConnection
    channel: str
    agent_id: str
    conversation_id: str
    chance: random.Random
    seq: int = 0
    unacked: dict[int, str] = field(default_factory=dict)
    repeat_at: dict[int, float] = field(default_factory=dict)  # what went out, or got lost, and when again
    acked: Counter[int] = field(default_factory=Counter)
    delivered: Counter[int] = field(default_factory=Counter)
    pings: int = 0
    outbox: asyncio.Queue[tuple[int | None, str]] = field(default_factory=asyncio.Queue)


@dataclass
class Device:
    device_id: str = "device-1"
    name: str = "laptop"
    connection_id: str | None = "connection-1"
    folder: str = "/home/somebody/work"
    last_heartbeat: str = "2099-01-01T00:00:00Z"
    upstream: Any = None  # a websockets connection to a server
    pump: asyncio.Task[None] | None = None

    def row(self) -> dict[str, Any]:
        return {
            "id": f"row-{self.device_id}",
            "deviceId": self.device_id,
            "connectionId": self.connection_id,
            "connectionName": self.name,
            "lastHeartbeat": self.last_heartbeat,
            "lastSeenAt": self.last_heartbeat,
            "currentMode": "standard",
            "metadata": {"workingDirectory": self.folder, "gitBranch": "main"},
        }


class RelayDouble:
    def __init__(self, trouble: Trouble | None = None, *, redeliver: float = 0.08) -> None:
        self.trouble = trouble or Trouble()
        self.redeliver = redeliver
        self.device = Device()
        self.devices = {self.device.device_id: self.device}
        self.subscribers: list[Subscriber] = []
        self.all_subscribers: list[Subscriber] = []
        self.commands: list[dict[str, Any]] = []  # what reached the control socket
        self.requests: list[str] = []  # "METHOD /path", as they came
        self.sandboxes: dict[str, dict[str, Any]] = {}
        self.expired: set[str] = set()
        self.lifetime: int | None = None  # refreshes after which a sandbox expires
        self.refuse_channel: str | None = None  # this channel's socket is not let in
        self.stall_channel: str | None = None  # this channel's socket is never answered
        self.violations: list[str] = []
        self.remembers_last = True
        self.agents: list[dict[str, Any]] = []
        self.conversations: dict[str, str] = {}  # conversation → agent, as far as REST knows them
        self.make_conversation: Callable[[str], Awaitable[str]] | None = None  # on the real server
        self.base = ""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closing = asyncio.Event()

    # Life

    async def __aenter__(self) -> RelayDouble:
        self._relay = await serve(
            self._socket, "127.0.0.1", 0, process_request=self._admit, compression=None, max_size=None,
            ping_interval=None, open_timeout=10.0,
        )  # fmt: skip
        self._relay_port = self._relay.sockets[0].getsockname()[1]
        self._front = await asyncio.start_server(self._split, "127.0.0.1", 0)
        self.base = f"http://127.0.0.1:{self._front.sockets[0].getsockname()[1]}"
        self._start(self._repeat())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing.set()
        for device in self.devices.values():
            await self._detach(device)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for subscriber in self.subscribers:
            subscriber.socket.transport.abort()
        self._front.close()
        self._relay.close()
        await self._relay.wait_closed()

    def _start(self, coroutine: Any) -> None:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def attach(self, url: str, token: str, device: Device | None = None) -> None:
        """Let the machine connect to a real server; stays connected whoever comes and goes here."""
        device = device or self.device
        device.upstream = await websockets.connect(
            url, additional_headers={"Authorization": f"Bearer {token}"}, max_size=None, max_queue=None,
            proxy=None,
        )  # fmt: skip

        async def pump() -> None:
            with contextlib.suppress(ConnectionClosed):
                async for text in device.upstream:
                    self.publish(json.loads(text))

        device.pump = asyncio.create_task(pump())

    async def _detach(self, device: Device) -> None:
        if device.pump is not None:
            device.pump.cancel()
        if device.upstream is not None:
            await device.upstream.close()
        device.pump = device.upstream = None

    # What a test does to it

    def publish(self, frame: dict[str, Any]) -> None:
        """Hand a frame of the machine to every socket that looks at its conversation."""
        runtime = frame.get("runtime")
        for subscriber in list(self.subscribers):
            if isinstance(runtime, dict) and (
                runtime.get("agent_id") != subscriber.agent_id
                or runtime.get("conversation_id") != subscriber.conversation_id
            ):
                continue
            subscriber.seq += 1
            text = json.dumps({**frame, "seq": subscriber.seq})
            subscriber.unacked[subscriber.seq] = text
            chance = subscriber.chance
            if chance.random() < self.trouble.drop:
                now = asyncio.get_running_loop().time()
                subscriber.repeat_at[subscriber.seq] = now + self.redeliver
                continue
            self._deliver(subscriber, subscriber.seq)
            if chance.random() < self.trouble.duplicate:
                self._deliver(subscriber, subscriber.seq)

    def deliver_again(self, subscriber: Subscriber, seq: int, frame: dict[str, Any]) -> None:
        """Repeat a delivery whose receipt, sent long ago, is taken to have been lost."""
        subscriber.unacked[seq] = json.dumps({**frame, "seq": seq})
        self._deliver(subscriber, seq)

    async def rotate(self) -> str:
        """The machine registers anew: another connection id, and the old sockets are closed."""
        self.device.connection_id = f"connection-{uuid.uuid4().hex[:8]}"
        await self.cut()
        return self.device.connection_id

    async def cut(self, channel: str | None = None) -> None:
        """Close the sockets (of one channel) with no goodbye."""
        for subscriber in list(self.subscribers):
            if channel in (None, subscriber.channel):
                subscriber.socket.transport.abort()
                await subscriber.socket.wait_closed()

    def unacknowledged(self) -> int:
        return sum(len(subscriber.unacked) for subscriber in self.subscribers)

    # The relay

    async def _admit(self, connection: ServerConnection, request: Request) -> Response | None:
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return connection.respond(401, "no\n")
        parts = urlsplit(request.path)
        path = parts.path.split("/")
        query = parse_qs(parts.query)
        if path[1:3] != ["v1", "environments"] or path[4:] != ["status", "ws"]:
            return connection.respond(404, "no\n")
        if all(unquote(path[3]) != device.connection_id for device in self.devices.values()):
            return connection.respond(404, "that connection id is no longer in use\n")
        for name in ("agentId", "conversationId", "channel"):
            if len(query.get(name, [])) != 1:
                self.violations.append(f"{name} is not named exactly once in {request.path}")
        if request.headers.get("Origin") is not None:
            self.violations.append("an Origin was sent")
        if query.get("channel") == [self.stall_channel]:
            await self._closing.wait()
        if query.get("channel") == [self.refuse_channel]:
            return connection.respond(503, "no\n")
        return None

    async def _socket(self, socket: ServerConnection) -> None:
        assert socket.request is not None
        query = parse_qs(urlsplit(socket.request.path).query)
        channel = query["channel"][0]
        subscriber = Subscriber(
            socket, channel, query["agentId"][0], query["conversationId"][0],
            random.Random(f"{self.trouble.seed} {channel} {len(self.all_subscribers)}"),
        )  # fmt: skip
        self.subscribers.append(subscriber)
        self.all_subscribers.append(subscriber)
        writer = asyncio.create_task(self._write(subscriber))
        try:
            async for text in socket:
                await self._heard(subscriber, json.loads(text))
        except ConnectionClosed:
            pass
        finally:
            writer.cancel()
            self.subscribers.remove(subscriber)

    async def _write(self, subscriber: Subscriber) -> None:
        with contextlib.suppress(ConnectionClosed):
            while True:
                seq, text = await subscriber.outbox.get()
                if self.trouble.delay and subscriber.outbox.empty():
                    await asyncio.sleep(subscriber.chance.random() * self.trouble.delay)
                await subscriber.socket.send(text)
                if seq in subscriber.unacked:
                    now = asyncio.get_running_loop().time()
                    # Further apart each time, or a busy machine would drown in repetitions.
                    subscriber.repeat_at[seq] = now + self.redeliver * 2 ** subscriber.delivered[seq] / 2

    def _deliver(self, subscriber: Subscriber, seq: int) -> None:
        subscriber.repeat_at.pop(seq, None)
        if seq not in subscriber.unacked:
            return  # its receipt came while it was on its way a second time
        subscriber.delivered[seq] += 1
        subscriber.outbox.put_nowait((seq, subscriber.unacked[seq]))

    async def _repeat(self) -> None:
        while True:
            await asyncio.sleep(self.redeliver / 2)
            now = asyncio.get_running_loop().time()
            for subscriber in self.subscribers:
                for seq, when in list(subscriber.repeat_at.items()):
                    if now >= when:
                        self._deliver(subscriber, seq)

    async def _heard(self, subscriber: Subscriber, frame: dict[str, Any]) -> None:
        kind = frame.get("type")
        if kind == "ack":
            seq = frame.get("seq")
            if not isinstance(seq, int) or seq not in subscriber.delivered:
                self.violations.append(f"a receipt for {seq}, which {subscriber.channel} never brought")
                return
            subscriber.acked[seq] += 1
            subscriber.unacked.pop(seq, None)
            subscriber.repeat_at.pop(seq, None)
        elif kind == "ping":
            subscriber.pings += 1
            subscriber.outbox.put_nowait((None, json.dumps({"type": "pong"})))
        elif subscriber.channel != "control":
            self.violations.append(f"{kind} was sent on the {subscriber.channel} socket")
        else:
            self.commands.append(frame)
            if self.device.upstream is not None:
                await self.device.upstream.send(json.dumps(frame))

    # REST

    async def _split(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One address for both: sockets go on to the relay, the rest is answered here."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        lines = head.decode().split("\r\n")
        headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:] if line)}
        if headers.get("upgrade", "").lower() == "websocket":
            there_in, there_out = await asyncio.open_connection("127.0.0.1", self._relay_port)
            there_out.write(head)
            self._start(_copy(reader, there_out))
            self._start(_copy(there_in, writer))
            return
        length = int(headers.get("content-length", "0"))
        body = json.loads(await reader.readexactly(length)) if length else {}
        method, path, _ = lines[0].split(" ")
        self.requests.append(f"{method} {path}")
        if headers.get("authorization") != f"Bearer {TOKEN}":
            status, answer = 401, {"error": "no"}
        else:
            made = ""
            if method == "POST" and path.startswith("/v1/conversations/") and self.make_conversation:
                made = await self.make_conversation(parse_qs(urlsplit(path).query)["agent_id"][0])
            status, answer = self._answer(method, path, body, made or "conv-new")
        data = json.dumps(answer).encode()
        writer.write(
            f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n"
            f"Connection: close\r\n\r\n".encode()
            + data
        )
        with contextlib.suppress(OSError):
            await writer.drain()
        writer.close()

    def _answer(self, method: str, path: str, body: dict[str, Any], made: str) -> tuple[int, Any]:
        parts = urlsplit(path)
        names = [unquote(name) for name in parts.path.split("/")[2:]]
        query = parse_qs(parts.query)
        match (method, names):
            case ("GET", ["environments"]):
                rows = [d.row() for d in self.devices.values()]
                if query.get("onlineOnly") == ["true"]:
                    rows = [row for row in rows if row["connectionId"]]
                start = next((i + 1 for i, r in enumerate(rows) if [r["id"]] == query.get("after")), 0)
                page = rows[start : start + 2]
                return 200, {"connections": page, "hasNextPage": start + 2 < len(rows)}
            case ("GET", ["environments", device_id]):
                device = self.devices.get(device_id)
                return (200, device.row()) if device else (404, {"error": "unknown"})
            case ("GET", ["environments", "runtimes", _, _, "last"]):
                return (200, self.device.row()) if self.remembers_last else (404, {"error": "never ran"})
            case ("POST", ["agents", agent_id, "sandboxes"]):
                conversation = body.get("conversationId")
                sandbox_id = f"sandbox-{agent_id}-{conversation}"
                resumed = sandbox_id in self.sandboxes and sandbox_id not in self.expired
                self.expired.discard(sandbox_id)
                answer = {
                    "sandboxId": sandbox_id,
                    "deviceId": self.device.device_id,
                    "connectionName": self.device.name,
                    "resumed": resumed,
                    **({"conversationId": conversation} if conversation else {}),
                }
                self.sandboxes[sandbox_id] = {**answer, "body": body, "refreshed": []}
                return 200, answer
            case ("POST", ["sandboxes", sandbox_id, "refresh"]):
                if sandbox_id not in self.sandboxes or sandbox_id in self.expired:
                    return 404, {"code": "SANDBOX_NOT_FOUND"}
                self.sandboxes[sandbox_id]["refreshed"].append(body["ttlMinutes"])
                if (
                    self.lifetime is not None
                    and len(self.sandboxes[sandbox_id]["refreshed"]) >= self.lifetime
                ):
                    self.expired.add(sandbox_id)
                return 200, {}
            case ("POST", ["sandboxes", sandbox_id, "terminate"]):
                return (200, {}) if self.sandboxes.pop(sandbox_id, None) else (404, {})
            case ("POST", ["conversations", ""]):
                self.conversations[made] = query["agent_id"][0]
                return 200, {"id": made, "agent_id": query["agent_id"][0]}
            case ("GET", ["conversations", conversation]) if conversation in self.conversations:
                return 200, {"id": conversation, "agent_id": self.conversations[conversation]}
            case ("GET", ["agents", ""]):
                return 200, self.agents
            case ("POST", ["agents"]):
                return 200, {"id": "agent-new"}
        return 404, {"error": "no such path"}


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
