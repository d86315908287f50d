"""From a call to a record of Lastcall's own: schemas/events/tool_call.schema.json and loss.schema.json."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from typing import Any, Callable, Mapping, Optional, Sequence

STATUSES = (
    "ok",
    "invalid_arguments",
    "business_error",
    "permission_denied",
    "rate_limited",
    "timeout",
    "platform_error",
    "unknown",
)
#: What an item costs beside its texts, in bytes: the objects around them, and the record's own words.
OVERHEAD = 2048


class TooLarge(ValueError):
    """A value is larger than a record may be."""


@dataclass(frozen=True)
class Outcome:
    """How a call ended, where exceptions and results of a tool need reading of their own."""

    status: str
    executed: Optional[bool] = None
    error_code: Optional[str] = None
    error_class: Optional[str] = None
    partial: Optional[bool] = None


Reader = Callable[[Any], Optional[Outcome]]
Statuses = Sequence[tuple[type[BaseException], str]]


@dataclass(frozen=True)
class Spec:
    """What is known of a tool before it is called."""

    tool_id: str
    contract_id: Optional[str] = None
    contract_digest: Optional[str] = None
    statuses: Statuses = ()
    outcome: Optional[Reader] = None
    result: str = "full"
    drop: tuple[tuple[str, ...], ...] = ()


class Item:
    """A call on its way: texts alone, so that nothing that the caller changes later is in it."""

    __slots__ = ("spec", "call_id", "ts", "text", "value", "outcome", "result", "keys", "latency", "envelope")

    spec: Spec
    call_id: str
    ts: float
    text: Optional[str]
    value: Optional[str]
    outcome: Outcome
    result: Optional[str]
    keys: Optional[list[str]]
    latency: float
    envelope: Mapping[str, Any]

    def size(self) -> int:
        """Bytes, as the interpreter holds them."""
        texts = (self.text, self.value, self.result, *self.envelope.values())
        return OVERHEAD + sum(len(t) * (1 if t.isascii() else 4) for t in texts if isinstance(t, str))


#: How a dict's items are read without code of its own.
_ITEMS = (dict.items, OrderedDict.items)

#: Compact JSON. NaN and what is no JSON raise.
dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


#: Items of a value at most: what more of them take is felt by the caller.
ITEMS = 20_000


def bounded(value: Any, limit: int) -> str:
    """A value as JSON. Ends soon on a value that is too large, or holds itself: it raises `TooLarge`. Runs no code of the
    value: what is no dict, list, text or number, or reads itself in a way of its own, raises."""
    size, items, odd, stack = 0, 0, False, [value]
    while stack:
        item = stack.pop()
        items += 1
        if items + len(stack) > ITEMS:
            raise TooLarge
        kind = type(item)  # `isinstance` asks a proxy for its class, which may wait.
        if issubclass(kind, str):
            size += str.__len__(item)
        elif issubclass(kind, dict):
            odd |= kind.items not in _ITEMS
            size += 4 * dict.__len__(item)
            if size <= limit:
                size += sum(str.__len__(key) for key in dict.keys(item) if issubclass(type(key), str))
                stack.extend(dict.values(item))
        elif issubclass(kind, list):
            size += 2 * list.__len__(item)
            if size <= limit:
                stack.extend(list.__getitem__(item, slice(None)))
        elif issubclass(kind, tuple):
            size += 2 * tuple.__len__(item)
            if size <= limit:
                stack.extend(tuple.__getitem__(item, slice(None)))
        else:
            size += 1
            odd |= item is not None and not issubclass(kind, (int, float))
        if size > limit:
            raise TooLarge
    if odd:
        raise TypeError
    return dumps(value)


def pointer(text: str) -> tuple[str, ...]:
    """The steps of a JSON Pointer into a record: it begins with /arguments, /outcome/result or /envelope."""
    steps = tuple(s.replace("~1", "/").replace("~0", "~") for s in text.split("/")[1:])
    if not text.startswith("/") or steps[:1] not in (("arguments",), ("envelope",)) and steps[:2] != ("outcome", "result"):
        raise ValueError(f"{text}: a pointer to be dropped begins with /arguments, /outcome/result or /envelope")
    return steps


def _drop(value: Any, steps: Sequence[str]) -> bool:
    """Takes out what a pointer names. `*` stands for every key or item. Whether there was something."""
    step, rest = steps[0], steps[1:]
    if isinstance(value, dict):
        keys: list[Any] = list(value) if step == "*" else [step] if step in value else []
    elif isinstance(value, list):
        keys = list(range(len(value))) if step == "*" else [int(step)] if step.isdecimal() and int(step) < len(value) else []
    else:
        return False
    found = False
    for key in reversed(keys):
        if rest:
            found |= _drop(value[key], rest)
        else:
            del value[key]
            found = True
    return found


def _without(text: str, drop: Sequence[Sequence[str]]) -> tuple[Any, bool]:
    """A JSON text without what is to be dropped, and whether there was something."""
    value, found = json.loads(text), False
    for steps in drop:
        if steps:
            found |= _drop(value, steps)
        else:
            value, found = None, True
    return value, found


def _stripped(item: Item, under: tuple[str, ...]) -> list[tuple[str, ...]]:
    return [steps[len(under):] for steps in item.spec.drop if steps[: len(under)] == under]


def _arguments(item: Item) -> str:
    """The fields of the arguments. What was changed says so: it is no longer what the model produced."""
    drop = _stripped(item, ("arguments",))
    text = item.text if item.text is not None else item.value
    if text is None or () in drop:
        return '"arguments":null,"fidelity":"not_captured"'
    if drop:
        try:
            value, found = _without(text, drop)
        except (ValueError, RecursionError):
            return '"arguments":null,"fidelity":"not_captured"'  # No JSON: nobody can say what would have to go.
        if found:
            return f'"arguments":{dumps(value)},"fidelity":"normalized"'
    if item.text is not None:
        return f'"arguments_text":{dumps(item.text)},"fidelity":"raw"'
    return f'"arguments":{item.value},"fidelity":"reconstructed"'


def _outcome(item: Item) -> str:
    """The outcome. A result from which something was dropped is written as its top-level keys."""
    told = item.outcome
    fields: dict[str, Any] = {
        "status": told.status if told.status in STATUSES else "unknown",
        "executed": told.executed,
        "error_code": told.error_code,
        "error_class": told.error_class,
        "partial": told.partial,
        "latency_ms": round(item.latency, 3),
    }
    result, keys, drop = item.result, item.keys, _stripped(item, ("outcome", "result"))
    if result is not None and drop:
        whole = json.loads(result)
        found = _without(result, drop)[1]
        if found:
            result, keys = None, sorted(whole) if isinstance(whole, dict) and () not in drop else None
    if keys is not None:
        fields["result_keys"] = keys
    text = dumps({name: value for name, value in fields.items() if value is not None})
    return text if result is None else f'{text[:-1]},"result":{result}}}'


def stamp(at: float) -> str:
    """RFC 3339 in UTC, to the microsecond."""
    moment = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=at)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def tool_call(item: Item) -> tuple[bytes, bytes]:
    """Key and value of the call's message. Raises where the call cannot be written as JSON in UTF-8."""
    spec = item.spec
    head = {
        "type": "tool_call",
        "schema_version": 1,
        "call_id": item.call_id,
        "ts": stamp(item.ts),
        "tool_id": spec.tool_id,
        "contract_id": spec.contract_id,
        "contract_digest": spec.contract_digest,
    }
    hidden = {steps[0] if steps else "*" for steps in _stripped(item, ("envelope",))}
    shown = {
        name: [str(part) for part in value] if name == "delegation" else str(value)
        for name, value in item.envelope.items()
        if name not in hidden and "*" not in hidden
    }
    text = dumps({name: value for name, value in head.items() if value is not None})
    value = f'{text[:-1]},{_arguments(item)},"outcome":{_outcome(item)},"envelope":{dumps(shown)}}}'
    key = next((shown[name] for name in ("session_id", "run_id", "trace_id") if name in shown), item.call_id)
    return str(key).encode(), value.encode()


def loss(tool: Optional[str], count: int, first: float, last: float) -> bytes:
    """How many calls of a tool were not written, and between which times: to the millisecond. It ends before midnight, so
    that it is of one day for every reader."""
    end = max(first, min(last + 0.001, (last // 86_400 + 1) * 86_400 - 0.001))
    row = {"type": "loss", "schema_version": 1, "tool_id": tool, "count": count,
           "interval": {"from": stamp(first), "to": stamp(end)}}
    return dumps({name: value for name, value in row.items() if value is not None}).encode()
