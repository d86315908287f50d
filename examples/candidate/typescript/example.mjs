// @ts-check
// Version 2 of `orders.lookup` as a candidate: it reads, so it runs on a replica. It knows a dry run too.
import { Answer, BusinessError, InvalidArguments, main } from "./candidate.mjs";

/** @type {Record<string, string>} */
const ORDERS = { ord_7f3k2m: "shipped", ord_9x2p4q: "pending" };

await main((args, mode) => {
  const order = args?.order_id;
  if (typeof order !== "string") throw new InvalidArguments("ORDER_ID");
  if (mode === "dry_run") return new Answer(undefined, { arguments: args });
  if (!Object.hasOwn(ORDERS, order)) throw new BusinessError("NOT_FOUND");
  return { order_id: order, state: ORDERS[order] };
}, ["replica", "dry_run"]);
