"""Each tool's daily disagreement rate D, from a ledger's Parquet files, with DuckDB alone. No Lastcall code.

    lastcall ledger files led --kind results | python daily_d_duckdb.py results
    lastcall ledger files led --kind days | python daily_d_duckdb.py days
    python daily_d_duckdb.py commitments <(lastcall ledger files led --kind calls) <(lastcall ledger files led --kind results)

Prints JSON Lines. Of an export take --kind days. Columns and rules: schemas/parquet.md. Needs: pip install duckdb
"""

import json
import sys

import duckdb

# Chunk results hold every row that was recorded: a call that came twice counts once, with its worst row.
RESULTS = """
with ranked as (
  select *, row_number() over (
    partition by tool_id, epoch, day, call_key
    order by case
        when result = 'disagreed' and (severity = 'block' or refused) then 0
        when result = 'disagreed' then 1
        when result = 'unresolved' then 2
        when result = 'both_rejected' then 3
        when result = 'excluded' then 4
        else 5
      end, "partition", "offset", "index") as place
  from read_parquet($files))
select tool_id, day::varchar as day,
  count(*) filter (result = 'disagreed') as disagreed,
  count(*) filter (result in ('agreed', 'disagreed')) as compared
from ranked where place = 1 group by all order by all
"""

# Compacted days say which row counts.
DAYS = """
select tool_id, day::varchar as day,
  count(*) filter (result = 'disagreed') as disagreed,
  count(*) filter (result in ('agreed', 'disagreed')) as compared
from read_parquet($files) where counted group by all order by all
"""

# A call with its salt opens the commitment in its result.
COMMITMENTS = """
select count(*) as calls, count(*) filter (r.commitment = unhex(sha256(c.salt || encode(c.record)))) as opened
from read_parquet($calls) c join read_parquet($results) r using ("partition", "offset", "index")
"""


def main(what, *lists):
    if what == "commitments":
        calls, results = (files(open(name).read(), kind) for name, kind in zip(lists, ("calls", "results")))
        answer = duckdb.execute(COMMITMENTS, {"calls": calls, "results": results})
    else:
        answer = duckdb.execute({"results": RESULTS, "days": DAYS}[what], {"files": files(sys.stdin.read(), what)})
    names = [column[0] for column in answer.description]
    for row in answer.fetchall():
        line = dict(zip(names, row))
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
