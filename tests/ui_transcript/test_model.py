"""The list of rows and its heights against the plainest thing that could work."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from letta_tui.seam.state import Row
from letta_tui.seam.updates import Splice, TextAppended, TranscriptChanged
from letta_tui.ui.transcript.fenwick import Fenwick
from letta_tui.ui.transcript.model import Entries

HEIGHTS = st.lists(st.integers(0, 9), max_size=40)


@given(HEIGHTS, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=30), st.integers(0, 200))
@settings(max_examples=300, deadline=None)
def test_fenwick_is_a_list(start: list[int], changes: list[tuple[int, int]], offset: int) -> None:
    tree, plain = Fenwick(start), list(start)
    for index, value in changes:
        if index < len(plain):
            plain[index] = value
            tree.set(index, value)
        else:
            plain.append(value)
            tree.append(value)
    assert tree.values == plain
    assert tree.total == sum(plain)
    assert [tree.prefix(n) for n in range(len(plain) + 1)] == [sum(plain[:n]) for n in range(len(plain) + 1)]
    index, rest = tree.find(offset)
    assert sum(plain[:index]) + rest == offset
    assert index == len(plain) or rest < plain[index]


KINDS = st.sampled_from(["user", "assistant", "reasoning", "notice"])
SPLICES = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 4), st.lists(KINDS, max_size=4), st.booleans()), max_size=15
)


@given(SPLICES)
@settings(max_examples=300, deadline=None)
def test_splices_do_what_list_slices_do(splices: list[tuple[int, int, list[str], bool]]) -> None:
    entries, plain = Entries(), []
    entries.set_width(40)
    count = 0
    for start, delete, kinds, keep in splices:
        start = min(start, len(plain))
        fresh = []
        for number, kind in enumerate(kinds):
            count += 1
            old = plain[start + number] if keep and number < delete and start + number < len(plain) else None
            key = old.key if old is not None else f"k{count}"
            fresh.append(Row(key, old.kind if old else kind, "words " * count))  # type: ignore[arg-type]
        plain[start : start + delete] = fresh
        entries.apply(TranscriptChanged((Splice(start, delete, tuple(fresh)),)))
        if len(entries):
            entries.lay_out(len(entries) // 2)
        assert [entry.row for entry in entries] == plain
        assert [entries.index(row.key) for row in plain] == list(range(len(plain)))
        ordinals = [entry.ordinal for entry in entries]
        assert ordinals == sorted(set(ordinals))
        assert len(entries.heights) == len(plain)
    for index, entry in enumerate(entries):
        entries.lay_out(index)
        assert entries.heights.values[index] == entry.height


def test_growing_text_is_kept_and_unknown_keys_are_ignored() -> None:
    entries = Entries()
    entries.apply(TranscriptChanged((Splice(0, 0, (Row("a", "assistant", "x", live=True),)),)))
    entries.apply(TextAppended("a", "y"))
    entries.apply(TextAppended("gone", "z"))
    assert entries.items[0].text == "xy"


def test_a_final_row_keeps_what_was_laid_out_of_the_live_one() -> None:
    entries = Entries()
    entries.set_width(40)
    entries.apply(TranscriptChanged((Splice(0, 0, (Row("a", "assistant", "one\n\ntw", live=True),)),)))
    first = entries.lay_out(0).line(0)
    entries.apply(TextAppended("a", "o"))
    entries.apply(TranscriptChanged((Splice(0, 1, (Row("a", "assistant", "one\n\ntwo"),)),)))
    assert entries.lay_out(0).line(0) is first
    assert entries.items[0].line(2).text == "two"
    entries.apply(TranscriptChanged((Splice(0, 1, (Row("a", "assistant", "else"),)),)))
    assert entries.lay_out(0).line(0).text == "else"
