"""What the server does, and everything that can go wrong."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from letta_tui.ledger.values import EvidenceKind
from tests.model.client import Step
from tests.model.state import HALF_HOUR, JOURNAL, Frame, Rules, World


def server(w: World, rules: Rules) -> Iterator[Step]:
    heads: set[str] = set()
    for n, frame in enumerate(w.to_server):
        if frame.connection in heads:
            continue
        heads.add(frame.connection)
        rest = w.to_server[:n] + w.to_server[n + 1 :]
        yield from _take(replace(w, to_server=rest), frame, rules)
        if w.live(frame.connection) is None:
            yield "stray bytes are lost", replace(w, to_server=rest)
    if w.limbo:
        runs = tuple(sorted((*w.runs, w.limbo)))
        yield "the run starts", replace(w, limbo="", running=w.limbo, runs=runs)
    if w.running:
        yield (
            "the turn ends",
            _spend(replace(w, running="", history=(*w.history, w.running)), w.running),
        )
    if w.busy:
        yield "somebody's turn ends", replace(w, busy=False)
    if w.pending and any(window.connection for window in w.windows):
        yield "take up the journal", replace(w, queue=(*w.pending, *w.queue), pending=())
    if w.queue and not (w.limbo or w.running or w.busy):
        after = replace(w, queue=w.queue[1:], limbo=w.queue[0])
        yield "dequeue", _tell_all(after, "dequeued", w.queue[0])


def _tell_all(w: World, kind: EvidenceKind, key: str) -> World:
    windows = tuple(
        replace(each, to_client=(*each.to_client, (kind, key, ""))) if each.connection else each
        for each in w.windows
    )
    return replace(w, windows=windows)


def _spend(w: World, key: str) -> World:
    return replace(w, journal=tuple((m, at, held and m != key) for m, at, held in w.journal))


def _take(w: World, frame: Frame, rules: Rules) -> Iterator[Step]:
    """The server reads an input."""

    def answer(after: World, kind: EvidenceKind) -> World:
        window = after.live(frame.connection)
        if window is None:
            return after
        told = (*window.to_client, (kind, frame.key, frame.request))
        return after.with_window(replace(window, to_client=told))

    entry = next((e for e in w.journal if e[0] == frame.key and w.wall - e[1] < JOURNAL), None)
    if rules.deduplicates and entry is not None:
        yield "take (known)", answer(w, "ack")
        if entry[2] and w.faults < rules.faults and rules.may("refuse (reserved)"):
            yield "refuse (reserved)", answer(replace(w, faults=w.faults + 1), "refused")
        return
    kept = tuple(e for e in w.journal if e[0] != frame.key)
    taken = replace(w, journal=(*kept, (frame.key, w.wall, True))) if rules.deduplicates else w
    if w.limbo or w.running or w.busy or w.queue:
        queued = answer(replace(taken, queue=(*w.queue, frame.key)), "ack")
        yield "take (queued)", _tell_all(queued, "queue_seen", frame.key)
    else:
        yield "take (started)", answer(replace(taken, limbo=frame.key), "ack")
    if w.faults < rules.faults and rules.may("refuse"):
        yield "refuse", answer(replace(w, faults=w.faults + 1), "refused")


def faults(w: World, rules: Rules) -> Iterator[Step]:
    if w.faults >= rules.faults or not w.sends:
        return
    for name, after in _every_fault(replace(w, faults=w.faults + 1)):
        if rules.may(name.partition(":")[0]):
            yield name, after


def _every_fault(w: World) -> Iterator[Step]:
    for window in w.windows:
        dropped = w.with_window(window.without_connection())
        if window.connection:
            yield f"cut: {window.name}", dropped
        if window.connection or window.to_write:
            yield f"client crash: {window.name}", dropped
    if w.limbo or w.running or w.queue or w.to_server:
        held = [m for m, _, payload in w.journal if payload]
        again = [m for m in (w.running, w.limbo, *w.pending, *w.queue) if m in held]
        yield (
            "server crash",
            replace(
                w,
                windows=tuple(window.without_connection() for window in w.windows),
                to_server=(),
                limbo="",
                running="",
                busy=False,
                queue=(),
                pending=tuple(again),
                reruns=(*w.reruns, w.running) if w.running and w.running in again else w.reruns,
                # The row of a run that was under way is already in history, so it is there twice later.
                history=(*w.history, w.running) if w.running else w.history,
            ),
        )
    if w.limbo:
        yield "loop error", _tell_all(_spend(replace(w, limbo=""), w.limbo), "loop_error", w.limbo)
    if w.queue:
        dropped_one = w.queue[0]
        journal = tuple(e for e in w.journal if e[0] != dropped_one)
        yield "drop", _tell_all(replace(w, queue=w.queue[1:], journal=journal), "removed", dropped_one)
    if not (w.busy or w.limbo or w.running) and not w.queue:
        yield "somebody's turn starts", replace(w, busy=True)
    if w.wall < 2 * HALF_HOUR and w.sends[0].attempts and not w.to_server:
        # The lid is closed: the monotonic clock stands. No byte waits in a socket for that long.
        awake = replace(w, windows=tuple(replace(window, step=0, basis=()) for window in w.windows))
        yield "sleep half an hour", replace(awake, wall=w.wall + HALF_HOUR)
        yield "sleep an hour", replace(awake, wall=w.wall + 2 * HALF_HOUR)
    if not w.compacted and w.history:
        awake = replace(w, windows=tuple(replace(window, step=0, basis=()) for window in w.windows))
        yield "compaction", replace(awake, compacted=True)
