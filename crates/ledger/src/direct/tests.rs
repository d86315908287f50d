//! The columns, read back by Arrow's reader.

use arrow_array::{Array as _, Date32Array, FixedSizeBinaryArray, Int32Array, RecordBatch, StringArray};
use arrow_schema::DataType;

use super::*;
use crate::files::{self, Output, columns};

columns!(Columns {
    name: Few = Few::texts(), DataType::Utf8, true, Filter;
    number: Few = Few::integers(), DataType::Int32, false, Few;
    day: Few = Few::integers(), DataType::Date32, false, Filter;
    text: Texts = Texts::nullable(), DataType::Utf8, true, Text;
    whole: Texts = Texts::new(), DataType::Utf8, false, Text;
    hash: Hashes = Hashes::nullable(), DataType::FixedSizeBinary(16), true, Random;
});

type Row = (Option<String>, i32, Option<String>, Option<[u8; 16]>);

fn write(columns: &mut Columns, output: &mut Output, rows: &[Row]) -> files::FileBytes {
    for (name, number, text, hash) in rows {
        columns.name.append_option(name.as_deref()).unwrap();
        columns.number.append_integer(*number).unwrap();
        columns.day.append_integer(-*number).unwrap();
        columns.text.append_option(text.as_deref()).unwrap();
        columns.whole.append_value(text.as_deref().unwrap_or("")).unwrap();
        columns.hash.append_option(hash.as_ref().map(|h| h.as_slice())).unwrap();
    }
    let batch = columns.batch();
    output.write_some(rows.len(), batch.iter().map(Option::as_ref)).unwrap();
    output.finish_with(columns.own()).unwrap().unwrap()
}

fn read(file: &files::FileBytes) -> Vec<Row> {
    let mut rows = Vec::new();
    files::for_each_batch("f", file.bytes.clone(), &Columns::schema(), |batch: &RecordBatch| {
        let names: &StringArray = files::column("f", batch, "name")?;
        let numbers: &Int32Array = files::column("f", batch, "number")?;
        let days: &Date32Array = files::column("f", batch, "day")?;
        let texts: &StringArray = files::column("f", batch, "text")?;
        let whole: &StringArray = files::column("f", batch, "whole")?;
        let hashes: &FixedSizeBinaryArray = files::column("f", batch, "hash")?;
        for (row, text) in texts.iter().enumerate() {
            assert_eq!(days.value(row), -numbers.value(row));
            assert_eq!(whole.value(row), text.unwrap_or(""));
            rows.push((
                names.is_valid(row).then(|| names.value(row).to_owned()),
                numbers.value(row),
                text.map(str::to_owned),
                hashes.is_valid(row).then(|| hashes.value(row).try_into().unwrap()),
            ));
        }
        Ok(())
    })
    .unwrap();
    rows
}

/// Arrow's reader finds what was written: runs and mixtures, nulls, one value and thousands, two files after each
/// other, and a column whose dictionary grew too large.
#[test]
fn what_is_written_is_read() {
    let row = |i: usize, distinct: usize, nulls: usize, size: usize| -> Row {
        let there = nulls == 0 || !(i / 5).is_multiple_of(nulls);
        let value = (i * 7919 / 11) % distinct;
        let text = format!("{value}-{}", "x".repeat(size));
        let hash: [u8; 16] = (i as u128 * 0x9e37_79b9_7f4a_7c15).to_le_bytes();
        (there.then(|| text.clone()), value as i32 - 3, there.then_some(text), there.then_some(hash))
    };
    let (mut columns, mut output) =
        (Columns::new(), Output::new(Columns::schema(), files::properties(Columns::SHAPES)));
    for (rows, distinct, nulls, size) in [
        (1, 1, 0, 0),
        (7, 3, 1, 1),
        (1000, 1, 2, 3),
        (1003, 2, 3, 0),
        (5000, 300, 0, 40),
        (70_001, 900, 7, 1),
        (3000, 3000, 4, 900),
    ] {
        let made: Vec<Row> = (0..rows).map(|i| row(i, distinct, nulls, size)).collect();
        let file = write(&mut columns, &mut output, &made);
        assert_eq!(file.rows, rows as u64);
        let found = read(&file);
        assert!(found == made, "{rows} rows, {distinct} values, nulls {nulls}, {size} bytes");
        output.reuse(file.bytes);
    }
}
