//! Any number of threads and any size of segments give one thread's answer.

use std::fs::File;
use std::io::Write;

use capture::{ByteOrder, Format};
use isa::classic::SockFilter;
use spec::{Random, SplitMix};

use super::{Input, Options, Output, PacketCounts, filter_in_segments};
use crate::{Engine, Filter};

/// Result of a run: counts, its end, bytes.
type Answer = (PacketCounts, String, Vec<u8>);

/// Keeps packets whose third byte is below 128.
fn filter() -> Filter {
    let program = [
        SockFilter::new(0x30, 0, 0, 2),
        SockFilter::new(0x25, 0, 1, 127),
        SockFilter::new(0x06, 0, 0, 0),
        SockFilter::new(0x06, 0, 0, u32::MAX),
    ];
    let settings = Filter::builder().engine(Engine::Interp);
    settings.build(&program).unwrap()
}

fn answer(bytes: &[u8], options: Options, segment: u64) -> Answer {
    let path = std::env::temp_dir().join(format!(
        "beebox-captures-{}-{:?}",
        std::process::id(),
        std::thread::current().id()
    ));
    File::create(&path)
        .and_then(|mut file| file.write_all(bytes))
        .unwrap();
    let input = Input::open(File::open(&path).unwrap()).unwrap();
    std::fs::remove_file(&path).unwrap();
    let mut kept = Vec::new();
    let mut output = Output {
        format: Format::common(&[input.format()]),
        file: &mut kept,
    };
    output.start_file(&options).unwrap();
    let mut last = 0;
    let mut progress = |offset| {
        assert!(offset >= last && offset <= bytes.len() as u64);
        last = offset;
    };
    let (tally, result) = filter_in_segments(
        input,
        &filter(),
        &options,
        Some(&mut output),
        &mut progress,
        segment,
    );
    let end = result.map_or_else(|error| error.to_string(), |end| format!("{end:?}"));
    (tally, end, kept)
}

fn assert_one_answer(bytes: &[u8]) {
    for limit in [None, Some(77), Some(100_000)] {
        let options = Options {
            limit,
            ..Options::default()
        };
        let expected = answer(bytes, options, u64::MAX / 4);
        for jobs in [2, 3] {
            for segment in [700, 5_000, 40_000] {
                let found = answer(bytes, Options { jobs, ..options }, segment);
                let place = format!("limit {limit:?}, {jobs} jobs, segments of {segment}");
                assert_eq!((found.0, &found.1), (expected.0, &expected.1), "{place}");
                assert!(found.2 == expected.2, "{place}: other bytes");
            }
        }
    }
}

fn put_record(file: &mut Vec<u8>, order: ByteOrder, time: u32, data: &[u8]) {
    for word in [time, 0, data.len() as u32, data.len() as u32] {
        file.extend_from_slice(&order.put_u32(word));
    }
    file.extend_from_slice(data);
}

fn header(order: ByteOrder) -> Vec<u8> {
    let mut header = order.put_u32(0xa1b2_c3d4).to_vec();
    header.extend_from_slice(&order.put_u16(2));
    header.extend_from_slice(&order.put_u16(4));
    for word in [0, 0, 262_144, 1] {
        header.extend_from_slice(&order.put_u32(word));
    }
    header
}

/// A capture whose packets carry what looks like packets of a capture.
fn nested(order: ByteOrder, packets: u32) -> Vec<u8> {
    let mut random = SplitMix::new(5);
    let mut file = header(order);
    for i in 0..packets {
        let mut data = Vec::new();
        match random.next_u32() % 4 {
            0 => data.resize(random.next_u32() as usize % 900, 0),
            1 => data.extend((0..random.next_u32() % 900).map(|i| i as u8)),
            2 => {
                let lead = random.next_u32() % 50;
                data.extend((0..lead).map(|i| i as u8 * 5));
                for j in 0..30 {
                    put_record(&mut data, order, i + j, &[j as u8; 40]);
                }
            }
            _ => data.extend(random.next_u64().to_le_bytes()),
        }
        put_record(&mut file, order, 1_000_000 * (i / 100), &data);
    }
    file
}

fn put_block(file: &mut Vec<u8>, order: ByteOrder, kind: u32, body: &[u8]) {
    let total = order.put_u32(body.len() as u32 + 12);
    file.extend_from_slice(&order.put_u32(kind));
    file.extend_from_slice(&total);
    file.extend_from_slice(body);
    file.extend_from_slice(&total);
}

/// Sections and interfaces everywhere.
fn blocks(count: u32) -> Vec<u8> {
    let mut random = SplitMix::new(6);
    let mut file = Vec::new();
    let mut order = ByteOrder::Little;
    let mut interfaces = 0;
    for i in 0..count {
        let draw = random.next_u32() % 2_000;
        if i == 0 || draw == 0 {
            order = if draw.is_multiple_of(2) {
                ByteOrder::Big
            } else {
                ByteOrder::Little
            };
            let mut body = order.put_u32(0x1a2b_3c4d).to_vec();
            body.extend_from_slice(&order.put_u16(1));
            body.extend_from_slice(&[0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
            put_block(&mut file, order, 0x0a0d_0d0a, &body);
            interfaces = 0;
        }
        if interfaces == 0 || draw < 5 {
            let mut body = order.put_u16(1).to_vec();
            body.extend_from_slice(&[0; 6]);
            put_block(&mut file, order, 1, &body);
            interfaces += 1;
        }
        let len = (random.next_u32() % 80) * 4;
        let mut body = order.put_u32(random.next_u32() % interfaces).to_vec();
        for word in [0, i, len, len] {
            body.extend_from_slice(&order.put_u32(word));
        }
        body.extend((0..len).map(|_| random.next_u32() as u8));
        put_block(&mut file, order, if draw % 50 == 7 { 77 } else { 6 }, &body);
    }
    file
}

#[test]
fn a_capture_of_captures_in_both_byte_orders() {
    for order in [ByteOrder::Little, ByteOrder::Big] {
        assert_one_answer(&nested(order, 1_500));
    }
}

#[test]
fn sections_and_interfaces_in_the_middle() {
    assert_one_answer(&blocks(3_000));
}

#[test]
fn faults_in_the_middle_and_at_the_end() {
    let mut truncated = nested(ByteOrder::Little, 800);
    truncated.truncate(truncated.len() - 3);
    assert_one_answer(&truncated);
    // A length that can't be, in the middle.
    let mut file = nested(ByteOrder::Little, 500);
    let middle = file.len();
    put_record(&mut file, ByteOrder::Little, 5, &[1, 2, 3, 4]);
    file[middle + 8..middle + 12].fill(0xff);
    file.extend_from_slice(&nested(ByteOrder::Little, 500)[24..]);
    assert_one_answer(&file);
    let stop = answer(
        &file,
        Options {
            jobs: 2,
            ..Options::default()
        },
        3_000,
    );
    assert_eq!(stop.0.packets, 500);
    let place = format!("byte {middle}");
    assert!(
        stop.1.contains("after packet 500,") && stop.1.contains(&place),
        "{}",
        stop.1
    );

    let mut file = blocks(2_000);
    file.truncate(file.len() - 30);
    assert_one_answer(&file);
}

#[test]
fn a_packet_longer_than_many_segments() {
    let mut file = nested(ByteOrder::Little, 40);
    put_record(&mut file, ByteOrder::Little, 1, &vec![0; 200_000]);
    file.extend_from_slice(&nested(ByteOrder::Little, 400)[24..]);
    assert_one_answer(&file);
}
