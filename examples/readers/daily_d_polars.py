"""Each tool's daily disagreement rate D, from a ledger's Parquet files, with Polars alone. No Lastcall code.

    lastcall ledger files led --kind results | python daily_d_polars.py results
    lastcall ledger files led --kind days | python daily_d_polars.py days
    python daily_d_polars.py commitments <(lastcall ledger files led --kind calls) <(lastcall ledger files led --kind results)

Prints JSON Lines. Of an export take --kind days. Columns and rules: schemas/parquet.md. Needs: pip install polars
"""

import hashlib
import json
import sys

import polars as pl

CALL = ["tool_id", "epoch", "day", "call_key"]
POSITION = ["partition", "offset", "index"]


def worst():
    """The row that counts comes first."""
    disagreed = pl.col("result") == "disagreed"
    block = (pl.col("severity") == "block").fill_null(False) | pl.col("refused")
    return (
        pl.when(disagreed & block).then(0)
        .when(disagreed).then(1)
        .when(pl.col("result") == "unresolved").then(2)
        .when(pl.col("result") == "both_rejected").then(3)
        .when(pl.col("result") == "excluded").then(4)
        .otherwise(5)
    ).cast(pl.Int8)


def daily(rows):
    disagreed = pl.col("result") == "disagreed"
    compared = disagreed | (pl.col("result") == "agreed")
    days = rows.group_by("tool_id", pl.col("day").cast(pl.String))
    return days.agg(disagreed=disagreed.sum(), compared=compared.sum()).sort("tool_id", "day").collect().to_dicts()


def results(files):
    columns = CALL + POSITION + ["result", "severity", "refused"]
    rows = pl.scan_parquet(files).select(columns).with_columns(worst=worst())
    rows = rows.sort("worst", *POSITION)
    return daily(rows.unique(CALL, keep="first", maintain_order=True))


def days(files):
    return daily(pl.scan_parquet(files).filter("counted"))


def commitments(calls, results):
    calls = pl.scan_parquet(calls).select(*POSITION, "salt", "record")
    both = pl.scan_parquet(results).select(*POSITION, "commitment").join(calls, on=POSITION).collect()
    opened = sum(
        hashlib.sha256(salt + record.encode()).digest() == commitment
        for salt, record, commitment in both.select("salt", "record", "commitment").iter_rows()
    )
    return [{"calls": len(both), "opened": opened}]


def main(what, *lists):
    kinds = ("calls", "results") if lists else (what,)
    names = [open(name).read() for name in lists] or [sys.stdin.read()]
    names = [files(text, kind) for text, kind in zip(names, kinds)]
    for line in {"results": results, "days": days, "commitments": commitments}[what](*names):
        if "compared" in line:
            line["d"] = line["disagreed"] / line["compared"] if line["compared"] else None
        print(json.dumps(line))


def files(text, what):
    """The files of a list, one a line; without any there is nothing to read."""
    listed = [line for line in text.splitlines() if line]
    if not listed:
        sys.exit(f"the list of {what} is empty: `lastcall ledger files LEDGER --kind {what}` prints one. Before the first "
                 "`lastcall ledger compact` there are no days; an export has days, and calls if it was made with them")
    return listed


if len(sys.argv) < 2 or sys.argv[1] not in ("results", "days", "commitments"):
    sys.exit("what is to be computed? results, days or commitments:\n" + __doc__)
if (sys.argv[1] == "commitments") != (len(sys.argv) == 4):
    sys.exit("`commitments` takes two files with lists, of calls and of results; the others read a list on standard input")
main(*sys.argv[1:])
