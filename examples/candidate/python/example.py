"""Version 2 of `orders.lookup` as a candidate: it reads, so it runs on a replica. It knows a dry run too."""

from lastcall_candidate import Answer, BusinessError, InvalidArguments, main

ORDERS = {"ord_7f3k2m": "shipped", "ord_9x2p4q": "pending"}


def lookup(arguments, mode):
    order_id = arguments.get("order_id") if isinstance(arguments, dict) else None
    if not isinstance(order_id, str):
        raise InvalidArguments("ORDER_ID")
    if mode == "dry_run":
        return Answer(arguments=arguments)
    if order_id not in ORDERS:
        raise BusinessError("NOT_FOUND")
    return {"order_id": order_id, "state": ORDERS[order_id]}


if __name__ == "__main__":
    main(lookup, modes=["replica", "dry_run"])
