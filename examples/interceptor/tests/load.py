"""Tools under load, each call once with the interceptor and once without, while somebody takes the broker away.

    python3 -m tests.load BROKERS TOPIC

Standard input steers it: `phase NAME` begins another part of the measurement, `fork` makes calls in a child process, `stop` ends
the load, and `close` the interceptor. It then prints one line of JSON: how many calls it made by its own count, how many of
them each phase served, latencies, and what the interceptor says of itself.
"""

import asyncio
import json
import os
import sys
import threading
import time
from collections import defaultdict

from lastcall_interceptor import Interceptor, envelope, raw_arguments

LIMIT_RECORDS, LIMIT_BYTES = 2_000, 8 << 20
THREADS, TASKS, FORKED = 4, 8, 500

phase = "before"
going = True
made = defaultdict(lambda: defaultdict(int))  # worker → phase → calls with the interceptor
took = defaultdict(lambda: ([], []))  # phase → seconds without, with

interceptor = Interceptor(sys.argv[1], sys.argv[2], max_records=LIMIT_RECORDS, max_bytes=LIMIT_BYTES)


def answer(order_id):
    return {"order_id": order_id, "state": "shipped", "lines": ["x" * 40] * 10}


def plain(order_id):
    time.sleep(0.001)
    return answer(order_id)


async def plain_async(order_id):
    await asyncio.sleep(0.001)
    return answer(order_id)


wrapped = interceptor.tool("orders.lookup", contract="orders.lookup@1.0.0")(plain)
wrapped_async = interceptor.tool("orders.track", contract="orders.track@1.0.0")(plain_async)


def note(now, with_it, seconds):
    took[now][with_it].append(seconds)


def thread(worker):
    number = 0
    while going:
        now, order = phase, f"A-{worker}-{number}"
        begun = time.perf_counter()
        plain(order)
        between = time.perf_counter()
        with envelope(agent_id="load", session_id=f"s-{worker}-{number // 20}"):
            with raw_arguments(json.dumps({"order_id": order}), call_id=f"{os.getpid()}-{worker}-{number}"):
                middle = time.perf_counter()
                result = wrapped(order)
                done = time.perf_counter()
        assert result == answer(order)
        made[worker][now] += 1
        note(now, 0, between - begun)
        note(now, 1, done - middle)
        number += 1


async def task(worker):
    number = 0
    while going:
        now, order = phase, f"B-{worker}-{number}"
        with envelope(agent_id="load", session_id=f"s-{worker}-{number // 20}"):
            with raw_arguments(json.dumps({"order_id": order}), call_id=f"{os.getpid()}-{worker}-{number}"):
                result = await wrapped_async(order)
        assert result == answer(order)
        made[worker][now] += 1
        number += 1


async def tasks():
    await asyncio.gather(*(task(f"task{n}") for n in range(TASKS)))


def child():
    for number in range(FORKED):
        with envelope(session_id=f"child-{number // 20}"), raw_arguments("{}", call_id=f"{os.getpid()}-{number}"):
            wrapped("C")
    done = interceptor.close(120)
    os._exit(0 if done else 1)


def at(values, share):
    return round(sorted(values)[min(len(values) - 1, int(len(values) * share))] * 1000, 3) if values else None


def resident():
    with open("/proc/self/status") as status:
        return next((int(line.split()[1]) for line in status if line.startswith("VmHWM")), 0) // 1024


def main():
    global phase, going
    workers = [threading.Thread(target=thread, args=(f"thread{n}",)) for n in range(THREADS)]
    workers.append(threading.Thread(target=lambda: asyncio.run(tasks())))
    for worker in workers:
        worker.start()
    children, memory = [], {}
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "phase":
            memory[phase] = resident()
            phase = rest[0]
        elif word == "fork":
            pid = os.fork()
            if pid == 0:
                child()
            children.append(pid)
        elif word == "stop":
            memory[phase] = resident()
            going = False
            for worker in workers:
                worker.join()
        elif word == "close":
            break
        print(f"{word} done", flush=True)
    closed = interceptor.close(120)
    closed_children = sum(os.waitpid(pid, 0)[1] == 0 for pid in children)
    stats = interceptor.stats()
    calls = defaultdict(int)
    for phases in made.values():
        for name, count in phases.items():
            calls[name] += count
    print(json.dumps({
        "made": sum(calls.values()) + FORKED * len(children),
        "served": calls,
        "closed": closed,
        "children": len(children),
        "closed_children": closed_children,
        "limit_records": LIMIT_RECORDS,
        "limit_bytes": LIMIT_BYTES,
        "peak_held": stats.peak_held,
        "peak_bytes": stats.peak_bytes,
        "taken": stats.taken,
        "delivered": stats.delivered,
        "lost": stats.lost,
        "resident_mib": memory,
        "p50_ms": {name: [at(v, 0.5) for v in both] for name, both in took.items()},
        "p999_ms": {name: [at(v, 0.999) for v in both] for name, both in took.items()},
    }))


main()
