"""The practice model: an OpenAI-compatible service on loopback, from the standard library alone.

``GET /v1/models`` and ``POST /v1/chat/completions`` (streaming or not). What it answers is decided in
``speech``; this module is the HTTP around it, the pace, and the log.

The log, if asked for, has one JSON object a line: ``event`` is "request" (``n`` running number, ``user`` the
last 500 characters a person wrote, ``reply`` the number of tool rounds so far, ``tools`` the names offered,
``results`` the tools' results), "first" (first fragment written), "end" (``fragments``), "gone" (the
server hung up), "dropped"; ``at`` is seconds since the epoch.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from letta_tui.practice import speech, texts
from letta_tui.practice.names import MODEL_NAME, OWNER
from letta_tui.practice.script import Step

_LIMIT = 1 << 26  # bytes of one request; a long conversation with tools is a few MiB


class PracticeModel:
    """The service. ``await start()``, then ``url`` is the base URL; ``await close()`` ends it."""

    def __init__(self, log: Path | None = None) -> None:
        self._log_path = log
        self._log: TextIO | None = None
        self._server: asyncio.Server | None = None
        self._requests = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def start(self, port: int = 0) -> None:
        """Listen on 127.0.0.1; ``port`` 0 takes a free one. ``OSError`` when the port is taken."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", port, limit=_LIMIT)
        self.port = self._server.sockets[0].getsockname()[1]
        if self._log_path is not None:
            self._log = self._log_path.open("a", encoding="utf-8")

    async def serve_forever(self) -> None:
        assert self._server is not None
        await self._server.serve_forever()

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _note(self, event: str, n: int, **fields: Any) -> None:
        if self._log is not None:
            line = {"at": time.time(), "event": event, "n": n, **fields}
            self._log.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._log.flush()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = await _read_request(reader)
            if request is None:
                return
            method, path, body = request
            if method == "GET" and path.endswith("/models"):
                model = {"id": MODEL_NAME, "object": "model", "created": 0, "owned_by": OWNER}
                _reply(writer, 200, {"object": "list", "data": [model]})
            elif method == "POST" and path.endswith("/chat/completions"):
                await self._complete(body, reader, writer)
            else:
                _reply(writer, 404, _error(f"There is no {path} here."))
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError):
            pass  # a client that hangs up or sends no HTTP is no concern of the model
        except asyncio.CancelledError:
            pass  # only the end of the model does this; asyncio would log it as an error
        finally:
            writer.close()

    async def _complete(
        self, body: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            request = json.loads(body)
        except ValueError:
            request = None
        if not isinstance(request, dict):
            _reply(writer, 400, _error("The request is not a JSON object."))
            return
        self._requests += 1
        n = self._requests
        ask = speech.read(request)
        steps = speech.answer(ask)
        tools = [t for t in request.get("tools") or () if isinstance(t, dict)]
        self._note(
            "request",
            n,
            user=ask.user[-500:],
            reply=ask.reply,
            results=[r[:2000] for _, r in ask.results],
            tools=[str((t.get("function") or t).get("name", "")) for t in tools],
        )
        if steps and steps[0].kind == "http":
            _reply(writer, int(steps[0].amount), _error(steps[0].text or "The script asked for an error."))
            return
        exchange = _Exchange(n, steps, tools)
        if not request.get("stream"):
            _reply(writer, 200, await exchange.whole())
            return
        # The server hangs up when a turn is cancelled; without watching for it a long silence would go on.
        hung_up = asyncio.create_task(reader.read(1))
        speaking = asyncio.create_task(self._stream(exchange, writer))
        try:
            await asyncio.wait((hung_up, speaking), return_when=asyncio.FIRST_COMPLETED)
            if speaking.done():
                speaking.result()
            else:
                self._note("gone", n, fragments=exchange.fragments)
        except ConnectionError:
            self._note("gone", n, fragments=exchange.fragments)
        finally:
            for task in (hung_up, speaking):
                task.cancel()
            await asyncio.gather(hung_up, speaking, return_exceptions=True)

    async def _stream(self, exchange: _Exchange, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"cache-control: no-cache\r\nconnection: close\r\n\r\n"
        )
        async for chunk in exchange.chunks():
            if chunk is None:
                await writer.drain()
                writer.transport.abort()
                self._note("dropped", exchange.n, fragments=exchange.fragments)
                return
            writer.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
            if exchange.fragments == 1:
                self._note("first", exchange.n)
            await writer.drain()
        writer.write(b"data: [DONE]\n\n")
        await writer.drain()
        self._note("end", exchange.n, fragments=exchange.fragments)


class _Exchange:
    """One reply on its way: steps become chunks of the streaming format."""

    def __init__(self, n: int, steps: Sequence[Step], tools: Sequence[Mapping[str, Any]]) -> None:
        self.n = n
        self.fragments = 0
        self._steps = steps
        self._tools = tools
        self._words = 0
        self._prompt_tokens = 1000

    async def chunks(self) -> AsyncIterator[dict[str, Any] | None]:
        """The chunks in order; ``None`` asks for the connection to be cut."""
        yield self._chunk({"role": "assistant", "content": ""})
        calls = 0
        for step in self._steps:
            if step.kind == "drop":
                yield None
                return
            if step.kind == "hang":
                await asyncio.Event().wait()
            elif step.kind == "sleep":
                await asyncio.sleep(step.amount)
            elif step.kind == "usage":
                self._prompt_tokens = int(step.amount)
            elif step.kind == "call":
                yield self._call(step, calls)
                calls += 1
            else:
                field = "reasoning_content" if step.kind == "reason" else "content"
                async for text in _paced(_texts(step, self.n), step.rate):
                    self.fragments += 1
                    self._words += 1
                    yield self._chunk({field: text})
        yield self._chunk({}, "tool_calls" if calls else "stop")
        usage = {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": self._words,
            "total_tokens": self._prompt_tokens + self._words,
        }
        yield {**self._chunk({}), "choices": [], "usage": usage}

    async def whole(self) -> dict[str, Any]:
        """The reply in one piece, for a request that does not stream."""
        text = ""
        async for chunk in self.chunks():
            for choice in (chunk or {}).get("choices", ()):
                text += choice["delta"].get("content") or ""
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return {
            "id": f"practice-{self.n}",
            "object": "chat.completion",
            "model": MODEL_NAME,
            "choices": [choice],
        }

    def _call(self, step: Step, index: int) -> dict[str, Any]:
        name, arguments = speech.call(step, self._tools)
        self.fragments += 1
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        # Unique for ever: the server's approvals are named after it, and the model may be restarted.
        call_id = f"call_{uuid.uuid4().hex[:20]}"
        return self._chunk(
            {"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]}
        )

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": f"practice-{self.n}",
            "object": "chat.completion.chunk",
            "created": int(time.time()),
            "model": MODEL_NAME,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }


def _texts(step: Step, n: int) -> Iterator[str]:
    """The fragments of a step that says or thinks something."""
    if step.kind == "words":
        for i in range(int(step.amount)):
            yield f"{step.tag}{i:04d}" + ("\n\n" if i % step.para == step.para - 1 else " ")
    elif step.kind == "md":
        text = texts.markdown(step.amount, step.seed)
        for start in range(0, len(text), step.chunk):
            yield text[start : start + step.chunk]
    elif step.kind == "reason" and step.amount:
        for i in range(int(step.amount)):
            yield f"think{i:04d} "
    elif step.kind == "stream" or (step.kind == "reason" and step.rate):
        yield from texts.fragments(step.text)
    else:
        yield step.text.replace("{n}", str(n))


async def _paced(pieces: Iterator[str], rate: float) -> AsyncIterator[str]:
    begun = time.monotonic()
    for i, piece in enumerate(pieces):
        if rate > 0:
            # Measured from the start, so that a late fragment does not slow down all that follow.
            wait = begun + i / rate - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
        yield piece


async def _read_request(reader: asyncio.StreamReader) -> tuple[str, str, bytes] | None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    first = head[0].split(" ")
    if len(first) < 3:
        return None
    headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
    body = b""
    if "chunked" in headers.get("transfer-encoding", ""):
        while size := int((await reader.readline()).split(b";")[0], 16):
            body += await reader.readexactly(size)
            await reader.readline()
        await reader.readline()
    elif length := int(headers.get("content-length") or 0):
        body = await reader.readexactly(min(length, _LIMIT))
    return first[0], first[1].partition("?")[0].rstrip("/"), body


def _error(words: str) -> dict[str, Any]:
    return {"error": {"message": words, "type": "practice_error"}}


def _reply(writer: asyncio.StreamWriter, status: int, value: Mapping[str, Any]) -> None:
    body = json.dumps(value).encode()
    head = f"HTTP/1.1 {status} Practice\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
    writer.write((head + "connection: close\r\n\r\n").encode() + body)


class ModelThread:
    """The model on a thread of its own, for programs that have no event loop to spare (tests)."""

    def __init__(self, log: Path | None = None, port: int = 0) -> None:
        self.model = PracticeModel(log)
        self._port = port
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._failed: OSError | None = None
        self._thread = threading.Thread(target=self._run, name="practice-model", daemon=True)

    @property
    def url(self) -> str:
        return self.model.url

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()
        if self._failed is not None:
            raise self._failed

    def stop(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self.model.start(self._port))
        except OSError as error:
            self._failed = error
            self._ready.set()
            return
        self._ready.set()
        try:
            self._loop.run_forever()
            self._loop.run_until_complete(self._end())
        finally:
            self._loop.close()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.model.close()
