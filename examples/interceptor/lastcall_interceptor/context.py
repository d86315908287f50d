"""Who calls, and what the model produced: held by context variables, so that threads and tasks do not mix."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Iterator, Mapping, Optional, Sequence

_ENVELOPE: ContextVar[Mapping[str, Any]] = ContextVar("lastcall_envelope", default={})
_RAW: ContextVar[Optional["Raw"]] = ContextVar("lastcall_raw", default=None)


class Raw:
    """The argument text of one call, taken by the first recorded call that finds it."""

    __slots__ = ("arguments", "call_id", "tool_call_id", "used")

    def __init__(self, arguments: Any, call_id: Optional[str], tool_call_id: Optional[str]) -> None:
        self.arguments = arguments
        self.call_id = call_id
        self.tool_call_id = tool_call_id
        self.used = False


def current_envelope() -> Mapping[str, Any]:
    """The envelope of this context. Not to be changed."""
    return _ENVELOPE.get()


def take_raw() -> Optional[Raw]:
    """What `raw_arguments` announced and no call has taken yet."""
    raw = _RAW.get()
    if raw is None or raw.used:
        return None
    raw.used = True
    return raw


@contextmanager
def envelope(
    *,
    agent_id: Optional[str] = None,
    agent_version: Optional[str] = None,
    prompt_version: Optional[str] = None,
    model: Optional[str] = None,
    delegation: Optional[Sequence[str]] = None,
    run_id: Optional[str] = None,
    session_id: Optional[str] = None,
    tool_call_id: Optional[str] = None,
    cohort: Optional[str] = None,
    trace_id: Optional[str] = None,
    span_id: Optional[str] = None,
    policy_version: Optional[str] = None,
    policy_decision: Optional[str] = None,
    policy_reason: Optional[str] = None,
    side_effect_outcome: Optional[str] = None,
) -> Iterator[None]:
    """Says who calls, for every call within. Blocks nest: the inner one adds to the outer one, and wins.

    `session_id` (else `run_id`, else `trace_id`) decides the partition, so that a session stays in one.
    """
    given = {name: value for name, value in locals().items() if value is not None}
    if delegation is not None:
        given["delegation"] = tuple(delegation)
    token = _ENVELOPE.set({**_ENVELOPE.get(), **given})
    try:
        yield
    finally:
        _ENVELOPE.reset(token)


@contextmanager
def raw_arguments(
    arguments: Any, *, call_id: Optional[str] = None, tool_call_id: Optional[str] = None
) -> Iterator[None]:
    """Announces what the model produced for the one call within.

    `arguments` is the exact text (`str` or `bytes`), or the value where the provider's client parsed it already. The
    first decorated tool that is called within takes it; a tool that this one calls does not.
    `call_id` is unique per attempt; without one the interceptor makes one.
    """
    token = _RAW.set(Raw(arguments, call_id, tool_call_id))
    try:
        yield
    finally:
        _RAW.reset(token)
