"""What changed, as immutable values the worker hands to the view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from letta_tui.seam.state import (
    AgentItem,
    ApprovalView,
    ConnectionView,
    ConversationItem,
    DeviceItem,
    ModelItem,
    ProviderItem,
    QuestionView,
    QueueItemView,
    RecoveryView,
    Row,
    SendView,
    StatusView,
)


@dataclass(frozen=True, slots=True)
class Splice:
    """Replace ``delete`` rows from index ``start`` by ``rows``."""

    start: int
    delete: int
    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class TranscriptChanged:
    """Changes to the list of rows, to be applied in order; ``reset`` empties the list first.

    A row that only grew comes as ``TextAppended``. ``more_above`` says older rows can be loaded.
    """

    splices: tuple[Splice, ...]
    reset: bool = False
    more_above: bool = False
    as_of: float | None = None  # the rows come from the local cache and are as old as this


@dataclass(frozen=True, slots=True)
class TextAppended:
    """``text`` was added to the end of row ``key`` (its ``text``, or its tool's ``result``)."""

    key: str
    text: str


@dataclass(frozen=True, slots=True)
class QueueChanged:
    items: tuple[QueueItemView, ...]


@dataclass(frozen=True, slots=True)
class ApprovalsChanged:
    items: tuple[ApprovalView, ...]


@dataclass(frozen=True, slots=True)
class ConnectionChanged:
    connection: ConnectionView


@dataclass(frozen=True, slots=True)
class StatusChanged:
    status: StatusView


@dataclass(frozen=True, slots=True)
class RecoveryChanged:
    recovery: RecoveryView | None


@dataclass(frozen=True, slots=True)
class QuestionChanged:
    question: QuestionView | None


@dataclass(frozen=True, slots=True)
class SendsChanged:
    """Every send of this conversation that is not at rest."""

    items: tuple[SendView, ...]


@dataclass(frozen=True, slots=True)
class SubmitSettled:
    """``ok``: the text is on disk under ``client_message_id`` and the composer may clear it."""

    token: str
    ok: bool
    client_message_id: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class DraftLoaded:
    """Put ``text`` into the composer (a stored draft, or a send taken back for editing)."""

    text: str
    reason: Literal["stored", "edit", "cancelled"] = "stored"


@dataclass(frozen=True, slots=True)
class ConversationsListed:
    items: tuple[ConversationItem, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class AgentsListed:
    items: tuple[AgentItem, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class DevicesListed:
    """``sandbox``: a managed sandbox can be had too; ``in_sandbox``: that is where the conversation runs."""

    items: tuple[DeviceItem, ...]
    error: str = ""
    sandbox: bool = False
    in_sandbox: bool = False


@dataclass(frozen=True, slots=True)
class NeedsDevice:
    """The hosted service needs a machine for this conversation: show the list of them."""

    reason: str


@dataclass(frozen=True, slots=True)
class ProvidersListed:
    items: tuple[ProviderItem, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class ProviderConnected:
    provider_id: str
    ok: bool
    error: str = ""


@dataclass(frozen=True, slots=True)
class ModelsListed:
    items: tuple[ModelItem, ...]
    error: str = ""


@dataclass(frozen=True, slots=True)
class NeedsSetup:
    """There is no model yet: show the first-run screen."""

    reason: str


@dataclass(frozen=True, slots=True)
class Notice:
    """A passing remark; never the only place where something important is said."""

    text: str
    level: Literal["info", "warning", "error"] = "info"


@dataclass(frozen=True, slots=True)
class Attention:
    """The person may want to know although no window has the focus."""

    what: Literal["approval", "turn_ended", "failed"]
    title: str


@dataclass(frozen=True, slots=True)
class Closed:
    """The worker has ended. When it could not go on, ``error`` says why and ``exit_code`` is not zero."""

    error: str = ""
    exit_code: int = 0


Update = (
    TranscriptChanged
    | TextAppended
    | QueueChanged
    | ApprovalsChanged
    | ConnectionChanged
    | StatusChanged
    | RecoveryChanged
    | QuestionChanged
    | SendsChanged
    | SubmitSettled
    | DraftLoaded
    | ConversationsListed
    | AgentsListed
    | DevicesListed
    | NeedsDevice
    | ProvidersListed
    | ProviderConnected
    | ModelsListed
    | NeedsSetup
    | Notice
    | Attention
    | Closed
)
