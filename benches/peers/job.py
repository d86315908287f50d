#!/usr/bin/env python3
"""job.py CONTRACTS EVENTS: the peer. Parses each event (orjson), validates the arguments under both schemas
(jsonschema-rs), compares the two argument sets and the results' top-level keys, and counts by day and tool.
It keeps no record: no Parquet, no hash, no resume."""
import json, sys
from collections import defaultdict
import orjson, jsonschema_rs

check = {}
for tool, (old, new) in json.load(open(sys.argv[1])).items():
    check[tool] = tuple(jsonschema_rs.Draft202012Validator(s, validate_formats=True).is_valid for s in (old, new))


def kind(v):
    return 0 if v is None else 1 if isinstance(v, bool) else 2 if isinstance(v, (int, float)) else \
        3 if isinstance(v, str) else 4 if isinstance(v, list) else 5


def differs(a, b):
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() != b.keys() or any(differs(v, b[k]) for k, v in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) != len(b) or any(differs(v, w) for v, w in zip(a, b))
    return kind(a) != kind(b) or a != b


cells = defaultdict(lambda: [0, 0])
with open(sys.argv[2], "rb") as lines:
    for line in lines:
        event = orjson.loads(line)
        old, new = check[event["tool_id"]]
        ours, candidate = event["arguments"], event["candidates"][0]
        result, theirs = event["outcome"]["result"], candidate["result"]
        bad = old(ours) != new(ours) or event["outcome"]["status"] != candidate["status"] \
            or differs(ours, candidate["arguments"]) \
            or {k: kind(v) for k, v in result.items()} != {k: kind(v) for k, v in theirs.items()}
        cell = cells[event["ts"][:10], event["tool_id"]]
        cell[0] += 1
        cell[1] += bad
print(sum(c[0] for c in cells.values()), sum(c[1] for c in cells.values()), len(cells))
