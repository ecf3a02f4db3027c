"""P5: every event is drawn once, in order; text after a reconnect is exactly the text in history."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from letta_tui.conversation.places import SendState
from letta_tui.conversation.transcript import Transcript
from letta_tui.seam.state import Delivery, Row
from tests.conversation import scripted_server as server
from tests.conversation import view

EXAMPLES = settings(max_examples=80, deadline=None)


def new(connection: str = "c1") -> Transcript:
    transcript = Transcript(view.AGENT, view.CONVERSATION)
    transcript.connected(connection)
    return transcript


def said(rows: tuple[Row, ...] | list[Row]) -> list[tuple[object, ...]]:
    """What a person reads, without times and live marks."""
    return [
        (
            r.key,
            r.kind,
            r.text,
            r.marks,
            (r.tool.name, r.tool.arguments, r.tool.state, r.tool.result) if r.tool else None,
        )
        for r in rows
    ]


def from_history(history: list[dict[str, object]]) -> list[tuple[object, ...]]:
    transcript = new()
    transcript.apply(view.loop("WAITING_ON_INPUT"))
    transcript.merge_history(history, asked=transcript.mark(), order="asc", newest=True, has_more=False)
    return said(transcript.rows)


def settle(transcript: Transcript, screen: view.View, history: list[dict[str, object]]) -> None:
    screen.apply(
        transcript.merge_history(history, asked=transcript.mark(), order="asc", newest=True, has_more=False)
    )
    assert screen.rows == list(transcript.rows)


@EXAMPLES
@given(server.turns(), st.booleans())
def test_watched_whole_equals_history(plan: list[server.TurnPlan], doubled: bool) -> None:
    played = server.Server().play(plan)
    transcript, screen = new(), view.View()
    transcript.apply(view.loop("WAITING_ON_INPUT"))
    for frame in played.frames:
        screen.apply(transcript.apply(frame))
        before = transcript.rows
        if doubled:
            assert transcript.apply(frame) == []
            assert transcript.rows == before
        assert screen.rows == list(before)
    texts = {r.key: r.text for r in transcript.rows if r.kind in ("assistant", "reasoning")}
    settle(transcript, screen, played.histories[-1])
    assert texts == {r.key: r.text for r in transcript.rows if r.kind in ("assistant", "reasoning")}
    assert said(transcript.rows) == from_history(played.histories[-1])
    assert not transcript.unsettled
    # All of it once more changes nothing.
    for frame in played.frames:
        assert transcript.apply(frame) == []


@EXAMPLES
@given(server.turns(), st.data())
def test_cut_anywhere_and_rejoin_equals_history(plan: list[server.TurnPlan], data: st.DataObject) -> None:
    played = server.Server().play(plan)
    last = len(played.frames)
    transcript, screen = new(), view.View()
    at = 0
    for number in range(data.draw(st.integers(1, 3), label="cuts")):
        cut = data.draw(st.integers(at, last), label="cut")
        back = data.draw(st.integers(cut, last), label="back")
        answered = data.draw(st.integers(back, min(last, back + 6)), label="answered")
        read = data.draw(st.integers(back, answered), label="history read at")
        for frame in played.frames[at:cut]:
            screen.apply(transcript.apply(frame))
        screen.apply(transcript.connected(f"again-{number}"))
        asked = transcript.mark()
        for frame in played.frames[back:answered]:
            screen.apply(transcript.apply(frame))
            screen.apply(transcript.apply(frame))
        history = played.histories[read]
        screen.apply(transcript.merge_history(history, asked=asked, order="asc", newest=True, has_more=False))
        assert screen.rows == list(transcript.rows)
        at = answered
    for frame in played.frames[at:]:
        screen.apply(transcript.apply(frame))
    screen.apply(transcript.apply(view.loop("WAITING_ON_INPUT")))
    settle(transcript, screen, played.histories[-1])
    assert said(transcript.rows) == from_history(played.histories[-1])
    assert not transcript.unsettled


@EXAMPLES
@given(server.turns(server.numbered), st.data())
def test_joined_text_is_exact_at_every_frame(plan: list[server.TurnPlan], data: st.DataObject) -> None:
    """With fragments that cannot be mistaken for each other nothing is doubled or dropped even in between."""
    played = server.Server().play(plan)
    last = len(played.frames)
    joined = data.draw(st.integers(0, last), label="joined")
    answered = data.draw(st.integers(joined, min(last, joined + 8)), label="answered")
    read = data.draw(st.integers(joined, answered), label="history read at")
    transcript, screen = new(), view.View()
    for frame in played.frames[joined:answered]:
        screen.apply(transcript.apply(frame))
    screen.apply(
        transcript.merge_history(played.histories[read], asked=0, order="asc", newest=True, has_more=False)
    )
    for at in range(answered, last + 1):
        if at > answered:
            screen.apply(transcript.apply(played.frames[at - 1]))
        shown = {r.key: r.text for r in screen.rows if r.kind in ("assistant", "reasoning")}
        for row in played.histories[at]:
            kind = str(row["message_type"]).removesuffix("_message")
            if kind == "assistant":
                assert shown[f"assistant:{row['id']}"] == row["content"][0]["text"]  # type: ignore[index]
            elif kind == "reasoning":
                assert shown[f"reasoning:{row['id']}"] == row["reasoning"]


@EXAMPLES
@given(server.turns(), st.integers(1, 4), st.data())
def test_pages_overlap_while_streaming(plan: list[server.TurnPlan], size: int, data: st.DataObject) -> None:
    """Older pages are walked newest first with overlaps while frames come; the end equals history."""
    played = server.Server().play(plan)
    last = len(played.frames)
    start = data.draw(st.integers(0, last), label="start")
    transcript, screen = new(), view.View()
    history = played.histories[start]
    screen.apply(
        transcript.merge_history(
            history[-size:], asked=0, order="asc", newest=True, has_more=len(history) > size
        )
    )
    assert transcript.more_above == (len(history) > size)
    at, end = start, max(0, len(history) - size)
    while end > 0 or at < last:
        if end > 0:
            overlap = data.draw(st.integers(0, 2), label="overlap")
            first = max(0, end - size)
            page = history[first : min(len(history), end + overlap)]
            screen.apply(
                transcript.merge_history(
                    page, asked=transcript.mark(), order="asc", newest=False, has_more=first > 0
                )
            )
            end = first
            assert screen.rows == list(transcript.rows)
        if at < last:
            screen.apply(transcript.apply(played.frames[at]))
            at += 1
    settle(transcript, screen, played.histories[-1])
    assert said(transcript.rows) == from_history(played.histories[-1])
    assert transcript.more_above is False


@EXAMPLES
@given(server.turns(), st.integers(0, 2**32))
def test_own_messages_stay_in_place(plan: list[server.TurnPlan], seed: int) -> None:
    """A sent row is on the screen once, above its reply, and its confirmed copy does not move it."""
    played = server.Server().play(plan)
    transcript, screen, chance = new(), view.View(), random.Random(seed)
    transcript.apply(view.loop("WAITING_ON_INPUT"))

    def put(number: int, delivery: Delivery, behind: bool = False) -> None:
        state = SendState(f"prompt-{number}", plan[number].prompt, delivery, behind=behind)
        screen.apply(transcript.put_send(state))

    asked = 0
    for at, frame in enumerate(played.frames):
        if at in played.starts:
            number = played.starts.index(at)
            put(number, "unconfirmed", behind=plan[number].queued)
            if plan[number].queued:
                put(number, "queued")
                assert f"user:prompt-{number}" not in [r.key for r in screen.rows]
        screen.apply(transcript.apply(frame))
        if at in played.starts:
            put(played.starts.index(at), "started")
        keys = [r.key for r in screen.rows]
        begun = [n for n, start in enumerate(played.starts) if start <= at]
        for number in begun:
            assert keys.count(f"user:prompt-{number}") == 1
        place = keys.index(f"user:prompt-{begun[-1]}")
        turn_began = played.starts[begun[-1]]
        for row in screen.rows[:place]:
            assert any(row.key.endswith(str(old["id"])) for old in played.histories[turn_began]) or (
                row.kind in ("user", "tool")
            )
        if chance.randrange(6) == 0:
            before = [r.key for r in screen.rows]
            screen.apply(
                transcript.merge_history(
                    played.histories[chance.randint(asked, at + 1)],
                    asked=transcript.mark(),
                    order="asc",
                    newest=True,
                    has_more=False,
                )
            )
            asked = at + 1
            assert [r.key for r in screen.rows] == before
    settle(transcript, screen, played.histories[-1])
    assert said(transcript.rows) == from_history(played.histories[-1])
