//! Parquet's hybrid of runs and bit-packed groups (Encodings.md of the format, "RLE").

/// Bits of an index into a dictionary of so many values.
pub(crate) fn width(distinct: usize) -> u8 {
    (usize::BITS - distinct.saturating_sub(1).leading_zeros()) as u8
}

/// Appends the values, each below 2^`width`: equal ones as runs, the others packed in groups of eight.
pub(crate) fn encode(values: &[u32], width: u8, out: &mut Vec<u8>) {
    let (mut rest, mut loose) = (values, 0);
    while let Some(first) = rest.get(loose) {
        let run = rest.iter().skip(loose).take_while(|value| *value == first).count();
        // Only the last packed run may hold less than whole groups: a run gives what the group before it lacks.
        let lacks = loose.next_multiple_of(8) - loose;
        if run >= lacks + 8 {
            let (packed, after) = rest.split_at(loose + lacks);
            pack(packed, width, out);
            varint((run - lacks) << 1, out);
            out.extend(first.to_le_bytes().iter().take(usize::from(width.div_ceil(8))));
            (rest, loose) = (after.get(run - lacks..).unwrap_or_default(), 0);
        } else {
            loose += run;
        }
    }
    pack(rest, width, out);
}

fn pack(values: &[u32], width: u8, out: &mut Vec<u8>) {
    if values.is_empty() {
        return;
    }
    let groups = values.len().div_ceil(8);
    varint(groups << 1 | 1, out);
    let end = out.len() + groups * usize::from(width);
    let (mut bits, mut held) = (0u64, 0u8);
    for value in values {
        bits |= u64::from(*value) << held;
        held += width;
        while held >= 8 {
            out.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    if held > 0 {
        out.push(bits as u8);
    }
    out.resize(end, 0);
}

fn varint(mut n: usize, out: &mut Vec<u8>) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}
