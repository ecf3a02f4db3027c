"""What of the relay's feed has come already: exactly by its delivery numbers, and by keys across its sockets.

Pure. The relay numbers the deliveries of each socket (``seq``) and repeats, seconds later, those of which it
has no receipt. A number known on its socket is therefore such a repetition, however late it comes. The same
event over the other socket has a number of its own there and the same idempotency key: a key has to be
remembered only until both sockets have brought it.
"""

from __future__ import annotations

from collections import OrderedDict

from letta_tui.transport.plane import Seen

_MOST_MISSING = 10_000
_MOST_UNPAIRED = 20_000


class Numbers:
    """The delivery numbers of one socket. What is kept is what has not come, which is little."""

    def __init__(self, most_missing: int = _MOST_MISSING) -> None:
        self._most = most_missing
        self._first: int | None = None
        self._highest = 0
        self._missing: OrderedDict[int, None] = OrderedDict()
        self._before: set[int] = set()  # lower than the first: that one had overtaken them

    def again(self, seq: int) -> bool:
        """Note a number; whether it had come before."""
        if self._first is None:
            self._first = self._highest = seq
            return False
        if seq > self._highest:
            passed = range(max(self._highest + 1, seq - self._most), seq)
            self._missing.update(dict.fromkeys(passed))
            while len(self._missing) > self._most:
                self._missing.popitem(last=False)
            self._highest = seq
            return False
        if seq < self._first:
            known = seq in self._before
            self._before.add(seq)
            return known
        if seq in self._missing:
            del self._missing[seq]
            return False
        return True


class Deliveries:
    """Both sockets of a pair, named by ``channel``."""

    def __init__(self, *, most_unpaired: int = _MOST_UNPAIRED) -> None:
        self._numbers: dict[str, Numbers] = {}
        self._highest_event = -1
        self._most_unpaired = most_unpaired
        self._unpaired: OrderedDict[str, str] = OrderedDict()  # key → the channel that has brought it
        self._recent = Seen()  # of events that one socket alone is listened to for, as the SDK keeps them
        self._answers = Seen()

    def number(self, channel: str, seq: int, event_seq: int | None) -> bool:
        """Note the number of a delivery, of whatever kind; whether it is a repetition."""
        numbers = self._numbers.setdefault(channel, Numbers())
        newest = event_seq is not None and event_seq > self._highest_event
        if event_seq is not None and newest:
            self._highest_event = event_seq
        if not numbers.again(seq):
            return False
        if not newest:
            return True
        # No repetition can be newer than everything that has come: the relay counts anew.
        self._numbers[channel] = numbers = Numbers()
        numbers.again(seq)
        return False

    def event(self, channel: str, key: str | None, *, one_socket: bool, numbered: bool) -> bool:
        """Note an event that is no repetition; whether it has come before all the same.

        ``one_socket``: of its kind only those of this socket count. ``numbered``: it had a number.
        """
        if key is None:
            return False
        if one_socket or not numbered:
            return self._recent.again(key)
        return self._by_the_other(channel, key)

    def answer(self, name: str) -> bool:
        """Note an answer, or another frame known by its request; whether it has come before."""
        return self._answers.again(name)

    def _by_the_other(self, channel: str, key: str) -> bool:
        brought_by = self._unpaired.get(key)
        if brought_by is None:
            self._unpaired[key] = channel
            if len(self._unpaired) > self._most_unpaired:
                self._unpaired.popitem(last=False)
            return False
        if brought_by != channel:
            del self._unpaired[key]
        return True
