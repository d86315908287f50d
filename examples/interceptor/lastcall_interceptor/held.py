"""What is held in memory: a queue with a limit on records and bytes, and the counts of what had no room."""

from __future__ import annotations

import threading
from collections import deque
from typing import Optional

from .record import Item

DAY = 86_400.0
TOOLS = 1000  # More tools than this in the counts are counted without their name.

#: Tool (or nothing) and UTC day, to: calls, first and last time.
Losses = dict[tuple[Optional[str], int], tuple[int, float, float]]


def merge(into: Losses, key: tuple[Optional[str], int], count: int, first: float, last: float) -> None:
    """Adds counts. A day by itself: an interval over midnight would count on both days."""
    if key not in into and len(into) >= TOOLS:
        key = (None, key[1])
    had = into.get(key)
    into[key] = (count, first, last) if had is None else (had[0] + count, min(had[1], first), max(had[2], last))


class Held:
    """Everything that the broker has not confirmed yet. No method waits for room, for the network or for a disk.

    Its lock guards additions and a `deque`: it is never held over anything that may block.
    """

    def __init__(self, records: int, size: int) -> None:
        self.max_records = records
        self.max_bytes = size
        self.reset()

    def reset(self) -> None:
        """Empty: at the start, and in a child after a fork (what the parent holds is the parent's)."""
        self._lock = threading.RLock()  # A signal handler or a finalizer may record a call in the middle of another.
        self._queue: deque[tuple[Item, int]] = deque()
        self._losses: Losses = {}
        self.records = 0
        self.bytes = 0
        self.peak_records = 0
        self.peak_bytes = 0
        self.taken = 0
        self.delivered = 0
        self.lost: dict[str, int] = {}

    def put(self, item: Item, size: int) -> bool:
        """Takes an item, or answers `False` where there is no room."""
        with self._lock:
            if self.records >= self.max_records or self.bytes + size > self.max_bytes:
                return False
            self.records += 1
            self.bytes += size
            self.peak_records = max(self.peak_records, self.records)
            self.peak_bytes = max(self.peak_bytes, self.bytes)
            self.taken += 1
            self._queue.append((item, size))
            return True

    def take(self) -> Optional[tuple[Item, int]]:
        """The oldest item that waits. It is still held until `done`."""
        with self._lock:
            return self._queue.popleft() if self._queue else None

    def back(self, item: Item, size: int) -> None:
        """Puts an item back to where it was taken from."""
        with self._lock:
            self._queue.appendleft((item, size))

    def done(self, size: int, delivered: bool) -> None:
        """An item is held no longer."""
        with self._lock:
            self.records -= 1
            self.bytes -= size
            self.delivered += delivered

    def lose(self, tool: Optional[str], at: float, reason: str) -> None:
        """Counts a call that will not be written."""
        with self._lock:
            self.lost[reason] = self.lost.get(reason, 0) + 1
            merge(self._losses, (tool, int(at // DAY)), 1, at, at)

    def losses(self) -> Losses:
        """Takes the counts that were not reported yet."""
        with self._lock:
            taken, self._losses = self._losses, {}
            return taken

    def unreported(self, losses: Losses) -> None:
        """Gives counts back."""
        with self._lock:
            for key, (count, first, last) in losses.items():
                merge(self._losses, key, count, first, last)

    def has_losses(self) -> bool:
        """Whether counts wait to be reported."""
        return bool(self._losses)

    def waiting(self) -> int:
        """Items that nobody has taken yet."""
        return len(self._queue)

    def drain(self) -> list[tuple[Item, int]]:
        """Takes all that wait."""
        with self._lock:
            items, self._queue = list(self._queue), deque()
            return items
