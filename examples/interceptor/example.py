"""An agent's tool layer, with a made-up model: `orders.lookup` in version 1, recorded by the interceptor.

    python3 examples/interceptor/example.py localhost:9092 400
"""

import json
import sys

from lastcall_interceptor import Interceptor, envelope

ORDERS = {
    "ord_7f3k2m": {"status": "shipped", "placed_at": "2026-05-20T10:00:00Z", "total_cents": 1990, "currency": "EUR"},
    "ord_9x2p4q": {"status": "open", "placed_at": "2026-05-21T11:30:00Z", "total_cents": 4500, "currency": "EUR"},
    "ord_1c8v5t": {"status": "cancelled", "placed_at": "2026-05-22T09:15:00Z", "total_cents": 0, "currency": "USD"},
}


class OrderNotFound(Exception):
    """No such order."""

    code = "order_not_found"


def lookup(order_id, include=()):
    """What runs in production today."""
    if order_id not in ORDERS:
        raise OrderNotFound
    return {"order_id": order_id, **ORDERS[order_id]}


def main(brokers, calls):
    """Makes calls as a model would."""
    interceptor = Interceptor(brokers, "tool-calls")
    tool = interceptor.spec(
        "orders.lookup", contract="orders.lookup@1.0.0", statuses=[(OrderNotFound, "business_error")]
    )
    known = list(ORDERS)
    for number in range(calls):
        order = "ord_000000" if number % 20 == 19 else known[number % 3]
        text = json.dumps({"order_id": order, "include": ["items"]} if number % 2 else {"order_id": order})
        with envelope(agent_id="support", session_id=f"s-{number // 5}"):
            try:
                with interceptor.observe(tool, text) as call:
                    call.returned(lookup(**json.loads(text)))
            except OrderNotFound:
                pass  # The agent tells its model.
    interceptor.close(30)
    print(interceptor.stats())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
