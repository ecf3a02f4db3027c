"""The state of the small world: the shared disk, windows, wires, the server; and what matters about it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from letta_tui.conversation.reconcile import Policy, Verdict
from letta_tui.ledger.values import Attempt, EvidenceKind, Place, Send, Stamp

PLACE = Place("server", "agent", "conversation")
HALF_HOUR = 1800.0
JOURNAL = 3600.0
STEP = 0.001
SETTLE = Policy().settle


@dataclass(frozen=True)
class Rules:
    """What the world does, and which rule is left out (negative controls).

    ``messages``: one, or two in order. ``windows``: one, or two processes that share the ledger and the
    conversation; the first message is the first window's, the second one anybody's.
    """

    faults: int = 2
    deduplicates: bool = True
    tested: bool = True
    messages: int = 1
    windows: int = 1
    most_attempts: int = 2
    most_connections: int = 3  # of a window
    without: str = ""  # name of the rule left out
    start: tuple[str, ...] = ()  # steps taken before the search begins
    only: frozenset[str] = frozenset()  # the faults that may happen; empty: all of them

    def may(self, fault: str) -> bool:
        return not self.only or fault in self.only


@dataclass(frozen=True)
class Frame:
    """An input on its way: which message, which connection, which request."""

    key: str
    connection: str
    request: str


@dataclass(frozen=True)
class Window:
    """One process of ours: what is in its memory, and what is on its way to it."""

    name: str
    connection: str = ""
    connections: int = 0
    to_write: Frame | None = None
    step: int = 0  # of the reading: 0 none, 1 queue read, 2 loop read too
    basis: tuple[Send, ...] = ()  # the open rows as they were when the reading began
    fence: float = 0.0
    queue_read: frozenset[str] = frozenset()
    loop_read: tuple[bool, tuple[str, ...]] = (True, ())
    history_read: tuple[str, ...] = ()
    read_once: bool = False
    settled: bool = False
    verdicts: tuple[Verdict, ...] = ()
    to_client: tuple[tuple[EvidenceKind, str, str], ...] = ()  # kind, message, request

    def without_connection(self) -> Window:
        """After a cut, or a crash of either side: the disk survives, memory and wire do not."""
        return Window(self.name, connections=self.connections)


@dataclass(frozen=True)
class World:
    # the disk that the windows share
    sends: tuple[Send, ...] = ()
    owners: tuple[tuple[str, str], ...] = ()  # message, the window that prepared it
    windows: tuple[Window, ...] = (Window("a"),)
    # the wire to the server
    to_server: tuple[Frame, ...] = ()
    # the server
    limbo: str = ""
    running: str = ""
    busy: bool = False  # somebody else's turn
    queue: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    journal: tuple[tuple[str, float, bool], ...] = ()  # message, accepted at, payload still held
    runs: tuple[str, ...] = ()  # the message of each run that began, sorted
    reruns: tuple[str, ...] = ()  # those that the server began again by itself
    compacted: bool = False
    pending: tuple[str, ...] = ()  # journaled, will be run again by a restarted server
    # time and luck
    wall: float = 0.0
    mono: float = 0.0
    faults: int = 0
    late: bool = False  # the settle delay was too short for something on its way
    risked: frozenset[str] = frozenset()  # messages of which the person took a choice whose risk was told
    broken: str = ""  # the promise that was broken

    def now(self) -> Stamp:
        return Stamp(self.wall, self.mono, "boot")

    def later(self) -> World:
        return replace(self, wall=self.wall + STEP, mono=self.mono + STEP)

    def find(self, key: str) -> Send | None:
        return next((send for send in self.sends if send.client_message_id == key), None)

    def with_send(self, send: Send) -> World:
        """The disk has another row; what a window had concluded from the old one is still on its card."""
        key = send.client_message_id
        return replace(self, sends=tuple(send if s.client_message_id == key else s for s in self.sends))

    def with_window(self, window: Window) -> World:
        return replace(self, windows=tuple(window if w.name == window.name else w for w in self.windows))

    def live(self, connection: str) -> Window | None:
        return next((w for w in self.windows if connection and w.connection == connection), None)

    def key(self) -> tuple[object, ...]:
        """What matters about the state: of instants, whether they are before the fence of a reading under
        way, and the half hours since."""
        rows = tuple(self._row(send) for send in self.sends)
        journal = tuple((m, int((self.wall - at) // HALF_HOUR), held) for m, at, held in self.journal)
        return (
            rows,
            self.owners,
            tuple(self._window(window) for window in self.windows),
            (self.to_server, self.limbo, self.running, self.busy, self.queue, self.history, journal),
            (self.runs, self.reruns, self.compacted, self.pending, self.faults, self.late, self.risked),
            self.broken,
        )

    def _window(self, w: Window) -> tuple[object, ...]:
        return (
            (w.connection, w.connections, w.to_write, w.step, w.read_once, w.settled),
            (w.queue_read if w.step else None, w.loop_read if w.step == 2 else None, w.history_read),
            tuple((s.client_message_id, s.delivery, len(s.attempts), len(s.last)) for s in w.basis),
            tuple((v.client_message_id, v.delivery, v.offers) for v in w.verdicts),
            w.to_client,
        )

    def _row(self, send: Send) -> tuple[object, ...]:
        absent, attempt = send.last.get("absent"), send.last.get("attempt")
        since = absent is not None and attempt is not None and absent.seq > attempt.seq
        return (
            (send.client_message_id, send.delivery, send.outcome, send.sentence, since),
            tuple(
                (a.connection_id, self._rank(a.began), self._rank(a.written), self._arrived(a))
                for a in send.attempts
            ),
            tuple(
                sorted((k, e.connection_id, self._rank(e.stamp)) for k, e in send.last.items() if k in _KEPT)
            ),
        )

    def _rank(self, stamp: Stamp | None) -> object:
        if stamp is None:
            return None
        before = tuple(not w.step or stamp.mono <= w.fence for w in self.windows)
        return before, int((self.wall - stamp.wall) // HALF_HOUR)

    def _arrived(self, attempt: Attempt) -> bool:
        """Whether its bytes have had their time."""
        return self.mono - (attempt.written or attempt.began).mono >= SETTLE


_KEPT = frozenset(
    {"ack", "ack_repeat", "refused", "refused_repeat", "queue_seen", "dequeued", "run_seen", "loop_error"}
    | {"removed", "removed_late", "absent", "history_row", "history_twice"}
)


def root(key: str) -> str:
    """The message that ``key`` is, or replaces: "n1" replaces "m1"."""
    return f"m{key[1:]}"
