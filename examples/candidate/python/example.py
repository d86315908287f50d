"""Version 2 of `orders.lookup` as a candidate. It reads, so it runs on a replica: here the orders below. One of them has a
fault that version 1 does not have, so that there is something to find."""

from lastcall_candidate import BusinessError, InvalidArguments, main

ORDERS = {
    "ord_7f3k2m": {"status": "shipped", "placed_at": "2026-05-20T10:00:00Z", "total_cents": 1990, "currency": "EUR"},
    "ord_9x2p4q": {"status": "open", "placed_at": "2026-05-21T11:30:00Z", "total_cents": 4500, "currency": "EUR"},
    "ord_1c8v5t": {"status": "cancelled", "placed_at": "2026-05-22T09:15:00Z", "total_cents": "0", "currency": "USD"},
}


class OrderNotFound(BusinessError):
    """Class and code of an error are compared: they are those of version 1."""


def lookup(arguments, mode):
    """What may take over. `mode` is `replica`: there is nothing to suppress in a tool that reads."""
    order_id = arguments.get("order_id") if isinstance(arguments, dict) else None
    if not isinstance(order_id, str):
        raise InvalidArguments("order_id")
    if order_id not in ORDERS:
        raise OrderNotFound("order_not_found")
    return {"order_id": order_id, **ORDERS[order_id]}


if __name__ == "__main__":
    main(lookup, modes=["replica"])
