"""What a window does, one small thing at a time: prepare, write, receive, read, judge; and its person."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from letta_tui.conversation.reconcile import (
    HistoryRead,
    HistoryRow,
    LoopRead,
    Policy,
    QueueRead,
    Reading,
    held,
    reconcile,
    same_id_is_safe,
)
from letta_tui.ledger import transitions
from letta_tui.ledger.sends import FRESH_SECONDS
from letta_tui.ledger.values import Anchor, Evidence, Send, Stamp
from tests.model.disk import begin, judge, observe
from tests.model.promises import judged
from tests.model.state import PLACE, SETTLE, Rules, Window, World, root

Step = tuple[str, World]


def steps_of(world: World, window: Window, rules: Rules) -> Iterator[Step]:
    yield from _prepare(world, window, rules)
    yield from _write(world, window, rules)
    yield from _receive(world, window, rules)
    yield from _read(world, window, rules)
    yield from _person(world, window, rules)


# --- sending -----------------------------------------------------------------------------------------


def _prepare(w: World, me: Window, rules: Rules) -> Iterator[Step]:
    made = [s for s in w.sends if s.client_message_id.startswith("m")]
    if len(made) < rules.messages and (made or me.name == "a"):
        key = f"m{len(made) + 1}"
        send = Send(key, key, PLACE, "x", "prepared", "none", w.now(), w.now(), anchor=Anchor("a"))
        yield (
            "prepare",
            replace(w, sends=(*w.sends, send), owners=(*w.owners, (key, me.name))),
        )
    if me.connection and me.to_write is None:
        mine = [s for s in w.sends if (s.client_message_id, me.name) in w.owners]
        waits = {item.client_message_id for item in held(mine)}
        for send in mine:
            waiting = send.client_message_id in waits and rules.without != "later ones are held"
            if send.delivery == "prepared" and not waiting:
                yield f"begin {send.client_message_id}", begin(w, me, send)
    if not me.connection and me.connections < rules.most_connections:
        number = me.connections + 1
        again = replace(me, connection=f"{me.name}{number}", connections=number)
        yield "connect", w.with_window(again)


def _write(w: World, me: Window, rules: Rules) -> Iterator[Step]:
    """``Ledger.attempt_stands`` is asked right before: another window may have gone on, or it slept."""
    frame = me.to_write
    if frame is None or not me.connection:
        return
    send = w.find(frame.key)
    assert send is not None
    last = send.attempts[-1]
    stands = (
        send.delivery == "unconfirmed"
        and last.connection_id == frame.connection
        and w.wall - last.began.wall < FRESH_SECONDS
    )
    me = replace(me, to_write=None)
    if not stands:
        yield "not written", w.with_window(me)
        return
    written = replace(send, attempts=(*send.attempts[:-1], replace(last, written=w.now())))
    after = w.with_send(written).with_window(me)
    yield "write", replace(after, to_server=(*w.to_server, frame))


def _receive(w: World, me: Window, rules: Rules) -> Iterator[Step]:
    if not me.connection or not me.to_client:
        return
    (kind, key, request), rest = me.to_client[0], me.to_client[1:]
    after = w.with_window(replace(me, to_client=rest))
    known = w.find(key)
    if known is not None:
        evidence = Evidence(kind, stamp=w.now(), connection_id=me.connection, request_id=request)
        seen = observe(known, evidence, rules)
        # Live evidence in the middle of a reading does not stop it; its own verdicts are about the old row.
        after = after.with_send(seen).with_window(
            replace(me, to_client=rest, verdicts=(), basis=_at(me, seen))
        )
    yield f"receive {kind}", after


def _at(me: Window, send: Send) -> tuple[Send, ...]:
    """What is seen on its own connection is in its memory too."""
    return tuple(send if s.client_message_id == send.client_message_id else s for s in me.basis)


# --- reading and judging -------------------------------------------------------------------------------


def _read(w: World, me: Window, rules: Rules) -> Iterator[Step]:
    """Queue, loop, history: one at a time, while the world goes on."""
    if not me.connection or not any(s.attempts for s in w.sends):
        return
    if me.to_client:
        return  # one socket, one order: what was said before comes before the answer
    fenced = not any(f.connection == me.connection for f in w.to_server)
    backwards = rules.without == "queue, loop, history in this order"
    if me.step == 0 and (fenced or rules.without == "fence"):
        began = replace(me, step=1, fence=w.mono, basis=w.sends)
        if backwards:
            yield "read history", w.with_window(replace(began, history_read=w.history))
        else:
            yield "read queue", w.with_window(replace(began, queue_read=frozenset(w.queue)))
    elif me.step == 1:
        yield "read loop", w.with_window(replace(me, step=2, loop_read=_loop(w)))
    elif me.step == 2:
        if backwards:
            yield "read queue", _settle(w, replace(me, queue_read=frozenset(w.queue)), rules)
        else:
            yield "read history", _settle(w, replace(me, history_read=w.history), rules)
    young = any(w.mono - (a.written or a.began).mono < SETTLE for send in w.sends for a in send.attempts)
    if me.read_once and (young or not me.settled) and me.step == 0:
        # The settle delay is as long as it takes for bytes on their way to be read or lost, and for a
        # restarted server to take up its journal; when it is not, a second run must still be impossible.
        if not w.pending and not w.to_server:
            waited = w.with_window(replace(me, settled=True))
            yield "settle", replace(waited, wall=w.wall + SETTLE, mono=w.mono + SETTLE)
        elif w.faults < rules.faults and rules.may("late"):
            late = replace(w.with_window(replace(me, settled=True)), late=True, faults=w.faults + 1)
            yield "late", replace(late, wall=w.wall + SETTLE, mono=w.mono + SETTLE)


def _loop(w: World) -> tuple[bool, tuple[str, ...]]:
    idle = not (w.limbo or w.running or w.busy)
    return idle, ((w.running,) if w.running else ())


def reading_of(w: World, me: Window, rules: Rules) -> Reading:
    idle, running = me.loop_read
    if rules.without == "idle":
        idle = True
    rows = tuple(HistoryRow(f"{key}-{n}", key, "user") for n, key in enumerate(me.history_read))
    first = (HistoryRow("a", "", "assistant"),)
    compacted = w.compacted and rules.without != "compaction"
    if w.compacted:
        rows = ()
        first = (HistoryRow("summary", "", "summary"),) if compacted else first
    return Reading(
        PLACE,
        me.connection,
        _now(w, rules),
        server_version="0.34.12" if rules.tested else "9.9",
        fence=Stamp(w.wall, me.fence, "boot"),
        second=me.settled or rules.without == "settle",
        queue=QueueRead(1, me.queue_read),
        loop=LoopRead(2, idle, processing=not idle, by_run={f"run-{k}": (k,) for k in running}),
        history=HistoryRead(3, first + rows, from_start=not compacted, compacted=compacted),
    )


def _now(w: World, rules: Rules) -> Stamp:
    return Stamp(w.mono, w.mono, "boot") if rules.without == "sleep counts" else w.now()


def _policy(rules: Rules) -> Policy:
    return Policy(same_id=10**9) if rules.without == "fifty minutes" else Policy()


def _settle(w: World, me: Window, rules: Rules) -> World:
    reading, policy = reading_of(w, me, rules), _policy(rules)
    verdicts = reconcile(me.basis, reading, policy)
    after = w
    for basis, verdict in zip(me.basis, verdicts, strict=True):
        now = after.find(verdict.client_message_id)
        assert now is not None
        after = after.with_send(judge(now, basis, verdict, rules))
    broken = ""
    if me.basis == w.sends:
        for before, again in zip(verdicts, reconcile(after.sends, reading, policy), strict=True):
            if (before.delivery, before.outcome) != (again.delivery, again.outcome) or again.evidence:
                broken = f"not idempotent: {before} then {again}"
    kept = []
    for basis, verdict in zip(me.basis, verdicts, strict=True):
        now = after.find(verdict.client_message_id)
        if now is not None and now.attempts == basis.attempts:
            kept.append(verdict)
    done = replace(me, verdicts=tuple(kept), step=0, basis=(), read_once=True)
    after = judged(replace(after.with_window(done), broken=broken), me, verdicts)
    return after.with_window(replace(done, history_read=()))


# --- the person ----------------------------------------------------------------------------------------


def _person(w: World, me: Window, rules: Rules) -> Iterator[Step]:
    """Any choice that is on the card of this window, which another one may have overtaken."""
    if not me.connection or me.to_write is not None:
        return
    for verdict in me.verdicts:
        send = w.find(verdict.client_message_id)
        if send is None or verdict.delivery != send.delivery:
            continue
        key, new = send.client_message_id, f"n{send.client_message_id[1:]}"
        for offer in verdict.offers:
            if offer.action == "resend" and len(send.attempts) < rules.most_attempts:
                if same_id_is_safe(send, _now(w, rules), _policy(rules)):
                    yield f"send {key} again", begin(w, me, send)
            elif offer.action in ("send_new", "edit") and key != new and w.find(new) is None:
                assert transitions.can_move(send.delivery, "superseded", "person")
                after = _superseded(w, me, send, new)
                if offer.risk:
                    after = replace(after, risked=after.risked | {root(key)})
                yield f"{offer.action} {key}", after


def _superseded(w: World, me: Window, send: Send, new: str) -> World:
    fresh = replace(
        send,
        client_message_id=new,
        otid=new,
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
    old = replace(send, delivery="superseded", superseded_by=new, rests_on=chosen)
    after = w.with_send(old).with_window(replace(me, verdicts=(), step=0, basis=()))
    return replace(after, sends=(*after.sends, fresh), owners=(*w.owners, (new, me.name)))
