#!/usr/bin/env python3
"""consume.py BROKERS TOPIC CONTRACTS: the peer on a topic. What job.py does with a file, with confluent-kafka: parses each
event (orjson), validates the arguments under both schemas (jsonschema-rs), compares, counts by day and tool. It keeps no
record and no offsets."""
import json, sys
from collections import defaultdict
import orjson, jsonschema_rs
from confluent_kafka import Consumer, KafkaError, TopicPartition

check = {}
for tool, (old, new) in json.load(open(sys.argv[3])).items():
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


consumer = Consumer({"bootstrap.servers": sys.argv[1], "group.id": "peer", "enable.auto.commit": False,
                     "enable.partition.eof": True, "fetch.queue.backoff.ms": 5})
consumer.assign([TopicPartition(sys.argv[2], p, 0) for p in range(6)])
cells = defaultdict(lambda: [0, 0])
ends = 0
while ends < 6:
    for message in consumer.consume(1000, 1.0):
        if message.error():
            assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
            ends += 1
            continue
        event = orjson.loads(message.value())
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
