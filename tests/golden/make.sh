#!/usr/bin/env bash
# Makes the golden ledger of the present format: tests/golden/make.sh LASTCALL OUT. It is made once for each format and
# then never again: later builds have to read the very bytes that an earlier one wrote.
set -euo pipefail
lastcall=$1 out=$2
mkdir -p "$out" && cd "$out"
tool() { printf '{"name":"t","inputSchema":{"type":"object","properties":{"a":{"type":"string"%s}}}}' "$1"; }
tool '' >old.json
tool ',"maxLength":5' >new.json
echo 'burn_in: {tier: T1, profile: article}' >policy.yaml
calls() { # day, from call
  for n in 0 1 2; do
    a=x
    [ "$n" -eq 2 ] && a='a long one'
    printf '{"type":"tool_call","schema_version":1,"call_id":"c%s/%s","ts":"2026-06-0%sT1%s:00:00Z","tool_id":"t",' "$1" "$n" "$1" "$n"
    printf '"contract_id":"t@1","arguments":{"a":"%s"},"outcome":{"status":"ok"}}\n' "$a"
  done
}
clock() { printf '{"type":"clock","schema_version":1,"ts":"2026-06-0%sT02:00:00Z"}\n' "$1"; }
"$lastcall" ledger init ledger --clock simulated
"$lastcall" ledger keygen head.key
"$lastcall" plan observe old.json new.json --tool t --ledger ledger
"$lastcall" plan register t --policy policy.yaml --from 2026-06-01 --ledger ledger
{ calls 1; echo 'no record'; clock 2; } >calls.jsonl
"$lastcall" run --ledger ledger calls.jsonl
"$lastcall" ledger compact ledger --key head.key
"$lastcall" decide t --ledger ledger || true
"$lastcall" ledger erase ledger --call-id c1/1 --reason T-1
"$lastcall" ledger compact ledger --key head.key
"$lastcall" ledger gc ledger --delete
"$lastcall" decide t --ledger ledger --format json --dry-run >verdict.json || true
"$lastcall" ledger head ledger --format json >head.json
rm head.key old.json new.json policy.yaml calls.jsonl
