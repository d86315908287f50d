// @ts-check
/**
 * Makes a function a candidate that Lastcall's mirror can run: an HTTP server, or a command that speaks JSON Lines.
 *
 *     import { main } from "./candidate.mjs";
 *     await main((args, mode) => ({ order_id: args.order_id, state: "shipped" }), ["replica"]);
 *
 * `node example.mjs --http 8080` serves `http://127.0.0.1:8080/`; without `--http` it reads a call a line. Node 20 is enough,
 * without a build step and without dependencies; TypeScript reads the types from the comments (`allowJs`, or `checkJs`).
 */

import { createServer } from "node:http";
import { Console } from "node:console";

/** @typedef {"replica" | "snapshot" | "dry_run" | "sandbox"} Mode */
/** @typedef {"ok" | "invalid_arguments" | "business_error" | "permission_denied" | "rate_limited" | "timeout" | "platform_error"} Status */
/** @typedef {(args: any, mode: Mode) => unknown} Tool - Returns or promises a result, or an `Answer`; throws to fail. */
/** @typedef {{ limit?: number, calls?: number }} Limits - Bytes a call, and calls at once. */

/** @type {readonly Mode[]} */
export const MODES = ["replica", "snapshot", "dry_run", "sandbox"];
/** @type {readonly Status[]} */
export const STATUSES = [
  "ok", "invalid_arguments", "business_error", "permission_denied", "rate_limited", "timeout", "platform_error",
];
const LIMIT = 8 << 20;

/** How a call ended, where it did not end well. `code` is the tool's own, and stable. */
export class ToolError extends Error {
  /** @param {Status} status @param {string} [code] */
  constructor(status, code) {
    super(status);
    if (!STATUSES.includes(status)) throw new RangeError(`${status} is none of ${STATUSES.join(", ")}`);
    this.name = new.target.name;
    this.status = status;
    this.code = code;
  }
}

/** The tool refuses the arguments. */
export class InvalidArguments extends ToolError {
  /** @param {string} [code] */
  constructor(code) {
    super("invalid_arguments", code);
  }
}

/** The business says no. */
export class BusinessError extends ToolError {
  /** @param {string} [code] */
  constructor(code) {
    super("business_error", code);
  }
}

/**
 * A result, or none (of a dry run, say), and what else the mirror may be told: the arguments that were really used, or that the
 * result is a part only.
 */
export class Answer {
  /** @param {unknown} [result] @param {{ arguments?: unknown, partial?: boolean }} [more] */
  constructor(result, more = {}) {
    this.result = result;
    this.more = more;
  }
}

/** What came is no call that this candidate takes. It is never answered as if the tool had run. */
class Refused extends Error {
  /** @param {number} http @param {string} why */
  constructor(http, why) {
    super(why);
    this.http = http;
  }
}

/** @param {readonly Mode[]} modes */
function checked(modes) {
  const unknown = modes.filter((mode) => !MODES.includes(mode));
  if (unknown.length || !modes.length) {
    throw new RangeError(`modes: ${unknown.join(", ") || "none"}; they are ${MODES.join(", ")}`);
  }
  return modes;
}

/** What is said before the first call. @param {readonly Mode[]} modes */
const hello = (modes) => JSON.stringify({ lastcall: 1, modes });

/**
 * @param {Tool} tool @param {readonly Mode[]} modes @param {Buffer} request
 * @returns {Promise<string>}
 */
async function answer(tool, modes, request) {
  /** @type {any} */
  let call;
  try {
    call = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(request));
  } catch {
    throw new Refused(400, "not JSON");
  }
  if (typeof call !== "object" || call === null || !Object.hasOwn(call, "arguments") || typeof call.mode !== "string") {
    throw new Refused(400, "a call is an object with arguments and mode");
  }
  if (!modes.includes(call.mode)) throw new Refused(422, "this candidate does not implement the mode");
  // An answer names its call, so that it is never taken for that to another.
  const named = typeof call.call_id === "string" ? { call_id: call.call_id } : {};
  try {
    const told = await tool(call.arguments, call.mode);
    const { result, more } = told instanceof Answer ? told : new Answer(told === undefined ? null : told);
    return JSON.stringify({ status: "ok", ...named, result, ...more });
  } catch (error) {
    return JSON.stringify({ ...ofError(error), ...named });
  }
}

/** The answer to a call that threw. Its text is left out: it holds values. @param {unknown} error */
function ofError(error) {
  const name = error instanceof Error ? (error.name === "Error" ? error.constructor.name : error.name) : typeof error;
  if (error instanceof ToolError) {
    return { status: error.status, error_class: name, ...(error.code === undefined ? {} : { error_code: String(error.code) }) };
  }
  const status = /^(ZodError|ValidationError)$/.test(name)
    ? "invalid_arguments"
    : /Timeout(Error|Exception)?$/.test(name)
      ? "timeout"
      : "platform_error";
  return { status, error_class: name };
}

/**
 * An HTTP server, to be started with `listen`.
 * @param {Tool} tool @param {readonly Mode[]} modes @param {Limits} [limits]
 */
export function server(tool, modes, { limit = LIMIT, calls = 64 } = {}) {
  checked(modes);
  let running = 0;
  const http = createServer(async (request, response) => {
    /** @param {number} code @param {string} body @param {string} [kind] */
    const say = (code, body, kind = "text/plain") => {
      response.writeHead(code, { "content-type": kind, "content-length": Buffer.byteLength(body) });
      response.end(body);
    };
    /** @param {number} code @param {string} why */
    const refuse = (code, why) => {
      response.shouldKeepAlive = false; // What was sent is not read.
      response.once("finish", () => request.destroy());
      say(code, why);
    };
    try {
      if (request.method === "GET") return say(200, hello(modes), "application/json");
      if (request.method !== "POST") return refuse(405, "GET and POST alone");
      if (Number(request.headers["content-length"] ?? 0) > limit) return refuse(413, "the call is too large");
      const parts = [];
      let size = 0;
      for await (const part of request) {
        size += part.length;
        if (size > limit) return refuse(413, "the call is too large");
        parts.push(part);
      }
      if (running >= calls) return say(429, "busy");
      running += 1;
      try {
        say(200, await answer(tool, modes, Buffer.concat(parts)), "application/json");
      } finally {
        running -= 1;
      }
    } catch (error) {
      if (error instanceof Refused) return say(error.http, error.message);
      response.destroy(); // A client that went away.
    }
  });
  http.requestTimeout = 60_000;
  return http;
}

/**
 * A call a line, an answer a line, until the end of `source`. What is no call is answered by a line that has no status, which
 * the mirror takes for no answer.
 * @param {Tool} tool @param {readonly Mode[]} modes
 * @param {AsyncIterable<Buffer>} source @param {NodeJS.WritableStream} sink @param {Limits} [limits]
 */
export async function lines(tool, modes, source, sink, { limit = LIMIT } = {}) {
  checked(modes);
  /** @param {string} line */
  const say = (line) => /** @type {Promise<void>} */ (new Promise((done) => sink.write(`${line}\n`, () => done())));
  /** @param {Buffer} line @param {boolean} whole */
  const take = async (line, whole) => {
    try {
      if (!whole) throw new Refused(413, "the call is too large");
      await say(await answer(tool, modes, line));
    } catch (error) {
      await say(JSON.stringify({ refused: error instanceof Refused ? error.message : "no answer" }));
    }
  };
  await say(hello(modes));
  /** @type {Buffer[]} */
  let parts = [];
  let size = 0;
  for await (const chunk of source) {
    let rest = chunk;
    for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
      size += end;
      if (size <= limit) parts.push(rest.subarray(0, end));
      await take(Buffer.concat(parts), size <= limit);
      parts = [];
      size = 0;
      rest = rest.subarray(end + 1);
    }
    size += rest.length;
    if (size <= limit) parts.push(rest);
    else parts = [];
  }
  if (size) await take(Buffer.concat(parts), size <= limit);
}

/**
 * Runs the candidate as the command line says: `--http PORT` (0: any) and `--host ADDRESS`, else JSON Lines.
 * @param {Tool} tool @param {readonly Mode[]} modes
 */
export async function main(tool, modes) {
  const args = process.argv.slice(2);
  /** @param {string} name */
  const given = (name) => (args.includes(name) ? args[args.indexOf(name) + 1] : undefined);
  const port = given("--http");
  if (port === undefined) {
    // Only answers go to standard output: what the tool prints would be taken for one.
    globalThis.console = new Console(process.stderr, process.stderr);
    return lines(tool, modes, process.stdin, process.stdout);
  }
  const host = given("--host") ?? "127.0.0.1";
  const http = server(tool, modes);
  http.listen(Number(port), host, () => {
    const address = http.address();
    console.log(`http://${host}:${typeof address === "object" && address ? address.port : port}/`);
  });
}
