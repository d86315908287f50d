// @ts-check
// Version 2 of `orders.lookup` as a candidate. It reads, so it runs on a replica: here the orders below. One of them has a fault
// that version 1 does not have, so that there is something to find.
import { BusinessError, InvalidArguments, main } from "./candidate.mjs";

/** @type {Record<string, object>} */
const ORDERS = {
  ord_7f3k2m: { status: "shipped", placed_at: "2026-05-20T10:00:00Z", total_cents: 1990, currency: "EUR" },
  ord_9x2p4q: { status: "open", placed_at: "2026-05-21T11:30:00Z", total_cents: 4500, currency: "EUR" },
  ord_1c8v5t: { status: "cancelled", placed_at: "2026-05-22T09:15:00Z", total_cents: "0", currency: "USD" },
};

/** Class and code of an error are compared: they are those of version 1. */
class OrderNotFound extends BusinessError {}

await main((args) => {
  const order = args?.order_id;
  if (typeof order !== "string") throw new InvalidArguments("order_id");
  if (!Object.hasOwn(ORDERS, order)) throw new OrderNotFound("order_not_found");
  return { order_id: order, ...ORDERS[order] };
}, ["replica"]);
