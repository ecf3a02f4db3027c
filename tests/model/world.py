"""A small world: one message, a client that crashes, sockets that break, a server that crashes, forgets and
drops. The judging and the moves are the production code; everything else is the least that can go wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from letta_tui.conversation.reconcile import (
    HistoryRead,
    HistoryRow,
    LoopRead,
    Policy,
    QueueRead,
    Reading,
    Verdict,
    reconcile,
    same_id_is_safe,
)
from letta_tui.ledger import transitions
from letta_tui.ledger.moves import as_it_counts
from letta_tui.ledger.sends import FRESH_SECONDS
from letta_tui.ledger.values import Anchor, Attempt, Evidence, EvidenceKind, Place, Send, Stamp

PLACE = Place("server", "agent", "conversation")
HALF_HOUR = 1800.0
JOURNAL = 3600.0
STEP = 0.001


@dataclass(frozen=True)
class Rules:
    """What the world does, and which rule is left out (negative controls)."""

    faults: int = 2
    deduplicates: bool = True
    tested: bool = True
    most_attempts: int = 2
    without: str = ""  # name of the rule left out
    start: tuple[str, ...] = ()  # steps taken before the search begins
    only: frozenset[str] = frozenset()  # the faults that may happen; empty: all of them


@dataclass(frozen=True)
class Frame:
    """An input on its way: which message, which connection, which request."""

    key: str
    connection: str
    request: str


@dataclass(frozen=True)
class World:
    # the client's disk
    sends: tuple[Send, ...] = ()
    # the client's memory
    connection: str = ""
    connections: int = 0
    to_write: Frame | None = None
    step: int = 0  # of the reading: 0 none, 1 queue read, 2 loop read too
    fence: float = 0.0
    queue_read: frozenset[str] = frozenset()
    loop_read: tuple[bool, tuple[str, ...]] = (True, ())
    history_read: tuple[str, ...] = ()
    read_once: bool = False
    settled: bool = False
    verdicts: tuple[Verdict, ...] = ()
    # the wire
    to_server: tuple[Frame, ...] = ()
    to_client: tuple[tuple[EvidenceKind, str, str], ...] = ()  # kind, message, request
    # the server
    limbo: str = ""
    running: str = ""
    busy: bool = False  # somebody else's turn
    queue: tuple[str, ...] = ()
    history: tuple[str, ...] = ()
    journal: tuple[tuple[str, float, bool], ...] = ()  # message, accepted at, payload still held
    runs: int = 0
    reruns: int = 0
    compacted: bool = False
    pending: tuple[str, ...] = ()  # journaled, will be run again by a restarted server
    # time and luck
    wall: float = 0.0
    mono: float = 0.0
    faults: int = 0
    late: bool = False  # the settle delay was too short for something on its way
    risked: bool = False  # the person chose a choice whose risk was told
    broken: str = ""  # the promise that was broken

    def now(self) -> Stamp:
        return Stamp(self.wall, self.mono, "boot")

    def later(self) -> World:
        return replace(self, wall=self.wall + STEP, mono=self.mono + STEP)

    def key(self) -> tuple[object, ...]:
        """What matters about the state: of instants, whether they are before the fence of the reading under
        way, and the half hours since."""

        def rank(stamp: Stamp | None) -> object:
            if stamp is None:
                return None
            before = not self.step or stamp.mono <= self.fence
            return before, int((self.wall - stamp.wall) // HALF_HOUR)

        def absent_since(send: Send) -> bool:
            absent, attempt = send.last.get("absent"), send.last.get("attempt")
            return absent is not None and attempt is not None and absent.seq > attempt.seq

        return (
            tuple(
                (
                    s.client_message_id,
                    s.delivery,
                    s.outcome,
                    s.sentence,
                    absent_since(s),
                    tuple((a.connection_id, rank(a.began), rank(a.written)) for a in s.attempts),
                    tuple(
                        sorted((k, e.connection_id, rank(e.stamp)) for k, e in s.last.items() if k in _KEPT)
                    ),
                )
                for s in self.sends
            ),
            (self.connection, self.to_write, self.step),
            (self.queue_read if self.step else None, self.loop_read if self.step == 2 else None),
            (self.history_read, self.read_once, self.settled),
            tuple((v.delivery, v.offers) for v in self.verdicts),
            (self.to_server, self.to_client, self.limbo, self.running, self.busy, self.queue, self.history),
            tuple((m, int((self.wall - at) // HALF_HOUR), held) for m, at, held in self.journal),
            (self.runs, self.reruns, self.compacted, self.pending, self.faults, self.late, self.risked),
            self.broken,
        )


_KEPT = frozenset(
    {"ack", "ack_repeat", "refused", "refused_repeat", "queue_seen", "dequeued", "run_seen", "loop_error"}
    | {"removed", "removed_late", "absent", "history_row", "history_twice"}
)
Step = tuple[str, World]


# --- the ledger, in memory, by the production table ------------------------------------------------


def observe(send: Send, evidence: Evidence, rules: Rules) -> Send:
    counted = evidence if rules.without == "repeated answers prove nothing" else as_it_counts(send, evidence)
    delivery = transitions.implied(send.delivery, counted.kind)
    if rules.without == "delivered needs history" and counted.kind == "ack":
        delivery = "delivered"
    outcome = transitions.implied_outcome(send.outcome, counted.kind)
    counted = numbered(send, counted)
    moved = counted if delivery != send.delivery else send.rests_on
    return replace(
        send,
        delivery=delivery,
        outcome=outcome,
        rests_on=moved,
        last={**send.last, counted.kind: counted},
    )


def numbered(send: Send, evidence: Evidence) -> Evidence:
    return replace(evidence, seq=1 + max((e.seq for e in send.last.values()), default=0))


def judge(send: Send, verdict: Verdict, rules: Rules) -> Send:
    for found in verdict.evidence:
        item = numbered(send, found)
        if send.delivery != verdict.delivery and transitions.can_move(
            send.delivery, verdict.delivery, item.kind
        ):
            send = replace(
                send,
                delivery=verdict.delivery,
                outcome=transitions.implied_outcome(send.outcome, item.kind),
                rests_on=item,
                last={**send.last, item.kind: item},
            )
        elif send.outcome != verdict.outcome and transitions.can_end(
            send.outcome, verdict.outcome, item.kind
        ):
            send = replace(send, outcome=verdict.outcome, last={**send.last, item.kind: item})
        else:
            send = observe(send, item, rules)
    assert send.delivery == verdict.delivery, (send.delivery, verdict)
    return replace(send, sentence=verdict.sentence)


# --- steps ------------------------------------------------------------------------------------------


def steps(world: World, rules: Rules) -> Iterator[Step]:
    """Every next state, with the name of what happened."""
    if world.broken:
        return
    w = world.later()
    for step in (_client, _reading, _person, _server, _faults):
        for name, after in step(w, rules):
            yield name, check(after)


def _update(w: World, send: Send) -> World:
    return replace(
        w,
        sends=tuple(send if s.client_message_id == send.client_message_id else s for s in w.sends),
        verdicts=(),
        # Live evidence that arrives in the middle of a reading does not stop it, as in the worker.
    )


def _find(w: World, key: str) -> Send | None:
    return next((s for s in w.sends if s.client_message_id == key), None)


def _client(w: World, rules: Rules) -> Iterator[Step]:
    if not w.sends:
        send = Send("m1", "m1", PLACE, "x", "prepared", "none", w.now(), w.now(), anchor=Anchor("a"))
        yield "prepare", replace(w, sends=(send,))
    if w.connection and w.to_write is None:
        for send in w.sends:
            if send.delivery == "prepared":
                yield f"begin {send.client_message_id}", _begin(w, send)
    if w.connection and w.to_write is not None:
        frame = w.to_write
        wrote = _find(w, frame.key)
        assert wrote is not None
        if w.wall - wrote.attempts[-1].began.wall >= FRESH_SECONDS:
            # Slept between the commit and the write: ``Ledger.attempt_stands`` says no.
            yield "not written", replace(w, to_write=None)
            return
        last = replace(wrote.attempts[-1], written=w.now())
        after = _update(w, replace(wrote, attempts=(*wrote.attempts[:-1], last)))
        yield "write", replace(after, to_write=None, to_server=(*w.to_server, frame))
    if w.connection and w.to_client:
        (kind, key, request), rest = w.to_client[0], w.to_client[1:]
        after = replace(w, to_client=rest)
        known = _find(w, key)
        if known is not None:
            evidence = Evidence(kind, stamp=w.now(), connection_id=w.connection, request_id=request)
            after = _update(after, observe(known, evidence, rules))
        yield f"receive {kind}", after
    if not w.connection and w.connections < 3:
        yield "connect", replace(w, connection=f"c{w.connections + 1}", connections=w.connections + 1)


def _begin(w: World, send: Send) -> World:
    number = len(send.attempts) + 1
    frame = Frame(send.client_message_id, w.connection, f"r{number}{send.client_message_id}")
    attempt = Attempt(frame.key, number, frame.request, w.connection, w.now(), None, "0.34.12")
    evidence = numbered(send, Evidence("attempt", stamp=w.now(), connection_id=w.connection))
    begun = replace(
        send,
        delivery="unconfirmed",
        rests_on=evidence if send.delivery == "prepared" else send.rests_on,
        attempts=(*send.attempts, attempt),
        last={**send.last, "attempt": evidence},
    )
    return replace(_update(w, begun), to_write=frame)


def _reading(w: World, rules: Rules) -> Iterator[Step]:
    """Queue, loop, history: one at a time, while the world goes on."""
    if not w.connection or not w.sends or (w.sends[0].delivery == "prepared" and len(w.sends) == 1):
        return
    if w.to_client:
        return  # one socket, one order: what was said before comes before the answer
    fenced = not any(f.connection == w.connection for f in w.to_server)
    if w.step == 0 and (fenced or rules.without == "fence"):
        fence = w.mono
        if rules.without == "queue, loop, history in this order":
            yield "read history", replace(w, step=1, fence=fence, history_read=w.history)
        else:
            yield "read queue", replace(w, step=1, fence=fence, queue_read=frozenset(w.queue))
    elif w.step == 1:
        yield "read loop", replace(w, step=2, loop_read=_loop(w))
    elif w.step == 2:
        if rules.without == "queue, loop, history in this order":
            yield "read queue", _settle(replace(w, queue_read=frozenset(w.queue)), rules)
        else:
            yield "read history", _settle(replace(w, history_read=w.history), rules)
    if w.read_once and not w.settled and w.step == 0:
        # The settle delay is as long as it takes for stray bytes to be read or lost, and for a restarted
        # server to take up its journal; when it is not, a second run must still be impossible.
        if not w.pending and all(f.connection == w.connection for f in w.to_server):
            yield "settle", replace(w, settled=True)
        elif w.faults < rules.faults and _may("late", rules):
            yield "late", replace(w, settled=True, late=True, faults=w.faults + 1)


def _may(fault: str, rules: Rules) -> bool:
    return not rules.only or fault in rules.only


def _loop(w: World) -> tuple[bool, tuple[str, ...]]:
    idle = not (w.limbo or w.running or w.busy)
    return idle, ((w.running,) if w.running else ())


def _settle(w: World, rules: Rules) -> World:
    idle, running = w.loop_read
    if rules.without == "idle":
        idle = True
    rows = tuple(HistoryRow(f"{key}-{n}", key, "user") for n, key in enumerate(w.history_read))
    first = (HistoryRow("a", "", "assistant"),)
    compacted = w.compacted and rules.without != "compaction"
    if w.compacted:
        rows = ()
        first = (HistoryRow("summary", "", "summary"),) if compacted else first
    now = Stamp(w.mono, w.mono, "boot") if rules.without == "sleep counts" else w.now()
    reading = Reading(
        PLACE,
        w.connection,
        now,
        server_version="0.34.12" if rules.tested else "9.9",
        fence=Stamp(w.wall, w.fence, "boot"),
        second=w.settled or rules.without == "settle",
        queue=QueueRead(1, w.queue_read),
        loop=LoopRead(2, idle, processing=not idle, by_run={f"run-{k}": (k,) for k in running}),
        history=HistoryRead(3, first + rows, from_start=not compacted, compacted=compacted),
    )
    policy = _policy(rules)
    verdicts = reconcile(w.sends, reading, policy)
    sends = tuple(judge(s, v, rules) for s, v in zip(w.sends, verdicts, strict=True))
    again = reconcile(sends, reading, policy)
    broken = ""
    for before, after in zip(verdicts, again, strict=True):
        if (before.delivery, before.outcome) != (after.delivery, after.outcome) or after.evidence:
            broken = f"not idempotent: {before} then {after}"
    after_all = replace(
        w, sends=sends, verdicts=verdicts, step=0, read_once=True, settled=w.settled, broken=broken
    )
    return replace(broken_by_verdict(after_all, verdicts), history_read=())


def _policy(rules: Rules) -> Policy:
    return Policy(same_id=10**9) if rules.without == "fifty minutes" else Policy()


def broken_by_verdict(w: World, verdicts: tuple[Verdict, ...]) -> World:
    """P4 and P5 at the moment of judging."""
    for verdict in verdicts:
        key = verdict.client_message_id
        somewhere = (
            key in (w.limbo, w.running)
            or key in w.queue
            or key in w.history
            or key in w.pending
            or any(f.key == key for f in w.to_server)
        )
        gone = verdict.delivery in ("vanished", "failed") or verdict.sentence == "lost_safe"
        if gone and somewhere and not w.late and any(e.kind == "absent" for e in verdict.evidence):
            return replace(w, broken=f"P4: {key} called {verdict.sentence} while the server has it")
        if w.history_read.count(key) > 1 and not w.compacted and verdict.sentence != "delivered_twice":
            return replace(w, broken=f"P5: {key} ran twice and nobody says so")
    return w


def _person(w: World, rules: Rules) -> Iterator[Step]:
    if not w.connection or w.to_write is not None:
        return
    for verdict in w.verdicts:
        send = _find(w, verdict.client_message_id)
        if send is None or verdict.delivery != send.delivery:
            continue
        for offer in verdict.offers:
            if offer.action == "resend" and len(send.attempts) < rules.most_attempts:
                now = Stamp(w.mono, w.mono, "boot") if rules.without == "sleep counts" else w.now()
                if same_id_is_safe(send, now, _policy(rules)):
                    yield "send again", _begin(w, send)
            elif offer.action == "send_new" and len(w.sends) == 1:
                new = replace(
                    send,
                    client_message_id="m2",
                    otid="m2",
                    delivery="prepared",
                    outcome="none",
                    supersedes=send.client_message_id,
                    attempts=(),
                    last={},
                    rests_on=None,
                    sentence="",
                    created=w.now(),
                )
                chosen = Evidence("person", stamp=w.now())
                assert transitions.can_move(send.delivery, "superseded", "person")
                old = replace(send, delivery="superseded", superseded_by="m2", rests_on=chosen)
                yield (
                    "send as new",
                    replace(w, sends=(old, new), verdicts=(), risked=w.risked or offer.risk != "", step=0),
                )


def _server(w: World, rules: Rules) -> Iterator[Step]:
    heads: set[str] = set()
    for n, frame in enumerate(w.to_server):
        if frame.connection in heads:
            continue
        heads.add(frame.connection)
        rest = w.to_server[:n] + w.to_server[n + 1 :]
        yield from _take(replace(w, to_server=rest), frame, rules)
        if frame.connection != w.connection:
            yield "stray bytes are lost", replace(w, to_server=rest)
    if w.limbo:
        yield "the run starts", replace(w, limbo="", running=w.limbo, runs=w.runs + 1)
    if w.running:
        yield (
            "the turn ends",
            _spend(replace(w, running="", history=(*w.history, w.running)), w.running),
        )
    if w.busy:
        yield "somebody's turn ends", replace(w, busy=False)
    if w.pending and w.connection:
        yield "take up the journal", replace(w, queue=(*w.pending, *w.queue), pending=())
    if w.queue and not (w.limbo or w.running or w.busy):
        after = replace(w, queue=w.queue[1:], limbo=w.queue[0])
        yield "dequeue", _tell(after, "dequeued", w.queue[0])


def _tell(w: World, kind: EvidenceKind, key: str, request: str = "") -> World:
    return replace(w, to_client=(*w.to_client, (kind, key, request))) if w.connection else w


def _spend(w: World, key: str) -> World:
    return replace(w, journal=tuple((m, at, held and m != key) for m, at, held in w.journal))


def _take(w: World, frame: Frame, rules: Rules) -> Iterator[Step]:
    """The server reads an input."""

    def answer(after: World, kind: EvidenceKind) -> World:
        return _tell(after, kind, frame.key, frame.request) if frame.connection == w.connection else after

    entry = next((e for e in w.journal if e[0] == frame.key and w.wall - e[1] < JOURNAL), None)
    if rules.deduplicates and entry is not None:
        yield "take (known)", answer(w, "ack")
        if entry[2] and w.faults < rules.faults and _may("refuse (reserved)", rules):
            yield "refuse (reserved)", answer(replace(w, faults=w.faults + 1), "refused")
        return
    kept = tuple(e for e in w.journal if e[0] != frame.key)
    taken = replace(w, journal=(*kept, (frame.key, w.wall, True))) if rules.deduplicates else w
    if w.limbo or w.running or w.busy or w.queue:
        queued = answer(replace(taken, queue=(*w.queue, frame.key)), "ack")
        yield "take (queued)", _tell(queued, "queue_seen", frame.key)
    else:
        yield "take (started)", answer(replace(taken, limbo=frame.key), "ack")
    if w.faults < rules.faults and _may("refuse", rules):
        yield "refuse", answer(replace(w, faults=w.faults + 1), "refused")


def _faults(w: World, rules: Rules) -> Iterator[Step]:
    for name, after in _every_fault(w, rules):
        if _may(name, rules):
            yield name, after


def _every_fault(w: World, rules: Rules) -> Iterator[Step]:
    if w.faults >= rules.faults or not w.sends:
        return
    f = replace(w, faults=w.faults + 1)
    lost = {"connection": "", "to_client": (), "step": 0, "read_once": False, "settled": False}
    if w.connection:
        yield "cut", replace(f, **lost, to_write=None, verdicts=())  # type: ignore[arg-type]
    # The disk survives a crash of the client; its memory does not.
    if w.connection or w.to_write:
        yield "client crash", replace(f, **lost, to_write=None, verdicts=())  # type: ignore[arg-type]
    if w.limbo or w.running or w.queue or w.to_server:
        held = [m for m, _, payload in w.journal if payload]
        again = [m for m in (w.running, w.limbo, *w.pending, *w.queue) if m in held]
        after = replace(
            f,
            **lost,  # type: ignore[arg-type]
            to_write=None,
            verdicts=(),
            to_server=(),
            limbo="",
            running="",
            busy=False,
            queue=(),
            pending=tuple(again),
            reruns=w.reruns + (1 if w.running and w.running in again else 0),
            # The row of a run that was under way is already in history, so it is there twice later.
            history=(*w.history, w.running) if w.running else w.history,
        )
        yield "server crash", after
    if w.limbo:
        yield "loop error", _tell(_spend(replace(f, limbo=""), w.limbo), "loop_error", w.limbo)
    if w.queue:
        dropped = w.queue[0]
        journal = tuple(e for e in w.journal if e[0] != dropped)
        yield "drop", _tell(replace(f, queue=w.queue[1:], journal=journal), "removed", dropped)
    if not (w.busy or w.limbo or w.running) and not w.queue:
        yield "somebody's turn starts", replace(f, busy=True)
    if w.wall < 2 * HALF_HOUR and w.sends[0].attempts and not w.to_server:
        # The lid is closed: the monotonic clock stands. No byte waits in a socket for that long.
        yield "sleep half an hour", replace(f, wall=w.wall + HALF_HOUR, step=0)
        yield "sleep an hour", replace(f, wall=w.wall + 2 * HALF_HOUR, step=0)
    if not w.compacted and w.history:
        yield "compaction", replace(f, compacted=True, step=0)


# --- promises ---------------------------------------------------------------------------------------


def check(w: World) -> World:
    """P1, P2, P4 of every state."""
    if w.broken:
        return w
    for send in w.sends:
        if send.delivery == "delivered" and send.client_message_id not in w.history:
            return replace(w, broken=f"P4: {send.client_message_id} called delivered without a history row")
        by_itself = send.delivery in ("discarded", "redacted", "superseded") and not send.superseded_by
        if by_itself or not send.text:
            return replace(w, broken=f"P1: {send.client_message_id} disappeared")
    if w.runs - w.reruns > 1 and not w.risked:
        return replace(w, broken=f"P2: ran {w.runs - w.reruns} times without a choice that told the risk")
    return w
