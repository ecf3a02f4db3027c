"""The transcript of a recorded conversation, and what long ones cost."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from letta_tui.conversation.transcript import Transcript
from letta_tui.protocol.frames import frame_of
from letta_tui.seam.updates import TextAppended, TranscriptChanged, Update
from tests.conversation import view
from tests.conversation.screen import Screen
from tests.conversation.view import assistant, call_row, delta, result_row, text_row, user_row


def recorded(connection: str) -> list[dict[str, Any]]:
    lines = (Path(__file__).parent / "traces" / "joined.jsonl").read_text().splitlines()
    return [d for d in map(json.loads, lines) if d["c"] == connection]


@pytest.mark.parametrize("doubled", [False, True])
@pytest.mark.parametrize("connection", ["a", "b"])
def test_the_recorded_trace(connection: str, doubled: bool) -> None:
    """``a`` started the conversation; ``b`` joined in the middle of its first reply."""
    runtime = next(d["f"]["runtime"] for d in recorded("a") if "f" in d)
    transcript = Transcript(runtime["agent_id"], runtime["conversation_id"])
    transcript.connected(connection)
    screen, asked, last = view.View(), {}, None
    for line in recorded(connection):
        if "SEND" in line:
            sent = line["SEND"]
            if sent["type"] == "conversation_messages_list":
                asked[sent["request_id"]] = transcript.mark(), "before" not in sent["query"]
            continue
        frame = frame_of(line["f"])
        page = frame.history_page
        for _ in range(2 if doubled else 1):
            if page is None:
                screen.apply(transcript.apply(frame))
            else:
                mark, newest = asked[frame.request_id or ""]
                screen.apply(
                    transcript.merge_history(page.messages, asked=mark, newest=newest, has_more=page.has_more)
                )
                last = page if newest else last
            assert screen.rows == list(transcript.rows)
    texts = {r.key: r.text for r in screen.rows}
    first = texts["assistant:ui-msg-2:assistant:1"]
    assert first == "ZQBEG1 " + "".join(f"w{n:04} " for n in range(40)) + " ZQEND1"
    assert not any("system-reminder" in text for text in texts.values())
    states = {r.tool.call_id[:7]: r.tool.state for r in screen.rows if r.tool}
    if connection == "a":
        assert states == {"call_3_": "done", "call_5_": "failed", "call_8_": "closed"}
        assert not transcript.unsettled
        order = [r.kind for r in screen.rows if r.kind != "notice"]
        assert order[:7] == ["user", "reasoning", "assistant", "user", "assistant", "user", "tool"]


def test_a_long_reply_costs_no_more_than_its_length(screen: Screen) -> None:
    frames = [assistant("x" * 64, seq=n + 1) for n in range(200 * 1024 // 64)]
    updates = [u for frame in frames for u in screen.transcript.apply(frame)]
    assert sum(len(u.text) for u in updates if isinstance(u, TextAppended)) == 200 * 1024 - 64
    assert len(screen.transcript.rows[0].text) == 200 * 1024


def test_long_arguments_cost_no_more_than_their_length(screen: Screen) -> None:
    told = 0
    for n in range(5_000):
        call = {"tool_call_id": "c1", "name": "Write", "arguments": '{"a":"' if n == 0 else "xxxx}"}
        for update in screen.transcript.apply(
            delta("tool_call_message", id="m", run_id="r", seq_id=n, tool_call=call)
        ):
            told += sum(len(r.tool.arguments) for s in update.splices for r in s.rows if r.tool)  # type: ignore[union-attr]
    assert told < 500_000


def history(turns: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for n in range(turns):
        rows += [
            user_row(f"question {n}", mid=f"u{n}", otid=f"o{n}"),
            text_row("answer " * 20, mid=f"m{n}"),
            call_row(f"c{n}", mid=f"t{n}"),
            result_row(f"c{n}", "out", mid=f"x{n}"),
            text_row("done", mid=f"d{n}"),
        ]
    return rows


def calls(work: Callable[[], list[Update]]) -> tuple[int, list[Update]]:
    """What ``work`` returns and how many functions it called: the same number on every machine."""
    counted = 0

    def count(_frame: object, event: str, _arg: object) -> None:
        nonlocal counted
        counted += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        updates = work()
    finally:
        sys.setprofile(None)
    return counted, updates


def test_merging_history_costs_no_more_than_its_length() -> None:
    def costs(turns: int) -> tuple[int, int, int]:
        """Of all of it, of all of it again, and of a page at its end."""
        rows, transcript = history(turns), Screen().transcript

        def merge() -> list[Update]:
            return transcript.merge_history(rows, asked=1, order="asc", newest=True, has_more=False)

        def page() -> list[Update]:
            newest = [*rows[-50:], text_row("new", mid="new")]
            return transcript.merge_history(newest, asked=1, order="asc", newest=True, has_more=True)

        first, _ = calls(merge)
        assert len(transcript.rows) == 4 * turns
        again, updates = calls(merge)
        assert updates == []
        end, (update,) = calls(page)
        assert isinstance(update, TranscriptChanged)
        assert [(s.start, s.delete, len(s.rows)) for s in update.splices] == [(4 * turns, 0, 1)]
        return first, again, end

    short, long = costs(50), costs(500)
    for cost, ten_times in zip(short[:2], long[:2], strict=True):
        assert ten_times < 11 * cost
    assert 10 * long[2] < long[0]  # a page costs little of the whole
