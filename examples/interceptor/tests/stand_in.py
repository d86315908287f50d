"""A producer that does what brokers do: takes, is away, refuses, stands still."""

import json
import threading


class Producer:
    """Stands in for confluent_kafka.Producer."""

    def __init__(self, settings, room=1_000_000):
        self.settings = settings
        self.room = room
        self.away = False
        self.refuses = None
        self.gate = threading.Event()
        self.gate.set()
        self.written = []
        self._waiting = []

    def produce(self, topic, value, key, on_delivery):
        self.gate.wait()
        if len(self._waiting) >= self.room:
            raise BufferError
        self._waiting.append((topic, value, key, on_delivery))

    def poll(self, timeout):
        if self.away:
            return 0
        waiting, self._waiting = self._waiting, []
        for topic, value, key, on_delivery in waiting:
            error = self.refuses(value) if self.refuses else None
            if error is None:
                self.written.append((topic, key, json.loads(value)))
            on_delivery(error, None)
        return len(waiting)

    flush = poll

    def purge(self, in_queue, in_flight, blocking):
        waiting, self._waiting = self._waiting, []
        for *_, on_delivery in waiting:
            on_delivery(RuntimeError("purged"), None)

    def records(self, kind="tool_call"):
        return [row for _, _, row in self.written if row["type"] == kind]
