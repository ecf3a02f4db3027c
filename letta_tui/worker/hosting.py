"""The hosted service: which conversation, on which machine, before there is anything to connect to.

The relay's address names agent, conversation and the machine's present connection, so all three are settled
first, over REST. A machine is kept by its device id; its connection id is looked up before each connect.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Any

from letta_tui.conversation.words import choice
from letta_tui.ledger.values import Place
from letta_tui.seam.state import DeviceItem, QuestionView
from letta_tui.seam.updates import DevicesListed, NeedsDevice, NeedsSetup
from letta_tui.transport.connection import Refused
from letta_tui.transport.endpoint import Endpoint, server_key
from letta_tui.transport.environments import Environments, Sandbox
from letta_tui.worker.config import Target
from letta_tui.worker.crashpoints import reached
from letta_tui.worker.desk import Desk
from letta_tui.worker.picking import CreateIt, OpenIt, PickAgent, Stored, pick

SANDBOX = "sandbox"  # chosen instead of a device id


class Undecided(Exception):
    """A person has to choose or set up something first; waiting does not help. ``words``: one sentence."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Hosting:
    """``make`` builds the REST side for an endpoint."""

    def __init__(self, desk: Desk, *, make: Callable[[Endpoint], Environments] = Environments) -> None:
        self._desk = desk
        self._make = make
        self._base: Endpoint | None = None
        self._chosen = ""  # in this window: a device id, or SANDBOX
        self._sandbox: Sandbox | None = None
        # What was asked for and what came of it, until it is open.
        self._settled: tuple[OpenIt | CreateIt | None, Target, OpenIt] | None = None
        self._renewed_for: set[str] = set()  # messages a new sandbox was made for already

    # --- before a connect ---

    async def settle(
        self, endpoint: Endpoint, wish: OpenIt | CreateIt | None, target: Target
    ) -> tuple[Endpoint, OpenIt]:
        """The endpoint with its machine, and the conversation to open there; a new one is made and stored.

        Raises ``Undecided`` when the person has to decide first, ``Refused`` when the service says no.
        """
        self._base = endpoint
        service = self._make(endpoint)
        if self._settled is not None and self._settled[:2] == (wish, target):
            opened = self._settled[2]  # no conversation is made twice because the machine was not there
        else:
            opened = await self._conversation(service, endpoint, wish, target)
            self._settled = (wish, target, opened)
        device = await self._device(service, endpoint, opened)
        return endpoint.on_device(device), opened

    async def _conversation(
        self, service: Environments, endpoint: Endpoint, wish: OpenIt | CreateIt | None, target: Target
    ) -> OpenIt:
        chosen = wish or self._by_target(endpoint, target)
        if isinstance(chosen, PickAgent):
            chosen = await self._pick_agent(service, chosen)
        if isinstance(chosen, CreateIt):
            return await self._create(service, endpoint, chosen)
        if chosen.agent_id:
            return chosen
        for known in self._desk.ledger.conversations(server_key(endpoint)):
            if known.place.conversation_id == chosen.conversation_id:
                return OpenIt(known.place.agent_id, chosen.conversation_id, chosen.why)
        try:
            agent = await service.agent_of(chosen.conversation_id)
        except Refused as refused:
            if refused.kind != "not_found":
                raise
            self._ask_about(chosen.conversation_id, refused.words)
            raise Undecided(refused.words) from None
        return OpenIt(agent, chosen.conversation_id, chosen.why)

    def _by_target(self, endpoint: Endpoint, target: Target) -> OpenIt | CreateIt | PickAgent:
        ledger, window, key = self._desk.ledger, self._desk.config.window_id, server_key(endpoint)
        last = ledger.last_used(key, None, window)
        of_agent = ledger.last_used(key, target.agent_id, window) if target.agent_id else None
        stored = [
            Stored(known.place.agent_id, known.place.conversation_id) if known is not None else None
            for known in (last, of_agent)
        ]
        return pick(target, stored[0], stored[1])

    async def _pick_agent(self, service: Environments, wish: PickAgent) -> OpenIt | CreateIt:
        agents = await service.agents()
        if not agents:
            self._desk.put(NeedsSetup("This account has no agent yet."))
            raise Undecided("This account has no agent yet.")
        chosen = max(
            agents, key=lambda agent: str(agent.get("last_run_completion") or agent.get("created_at") or "")
        )
        if len(agents) > 1:
            self._desk.tell(
                f"Chatting with {chosen.get('name') or chosen['id']}; the account has other agents too."
            )
        if wish.default:
            return OpenIt(str(chosen["id"]), "default", "you asked for the default conversation")
        return CreateIt(str(chosen["id"]), "the first one on this server")

    async def _create(self, service: Environments, endpoint: Endpoint, wish: CreateIt) -> OpenIt:
        config = self._desk.config
        conversation = await service.create_conversation(wish.agent_id)
        reached("conversation.after_create")
        key = server_key(endpoint)
        # Stored before anything can be sent in it, so that a relaunch finds it.
        self._desk.ledger.remember_server(key, label=endpoint.shown, kind=endpoint.kind)
        self._desk.ledger.remember_conversation(
            Place(key, wish.agent_id, conversation),
            state={
                "mode": config.mode or "standard",
                "cwd": config.cwd if config.cwd_explicit else None,  # a folder here says nothing of there
            },
            window_id=config.window_id,
        )
        reached("conversation.after_remember")
        return OpenIt(wish.agent_id, conversation, wish.why)

    async def _device(self, service: Environments, endpoint: Endpoint, opened: OpenIt) -> str:
        wants_sandbox = self._chosen == SANDBOX or (not self._chosen and self._desk.config.hosted.sandbox)
        if wants_sandbox:
            return (await self._open_sandbox(service, opened)).device_id
        self._sandbox = None
        place = Place(server_key(endpoint), opened.agent_id, opened.conversation_id)
        known = self._desk.ledger.conversation(place)
        stored = str(known.state.get("device") or "") if known is not None else ""
        device = self._chosen or endpoint.device_id or stored
        if not device:
            last = await service.last_used(opened.agent_id, opened.conversation_id)
            device = last.device_id if last is not None else ""
        elif device == SANDBOX:
            return (await self._open_sandbox(service, opened)).device_id
        if not device:
            words = (
                "No machine is chosen for this conversation: "
                "/device in the window shows those of the account, 'device' in the profile names one."
            )
            self._desk.put(NeedsDevice(words))
            raise Undecided(words)
        return device

    async def _open_sandbox(self, service: Environments, opened: OpenIt) -> Sandbox:
        options = self._desk.config.hosted
        self._desk.set_connection(words="Waiting for the sandbox.")
        self._sandbox = await service.prepare_sandbox(
            opened.agent_id,
            opened.conversation_id,
            repositories=options.repositories,
            minutes=options.sandbox_minutes,
        )
        return self._sandbox

    def _ask_about(self, conversation_id: str, words: str) -> None:
        self._desk.set_question(
            QuestionView(
                "gone",
                "This conversation cannot be opened",
                f"The service does not open {conversation_id}: {words} Nothing was sent, and no other "
                "conversation is opened unless you say so.",
                (choice("open_other"), choice("reconnect")),
            )
        )

    # --- while connected ---

    def opened(self, endpoint: Endpoint, place: Place) -> None:
        """The conversation is open: where it runs is stored with it, for the next time."""
        self._settled = None
        where = SANDBOX if self._sandbox is not None else endpoint.device_id
        self._desk.ledger.remember_conversation(place, state={"device": where}, used=False)

    async def before_send(self, endpoint: Endpoint, client_message_id: str) -> bool:
        """Refresh the sandbox, if there is one. False: it had expired; there is another now to connect to.

        Called before a message is committed to be written, so nothing can have been sent. Each message has
        one new sandbox at most; raises ``Refused`` when that one has expired too, or for any other reason.
        """
        sandbox = self._sandbox
        if sandbox is None:
            return True
        options = self._desk.config.hosted
        service = self._make(endpoint)
        if client_message_id in self._renewed_for:
            await service.refresh_sandbox(sandbox, minutes=options.sandbox_minutes)
            return True
        fresh = await service.freshen_sandbox(
            sandbox, repositories=options.repositories, minutes=options.sandbox_minutes
        )
        if fresh is sandbox:
            return True
        self._renewed_for.add(client_message_id)
        self._sandbox = fresh
        self._desk.tell("The sandbox had expired before the message was sent: a new one takes its place.")
        return False

    async def keep(self, endpoint: Endpoint) -> None:
        """Keep the sandbox while it is used. An expired one is left to the next send, which makes another."""
        if self._sandbox is None:
            return
        minutes = self._desk.config.hosted.sandbox_minutes
        with contextlib.suppress(Refused):
            await self._make(endpoint).keep_sandbox(self._sandbox, minutes=minutes)

    # --- what the person asks for ---

    def choose(self, device: str) -> None:
        """From now on this machine (or :data:`SANDBOX`), whatever the profile says."""
        self._chosen = device

    async def devices(self, endpoint: Endpoint | None) -> None:
        """List the account's machines for the view."""
        if endpoint is None or endpoint.kind != "hosted":
            words = "Machines are chosen where the hosted service is used: this server is a machine itself."
            self._desk.put(DevicesListed((), words))
            return
        try:
            rows = await self._make(endpoint).list()
        except Refused as refused:
            self._desk.put(DevicesListed((), refused.words))
            return
        now = self._desk.now()
        link = self._desk.link
        current = link.endpoint.device_id if link is not None and self._sandbox is None else ""
        items = [
            DeviceItem(
                device_id=row.device_id,
                name=row.name,
                online=row.online(now),
                seen=row.last_heartbeat or row.last_seen,
                folder=row.working_directory or "",
                branch=row.git_branch or "",
                current=row.device_id == current,
            )
            for row in rows
        ]
        items.sort(key=lambda item: (not item.online, item.name))
        self._desk.put(DevicesListed(tuple(items), sandbox=True, in_sandbox=self._sandbox is not None))

    def after_leaving(self) -> str:
        """What becomes of a running turn when this window goes, as the service documents it."""
        if self._sandbox is None:
            return "it goes on there: the machine does not notice that this window is gone"
        minutes = self._desk.config.hosted.sandbox_minutes
        return f"it goes on, but the sandbox ends {minutes} min after it was last refreshed by a window"

    @property
    def base(self) -> Endpoint | None:
        """The hosted endpoint that was connected to last, without its machine."""
        return self._base

    async def create_agent(self, body: Mapping[str, Any]) -> str:
        """Make an agent although nothing is connected. Raises ``Refused``."""
        if self._base is None:
            raise Refused("hosted", "There is no connection to the server now.")
        return await self._make(self._base).create_agent(body)
