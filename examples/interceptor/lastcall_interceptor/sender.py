"""From the queue to the topic: one thread, started with the first call, and the only one that speaks with Kafka."""

from __future__ import annotations

import ctypes
import logging
import threading
import time
from typing import Any, Callable, Optional

from .held import Held, Losses
from .record import Item, loss, tool_call

log = logging.getLogger("lastcall.interceptor")

BATCH = 1000
RETRY = 10.0  # Seconds between attempts to make a producer, and between complaints.
Make = Callable[[dict[str, Any]], Any]


def confluent(settings: dict[str, Any]) -> Any:
    """A producer of confluent-kafka, which is imported here and not before."""
    from confluent_kafka import Producer

    return Producer(settings)


def settings(brokers: str, held: Held, largest: int, more: dict[str, Any]) -> dict[str, Any]:
    """What librdkafka is given. Nothing times out: what the queue took is written, however long the broker is away."""
    return {
        "bootstrap.servers": brokers,
        "client.id": "lastcall-interceptor",
        "enable.idempotence": True,
        "message.timeout.ms": 0,
        "linger.ms": 20,
        "compression.type": "zstd",
        "partitioner": "murmur2_random",  # As Java's clients do, so that a session has one partition for all.
        "reconnect.backoff.max.ms": 2000,
        "message.max.bytes": max(1_000_000, largest + 65_536),
        "queue.buffering.max.messages": held.max_records + 2 * BATCH,
        "queue.buffering.max.kbytes": min(2_097_151, held.max_bytes // 1024 + 4096),
        "log_level": 0,  # Errors come through the callback, and from there into Python's logging.
        **more,
    }


class Sender:
    """Takes from `held`, hands to a producer, and gives back what the broker confirmed or refused."""

    def __init__(self, held: Held, topic: str, config: dict[str, Any], largest: int, make: Make) -> None:
        self.held = held
        self.topic = topic
        self.config = config
        self.largest = largest
        self.make = make
        self.producer: Any = None
        self.reset()

    def reset(self) -> None:
        """At the start, and in a child after a fork. The parent's producer is left alone for good: its threads are not
        here, and its end would wait for them."""
        if self.producer is not None:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self.producer))
        self.producer = None
        self.wake = threading.Event()
        self.ending = False
        self.thread: Optional[threading.Thread] = None
        self.reporting = 0
        self._fatal = False
        self._tried = self._complained = self._reported_at = -RETRY

    def start(self, first: Callable[[], None]) -> None:
        """Starts the thread, which does `first` first. Not twice: the caller holds a lock."""
        thread = threading.Thread(target=self._run, args=(first,), name="lastcall-interceptor", daemon=True)
        thread.start()
        self.thread = thread

    def _run(self, first: Callable[[], None]) -> None:
        first()
        while not self.ending:
            self.wake.wait(0.05)
            self.turn()

    def turn(self) -> None:
        """One round: answers, records, counts. Raises nothing."""
        try:
            if not self._ready():
                return
            self.producer.poll(0)
            for _ in range(BATCH):
                taken = self.held.take()
                if taken is None or not self._send(*taken):
                    break
                time.sleep(0)  # Gives tools their turn: no thread of theirs waits longer than one record takes.
            self.producer.poll(0)
            # Counts add up while the last ones are on their way, and for a second at least.
            due = self.ending or time.monotonic() - self._reported_at >= 1
            if due and self.held.has_losses() and not self.reporting:
                self._report(self.held.losses())
        except Exception as error:
            self._complain("a round failed", error)

    def _ready(self) -> bool:
        if self._fatal and self.producer is not None:
            self._purge()
            self.producer, self._fatal = None, False
        if self.producer is None and time.monotonic() - self._tried >= RETRY:
            self._tried = time.monotonic()
            try:
                self.producer = self.make({**self.config, "error_cb": self._on_error})
            except Exception as error:
                self._complain("no producer: is confluent-kafka installed, are the settings right?", error)
        return self.producer is not None

    def _send(self, item: Item, size: int) -> bool:
        """Whether another one may follow."""
        tool, at = item.spec.tool_id, item.ts
        try:
            key, value = tool_call(item)
            reason = "too_large" if len(value) > self.largest else None
        except Exception:
            reason = "unrecordable"
        if reason is None:
            try:
                answer = lambda error, _, t=tool, a=at, s=size: self._delivered(error, t, a, s)
                self.producer.produce(self.topic, value, key, on_delivery=answer)
                return True
            except BufferError:
                self.held.back(item, size)
                return False
            except Exception as error:
                self._complain("a record was refused", error)
                reason = "refused"
        self.held.done(size, False)
        self.held.lose(tool, at, reason)
        return True

    def _delivered(self, error: Any, tool: str, at: float, size: int) -> None:
        self.held.done(size, error is None)
        if error is not None:
            self.held.lose(tool, at, "refused")

    def _report(self, losses: Losses) -> None:
        self._reported_at = time.monotonic()
        for key, (count, first, last) in losses.items():
            row = {key: (count, first, last)}
            try:
                value = loss(key[0], count, first, last)
                answer = lambda error, _, r=row: self._reported(error, r)
                self.producer.produce(self.topic, value, key[0] or "", on_delivery=answer)
                self.reporting += 1
            except Exception as error:
                self.held.unreported(row)
                self._complain("a count of lost calls was refused", error)

    def _reported(self, error: Any, row: Losses) -> None:
        self.reporting -= 1
        if error is not None:
            self.held.unreported(row)

    def _on_error(self, error: Any) -> None:
        fatal = getattr(error, "fatal", None)
        self._fatal |= bool(fatal and fatal())
        self._complain("Kafka", error)

    def _complain(self, what: str, error: Any) -> None:
        now = time.monotonic()
        if now - self._complained >= RETRY:
            self._complained = now
            # An exception's own text may hold values of a call; a Kafka error's name does not.
            name = getattr(error, "name", None)
            log.warning("%s: %s; calls go on, what has no room is counted", what, name() if name else type(error).__name__)

    def _purge(self) -> None:
        self.producer.purge(in_queue=True, in_flight=True, blocking=True)
        self.producer.flush(0.1)

    def finish(self, deadline: float) -> bool:
        """Writes what is held, until a moment of `time.monotonic`. Then everything that is left is counted as lost, and
        the answer is `False`: the counts could not be written either."""
        self.ending = True
        self.wake.set()
        if self.thread is not None:
            self.thread.join(max(0.0, deadline - time.monotonic()))
            if self.thread.is_alive():
                self._give_up()
                for _ in range(self.held.records):
                    self.held.lose(None, time.time(), "closed")
                return False
        while self.held.records or self.held.has_losses() or self.reporting:
            left = deadline - time.monotonic()
            if left <= 0:
                break
            self.turn()
            if self.producer is None:
                time.sleep(min(left, 0.05))
            else:
                self.producer.flush(min(left, 0.1))
        if self.producer is not None and (self.held.records or self.reporting):
            self._purge()
        self._give_up()
        return not self.held.has_losses()

    def _give_up(self) -> None:
        for item, size in self.held.drain():
            self.held.done(size, False)
            self.held.lose(item.spec.tool_id, item.ts, "closed")
