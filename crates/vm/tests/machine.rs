//! The stack below the frame pointer, packet loads at every edge, calls.

use std::ptr::with_exposed_provenance_mut;
use std::time::{Duration, Instant};

use beebox_vm::{
    Deadline, FRAME_BYTES, MAX_FRAMES, Machine, Meter, Outcome, PacketRules, RunContext, find_call,
    load_packet, load_packet_outside,
};
use packet::{Metadata, Packet};
use spec::calls::{GET_PRANDOM_U32, GET_SMP_PROCESSOR_ID, KTIME_GET_NS, PAYLOAD_OFFSET};
use spec::{Random, SplitMix};

#[test]
fn the_frames_of_eight_functions_lie_below_the_frame_pointer() {
    let mut machine = Machine::new();
    for round in 1..3 {
        let m = machine.enter();
        // SAFETY: `m` is the machine of this run; its stack has that many bytes.
        unsafe {
            let top = (*m).regs[10];
            assert_eq!(top % 8, 0);
            for below in (8..=MAX_FRAMES * FRAME_BYTES).step_by(8) {
                let word = with_exposed_provenance_mut::<u64>(top as usize - below);
                *word = below as u64 * round;
            }
            for below in (8..=MAX_FRAMES * FRAME_BYTES).step_by(8) {
                let word = with_exposed_provenance_mut::<u64>(top as usize - below);
                assert_eq!(*word, below as u64 * round);
            }
            assert_eq!((*m).regs[10], top);
        }
    }
}

#[test]
fn packet_loads_see_the_bytes_and_nothing_behind_them() {
    let bytes = [1, 2, 3, 4, 5, 6, 7];
    for len in 0..=bytes.len() {
        // Memory of exactly that length, so that Miri sees one byte too many.
        let data = bytes[..len].to_vec();
        for offset in 0..10 {
            let at = |n: usize| {
                let part = bytes.get(offset..offset + n)?;
                let value = part.iter().fold(0, |value, &b| value << 8 | u32::from(b));
                (offset + n <= len).then_some(value)
            };
            let (start, from) = (data.as_ptr(), offset as u64);
            // SAFETY: `data` has `len` bytes.
            unsafe {
                assert_eq!(load_packet::<1>(start, len, from), at(1));
                assert_eq!(load_packet::<2>(start, len, from), at(2));
                assert_eq!(load_packet::<4>(start, len, from), at(4));
            }
        }
        for offset in [u64::from(u32::MAX), 1 << 33] {
            // SAFETY: as before.
            let loaded = unsafe { load_packet::<4>(data.as_ptr(), len, offset) };
            assert_eq!(loaded, None);
        }
    }
}

#[test]
fn only_linux_reads_before_the_packet() {
    let bytes: [u8; 32] = std::array::from_fn(|index| index as u8);
    let meta = Metadata {
        link_header: Some(4),
        ..Metadata::UNKNOWN
    };
    let packet = Packet::whole(&bytes, &meta);
    // The link-layer header, two bytes into it.
    let offset = u64::from(-0x20_0000_i32 as u32) + 2;
    let load = |rules, size| load_packet_outside(&packet, rules, offset, size);
    assert_eq!(load(PacketRules::Capture, 2), None);
    assert_eq!(load(PacketRules::Kernel, 2), Some(0x0607));
    assert_eq!(
        load_packet_outside(&packet, PacketRules::Kernel, 31, 2),
        None
    );
}

#[test]
fn calls_take_five_numbers_and_the_run_context() {
    let meta = Metadata {
        cpu: 5,
        ..Metadata::UNKNOWN
    };
    let packet = Packet::whole(&[], &meta);
    let mut random = SplitMix::new(9);
    let mut clock = || 7;
    let mut cx = RunContext::new(&packet, &mut random, Some(&mut clock));
    let mut call = |number| {
        let function = find_call(number).expect("there is one");
        // SAFETY: these helpers follow no pointers.
        unsafe { function(1, 2, 3, 4, 5, &mut cx) }
    };
    let next = SplitMix::new(9).next_u32();
    assert_eq!(call(GET_PRANDOM_U32), u64::from(next));
    assert_eq!(call(GET_SMP_PROCESSOR_ID), 5);
    assert_eq!(
        call(PAYLOAD_OFFSET),
        u64::from(packet::payload_offset(&packet))
    );
    assert_eq!(call(KTIME_GET_NS), 7);
    cx.clock = None;
    let function = find_call(KTIME_GET_NS).expect("there is one");
    // SAFETY: the helper follows no pointers.
    let time = unsafe { function(1, 2, 3, 4, 5, &mut cx) };
    assert_eq!(time, 0);
    assert!(
        [0, -1, 9999, i32::MIN]
            .iter()
            .all(|&n| find_call(n).is_none())
    );
}

#[test]
fn a_meter_ends_a_run_by_the_budget_or_by_the_deadline() {
    let run = |budget, deadline| {
        let mut meter = Meter::new(budget, deadline);
        let mut jumps = 0;
        loop {
            meter.jumps -= 1;
            if meter.jumps < 0 && !meter.renew_jumps() {
                return (jumps, meter.outcome(5));
            }
            assert_eq!(meter.outcome(5), Outcome::Returned(5));
            jumps += 1;
        }
    };
    let now = Deadline::at(Instant::now()).checking_every(3);
    let far = Deadline::at(Instant::now() + Duration::from_secs(3600)).checking_every(3);
    assert_eq!(run(10, None), (10, Outcome::BudgetExhausted));
    assert_eq!(run(0, None), (0, Outcome::BudgetExhausted));
    assert_eq!(run(10, Some(far)), (10, Outcome::BudgetExhausted));
    assert_eq!(run(2, Some(now)), (2, Outcome::BudgetExhausted));
    assert_eq!(run(10, Some(now)), (3, Outcome::DeadlinePassed));

    let mut meter = Meter::new(0, Some(far));
    assert!((0..100).all(|_| {
        meter.calls -= 1;
        meter.calls >= 0 || meter.renew_calls()
    }));
    let mut meter = Meter::new(0, Some(now));
    assert!(!meter.renew_calls() && meter.is_over());
    assert_eq!(meter.outcome(5), Outcome::DeadlinePassed);
}
