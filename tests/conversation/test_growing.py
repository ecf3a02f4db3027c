"""A growing text against history's text so far."""

from __future__ import annotations

from letta_tui.conversation.growing import GrowingText


def joined(*fragments: str) -> GrowingText:
    text = GrowingText(whole=False, held=True)
    for clock, fragment in enumerate(fragments, 1):
        assert text.append(fragment, clock) == ""
    return text


def test_fragments_partly_inside_history() -> None:
    text = joined("c", "d", "e")
    text.merge("abcd", asked=1, final=False)
    assert text.text == "abcde"
    assert text.append("f", 9) == "f"


def test_fragments_wholly_inside_history_which_is_ahead() -> None:
    text = joined("c", "d")
    text.merge("abcdef", asked=0, final=False)
    assert text.text == "abcdef"
    assert text.append("e", 3) == ""
    assert text.append("fg", 4) == "g"
    assert text.text == "abcdefg"


def test_repeats_take_the_latest_place() -> None:
    text = joined("a", "a")
    text.merge("aaaa", asked=0, final=False)
    assert text.text == "aaaa"


def test_at_the_end_history_is_right() -> None:
    text = GrowingText()
    text.append("abc", 1)
    text.merge("ab", asked=2, final=True)
    assert text.text == "ab"


def test_a_lost_piece_is_healed() -> None:
    text = GrowingText()
    for clock, fragment in enumerate(("one ", "two ")):
        text.append(fragment, clock)
    text.gap()
    text.append("four ", 3)
    text.append("five ", 4)
    text.merge("one two three four ", asked=3, final=False)
    assert text.text == "one two three four five "


def test_release_shows_what_was_kept_back() -> None:
    text = joined("a", "b")
    text.release()
    assert text.text == "ab"
    assert text.append("c", 3) == "c"
