"""Records the tool calls of an agent for Lastcall, off the response path.

A call is recorded with the text that the model produced and with how it ended. Recording never raises, never waits for
the broker and never changes what the tool returns or raises. What cannot be recorded is counted, and the counts are
written as `loss` records once the broker takes records.
"""

from .context import envelope, raw_arguments
from .interceptor import Call, Interceptor, Stats
from .record import Outcome

__all__ = ["Call", "Interceptor", "Outcome", "Stats", "envelope", "raw_arguments"]
