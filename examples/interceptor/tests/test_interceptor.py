"""What is recorded, what is lost, and that a tool never notices. Run with: python3 -m unittest discover -s tests -t ."""

import asyncio
import json
import os
import threading
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from tempfile import TemporaryDirectory

from lastcall_interceptor import Interceptor, Outcome, envelope, raw_arguments
from lastcall_interceptor.record import TooLarge, bounded
from tests.stand_in import Producer


class NotFound(Exception):
    code = "NOT_FOUND"


class Case(unittest.TestCase):
    def setUp(self):
        self.producer = None
        self.open = []

    def tearDown(self):
        for interceptor in self.open:
            if self.producer is not None:
                self.producer.away = False
                self.producer.gate.set()
            interceptor.close(1)

    def interceptor(self, prepare=lambda producer: None, **settings):
        def make(given):
            self.producer = Producer(given)
            prepare(self.producer)
            return self.producer

        interceptor = Interceptor("nowhere:1", make_producer=make, **settings)
        self.open.append(interceptor)
        return interceptor

    def rows(self, interceptor, kind="tool_call"):
        self.assertTrue(interceptor.close(5))
        return self.producer.records(kind)

    def until(self, what):
        end = time.monotonic() + 20
        while not what():
            self.assertLess(time.monotonic(), end, "it does not happen")
            time.sleep(0.01)


class Recorded(Case):
    def test_a_call_has_the_model_s_text_and_its_outcome(self):
        interceptor = self.interceptor()

        @interceptor.tool("orders.lookup", contract="orders.lookup@1.0.0", digest="sha256:ab")
        def lookup(order_id, limit=3):
            """Looks an order up."""
            return {"order": order_id, "price": 1.0}

        text = '{"order_id": "A-1",  "limit": 1e0, "limit": 2}'
        with envelope(agent_id="support", session_id="s-1"), raw_arguments(text, tool_call_id="call-3"):
            result = lookup(**json.loads(text))
        self.assertEqual((result, lookup.__name__, lookup.__doc__), ({"order": "A-1", "price": 1.0}, "lookup", "Looks an order up."))
        (row,) = self.rows(interceptor)
        self.assertEqual(row["arguments_text"], text)
        self.assertEqual(row["fidelity"], "raw")
        self.assertEqual((row["tool_id"], row["contract_id"]), ("orders.lookup", "orders.lookup@1.0.0"))
        self.assertEqual(row["outcome"]["status"], "ok")
        self.assertTrue(row["outcome"]["executed"])
        self.assertEqual(row["outcome"]["result"], {"order": "A-1", "price": 1.0})
        self.assertEqual(row["envelope"], {"agent_id": "support", "session_id": "s-1", "tool_call_id": "call-3"})
        self.assertEqual(self.producer.written[0][1], b"s-1")

    def test_without_the_text_the_arguments_are_reconstructed(self):
        interceptor = self.interceptor()

        class Shop:
            @interceptor.tool("t")
            def lookup(self, order_id, *, limit=3, **more):
                return None

        Shop().lookup("A-1", page=2)
        (row,) = self.rows(interceptor)
        self.assertEqual((row["arguments"], row["fidelity"]), ({"order_id": "A-1", "page": 2}, "reconstructed"))
        self.assertIsNone(row["outcome"]["result"])

    def test_the_text_is_taken_by_one_call(self):
        interceptor = self.interceptor()
        inner = interceptor.tool("inner")(lambda a: a)

        @interceptor.tool("outer")
        def outer(a):
            return inner(a)

        with raw_arguments('{"a":1}'):
            outer(1)
            outer(2)
        rows = self.rows(interceptor)
        told = [(row["tool_id"], row.get("arguments_text"), row.get("arguments")) for row in rows]
        self.assertEqual(
            told,
            [("inner", None, {"a": 1}), ("outer", '{"a":1}', None), ("inner", None, {"a": 2}), ("outer", None, {"a": 2})],
        )
        self.assertEqual(len({row["call_id"] for row in rows}), 4)

    def test_a_tool_that_parses_by_itself(self):
        interceptor = self.interceptor()
        tool = interceptor.tool("t", raw="text")(lambda text: json.loads(text)["a"])
        self.assertEqual(tool('{"a": 5}'), 5)
        with self.assertRaises(json.JSONDecodeError):
            tool('{"a": ')
        rows = self.rows(interceptor)
        self.assertEqual([row["arguments_text"] for row in rows], ['{"a": 5}', '{"a": '])
        self.assertEqual([row["outcome"]["status"] for row in rows], ["ok", "invalid_arguments"])

    def test_observe_and_call(self):
        interceptor = self.interceptor()
        spec = interceptor.spec("t", contract="t@1")
        with interceptor.observe(spec, '{"a":1}', call_id="c-1") as call:
            call.returned({"b": 2})
        with interceptor.observe(spec, b"{}") as call:
            pass
        with interceptor.observe(spec, {"a": 1}) as call:
            call.ended("rate_limited", executed=False, error_code="SLOW")
        self.assertEqual(interceptor.call(spec, "{}", max, 3, 4), 4)
        rows = self.rows(interceptor)
        self.assertEqual(rows[0]["call_id"], "c-1")
        self.assertEqual([row["outcome"]["status"] for row in rows], ["ok", "unknown", "rate_limited", "ok"])
        self.assertEqual(rows[2]["outcome"]["error_code"], "SLOW")
        self.assertEqual([row["fidelity"] for row in rows], ["raw", "raw", "reconstructed", "raw"])

    def test_exceptions_pass_and_become_statuses(self):
        class ValidationError(ValueError):
            pass

        class ReadTimeout(OSError):
            pass

        interceptor = self.interceptor()
        raised = [
            (NotFound("A-1"), "business_error"),
            (ValidationError("A-1"), "invalid_arguments"),
            (ReadTimeout(), "timeout"),
            (TimeoutError(), "timeout"),
            (PermissionError("A-1"), "permission_denied"),
            (TypeError("A-1"), "platform_error"),
            (ZeroDivisionError("A-1"), "platform_error"),
            (asyncio.CancelledError(), "unknown"),
            (KeyboardInterrupt(), "unknown"),
            (StopIteration("A-1"), "platform_error"),
        ]

        @interceptor.tool("t", statuses=[(NotFound, "business_error")])
        def tool(number):
            raise raised[number][0]

        for number, (error, _) in enumerate(raised):
            with self.assertRaises(type(error)) as caught:
                tool(number)
            self.assertIs(caught.exception, error)
        with self.assertRaises(TypeError):
            tool(nonsense=1)
        rows = self.rows(interceptor)
        wanted = [status for _, status in raised] + ["invalid_arguments"]
        self.assertEqual([row["outcome"]["status"] for row in rows], wanted)
        self.assertEqual(rows[0]["outcome"]["error_code"], "NOT_FOUND")
        self.assertEqual(rows[0]["outcome"]["error_class"], "NotFound")
        self.assertTrue(rows[0]["outcome"]["executed"])
        self.assertFalse(rows[1]["outcome"]["executed"])
        self.assertNotIn("executed", rows[6]["outcome"])
        self.assertEqual(rows[-1]["arguments"], {"nonsense": 1})
        self.assertNotIn("A-1", json.dumps([row["outcome"] for row in rows]))

    def test_results_that_are_errors(self):
        interceptor = self.interceptor()
        mcp = interceptor.tool("mcp")(lambda: {"isError": True, "content": []})
        read = lambda r: Outcome("rate_limited", error_code=r["error"]) if "error" in r else None
        own = interceptor.tool("own", outcome=read)(lambda bad: {"error": "SLOW"} if bad else {"rows": []})
        mcp(), own(True), own(False)
        rows = self.rows(interceptor)
        self.assertEqual([row["outcome"]["status"] for row in rows], ["business_error", "rate_limited", "ok"])

    def test_what_the_caller_changes_later_is_not_in_it(self):
        interceptor = self.interceptor(lambda p: p.gate.clear())
        given, result = {"a": [1]}, {"b": [2]}
        tool = interceptor.tool("t")(lambda a: result)
        tool(given["a"])
        given["a"].append("later"), result["b"].append("later")
        self.until(lambda: self.producer is not None)
        self.producer.gate.set()
        (row,) = self.rows(interceptor)
        self.assertNotIn("later", json.dumps(row))

    def test_keys_alone_or_nothing_of_a_result(self):
        interceptor = self.interceptor()
        interceptor.tool("k", result="keys")(lambda: {"b": 1, "a": object()})()
        interceptor.tool("n", result="none")(lambda: object())()
        keys, none = self.rows(interceptor)
        self.assertEqual(keys["outcome"]["result_keys"], ["a", "b"])
        self.assertFalse({"result", "result_keys"} & set(none["outcome"]))

    def test_coroutines_and_threads_keep_to_themselves(self):
        interceptor = self.interceptor()

        @interceptor.tool("t")
        async def tool(n):
            await asyncio.sleep(0)
            if n % 5 == 0:
                raise NotFound
            return n

        async def one(n):
            with envelope(session_id=f"s-{n}"), raw_arguments(json.dumps({"n": n})):
                try:
                    return await tool(n)
                except NotFound:
                    return None

        async def all_of_them():
            return await asyncio.gather(*(one(n) for n in range(200)))

        self.assertEqual(asyncio.run(all_of_them()), [n if n % 5 else None for n in range(200)])
        plain = interceptor.tool("p")(lambda n: n)

        def another(n):
            with envelope(session_id=f"s-{n}"), raw_arguments(json.dumps({"n": n})):
                return plain(n)

        with ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(another, range(1000))), list(range(1000)))
        rows = self.rows(interceptor)
        self.assertEqual(len(rows), 1200)
        for row in rows:
            self.assertEqual(row["envelope"]["session_id"], f"s-{json.loads(row['arguments_text'])['n']}")
        self.assertEqual(len({row["call_id"] for row in rows}), 1200)


class Dropped(Case):
    def row(self, text, result, drop):
        interceptor = self.interceptor()
        spec = interceptor.spec("t", drop=drop)
        with envelope(agent_id="a", session_id="secret-s"), interceptor.observe(spec, text) as call:
            call.returned(result)
        (row,) = self.rows(interceptor)
        self.key = self.producer.written[0][1]
        return row

    def test_arguments_that_were_changed_say_so(self):
        row = self.row('{"a": 1.0, "who": {"email": "x@y"}}', None, ["/arguments/who/email"])
        self.assertEqual((row["arguments"], row["fidelity"]), ({"a": 1.0, "who": {}}, "normalized"))

    def test_arguments_that_hold_nothing_of_it_stay_raw(self):
        row = self.row('{"a":  1.0}', None, ["/arguments/who/email", "/arguments/list/*/x", "/arguments/a/b"])
        self.assertEqual((row["arguments_text"], row["fidelity"]), ('{"a":  1.0}', "raw"))

    def test_arguments_that_nobody_can_read_are_not_captured(self):
        for text, drop in [('{"email": "x@y"', "/arguments/email"), ("{}", "/arguments")]:
            row = self.row(text, None, [drop])
            self.assertEqual((row["arguments"], row["fidelity"]), (None, "not_captured"))
            self.assertNotIn("x@y", json.dumps(row))

    def test_a_result_becomes_its_keys(self):
        row = self.row("{}", {"who": [{"email": "x@y"}], "n": 1}, ["/outcome/result/who/*/email"])
        self.assertEqual(row["outcome"]["result_keys"], ["n", "who"])
        self.assertNotIn("result", row["outcome"])
        row = self.row("{}", [{"email": "x@y"}], ["/outcome/result/0/email"])
        self.assertFalse({"result", "result_keys"} & set(row["outcome"]))
        row = self.row("{}", {"n": 1}, ["/outcome/result/email"])
        self.assertEqual(row["outcome"]["result"], {"n": 1})

    def test_an_envelope_without_its_session(self):
        row = self.row("{}", None, ["/envelope/session_id"])
        self.assertEqual(row["envelope"], {"agent_id": "a"})
        self.assertEqual(self.key.decode(), row["call_id"])

    def test_settings_that_are_none_are_refused_at_the_start(self):
        interceptor = self.interceptor()
        for wrong in [{"drop": ["arguments/a"]}, {"drop": ["/outcome/status"]}, {"result": "some"}, {"statuses": [(OSError, "bad")]}]:
            with self.assertRaises(ValueError):
                interceptor.spec("t", **wrong)


class Lost(Case):
    def test_no_call_waits_for_a_producer_that_stands_still(self):
        interceptor = self.interceptor(lambda p: p.gate.clear(), max_records=50)
        tool = interceptor.tool("t")(lambda n: n)
        self.assertEqual([tool(n) for n in range(5000)], list(range(5000)))
        stats = interceptor.stats()
        self.assertEqual((stats.taken, stats.lost, stats.peak_held), (50, {"no_room": 4950}, 50))
        self.until(lambda: self.producer is not None)
        self.producer.gate.set()
        rows = self.rows(interceptor)
        (loss,) = self.rows(interceptor, "loss")
        self.assertEqual((len(rows), loss["count"], loss["tool_id"]), (50, 4950, "t"))

    def test_bytes_are_a_limit_too(self):
        interceptor = self.interceptor(lambda p: setattr(p, "away", True), max_bytes=100_000)
        tool = interceptor.tool("t")(lambda n: "x" * 20_000)
        for n in range(100):
            tool(n)
        stats = interceptor.stats()
        self.assertLessEqual(stats.peak_bytes, 100_000)
        self.assertEqual(stats.taken, 4)
        self.until(lambda: self.producer is not None)
        self.producer.away = False
        self.assertEqual(len(self.rows(interceptor)), 4)
        self.assertEqual(sum(row["count"] for row in self.rows(interceptor, "loss")), 96)

    def test_what_cannot_be_written_is_counted_and_the_tool_does_not_notice(self):
        interceptor = self.interceptor(max_record_bytes=10_000)
        loop = []
        loop.append(loop)
        odd = [object(), float("nan"), b"x", {1, 2}, "\ud800", loop, "x" * 10_001, [[0] * 100] * 1000, 1j]
        tool = interceptor.tool("t")(lambda n: odd[n])
        for n, value in enumerate(odd):
            self.assertIs(tool(n), value)
        broken = interceptor.tool("t", outcome=lambda result: result["missing"])(lambda: {"a": 1})
        self.assertEqual(broken(), {"a": 1})
        huge = interceptor.spec("t")
        for text in ["x" * 10_001, b"\xff", "\ud800", {"a": object()}, {"a": "x" * 10_001}, {"a": float("inf")}]:
            with interceptor.observe(huge, text) as call:
                call.returned(None)
        deep = []
        for _ in range(100_000):
            deep = [deep]
        with interceptor.observe(huge, "{}") as call:
            call.returned(deep)
        self.assertEqual(self.rows(interceptor), [])
        lost = interceptor.stats().lost
        self.assertEqual(sum(lost.values()), len(odd) + 8)
        self.assertEqual(sum(row["count"] for row in self.rows(interceptor, "loss")), len(odd) + 8)
        self.assertEqual(interceptor.stats().held, 0)
        self.assertEqual(set(lost), {"too_large", "unrecordable"})

    def test_what_a_tool_returns_or_raises_is_looked_at_and_never_run(self):
        class Stop(BaseException):
            pass

        class Lazy:
            def __getattribute__(self, name):
                raise Stop(name)

        class Result(dict):
            def values(self):
                self["n"] = 1
                return dict.values(self)

            items = keys = values

        class Text(str):
            def __len__(self):
                raise Stop

        class Failure(Exception):
            @property
            def code(self):
                raise Stop

        interceptor = self.interceptor()
        odd = interceptor.spec("t")
        lazy, result = Lazy(), Result(a=1)
        for value in (lazy, result, [result], {"a": lazy}):
            self.assertIs(interceptor.call(odd, Text("{}"), lambda v: v, value), value)
        self.assertEqual(dict(result), {"a": 1})
        with self.assertRaises(Failure):
            with interceptor.observe(odd, "{}"):
                raise Failure
        self.assertEqual(interceptor.stats().lost, {"unrecordable": 4})
        self.assertEqual([row["outcome"]["status"] for row in self.rows(interceptor)], ["platform_error"])

    def test_a_value_of_very_many_items_is_lost_rather_than_waited_for(self):
        with self.assertRaises(TooLarge):
            bounded([1] * 20_001, 1_000_000)
        self.assertEqual(bounded([1] * 3, 1_000_000), "[1,1,1]")

    def test_a_value_that_is_too_large_is_not_written_out_first(self):
        loop = {}
        loop["a"] = loop
        for value in (["x" * 11, object()], loop, [[0] * 4] * 3, {"x" * 11: object()}):
            with self.assertRaises(TooLarge):
                bounded(value, 10)
        self.assertEqual(bounded({"a": [1.0, None]}, 11), '{"a":[1.0,null]}')

    def test_what_the_broker_refuses_is_counted(self):
        def refuse_calls(value):
            return RuntimeError() if b'"tool_call"' in value else None

        interceptor = self.interceptor(lambda p: setattr(p, "refuses", refuse_calls))
        interceptor.tool("t")(lambda: 1)()
        self.assertEqual(self.rows(interceptor), [])
        self.assertEqual([row["count"] for row in self.rows(interceptor, "loss")], [1])

    def test_counts_that_are_refused_are_reported_again(self):
        refused = []

        def refuse_once(value):
            if b'"loss"' in value and len(refused) < 3:
                refused.append(value)
                return RuntimeError()
            return None

        interceptor = self.interceptor(lambda p: setattr(p, "refuses", refuse_once))
        interceptor.tool("t")(lambda: object())()
        self.until(lambda: self.producer is not None and self.producer.records("loss"))
        self.assertEqual(([row["count"] for row in self.producer.records("loss")], len(refused)), ([1], 3))

    def test_counts_that_find_no_room_are_reported_again(self):
        interceptor = self.interceptor(lambda p: setattr(p, "room", 0))
        interceptor.tool("t")(lambda: object())()
        self.until(lambda: self.producer is not None)
        time.sleep(0.2)
        self.producer.room = 5
        self.assertEqual([row["count"] for row in self.rows(interceptor, "loss")], [1])

    def test_counts_are_kept_by_tool_and_day(self):
        from lastcall_interceptor.held import Held
        from lastcall_interceptor.record import loss

        held = Held(1, 1)
        midnight = 1_780_272_000.0
        for at in (midnight - 2, midnight - 1, midnight, midnight + 5):
            held.lose("t", at, "no_room")
        held.lose("u", midnight, "no_room")
        days = sorted((tool, count, first, last) for (tool, _), (count, first, last) in held.losses().items())
        self.assertEqual(days, [("t", 2, midnight - 2, midnight - 1), ("t", 2, midnight, midnight + 5), ("u", 1, midnight, midnight)])
        row = json.loads(loss("t", 1, midnight - 0.0005, midnight - 0.0001))
        self.assertEqual(row["interval"]["to"][:10], row["interval"]["from"][:10])
        for number in range(3000):
            held.lose(f"t{number}", midnight, "no_room")
        losses = held.losses()
        self.assertLessEqual(len(losses), 1001)
        self.assertEqual(sum(row[0] for row in losses.values()), 3000)

    def test_a_local_queue_without_room_is_tried_again(self):
        interceptor = self.interceptor(lambda p: setattr(p, "room", 3))
        tool = interceptor.tool("t")(lambda n: n)
        for n in range(40):
            tool(n)
        rows = self.rows(interceptor)
        self.assertEqual([row["outcome"]["result"] for row in rows], list(range(40)))

    def test_no_client_no_harm(self):
        def missing(_):
            raise ImportError("confluent_kafka")

        interceptor = Interceptor("nowhere:1", make_producer=missing, max_records=10)
        tool = interceptor.tool("t")(lambda n: n)
        with self.assertLogs("lastcall.interceptor") as logged:
            self.assertEqual([tool(n) for n in range(100)], list(range(100)))
            self.assertFalse(interceptor.close(0.5))
        self.assertIn("100 calls are lost", logged.output[-1])

    def test_the_end_is_bounded_and_the_count_outlives_it(self):
        with TemporaryDirectory() as folder:
            file = os.path.join(folder, "losses")
            interceptor = self.interceptor(lambda p: setattr(p, "away", True), loss_file=file, max_records=10)
            tool = interceptor.tool("t")(lambda n: n)
            for n in range(25):
                tool(n)
            self.assertFalse(interceptor.close(0.3))
            self.assertEqual(interceptor.stats().held, 0)
            tool(1)
            self.assertEqual(interceptor.stats().lost["closed"], 1)
            with open(file) as lines:
                self.assertEqual(sum(json.loads(line)["count"] for line in lines), 25)
            again = self.interceptor(loss_file=file)
            again.tool("t")(lambda n: n)(1)
            self.assertEqual(len(self.rows(again)), 1)
            (loss,) = self.rows(again, "loss")
            self.assertEqual((loss["count"], loss["tool_id"]), (25, "t"))
            self.assertEqual(os.listdir(folder), [])

    def test_the_end_is_bounded_even_where_the_client_stands_still(self):
        interceptor = self.interceptor(lambda p: p.gate.clear())
        tool = interceptor.tool("t")(lambda n: n)
        for n in range(25):
            tool(n)
        self.until(lambda: self.producer is not None)
        with self.assertLogs("lastcall.interceptor") as logged:
            self.assertFalse(interceptor.close(0.3))
        self.assertIn("25 calls are lost", logged.output[-1])

    def test_switched_off(self):
        interceptor = self.interceptor(enabled=False)
        self.assertEqual(interceptor.tool("t")(lambda: 7)(), 7)
        self.assertTrue(interceptor.close())
        self.assertIsNone(self.producer)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_child_begins_with_nothing_of_its_parent(self):
        interceptor = self.interceptor(lambda p: setattr(p, "away", True))
        tool = interceptor.tool("t")(lambda n: n)
        for n in range(5):
            tool(n)
        self.until(lambda: self.producer is not None)
        parent, (read, write) = self.producer, os.pipe()
        child = os.fork()
        if child == 0:
            told = b"failed"
            try:
                self.producer = None
                before = interceptor.stats().held
                tool(100)
                self.until(lambda: self.producer is not None)
                self.producer.away = False
                interceptor.close(5)
                rows = [row["outcome"]["result"] for row in self.producer.records()]
                told = json.dumps([before, rows]).encode()
            finally:
                os.write(write, told)
                os._exit(0)
        os.waitpid(child, 0)
        self.assertEqual(json.loads(os.read(read, 100)), [0, [100]])
        os.close(read), os.close(write)
        parent.away = False
        self.assertEqual([row["outcome"]["result"] for row in self.rows(interceptor)], list(range(5)))

    def test_a_finalizer_in_the_middle_of_a_call_does_not_lock_it(self):
        interceptor = self.interceptor()
        tool = interceptor.tool("t")(lambda n: n)
        with interceptor._held._lock:
            tool(1)  # As a signal handler would, while this thread holds the lock.
        done = threading.Thread(target=tool, args=(2,))
        done.start()
        done.join(5)
        self.assertFalse(done.is_alive())
        self.assertEqual(len(self.rows(interceptor)), 2)


if __name__ == "__main__":
    unittest.main()
