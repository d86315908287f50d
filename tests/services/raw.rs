//! One message as a producer may write it that no client library is: the bytes of Kafka's protocol by hand (Produce 3, record
//! batch 2, uncompressed).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A header: name and value.
pub type Raw<'a> = (&'a [u8], &'a [u8]);

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        out.push((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

fn counted(out: &mut Vec<u8>, bytes: &[u8]) {
    varint(out, i64::try_from(bytes.len()).unwrap());
    out.extend_from_slice(bytes);
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(&i16::try_from(text.len()).unwrap().to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

/// A block with its length before it.
fn block(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&i32::try_from(bytes.len()).unwrap().to_be_bytes());
    out.extend_from_slice(bytes);
}

/// CRC-32C.
fn crc(bytes: &[u8]) -> u32 {
    let bit = |crc: u32, _| (crc >> 1) ^ (0x82f6_3b78 & (crc & 1).wrapping_neg());
    !bytes.iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(*byte), bit))
}

fn batch(value: &[u8], headers: &[Raw<'_>], time: i64) -> Vec<u8> {
    let mut record = vec![0]; // attributes
    varint(&mut record, 0);
    varint(&mut record, 0);
    varint(&mut record, -1); // no key
    counted(&mut record, value);
    varint(&mut record, i64::try_from(headers.len()).unwrap());
    for (name, value) in headers {
        counted(&mut record, name);
        counted(&mut record, value);
    }
    let mut body = Vec::new();
    body.extend_from_slice(&0i16.to_be_bytes());
    body.extend_from_slice(&0i32.to_be_bytes());
    body.extend_from_slice(&time.to_be_bytes());
    body.extend_from_slice(&time.to_be_bytes());
    body.extend_from_slice(&[0xff; 8 + 2 + 4]); // no producer id, epoch, sequence
    body.extend_from_slice(&1i32.to_be_bytes());
    counted(&mut body, &record);
    let mut inside = (-1i32).to_be_bytes().to_vec();
    inside.push(2);
    inside.extend_from_slice(&crc(&body).to_be_bytes());
    inside.extend_from_slice(&body);
    let mut out = 0i64.to_be_bytes().to_vec();
    block(&mut out, &inside);
    out
}

/// Writes one message, and makes sure that the broker took it.
pub fn put(broker: &str, topic: &str, partition: i32, value: &[u8], headers: &[Raw<'_>], time: i64) {
    let mut request = Vec::new();
    request.extend_from_slice(&0i16.to_be_bytes()); // Produce
    request.extend_from_slice(&3i16.to_be_bytes());
    request.extend_from_slice(&7i32.to_be_bytes());
    text(&mut request, "raw");
    request.extend_from_slice(&(-1i16).to_be_bytes()); // no transaction
    request.extend_from_slice(&(-1i16).to_be_bytes()); // acks
    request.extend_from_slice(&10_000i32.to_be_bytes());
    request.extend_from_slice(&1i32.to_be_bytes());
    text(&mut request, topic);
    request.extend_from_slice(&1i32.to_be_bytes());
    request.extend_from_slice(&partition.to_be_bytes());
    block(&mut request, &batch(value, headers, time));
    let mut framed = Vec::new();
    block(&mut framed, &request);
    let mut stream = TcpStream::connect(broker).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(&framed).unwrap();
    let mut length = [0; 4];
    stream.read_exact(&mut length).unwrap();
    let mut answer = vec![0; i32::from_be_bytes(length).unsigned_abs() as usize];
    stream.read_exact(&mut answer).unwrap();
    // correlation, topics, name, partitions, partition, error
    let at = 4 + 4 + 2 + topic.len() + 4 + 4;
    assert_eq!(answer[at..at + 2], [0, 0], "the broker refused it: {answer:?}");
}
