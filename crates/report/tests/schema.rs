//! The published JSON Schema of a trial is the one that the types give.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

/// `UPDATE_SCHEMAS=1 cargo test -p lastcall-report --test schema` writes the file.
#[test]
fn the_published_schema_is_the_types() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemas/try.schema.json");
    let now = lastcall_report::TryReport::schema_text().unwrap();
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(file, &now).unwrap();
    }
    let published = std::fs::read_to_string(file).unwrap();
    assert!(published == now, "schemas/try.schema.json is not the types' schema; run with UPDATE_SCHEMAS=1");
}
