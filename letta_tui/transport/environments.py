"""The hosted service's REST side: machines that are online, and managed sandboxes.

Written from the documentation and the agent SDK; nothing of it could be tried against the real service.
A machine is known by its ``device_id``. Its ``connection_id`` changes whenever it registers anew, so it
is looked up before each connect and never stored.
"""

from __future__ import annotations

import asyncio
import datetime
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn
from urllib.parse import quote, urlencode

from letta_tui.protocol.values import Json, flag, mapping, mappings, text
from letta_tui.transport.connection import Refused
from letta_tui.transport.credentials import read_token
from letta_tui.transport.endpoint import Endpoint
from letta_tui.transport.failures import status_failure
from letta_tui.transport.http import Fetch, HttpAnswer, HttpRequest, fetch

FRESH_SECONDS = 120.0  # a heartbeat older than this means the machine is gone
SANDBOX_MINUTES = 5  # the service's own default; it takes 1 to 60
READY_SECONDS = 120.0
_MOST_PAGES = 50


@dataclass(frozen=True, slots=True)
class Environment:
    """A machine that runs agents for the account. Times are seconds since the epoch."""

    device_id: str
    connection_id: str | None
    name: str
    working_directory: str | None
    git_branch: str | None
    mode: str | None
    last_heartbeat: float | None
    last_seen: float | None
    raw: Json = field(repr=False)

    @staticmethod
    def of(raw: Json) -> Environment | None:
        device = text(raw, "deviceId")
        if not device:
            return None
        metadata = mapping(raw, "metadata")
        return Environment(
            device_id=device,
            connection_id=text(raw, "connectionId") or None,
            name=text(raw, "connectionName") or device,
            working_directory=text(metadata, "workingDirectory"),
            git_branch=text(metadata, "gitBranch"),
            mode=text(raw, "currentMode"),
            last_heartbeat=_instant(raw.get("lastHeartbeat")),
            last_seen=_instant(raw.get("lastSeenAt")),
            raw=raw,
        )

    def online(self, now: float) -> bool:
        """Connected, and heard of lately; a heartbeat the service does not tell counts as lately."""
        if self.connection_id is None:
            return False
        return self.last_heartbeat is None or now - self.last_heartbeat < FRESH_SECONDS


@dataclass(frozen=True, slots=True)
class Sandbox:
    """A machine the service made for an agent, or for one of its conversations."""

    sandbox_id: str
    device_id: str
    agent_id: str
    conversation_id: str | None  # None: for the agent as a whole
    resumed: bool


class Environments:
    """The REST calls. Every method raises ``Refused`` with one clear sentence."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        fetcher: Fetch = fetch,
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._endpoint = endpoint
        self._fetch = fetcher
        self._now = now
        self._sleep = sleep

    # Machines

    async def list(self, *, online_only: bool = False) -> tuple[Environment, ...]:
        rows: list[Environment] = []
        after: str | None = None
        for _ in range(_MOST_PAGES):
            query = {"limit": "50"}
            if online_only:
                query["onlineOnly"] = "true"
            if after is not None:
                query["after"] = after
            page = await self._get(f"/v1/environments?{urlencode(query)}")
            raws = list(mappings(page, "connections"))
            rows += [row for row in map(Environment.of, raws) if row is not None]
            cursor = text(raws[-1], "id") if raws else None
            if not flag(page, "hasNextPage") or cursor is None or cursor == after:
                break
            after = cursor
        return tuple(rows)

    async def get(self, device_id: str) -> Environment:
        answer = await self._call("GET", f"/v1/environments/{_part(device_id)}")
        if answer.status == 404:
            raise Refused("not_found", f'No machine with the id "{device_id}" is known to this account.')
        row = Environment.of(self._body(answer))
        if row is None:
            raise Refused("hosted", f"The service described the machine {device_id} in a way not understood.")
        return row

    async def connection_id(self, device_id: str) -> str:
        """Where the machine can be reached now."""
        row = await self.get(device_id)
        if row.connection_id is None:
            raise Refused("offline", f"The machine {row.name} is offline{self._since(row)}.")
        return row.connection_id

    async def pick(self, wanted: str) -> Environment:
        """The one machine with this device id or name."""
        rows = await self.list()
        exact = [row for row in rows if row.device_id == wanted]
        found = exact or [row for row in rows if row.name == wanted]
        if not found:
            raise Refused("not_found", f'No machine "{wanted}" is known to this account.')
        if len(found) > 1:
            raise Refused(
                "not_found", f'{len(found)} machines are named "{wanted}": name the device id instead.'
            )
        return found[0]

    async def last_used(self, agent_id: str, conversation_id: str) -> Environment | None:
        """The machine this conversation ran on last, if the service remembers."""
        path = f"/v1/environments/runtimes/{_part(agent_id)}/{_part(conversation_id)}/last"
        answer = await self._call("GET", path)
        if answer.status == 404:
            return None
        body = self._body(answer)
        return Environment.of(body) or Environment.of(mapping(body, "environment"))

    # Sandboxes

    async def open_sandbox(
        self, agent_id: str, conversation_id: str, *, repositories: Sequence[Mapping[str, Any]] = ()
    ) -> Sandbox:
        """Create or resume the sandbox of a conversation (``default``: of the agent)."""
        body: dict[str, Any] = {}
        if conversation_id != "default":
            body["conversationId"] = conversation_id
        if repositories:
            body["githubRepositories"] = [dict(repository) for repository in repositories]
        answer = await self._call(
            "POST", f"/v1/agents/{_part(agent_id)}/sandboxes", body, timeout=READY_SECONDS
        )
        raw = self._body(answer)
        sandbox, device = text(raw, "sandboxId"), text(raw, "deviceId")
        if not sandbox or not device:
            raise Refused("hosted", "The service made a sandbox but did not say where it is.")
        scope = text(raw, "conversationId")
        if scope is not None and scope != conversation_id:
            raise Refused("hosted", "The service gave the sandbox of another conversation: nothing was sent.")
        return Sandbox(sandbox, device, agent_id, scope, flag(raw, "resumed"))

    async def refresh_sandbox(self, sandbox: Sandbox, *, minutes: int = SANDBOX_MINUTES) -> None:
        """Keep it for so long from now. Raises ``Refused("sandbox_expired")`` when it is gone."""
        path = f"/v1/sandboxes/{_part(sandbox.sandbox_id)}/refresh"
        answer = await self._call("POST", path, {"ttlMinutes": min(60, max(1, minutes))})
        if answer.status == 404:
            raise Refused("sandbox_expired", "The sandbox has expired; nothing was sent to it.")
        self._body(answer)

    async def end_sandbox(self, sandbox: Sandbox) -> None:
        """Already gone is as good as ended."""
        answer = await self._call("POST", f"/v1/sandboxes/{_part(sandbox.sandbox_id)}/terminate", {})
        if answer.status != 404:
            self._body(answer)

    async def wait_ready(self, sandbox: Sandbox, *, timeout: float = READY_SECONDS) -> str:
        """Poll until the sandbox can be connected to; its connection id."""
        until = self._now() + timeout
        while True:
            try:
                return await self.connection_id(sandbox.device_id)
            except Refused as refused:
                if refused.kind not in ("offline", "not_found"):
                    raise
            if self._now() >= until:
                raise Refused("timeout", f"The sandbox was not ready within {timeout:g} seconds.")
            await self._sleep(1.0)

    async def prepare_sandbox(
        self,
        agent_id: str,
        conversation_id: str,
        *,
        repositories: Sequence[Mapping[str, Any]] = (),
        minutes: int = SANDBOX_MINUTES,
    ) -> Sandbox:
        """Create or resume, refresh, and wait until it can be connected to."""
        sandbox = await self.open_sandbox(agent_id, conversation_id, repositories=repositories)
        await self.refresh_sandbox(sandbox, minutes=minutes)
        await self.wait_ready(sandbox)
        return sandbox

    async def freshen_sandbox(
        self,
        sandbox: Sandbox,
        *,
        repositories: Sequence[Mapping[str, Any]] = (),
        minutes: int = SANDBOX_MINUTES,
    ) -> Sandbox:
        """Before a send, and only then: refresh it, or once make another for the same conversation.

        A sandbox other than the one given means that the old connection leads nowhere: connect anew.
        Nothing had been sent yet, so the send may go ahead there without a risk of running twice.
        """
        try:
            await self.refresh_sandbox(sandbox, minutes=minutes)
        except Refused as refused:
            if refused.kind != "sandbox_expired":
                raise
        else:
            return sandbox
        conversation = sandbox.conversation_id or "default"
        return await self.prepare_sandbox(
            sandbox.agent_id, conversation, repositories=repositories, minutes=minutes
        )

    async def keep_sandbox(self, sandbox: Sandbox, *, minutes: int = SANDBOX_MINUTES) -> NoReturn:
        """Refresh it for as long as this runs. Ends only by cancelling, or when the sandbox has expired."""
        while True:
            await self._sleep(0.8 * 60 * minutes)
            try:
                await self.refresh_sandbox(sandbox, minutes=minutes)
            except Refused as refused:
                if not refused.worth_retrying:
                    raise
                await self._sleep(5.0)
                await self.refresh_sandbox(sandbox, minutes=minutes)

    # Conversations and agents, which the relay cannot make before it is connected to one

    async def create_conversation(self, agent_id: str) -> str:
        query = urlencode({"agent_id": agent_id})
        raw = self._body(await self._call("POST", f"/v1/conversations/?{query}", {}))
        conversation = text(raw, "id")
        if not conversation:
            raise Refused("hosted", "The service made a conversation but did not say which.")
        return conversation

    async def agents(self) -> tuple[Json, ...]:
        """Agents of the account, as the service describes them; each has an ``id``."""
        answer = await self._call("GET", "/v1/agents/?limit=50")
        if not answer.ok:
            raise Refused("hosted", f"The service refused: {_said(answer)}")
        rows = answer.body if isinstance(answer.body, list) else []
        return tuple(row for row in rows if isinstance(row, Mapping) and text(row, "id"))

    async def agent_of(self, conversation_id: str) -> str:
        """The agent a conversation belongs to. Raises ``Refused("not_found")`` when there is no such one."""
        answer = await self._call("GET", f"/v1/conversations/{_part(conversation_id)}")
        if answer.status == 404:
            raise Refused("not_found", f'No conversation "{conversation_id}" is known to this account.')
        agent = text(self._body(answer), "agent_id")
        if not agent:
            raise Refused("hosted", "The service did not say whose conversation that is.")
        return agent

    async def create_agent(self, body: Mapping[str, Any]) -> str:
        agent = text(self._body(await self._call("POST", "/v1/agents", body)), "id")
        if not agent:
            raise Refused("hosted", "The service made an agent but did not say which.")
        return agent

    # One call

    async def _get(self, path: str) -> Json:
        return self._body(await self._call("GET", path))

    async def _call(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, timeout: float = 20.0
    ) -> HttpAnswer:
        endpoint = self._endpoint
        token = await read_token(endpoint)
        request = HttpRequest(method, endpoint.url + path, token, body, timeout, endpoint.ca_file)
        answer = await self._fetch(request)
        if answer.status in (401, 403, 429) or answer.status >= 500 or 300 <= answer.status < 400:
            raise status_failure(answer.status, request.url, had_token=True, location=answer.location)
        return answer

    def _body(self, answer: HttpAnswer) -> Json:
        if not answer.ok:
            raise Refused("hosted", f"The service refused: {_said(answer)}")
        if not isinstance(answer.body, Mapping):
            raise Refused("hosted", "The service answered in a way not understood.")
        return answer.body

    def _since(self, row: Environment) -> str:
        seen = row.last_heartbeat or row.last_seen
        if seen is None:
            return ""
        minutes = max(0, round((self._now() - seen) / 60))
        if minutes < 120:
            return f" (last seen {minutes} minutes ago)"
        return f" (last seen {round(minutes / 60)} hours ago)"


def _part(name: str) -> str:
    return quote(name, safe="")


def _said(answer: HttpAnswer) -> str:
    body = answer.body if isinstance(answer.body, Mapping) else {}
    for name in ("message", "error", "detail"):
        value = body.get(name)
        if isinstance(value, Mapping):
            value = value.get("message")
        if isinstance(value, str) and value:
            return value[:300]
    return f"HTTP {answer.status}."


def _instant(value: object) -> float | None:
    """Seconds since the epoch from an ISO time, or from seconds or milliseconds."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value)
    if isinstance(value, str):
        try:
            moment = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=datetime.UTC)
        return moment.timestamp()
    return None
