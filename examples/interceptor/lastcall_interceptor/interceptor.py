"""The interceptor: wraps tools, and hands what they did to a bounded queue."""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import logging
import os
import sys
import time
import uuid
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, TypeVar

from . import outcome as outcomes
from . import sender
from .context import Raw, current_envelope, take_raw
from .held import Held, merge
from .record import STATUSES, Item, Outcome, Reader, Spec, Statuses, TooLarge, bounded, dumps, loss, pointer

F = TypeVar("F", bound=Callable[..., Any])
log = logging.getLogger("lastcall.interceptor")
_UNSET: Any = object()
_ALL: "weakref.WeakSet[Interceptor]" = weakref.WeakSet()


@dataclass(frozen=True)
class Stats:
    """Counts of this process since its start (or since its fork)."""

    taken: int  #: Calls that the queue took.
    delivered: int  #: Of these, confirmed by the broker.
    held: int  #: Of these, neither confirmed nor lost yet.
    held_bytes: int
    peak_held: int
    peak_bytes: int
    lost: Mapping[str, int]  #: Calls that will not be written, by reason.


class Call:
    """A call that is under way, in a `with` block of `Interceptor.observe`."""

    __slots__ = ("_outcome", "_result")

    def __init__(self) -> None:
        self._result: Any = _UNSET
        self._outcome: Optional[Outcome] = None

    def returned(self, result: Any) -> None:
        """What the tool returned, as the model is given it."""
        self._result = result

    def ended(self, status: str, **more: Any) -> None:
        """Says how the call ended, where neither result nor exception does. `more`: other fields of `Outcome`."""
        self._outcome = Outcome(status, **more)


class Interceptor:
    """Records calls into a topic. Make one a process, before it forks or after; it opens no connection before the first call.

    `brokers` and `topic`: where to. `settings`: further settings of librdkafka (TLS, SASL).
    `max_records`, `max_bytes`: what is held at most while the broker is away; a call that has no room is lost, and counted.
    `max_record_bytes`: the largest record; below the topic's `max.message.bytes`.
    `close_seconds`: how long the exit of the process waits for the broker.
    `loss_file`: where counts go that could not be written at the exit; the next start reports them. Without it they are logged.
    `enabled=False` records nothing.
    """

    def __init__(
        self,
        brokers: str,
        topic: str = "tool-calls",
        *,
        settings: Optional[Mapping[str, Any]] = None,
        max_records: int = 10_000,
        max_bytes: int = 32 << 20,
        max_record_bytes: int = 900_000,
        close_seconds: float = 5.0,
        loss_file: Optional[str] = None,
        enabled: bool = True,
        make_producer: sender.Make = sender.confluent,
    ) -> None:
        self.enabled = enabled
        self._largest = max_record_bytes
        self._close_seconds = close_seconds
        self._loss_file = loss_file
        self._held = Held(max_records, max_bytes)
        config = sender.settings(brokers, self._held, max_record_bytes, dict(settings or {}))
        self._sender = sender.Sender(self._held, topic, config, max_record_bytes, make_producer)
        self._started = self._closed = False
        _ALL.add(self)
        atexit.register(_close, weakref.ref(self))

    # What is wrapped

    def tool(
        self,
        tool_id: str,
        *,
        contract: Optional[str] = None,
        digest: Optional[str] = None,
        raw: Optional[str] = None,
        statuses: Statuses = (),
        outcome: Optional[Reader] = None,
        result: str = "full",
        drop: Sequence[str] = (),
    ) -> Callable[[F], F]:
        """Decorates a tool: a function or a coroutine function. It returns and raises what it always did.

        `contract`: the contract that the model was given, `tool_id@version`; `digest`: its digest.
        `raw`: the parameter that holds the model's text, where the tool parses it; else `raw_arguments` announces it. Without
        either the record has the arguments of the Python call, and says that they are reconstructed.
        `statuses`: `(exception class, status)`, asked in order before the defaults. `outcome`: reads a result that is an error.
        `result`: `full`, `keys` (the top-level keys alone) or `none`.
        `drop`: JSON Pointers into the record that never leave the process; `*` stands for every key or item.
        """
        spec = self.spec(
            tool_id, contract=contract, digest=digest, statuses=statuses, outcome=outcome, result=result, drop=drop
        )

        def wrap(function: F) -> F:
            arguments = _Arguments(function, raw)

            if inspect.iscoroutinefunction(function):

                @functools.wraps(function)
                async def calling(*args: Any, **kwargs: Any) -> Any:
                    with self._around(spec, lambda: arguments.of(args, kwargs)) as call:
                        call.returned(value := await function(*args, **kwargs))
                    return value

                return calling  # type: ignore[return-value]

            @functools.wraps(function)
            def called(*args: Any, **kwargs: Any) -> Any:
                with self._around(spec, lambda: arguments.of(args, kwargs)) as call:
                    call.returned(value := function(*args, **kwargs))
                return value

            return called  # type: ignore[return-value]

        return wrap

    def spec(
        self,
        tool_id: str,
        *,
        contract: Optional[str] = None,
        digest: Optional[str] = None,
        statuses: Statuses = (),
        outcome: Optional[Reader] = None,
        result: str = "full",
        drop: Sequence[str] = (),
    ) -> Spec:
        """A tool, for `call` and `observe`. Raises `ValueError` on a setting that is none: this runs at the start."""
        wrong = [status for _, status in statuses if status not in STATUSES]
        if wrong or result not in ("full", "keys", "none"):
            raise ValueError(f"{tool_id}: {wrong[0] if wrong else result} is none of {STATUSES if wrong else 'full, keys, none'}")
        pointers = tuple(pointer(text) for text in drop)
        return Spec(tool_id, contract, digest, tuple(statuses), outcome, result, pointers)

    def call(self, spec: Spec, arguments: Any, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Calls `function(*args, **kwargs)` and records it under what the model produced."""
        with self.observe(spec, arguments) as call:
            call.returned(value := function(*args, **kwargs))
        return value

    def observe(
        self, spec: Spec, arguments: Any, *, call_id: Optional[str] = None, tool_call_id: Optional[str] = None
    ) -> Any:
        """A `with` block around one call, parsing included, in plain and in asynchronous code:

            with interceptor.observe(ORDERS, tool_call.arguments) as call:
                call.returned(lookup(**json.loads(tool_call.arguments)))
        """
        return self._around(spec, lambda: None, Raw(arguments, call_id, tool_call_id))

    @contextmanager
    def _around(self, spec: Spec, bound: Callable[[], Any], raw: Optional[Raw] = None) -> Iterator[Call]:
        call = Call()
        if not self.enabled:
            yield call
            return
        raw = raw or take_raw()
        at, begun = time.time(), time.perf_counter()
        text = _snapshot(raw.arguments if raw else None, bound, self._largest)
        try:
            yield call
        except BaseException as error:
            # Frames: this one, the wrapper's, then the tool's own.
            trace = error.__traceback__
            entered = bool(trace and trace.tb_next and trace.tb_next.tb_next)
            self._record(spec, raw, text, at, begun, call, error, entered)
            raise
        else:
            self._record(spec, raw, text, at, begun, call, None, True)

    # What is recorded

    def _record(
        self, spec: Spec, raw: Optional[Raw], text: Any, at: float, begun: float, call: Call,
        error: Optional[BaseException], entered: bool,
    ) -> None:
        """Hands a call over. Never raises, never waits."""
        try:
            reason = self._enqueue(spec, raw, text, at, (time.perf_counter() - begun) * 1000, call, error, entered)
        except TooLarge:
            reason = "too_large"
        except Exception:
            reason = "unrecordable"
        try:
            if reason is not None:
                self._held.lose(spec.tool_id, at, reason)
            if not self._started:
                self._start()
        except Exception:
            pass

    def _enqueue(
        self, spec: Spec, raw: Optional[Raw], text: Any, at: float, latency: float, call: Call,
        error: Optional[BaseException], entered: bool,
    ) -> Optional[str]:
        if self._closed:
            return "closed"
        if isinstance(text, Exception):
            raise text
        item = Item()
        item.spec, item.ts, item.latency = spec, at, latency
        item.call_id = (raw and raw.call_id) or str(uuid.uuid4())
        item.text, item.value = text
        item.envelope = current_envelope()
        if raw and raw.tool_call_id:
            item.envelope = {**item.envelope, "tool_call_id": raw.tool_call_id}
        item.result = item.keys = None
        if error is not None:
            item.outcome = call._outcome or outcomes.of_exception(spec, error, entered)
        elif call._result is _UNSET:
            item.outcome = call._outcome or Outcome("unknown")
        else:
            item.outcome = call._outcome or outcomes.of_result(spec, call._result)
            if spec.result == "full":
                item.result = bounded(call._result, self._largest)
            elif spec.result == "keys" and issubclass(type(call._result), dict):
                item.keys = sorted(key for key in dict.keys(call._result) if type(key) is str)
        return None if self._held.put(item, item.size()) else "no_room"

    # Beginning and end

    def _start(self) -> None:
        with self._held._lock:
            if self._started or self._closed:
                return
            self._sender.start(self._take_over)
            self._started = True
        util = sys.modules.get("multiprocessing.util")
        parent = getattr(sys.modules.get("multiprocessing.process"), "parent_process", lambda: None)
        if util is not None and parent() is not None:
            # Such a child ends without atexit.
            util.Finalize(None, _close, args=(weakref.ref(self),), exitpriority=100)

    def stats(self) -> Stats:
        """Counts, for metrics of your own."""
        held = self._held
        return Stats(held.taken, held.delivered, held.records, held.bytes, held.peak_records, held.peak_bytes, dict(held.lost))

    def close(self, timeout: Optional[float] = None) -> bool:
        """Writes what is held, for at most `timeout` seconds. `False`: something is lost without a record of it.

        Runs by itself at the exit of the process. A call that ends later is lost.
        """
        if self._closed:
            return True
        self._closed = True
        if not self._started:
            return True
        wait = self._close_seconds if timeout is None else timeout
        done = self._sender.finish(time.monotonic() + wait)
        if not done:
            self._leave()
        return done

    def _leave(self) -> None:
        """Counts that could not be written go into the file, or into the log."""
        losses = self._held.losses()
        count = sum(row[0] for row in losses.values())
        if self._loss_file is None:
            log.warning("%d calls are lost without a record: the broker did not answer. Set loss_file to keep the count", count)
            return
        try:
            with open(self._loss_file, "ab") as file:
                file.write(b"".join(loss(tool, *row) + b"\n" for (tool, _), row in losses.items()))
        except OSError as error:
            log.warning("%d calls are lost without a record: %s: %s", count, self._loss_file, error.strerror)

    def _take_over(self) -> None:
        """Counts of an earlier process. Of several processes that start, one gets the file."""
        if self._loss_file is None:
            return
        mine = f"{self._loss_file}.{os.getpid()}"
        try:
            os.rename(self._loss_file, mine)
            with open(mine, "rb") as file:
                rows = [json.loads(line) for line in file]
            found: dict[Any, Any] = {}
            for row in rows:
                first, last = (seconds(row["interval"][end]) for end in ("from", "to"))
                merge(found, (row.get("tool_id"), int(first // 86_400)), row["count"], first, last - 0.001)
            self._held.unreported(found)
            os.remove(mine)
        except FileNotFoundError:
            pass
        except Exception as error:
            log.warning("%s cannot be read: %s", mine, type(error).__name__)

    def _after_fork(self) -> None:
        self._held.reset()
        self._sender.reset()
        self._started = False


def seconds(text: str) -> float:
    """Seconds since 1970 of a time that `record.stamp` wrote."""
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class _Arguments:
    """The arguments of a Python call, under the names of the function's parameters."""

    def __init__(self, function: Callable[..., Any], raw: Optional[str]) -> None:
        self.raw = raw
        try:
            self.signature: Optional[inspect.Signature] = inspect.signature(function)
        except (TypeError, ValueError):
            self.signature = None
        self.method = self.signature is not None and next(iter(self.signature.parameters), "") == "self"

    def of(self, args: Any, kwargs: Any) -> Any:
        if self.signature is None:
            return dict(kwargs) if not args else None
        try:
            given = dict(self.signature.bind(*args, **kwargs).arguments)
        except TypeError:
            return dict(kwargs) if not args else None  # They do not fit; the call itself says so.
        for name, parameter in self.signature.parameters.items():
            if parameter.kind is parameter.VAR_KEYWORD:
                given.update(given.pop(name, {}))
        if self.raw is not None:
            return given.get(self.raw)
        if self.method:
            given.pop("self", None)
        return given


def _snapshot(raw: Any, bound: Callable[[], Any], largest: int) -> Any:
    """Text and value of the arguments, before the tool can change them; or why there is neither."""
    try:
        given = raw if raw is not None else bound()
        if type(given) in (bytes, bytearray):
            given = given.decode()
        if issubclass(type(given), str):
            given = str.__getitem__(given, slice(None))
            if len(given) > largest:
                raise TooLarge
            return given, None
        return None, None if given is None else bounded(given, largest)
    except Exception as error:
        return error


def _close(reference: "weakref.ref[Interceptor]") -> None:
    interceptor = reference()
    if interceptor is not None:
        try:
            interceptor.close()
        except Exception as error:
            log.warning("the end of the interceptor failed: %s", type(error).__name__)


def _after_fork() -> None:
    for interceptor in list(_ALL):
        interceptor._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
