"""Text: harmless whatever comes in, and the same however it was cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from letta_tui.seam.state import Row
from letta_tui.ui.text.document import MarkdownDocument
from letta_tui.ui.text.inline import heal, inline_lines
from letta_tui.ui.text.lines import crop_text, wrap_text
from letta_tui.ui.text.sanitise import Sanitiser, clean, clean_line, one_line, safe
from letta_tui.ui.transcript.rows import remark_lines
from tests.ui_transcript.gallery import MARKDOWN

NASTY = st.text(
    alphabet=st.one_of(
        st.sampled_from(
            list(
                "\x1b[]0;mPX^_\\\x07\x9b\x9d\x9c\x90\r\n\t\x00\x08\u202e\u2066\u200b"
                "\u200d\u200c\ufe0f\ufeff\u00ad\U000e0041e\u0301ab 👩日"
            )
        ),
        st.characters(),
    ),
    max_size=80,
)
SOURCE = st.text(
    alphabet=st.sampled_from(list("-*+1.#>`~|_[]()!<&\\ \n\n\tabc x日👩\u0301\x1b:=")), max_size=160
) | st.lists(
    st.sampled_from(
        [
            "- a\n",
            "  - b\n",
            "1. x\n",
            "```py\n",
            "```\n",
            "> q\n",
            "\n",
            "| a | b |\n",
            "|---|---|\n",
            "text ",
            "**b",
            "** ",
            "`c",
            "` ",
            "# h\n",
            "---\n",
            "===\n",
            "    code\n",
            "[l](u)",
            "[x] done\n",
            "- [x] t\n",
        ]
    ),
    max_size=30,
).map("".join)


def harmless(text: str) -> bool:
    return not any(
        (ord(c) < 32 and c not in "\n\t")
        or 0x7F <= ord(c) < 0xA0
        or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200b"
        or 0xD800 <= ord(c) < 0xE000
        or 0xE0000 <= ord(c) <= 0xE0FFF
        for c in text
    )


@given(NASTY, st.lists(st.integers(0, 80), max_size=8))
@settings(max_examples=400, deadline=None)
def test_nothing_dangerous_comes_through_and_cuts_do_not_matter(text: str, cuts: list[int]) -> None:
    whole = clean(text)
    assert harmless(whole)
    marks = [0, *sorted(c for c in cuts if c < len(text)), len(text)]
    sanitiser = Sanitiser()
    parts = [sanitiser.feed(text[a:b]) for a, b in pairwise(marks)]
    assert "".join(parts) + sanitiser.close() == whole


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]52;c;aGk=\x07after", "after"),
        ("\x1b]8;;https://evil\x1b\\click\x1b]8;;\x1b\\", "click"),
        ("\x1bP+q\x1b\\x", "x"),
        ("\x9b31mred", "red"),
        ("a\x00b\x07c", "a␀b␇c"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("\x1b]0;never ended\nnext", "\nnext"),
        ("invoice\u202efdp.exe", "invoice\ufffdfdp.exe"),
        ("pay\u200bpal\ufeff", "paypal"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("a\u200db", "ab"),
        ("\ud800", "\ufffd"),
        ("\x1b(B\x1b=plain", "plain"),
        ("plain\U000e0048\U000e0049", "plain"),
    ],
)
def test_known_tricks(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_a_tower_of_marks_is_cut() -> None:
    assert len(clean("a" + "\u0301" * 50)) == 5


def test_one_line() -> None:
    assert clean_line(" a\tb\n\x1b[2Jc ") == "a b c"


@given(SOURCE, st.lists(st.integers(0, 160), max_size=10), st.integers(10, 60))
@settings(max_examples=500, deadline=None)
def test_streamed_in_any_pieces_is_rendered_whole(text: str, cuts: list[int], width: int) -> None:
    whole = MarkdownDocument(text)
    growing = MarkdownDocument()
    marks = [0, *sorted(c for c in cuts if c < len(text)), len(text)]
    for a, b in pairwise(marks):
        growing.append(text[a:b])
        assert growing.lines(width) == MarkdownDocument(text[:b]).lines(width)
    whole.end()
    growing.end()
    assert growing.lines(width) == whole.lines(width)


@given(SOURCE | NASTY, st.integers(10, 60))
@settings(max_examples=300, deadline=None)
def test_lines_fit_and_are_harmless(text: str, width: int) -> None:
    document = MarkdownDocument(text)
    for line in document.lines(width):
        assert line.cells <= width
        assert harmless(line.text)
        assert "\n" not in line.text
        assert "\t" not in line.text


@given(st.text(alphabet="ab /日👩\u0301 ", max_size=60), st.integers(2, 20), st.integers(2, 20))
@settings(max_examples=400, deadline=None)
def test_wrapping_loses_nothing_but_spaces(text: str, first: int, rest: int) -> None:
    lines = wrap_text(text, first, rest)
    kept = "".join(text[a:b] for a, b, _ in lines)
    assert kept.replace(" ", "") == text.replace(" ", "")
    for number, (a, b, _) in enumerate(lines):
        assert cell_len(text[a:b]) <= (rest if number else first)


def shown(text: str, width: int = 60) -> list[str]:
    document = MarkdownDocument(text)
    document.end()
    return [line.text.rstrip() for line in document.lines(width)]


def test_lists_keep_their_numbers_and_nesting() -> None:
    assert shown("1. a\n1. b\n   - c\n     - d\n7. e") == ["1. a", "2. b", "   ◦ c", "     ▪ d", "3. e"]


def test_loose_items_stay_apart() -> None:
    assert shown("- a\n\n- b\n") == ["• a", "", "• b"]


def test_links_show_where_they_go() -> None:
    assert shown("[bank](https://evil.example)") == ["bank (https://evil.example)"]
    assert shown("[https://a.example](https://evil.example)") == ["https://a.example (https://evil.example)"]
    assert shown("<https://a.example/x>") == ["https://a.example/x"]
    assert shown("![cat](c.png)") == ["cat (c.png)"]


def test_html_and_rich_markup_are_text() -> None:
    assert shown("<b>x</b> [red]y[/red]") == ["<b>x</b> [red]y[/red]"]


def test_character_references_cannot_smuggle_controls() -> None:
    assert shown("a&#27;[31m&#x202e;b") == ["a\ufffd[31m\ufffdb"]


def test_a_fence_keeps_long_lines_whole_for_copying() -> None:
    document = MarkdownDocument("```\n" + "x" * 100 + "\n```\n")
    lines = document.lines(40)
    assert [line.join for line in lines] == ["\n", "", ""]
    assert (
        "".join(text for line in lines for text, style in line.spans if not style.startswith("~"))
        == "x" * 100
    )


def test_a_table_fits() -> None:
    lines = shown("| a | b |\n|---|--:|\n| some words here that are long | 2 |", 24)
    assert all(len(line) <= 24 for line in lines)
    assert lines[0].startswith("a")


def test_setext_quote_rule() -> None:
    assert shown("Title\n===\n> quoted\nlazy\n\n***") == ["Title", "", "▎ quoted", "▎ lazy", "", "─" * 60]


@pytest.mark.parametrize(
    ("text", "healed"),
    [
        ("some **bold", "some **bold**"),
        ("some **", "some "),
        ("a `code", "a `code`"),
        ("*a **b", "*a **b***"),
        ("2 * 3", "2 * 3"),
    ],
)
def test_an_open_end_looks_like_its_final_form(text: str, healed: str) -> None:
    assert heal(text) == healed


def test_bold_is_bold_before_it_ends() -> None:
    assert ("bold", "text+strong") in inline_lines(heal("some **bold"))[0]


def test_closed_blocks_are_not_laid_out_again() -> None:
    document = MarkdownDocument(MARKDOWN + "\n\nand")
    first = document.closed_lines(80)
    before = list(map(id, first))
    document.append(" more\n\nend")
    assert list(map(id, document.closed_lines(80)))[: len(before)] == before


def test_cropping_never_cuts_a_wide_character() -> None:
    assert crop_text("日本語", 3) == "日"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm -rf \x1b[8m/\x1b[0m x", "rm -rf ␛[8m/␛[0m x"),
        ("a\u202eb\u2066c", "a\ufffdb\ufffdc"),
        ("pay\u200bpal\ufeff", "pay\ufffdpal\ufffd"),
        ("tag\U000e0041\ud800", "tag\ufffd\ufffd"),
        ("one\r\ntwo\tthree\x7f", "one\ntwo    three␡"),
        ("日本 👩‍👩‍👧 ❤️ é", "日本 👩‍👩‍👧 ❤️ é"),
    ],
)
def test_what_is_judged_shows_all_that_could_hide_something(text: str, shown: str) -> None:
    assert safe(text) == shown


def test_one_line_is_short_and_safe() -> None:
    assert one_line("a\n b\x07  c") == "a b␇ c"
    assert one_line("x" * 50, 10) == "x" * 9 + "…"


@pytest.mark.parametrize("width", [120, 76, 20, 4])
def test_what_happened_meanwhile_is_told_whole(width: int) -> None:
    words = "Meanwhile: Keeper and server were ended from outside, perhaps by a logout or a restart."
    lines = remark_lines(Row("w", "away", words), words, width)
    assert all(line.cells <= width for line in lines)
    told = "".join(line.text for line in lines).replace("─", "").replace(" ", "")
    assert told == words.replace(" ", "")
