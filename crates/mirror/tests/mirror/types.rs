//! That a tool which sends has no executor is a fact of the types.

#[test]
fn a_tool_that_sends_has_no_executor() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/reads_and_writes.rs");
    cases.compile_fail("tests/ui/send_*.rs");
    cases.compile_fail("tests/ui/write_replica.rs");
}
