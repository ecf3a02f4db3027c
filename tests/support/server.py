"""The real ``letta server`` behind the scripted practice model, in folders of its own."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from letta_tui.practice.model import MODEL_NAME, ModelThread

LETTA = Path(sys.executable).parent / "letta"
MODEL_HANDLE = f"openai-compatible/{MODEL_NAME}"
TOKEN = "practice-token-0123456789"


@dataclass
class RealServer:
    """A running server. ``url`` is its ``ws://…/ws`` address, ``token_file`` holds the capability token.

    ``folder`` has ``home``, ``backend`` and ``work`` (the working folder of tools); ``model_log`` is the
    practice model's request log.
    """

    folder: Path
    model: ModelThread
    env: dict[str, str]
    port: int = 0
    url: str = ""
    agent_id: str = ""
    process: subprocess.Popen[str] | None = None
    auth: tuple[str, ...] = ()  # other options of its authentication than the capability token
    output: list[str] = field(default_factory=list)

    @property
    def token_file(self) -> Path:
        return self.folder / "token"

    @property
    def token(self) -> str:
        return TOKEN

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def work(self) -> Path:
        return self.folder / "work"

    @property
    def model_log(self) -> Path:
        return self.folder / "model.jsonl"

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    # -- life ---------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start it on the port it had before, or a free one, and wait until it listens."""
        self.process = subprocess.Popen(
            [
                str(LETTA), "server", "--backend", "local", "--listen", f"ws://127.0.0.1:{self.port}",
                *(self.auth or ("--ws-auth", "capability-token", "--ws-token-file", str(self.token_file))),
            ],
            env=self.env, cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output.append(line)
            if line.startswith("WebSocket:"):
                self.url = line.split()[-1]
                self.port = int(self.url.split(":")[2].split("/")[0])
                break
        else:
            raise RuntimeError("the server did not start:\n" + "".join(self.output))
        # A pipe nobody reads would stop the server one day.
        threading.Thread(target=self.output.extend, args=(self.process.stdout,), daemon=True).start()

    def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End it; ``SIGKILL`` for a crash. Whatever its tools left running ends too."""
        if self.process is None:
            return
        self.process.send_signal(how)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process = None

    def kill(self) -> None:
        hold_between_writes(self.pid, self.folder / "backend")
        self.stop(signal.SIGKILL)

    def restart(self, how: signal.Signals = signal.SIGTERM) -> None:
        """The same server again, at the same address."""
        self.stop(how)
        self.start()

    # -- what it holds ------------------------------------------------------------------------------------

    async def conversation(self, agent_id: str | None = None) -> str:
        """The id of a new, empty conversation (of the shared agent unless told)."""
        async with self.plain() as socket:
            answer = await socket.ask("conversation_create", body={"agent_id": agent_id or self.agent_id})
        return str(answer["conversation"]["id"])

    async def furnish(self) -> str:
        """Make the model known to the server; returns the id of a new agent."""
        async with self.plain() as socket:
            await socket.connect_model(self.model.url)
        return await self.new_agent()

    async def new_agent(self, name: str = "Practice") -> str:
        async with self.plain() as socket:
            answer = await socket.ask("agent_create", body={"name": name, "model": MODEL_HANDLE})
        return str(answer["agent"]["id"])

    async def history(self, conversation_id: str, agent_id: str | None = None) -> list[dict[str, Any]]:
        """All rows, oldest first, as the server says them."""
        rows: list[dict[str, Any]] = []
        before: dict[str, Any] = {}
        async with self.plain() as socket:
            while True:
                query = {"agent_id": agent_id or self.agent_id, "limit": 100, **before}
                answer = await socket.ask(
                    "conversation_messages_list", conversation_id=conversation_id, query=query
                )
                rows += answer["messages"]
                if not answer.get("has_more"):
                    return rows[::-1]
                before = {"before": answer["next_before"]}

    def plain(self) -> PlainSocket:
        """A second client, that knows nothing of ours: ``async with server.plain() as socket``."""
        return PlainSocket(self.url, TOKEN)

    def model_requests(self, marker: str = "") -> list[dict[str, Any]]:
        """What the server asked the model for, oldest first; only where the person's text has ``marker``."""
        if not self.model_log.exists():
            return []
        lines = [json.loads(line) for line in self.model_log.read_text().splitlines()]
        return [x for x in lines if x["event"] == "request" and marker in x["user"]]

    def runs(self, marker: str) -> int:
        """How often a message with ``marker`` was run (tool rounds of one turn count once)."""
        return sum(1 for x in self.model_requests(marker) if x["reply"] == 0)


class PlainSocket:
    """A bare websocket to the server. ``frames`` has everything received, oldest first."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token
        self.frames: list[dict[str, Any]] = []
        self._more = asyncio.Event()

    async def __aenter__(self) -> PlainSocket:
        import websockets

        self._ws = await websockets.connect(
            self._url,
            additional_headers={"Authorization": f"Bearer {self._token}"},
            max_size=None,
            max_queue=None,
            proxy=None,
        )
        self._pump = asyncio.create_task(self._read())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._pump.cancel()
        await self._ws.close()

    def cut(self) -> None:
        """Cut the connection as a killed process does: no closing handshake."""
        self._pump.cancel()
        self._ws.transport.abort()

    async def _read(self) -> None:
        async for text in self._ws:
            self.frames.append(json.loads(text))
            self._more.set()

    async def send(self, kind: str, **fields: Any) -> str:
        request_id = str(fields.pop("request_id", "") or uuid.uuid4())
        await self._ws.send(json.dumps({"type": kind, "request_id": request_id, **fields}))
        return request_id

    async def ask(self, kind: str, **fields: Any) -> dict[str, Any]:
        """Send a command and wait for its answer, which must not be a failure."""
        request_id = await self.send(kind, **fields)
        answer = await self.wait(
            lambda f: f.get("request_id") == request_id and f.get("type") != "control_request"
        )
        assert answer.get("success", True), answer
        return answer

    async def connect_model(self, base_url: str) -> None:
        """Make the practice model known to the server."""
        await self.ask(
            "connect_provider",
            target="local",
            provider_id="openai-compatible",
            fields={"baseUrl": base_url, "apiKey": "practice"},
        )

    async def join(self, agent_id: str, conversation_id: str, **fields: Any) -> dict[str, Any]:
        """``runtime_start`` of an existing conversation, in mode "standard"."""
        return await self.ask(
            "runtime_start",
            agent_id=agent_id,
            conversation_id=conversation_id,
            **{"mode": "standard", "wait_for_replay": True, **fields},
        )

    async def say(self, agent_id: str, conversation_id: str, text: str, message_id: str = "") -> str:
        """Send a message; returns its client message id once the server has accepted it."""
        message_id = message_id or str(uuid.uuid4())
        message = {"role": "user", "content": text, "client_message_id": message_id, "otid": message_id}
        answer = await self.ask(
            "input",
            runtime={"agent_id": agent_id, "conversation_id": conversation_id},
            payload={"kind": "create_message", "messages": [message]},
        )
        assert answer["accepted"], answer
        return message_id

    async def decide(
        self, agent_id: str, conversation_id: str, request_id: str, allow: bool, reason: str = ""
    ) -> dict[str, Any]:
        decision = {"behavior": "allow"} if allow else {"behavior": "deny", "message": reason or "no"}
        return await self.ask(
            "input",
            runtime={"agent_id": agent_id, "conversation_id": conversation_id},
            payload={"kind": "approval_response", "request_id": request_id, "decision": decision},
        )

    async def wait(
        self, wanted: Callable[[dict[str, Any]], Any], after: int = 0, timeout: float = 60
    ) -> dict[str, Any]:
        """The first frame, among those from index ``after`` on, that is wanted."""
        seen = after
        try:
            async with asyncio.timeout(timeout):
                while True:
                    while seen < len(self.frames):
                        seen += 1
                        if wanted(self.frames[seen - 1]):
                            return self.frames[seen - 1]
                    if self._pump.done():
                        raise ConnectionError("the server closed the connection")
                    self._more.clear()
                    await self._more.wait()
        except TimeoutError:
            kinds = [f.get("type") for f in self.frames[-12:]]
            raise AssertionError(f"no such frame within {timeout} s; the last ones were {kinds}") from None

    async def finished(self, after: int = 0, timeout: float = 60) -> dict[str, Any]:
        return await self.wait(lambda f: f.get("type") == "turn_finished", after, timeout)

    async def asked(self, after: int = 0, timeout: float = 60) -> dict[str, Any]:
        """The next request for an approval."""
        return await self.wait(lambda f: f.get("type") == "control_request", after, timeout)


def hold_between_writes(pid: int, backend: Path) -> None:
    """Stop a server that is to be killed, at a moment when no conversation's record is half written.

    0.34.12 writes the record over in place while a reply streams; a kill in between leaves it empty, and the
    conversation can never be opened again. ``tests.killmatrix`` and ``tests.send_loop`` kill at any moment.
    """
    process = psutil.Process(pid)
    while True:
        process.suspend()
        while process.status() != psutil.STATUS_STOPPED:
            time.sleep(0.001)  # the signal is on its way
        if all(map(_whole, backend.rglob("conversation.json"))):
            return
        process.resume()
        time.sleep(0.01)  # in which it can finish what it was writing


def _whole(file: Path) -> bool:
    try:
        json.loads(file.read_text())
    except ValueError:
        return False
    return True


def isolated_env(folder: Path) -> dict[str, str]:
    """An environment in which a server touches nothing outside ``folder``."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "LANG", "TMPDIR", "NODE_COMPILE_CACHE")}
    return kept | {
        "HOME": str(folder / "home"),
        "LETTA_LOCAL_BACKEND_DIR": str(folder / "backend"),
        "LETTA_CODE_TELEM": "0",
        "DISABLE_AUTOUPDATER": "1",
    }


def person_env(home: Path, data: Path) -> dict[str, str]:
    """The environment of the program in a terminal, its person's ``home`` and where it keeps ``data``."""
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "NODE_COMPILE_CACHE")}
    return kept | {
        "HOME": str(home),
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "LETTA_TUI_DATA_DIR": str(data),
    }


@contextmanager
def real_server(folder: Path) -> Iterator[RealServer]:
    """A server with the practice model and one agent, in ``folder``; stopped at the end."""
    for name in ("home", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    model = ModelThread(folder / "model.jsonl")
    model.start()
    server = RealServer(folder, model, isolated_env(folder))
    server.token_file.write_text(TOKEN)
    server.token_file.chmod(0o600)
    try:
        server.start()
        # On a thread: whoever asks may have an event loop running.
        with ThreadPoolExecutor(1) as thread:
            server.agent_id = thread.submit(asyncio.run, server.furnish()).result()
        yield server
    finally:
        server.stop()
        model.stop()


async def until(condition: Callable[[], Any], timeout: float = 60, what: str = "") -> Any:
    """Wait until ``condition()``, or what it returns when awaited, is true, and return that."""
    end = time.monotonic() + timeout
    while True:
        value = condition()
        if inspect.isawaitable(value):
            value = await value
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"not within {timeout} s: {what or condition}")
        await asyncio.sleep(0.02)
