//! The parts of a capture have the packets of the whole, each once, whatever packets contain.

use std::io::{self, Cursor, Read};
use std::sync::Arc;

use capture::ByteOrder;
use spec::{Random, SplitMix};

use super::{LEAST_PART, Packets, PacketsError};
use crate::internal::captures::{Elsewhere, Input};

struct Memory(Arc<[u8]>);

impl Elsewhere for Memory {
    fn read_from(&self, offset: u64) -> io::Result<Box<dyn Read + Send>> {
        let mut bytes = Cursor::new(self.0.clone());
        bytes.set_position(offset);
        Ok(Box::new(bytes))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

fn input(bytes: &[u8]) -> Input {
    let bytes = Memory(bytes.into());
    Input::open_elsewhere(Arc::new(bytes)).expect("it is a capture")
}

/// The offsets of the packets.
fn offsets(mut packets: Packets) -> Result<Vec<u64>, PacketsError> {
    let mut found = Vec::new();
    let push = |found: &mut Vec<u64>, at| {
        found.push(at);
        Ok::<_, PacketsError>(!found.len().is_multiple_of(1000))
    };
    while packets.read(None, &[], |at, _, _| push(&mut found, at))? {}
    Ok(found)
}

/// The offsets by part.
fn parts(bytes: &[u8]) -> Vec<Result<Vec<u64>, PacketsError>> {
    let len = bytes.len() as u64;
    let starts = (0..len).step_by(LEAST_PART as usize);
    let part = |start| Packets::of_part(input(bytes), (start, LEAST_PART), len);
    starts.map(|start| part(start).and_then(offsets)).collect()
}

/// The numbers of packets in the parts, which together have all.
fn assert_same(bytes: &[u8]) -> Vec<usize> {
    let parts: Vec<_> = parts(bytes).into_iter().map(Result::unwrap).collect();
    let whole = offsets(Packets::new(input(bytes))).unwrap();
    assert!(
        parts.concat() == whole,
        "other packets than those of the whole"
    );
    parts.iter().map(Vec::len).collect()
}

/// A pcap capture that grows.
struct Pcap {
    order: ByteOrder,
    bytes: Vec<u8>,
    random: SplitMix,
}

impl Pcap {
    fn new(order: ByteOrder) -> Pcap {
        let mut bytes = order.put_u32(0xa1b2_c3d4).to_vec();
        bytes.extend_from_slice(&order.put_u16(2));
        bytes.extend_from_slice(&order.put_u16(4));
        for word in [0, 0, 262_144, 1] {
            bytes.extend_from_slice(&order.put_u32(word));
        }
        let random = SplitMix::new(5);
        Pcap {
            order,
            bytes,
            random,
        }
    }

    fn put(&mut self, data: &[u8], wire_len: u32) {
        let time = 1_700_000_000 + (self.bytes.len() >> 16) as u32;
        for word in [
            time,
            self.random.next_u32() % 1_000_000,
            data.len() as u32,
            wire_len,
        ] {
            self.bytes.extend_from_slice(&self.order.put_u32(word));
        }
        self.bytes.extend_from_slice(data);
    }

    /// Adds packets of random bytes or zeros until there are so many bytes.
    fn fill(&mut self, end: usize) {
        while self.bytes.len() < end {
            let len = 60 + self.random.next_u32() as usize % 1400;
            let byte = |random: &mut SplitMix, is_zero| match is_zero {
                true => 0,
                false => random.next_u32() as u8,
            };
            let is_zero = len.is_multiple_of(3);
            let data: Vec<_> = (0..len).map(|_| byte(&mut self.random, is_zero)).collect();
            self.put(&data, len as u32);
        }
    }
}

const PART: usize = LEAST_PART as usize;

/// Records without a file header.
fn records(order: ByteOrder, len: usize) -> Vec<u8> {
    let mut inner = Pcap::new(order);
    inner.fill(len);
    inner.bytes.split_off(24)
}

#[test]
fn parts_have_the_packets_of_the_whole() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let mut pcap = Pcap::new(order);
        pcap.fill(2 * PART + PART / 3);
        let counts = assert_same(&pcap.bytes);
        assert!(counts.iter().all(|count| *count > 1000), "{counts:?}");
    }
    // The last part has no record of its own.
    let mut pcap = Pcap::new(ByteOrder::Little);
    pcap.fill(PART - 500);
    pcap.put(&[7; 9000], 9000);
    assert_eq!(assert_same(&pcap.bytes)[1..], [0]);
}

#[test]
fn a_capture_in_a_packet_is_no_part_of_the_capture() {
    let order = ByteOrder::Little;
    for len in [3_000, 100_000, 250_000] {
        let inner = records(order, len);
        for behind in [0, 8] {
            let mut pcap = Pcap::new(order);
            pcap.fill(PART - len / 2);
            let data = [&inner[..], &vec![0xff; behind]].concat();
            pcap.put(&data, data.len() as u32);
            pcap.fill(2 * PART + 100_000);
            let counts = assert_same(&pcap.bytes);
            // Where it ends with the packet it cannot be told from the capture around it.
            assert_eq!(counts[1] == 0, behind == 0, "{len} {behind}: {counts:?}");
        }
    }
}

#[test]
fn records_that_run_beside_the_true_ones_are_left_to_one_part() {
    let order = ByteOrder::Little;
    let mut pcap = Pcap::new(order);
    // Each packet begins with a record that reaches into the next packet.
    while pcap.bytes.len() < 2 * PART + 5_000 {
        let mut data = vec![0xee; 500];
        for (at, word) in [1_700_000_000, 7, 500, 500].into_iter().enumerate() {
            data[4 * at..4 * at + 4].copy_from_slice(&order.put_u32(word));
        }
        pcap.put(&data, 500);
    }
    let counts = assert_same(&pcap.bytes);
    assert_eq!(counts[1..], [0, 0]);
}

#[test]
fn a_wrong_answer_is_an_error_of_the_part_before() {
    let order = ByteOrder::Little;
    let mut pcap = Pcap::new(order);
    pcap.fill(PART - 50_000);
    pcap.put(&records(order, 100_000), 150_000);
    // Records that no program writes: longer in the file than on the wire.
    for _ in 0..50 {
        pcap.put(&[1; 300], 5);
    }
    pcap.fill(2 * PART);
    let before = parts(&pcap.bytes).swap_remove(0);
    let error = before.unwrap_err();
    assert!(matches!(error, PacketsError::Apart { .. }), "{error}");
    assert!(error.to_string().contains("as a whole"), "{error}");
}

/// A pcapng capture with a description behind the first packets.
fn pcapng(order: ByteOrder, len: usize, described_at: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let block = |bytes: &mut Vec<u8>, kind: u32, words: &[u32], data: &[u8]| {
        let total = (12 + 4 * words.len() + data.len().next_multiple_of(4)) as u32;
        for word in [&[kind, total], words].concat() {
            bytes.extend_from_slice(&order.put_u32(word));
        }
        bytes.extend_from_slice(data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend_from_slice(&order.put_u32(total));
    };
    let version = u32::from_le_bytes([1, 0, 0, 0]);
    let version = match order {
        ByteOrder::Little => version,
        ByteOrder::Big => version << 16,
    };
    block(
        &mut bytes,
        0x0a0d_0d0a,
        &[0x1a2b_3c4d, version, u32::MAX, u32::MAX],
        &[],
    );
    let link = match order {
        ByteOrder::Little => 1,
        ByteOrder::Big => 1 << 16,
    };
    block(&mut bytes, 1, &[link, 0], &[]);
    let mut is_described = false;
    let mut random = SplitMix::new(3);
    while bytes.len() < len {
        if bytes.len() >= described_at && !std::mem::replace(&mut is_described, true) {
            block(&mut bytes, 1, &[link, 0], &[]);
        }
        let data = vec![random.next_u32() as u8; 60 + random.next_u32() as usize % 1400];
        let captured = data.len() as u32;
        block(&mut bytes, 6, &[0, 5, 9, captured, captured], &data);
    }
    bytes
}

#[test]
fn parts_of_pcapng_have_the_interfaces_of_its_head() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        let counts = assert_same(&pcapng(order, 2 * PART + 90_000, usize::MAX));
        assert!(counts.iter().all(|count| *count > 50), "{counts:?}");
        let described = pcapng(order, 2 * PART + 90_000, PART + 1000);
        let second = parts(&described).swap_remove(1).unwrap_err();
        assert!(matches!(second, PacketsError::Described { .. }), "{second}");
    }
}
