"""Makes a function a candidate that Lastcall's mirror can run: an HTTP server, or a command that speaks JSON Lines.

    from lastcall_candidate import main

    def lookup(arguments, mode):
        return {"order_id": arguments["order_id"], "state": "shipped"}

    if __name__ == "__main__":
        main(lookup, modes=["replica"])

`python3 candidate.py --http 8080` serves `http://127.0.0.1:8080/`; without `--http` it reads a call a line. Python 3.9 and its
standard library are enough. The function is given the arguments as the model produced them, and the mode in which the mirror
runs it: `replica`, `snapshot`, `dry_run` or `sandbox`. It has to keep its effect from happening; a mode that it does not know
is refused before it is called.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, IO, Optional, Sequence

MODES = ("replica", "snapshot", "dry_run", "sandbox")
STATUSES = (
    "ok",
    "invalid_arguments",
    "business_error",
    "permission_denied",
    "rate_limited",
    "timeout",
    "platform_error",
)
LIMIT = 8 << 20
_UNSET: Any = object()

Tool = Callable[[Any, str], Any]


class ToolError(Exception):
    """How a call ended, where it did not end well. `status` is one of `STATUSES`; `code` is the tool's own, and stable."""

    def __init__(self, status: str, code: Optional[str] = None) -> None:
        super().__init__(status)
        if status not in STATUSES:
            raise ValueError(f"{status} is none of {', '.join(STATUSES)}")
        self.status = status
        self.code = code


class InvalidArguments(ToolError):
    """The tool refuses the arguments."""

    def __init__(self, code: Optional[str] = None) -> None:
        super().__init__("invalid_arguments", code)


class BusinessError(ToolError):
    """The business says no."""

    def __init__(self, code: Optional[str] = None) -> None:
        super().__init__("business_error", code)


@dataclass(frozen=True)
class Answer:
    """A result, or none (of a dry run, say), and what else the mirror may be told: the arguments that were really used, or that
    the result is a part only."""

    result: Any = field(default=_UNSET)
    arguments: Any = field(default=_UNSET)
    partial: Optional[bool] = None


class Refused(Exception):
    """What came is no call that this candidate takes. It is never answered as if the tool had run."""

    def __init__(self, http: int, why: str) -> None:
        super().__init__(why)
        self.http = http


class Candidate:
    """A function and the modes that it implements."""

    def __init__(self, tool: Tool, modes: Sequence[str]) -> None:
        unknown = [mode for mode in modes if mode not in MODES]
        if unknown or not modes:
            raise ValueError(f"modes: {', '.join(unknown) or 'none'}; they are {', '.join(MODES)}")
        self.tool = tool
        self.modes = list(modes)

    def hello(self) -> bytes:
        """What is said before the first call: which modes there are."""
        return json.dumps({"lastcall": 1, "modes": self.modes}).encode()

    def answer(self, request: bytes) -> bytes:
        """Runs a call. Raises `Refused` where it is none."""
        try:
            call = json.loads(request)
        except (ValueError, RecursionError):
            raise Refused(400, "not JSON") from None
        if not isinstance(call, dict) or "arguments" not in call or not isinstance(call.get("mode"), str):
            raise Refused(400, "a call is an object with arguments and mode")
        if call["mode"] not in self.modes:
            raise Refused(422, "this candidate does not implement the mode")
        # An answer names its call, so that it is never taken for that to another.
        named = {"call_id": call["call_id"]} if isinstance(call.get("call_id"), str) else {}
        return self._run(call["arguments"], call["mode"], named)

    def _run(self, arguments: Any, mode: str, named: dict[str, Any]) -> bytes:
        try:
            told = self.tool(arguments, mode)
            if not isinstance(told, Answer):
                told = Answer(told)
            fields: dict[str, Any] = {"status": "ok", **named}
            if told.result is not _UNSET:
                fields["result"] = told.result
            if told.arguments is not _UNSET:
                fields["arguments"] = told.arguments
            if told.partial is not None:
                fields["partial"] = told.partial
            return _dumps(fields)
        except Exception as error:
            return _dumps({**of_exception(error), **named}, ensure_ascii=True)


def of_exception(error: Exception) -> dict[str, Any]:
    """The answer to a call that raised. Its text is left out: it holds values."""
    names = [cls.__name__ for cls in type(error).__mro__]
    code = None
    if isinstance(error, ToolError):
        status, code = error.status, error.code
    elif "ValidationError" in names:
        status = "invalid_arguments"
    elif isinstance(error, PermissionError):
        status = "permission_denied"
    elif isinstance(error, TimeoutError) or any(n.endswith(("Timeout", "TimeoutError", "TimeoutException")) for n in names):
        status = "timeout"
    else:
        status = "platform_error"
    answer: dict[str, Any] = {"status": status, "error_class": names[0]}
    if code is not None:
        answer["error_code"] = str(code)
    return answer


def _dumps(value: Any, ensure_ascii: bool = False) -> bytes:
    return json.dumps(value, ensure_ascii=ensure_ascii, allow_nan=False, separators=(",", ":")).encode()


def server(
    tool: Tool, modes: Sequence[str], port: int = 0, *, host: str = "127.0.0.1", limit: int = LIMIT, calls: int = 64
) -> ThreadingHTTPServer:
    """An HTTP server, to be run with `serve_forever`. `calls` at most run at once, others get 429; `limit` bytes a request."""
    candidate = Candidate(tool, modes)
    room = threading.BoundedSemaphore(calls)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        timeout = 60

        def do_GET(self) -> None:
            self.say(200, candidate.hello())

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "")
            if not (length.isascii() and length.isdigit()):
                self.refuse(411, "Content-Length is needed")
            elif int(length) > limit:
                self.refuse(413, "the call is too large")
            elif not room.acquire(blocking=False):
                self.rfile.read(int(length))
                self.say(429, b"busy", "text/plain")
            else:
                try:
                    self.say(200, candidate.answer(self.rfile.read(int(length))))
                except Refused as refused:
                    self.say(refused.http, str(refused).encode(), "text/plain")
                finally:
                    room.release()

        def refuse(self, code: int, why: str) -> None:
            self.close_connection = True  # What was sent is not read.
            self.say(code, why.encode(), "text/plain")

        def say(self, code: int, body: bytes, kind: str = "application/json") -> None:
            self.send_response(code)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if self.close_connection:
                self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: Any) -> None:
            pass  # A client that went away.

    return Server((host, port), Handler)


def lines(tool: Tool, modes: Sequence[str], source: IO[bytes], sink: IO[bytes], *, limit: int = LIMIT) -> None:
    """A call a line, an answer a line, until the end of `source`. What is no call is answered by a line that has no status,
    which the mirror takes for no answer."""
    candidate = Candidate(tool, modes)

    def say(line: bytes) -> None:
        sink.write(line + b"\n")
        sink.flush()

    say(candidate.hello())
    while line := source.readline(limit + 1):
        try:
            if len(line) > limit and not line.endswith(b"\n"):
                while (rest := source.readline(limit)) and not rest.endswith(b"\n"):
                    pass
                raise Refused(413, "the call is too large")
            say(candidate.answer(line))
        except Refused as refused:
            say(_dumps({"refused": str(refused)}))


def main(tool: Tool, modes: Sequence[str]) -> None:
    """Runs the candidate as the command line says."""
    Candidate(tool, modes)  # A mode that is none is refused before anything else.
    parser = argparse.ArgumentParser(description="A candidate for lastcall-mirror.")
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP on this port (0: any) instead of JSON Lines")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on")
    args = parser.parse_args()
    if args.http is None:
        # Only answers go to standard output: what the tool prints would be taken for one.
        sink, sys.stdout = sys.stdout.buffer, sys.stderr
        lines(tool, modes, sys.stdin.buffer, sink)
        return
    http = server(tool, modes, args.http, host=args.host)
    print(f"http://{args.host}:{http.server_address[1]}/", flush=True)
    try:
        http.serve_forever()
    except KeyboardInterrupt:
        pass
