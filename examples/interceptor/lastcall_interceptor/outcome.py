"""How a call ended, read from what the tool returned or raised. Texts of exceptions are never taken: they hold values."""

from __future__ import annotations

import inspect
import json
import types
from typing import Any, Optional

from .record import Outcome, Spec

_LONGEST = 128


def of_result(spec: Spec, result: Any) -> Outcome:
    """`ok`, unless the tool's own reader says otherwise, or the result is an MCP result with `isError`."""
    told = spec.outcome(result) if spec.outcome else None
    if told is not None:
        return told
    failed = dict.get(result, "isError") if issubclass(type(result), dict) else _plain(result, "isError")
    return Outcome("business_error" if failed is True else "ok", executed=True)


def of_exception(spec: Spec, error: BaseException, entered: bool) -> Outcome:
    """By the tool's table, then by kind. `entered`: the tool's own code ran."""
    kind = type(error).__name__[:_LONGEST]
    status = next((status for cls, status in spec.statuses if isinstance(error, cls)), None)
    executed: Optional[bool] = None
    if status is None:
        status = _by_kind(error, entered)
    if status == "invalid_arguments":
        executed = False
    elif status == "business_error":
        executed = True
    return Outcome(status, executed=executed, error_code=_code(error), error_class=kind)


def _by_kind(error: BaseException, entered: bool) -> str:
    names = [cls.__name__ for cls in type(error).__mro__]
    if not isinstance(error, Exception) or names[0] == "CancelledError":
        return "unknown"  # Interrupted or cancelled: nobody knows what became of it.
    if isinstance(error, json.JSONDecodeError) or "ValidationError" in names:
        return "invalid_arguments"
    if isinstance(error, TypeError) and not entered:
        return "invalid_arguments"  # The arguments do not fit the function's parameters.
    if isinstance(error, TimeoutError) or any(n.endswith(("Timeout", "TimeoutError", "TimeoutException")) for n in names):
        return "timeout"
    if isinstance(error, PermissionError):
        return "permission_denied"
    return "platform_error"


def _plain(thing: Any, name: str) -> Any:
    """An attribute that is a plain value. Runs no code of the thing: a property or a proxy could wait, or raise."""
    found = inspect.getattr_static(thing, name, None)
    if isinstance(found, types.MemberDescriptorType):  # A slot.
        found = found.__get__(thing)
    return found if isinstance(found, (bool, int, str)) else None


def _code(error: BaseException) -> Optional[str]:
    code = _plain(error, "code")
    if isinstance(code, bool) or not isinstance(code, (str, int)):
        return None
    text = str(code)
    return text if len(text) <= _LONGEST else None
