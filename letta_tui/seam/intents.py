"""What a person asked for, as immutable values the view hands to the worker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from letta_tui.seam.state import Action

Mode = Literal["standard", "acceptEdits", "unrestricted", "strict"]
Management = Literal["rename", "archive", "unarchive", "fork", "compact", "delete"]


@dataclass(frozen=True, slots=True)
class Submit:
    """Send ``text``. ``token`` comes back in ``SubmitSettled``; until then the composer keeps the text.

    ``client_message_id`` names the message; empty leaves that to the worker.
    """

    token: str
    text: str
    client_message_id: str = ""


@dataclass(frozen=True, slots=True)
class SaveDraft:
    text: str


@dataclass(frozen=True, slots=True)
class Abort:
    """Stop the active turn and wait for its end."""


@dataclass(frozen=True, slots=True)
class CancelQueued:
    item_id: str


@dataclass(frozen=True, slots=True)
class ResumeQueue:
    """Release queue items that an interrupt paused."""


@dataclass(frozen=True, slots=True)
class Decide:
    """Answer the approval ``request_id`` that was on the screen when the key was pressed."""

    request_id: str
    behavior: Literal["allow", "deny"]
    message: str = ""
    suggestion_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ResolveSend:
    """The person's choice for an open send on the recovery card. ``text`` is for "edit"."""

    client_message_id: str
    action: Action
    text: str = ""


@dataclass(frozen=True, slots=True)
class PutAwayNotes:
    """The person has read what happened: the notes leave the recovery card."""


@dataclass(frozen=True, slots=True)
class AnswerQuestion:
    question_id: str
    action: Action


@dataclass(frozen=True, slots=True)
class OpenConversation:
    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class NewConversation:
    agent_id: str | None = None  # None: the current agent


@dataclass(frozen=True, slots=True)
class ManageConversation:
    """Rename (``title``), archive, unarchive, fork, compact or delete a conversation on the server.
    ``forget``: once it is deleted there, what this client stored about it is erased too."""

    agent_id: str
    conversation_id: str
    what: Management
    title: str = ""
    forget: bool = False


@dataclass(frozen=True, slots=True)
class ListConversations:
    agent_id: str | None = None  # None: of every agent
    query: str = ""
    archived: bool = False


@dataclass(frozen=True, slots=True)
class ListAgents:
    pass


@dataclass(frozen=True, slots=True)
class ListDevices:
    """The machines of the hosted account."""


@dataclass(frozen=True, slots=True)
class UseDevice:
    """Go on with this conversation on another machine of the hosted account; ``sandbox`` is a managed one."""

    device_id: str


@dataclass(frozen=True, slots=True)
class ListProviders:
    pass


@dataclass(frozen=True, slots=True)
class ConnectProvider:
    provider_id: str
    auth_method_id: str
    fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ListModels:
    force: bool = False


@dataclass(frozen=True, slots=True)
class CreateAgent:
    """``personality`` is one of the server's presets: memo, tutorial, blank, linus or kawaii; "" for none."""

    name: str
    model: str
    personality: str = ""


@dataclass(frozen=True, slots=True)
class ManageAgent:
    """Rename an agent (``name``), or delete it on the server with everything that is its own.
    ``forget``: after that, what this client stored about its conversations is erased too."""

    agent_id: str
    what: Literal["rename", "delete"]
    name: str = ""
    forget: bool = False


@dataclass(frozen=True, slots=True)
class SetMode:
    mode: Mode


@dataclass(frozen=True, slots=True)
class SetCwd:
    path: str


@dataclass(frozen=True, slots=True)
class SetModel:
    handle: str


@dataclass(frozen=True, slots=True)
class LoadOlder:
    """The view is near the top of what it has; ``to_start``: the person wants to go to the beginning, and
    the view asks again after each page until it is there or the person goes elsewhere."""

    to_start: bool = False


@dataclass(frozen=True, slots=True)
class Reconnect:
    """Try again now."""


@dataclass(frozen=True, slots=True)
class Redact:
    """Erase the body of a send from ledger, caches and drafts."""

    client_message_id: str


@dataclass(frozen=True, slots=True)
class ForgetConversation:
    """Erase what this client stored about a conversation; the server's copy is not touched."""

    agent_id: str
    conversation_id: str


@dataclass(frozen=True, slots=True)
class FocusChanged:
    """The terminal window gained or lost the focus."""

    focused: bool


@dataclass(frozen=True, slots=True)
class Quit:
    """``keep``: a running turn goes on under the keeper. ``stop``: abort it, wait for its end, then close."""

    what: Literal["keep", "stop"] = "keep"


Intent = (
    Submit
    | SaveDraft
    | Abort
    | CancelQueued
    | ResumeQueue
    | Decide
    | ResolveSend
    | PutAwayNotes
    | AnswerQuestion
    | OpenConversation
    | NewConversation
    | ManageConversation
    | ListConversations
    | ListAgents
    | ListDevices
    | UseDevice
    | ListProviders
    | ConnectProvider
    | ListModels
    | CreateAgent
    | ManageAgent
    | SetMode
    | SetCwd
    | SetModel
    | LoadOlder
    | Reconnect
    | Redact
    | ForgetConversation
    | FocusChanged
    | Quit
)
