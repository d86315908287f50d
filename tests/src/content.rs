//! What a ledger holds, in a form in which two ledgers of the same input are equal.

use lastcall_ledger::Ledger;
use lastcall_ledger::entry::Balance;
use lastcall_ledger::tally::Sums;

/// What a ledger says, without what may differ between two ledgers of the same input.
#[derive(PartialEq)]
pub struct Content {
    /// Result rows by position and candidate, the commitment left out.
    pub results: Vec<String>,
    /// Call rows by position, the salt left out.
    pub calls: Vec<String>,
    /// Dead letters by position.
    pub dead: Vec<String>,
    /// Summed tallies.
    pub sums: Sums,
    /// Summed balances.
    pub balance: Balance,
    /// `[first, next)` of the whole, and the number of bytes that the chunks say they cover.
    pub covered: (i64, i64),
}

/// Reads it all; the chunks must join.
pub fn content(ledger: &Ledger) -> Content {
    let mut content = Content {
        results: Vec::new(),
        calls: Vec::new(),
        dead: Vec::new(),
        sums: Sums::default(),
        balance: Balance::default(),
        covered: (0, 0),
    };
    for partition in ledger.partitions().unwrap() {
        for (seq, chunk) in partition.chunks() {
            assert_eq!(
                chunk.range.first.0, content.covered.1,
                "chunk {seq} does not begin where its predecessor ends"
            );
            content.covered.1 = chunk.range.next.0;
            assert!(chunk.balance.holds(), "chunk {seq}: {:?}", chunk.balance);
            content.balance.add(&chunk.balance);
            content.sums.add(chunk);
            ledger
                .for_each_result(chunk, |mut row| {
                    row.commitment = [0; 32];
                    content.results.push(format!("{:?}", row));
                })
                .unwrap();
            ledger
                .for_each_call(chunk, |mut row| {
                    row.salt = [0; 16];
                    content.calls.push(format!("{:?}", row));
                })
                .unwrap();
            ledger.for_each_dead(chunk, |row| content.dead.push(format!("{row:?}"))).unwrap();
        }
    }
    content.results.sort();
    content.calls.sort();
    content.dead.sort();
    content
}
