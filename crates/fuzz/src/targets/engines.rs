//! Every engine gives the same answer to any program on any packet.
//!
//! The input: one byte that picks the rules and the semantics, 24 from which
//! what is known about the packet is made, one that gives the packet's length,
//! the packet, and the rest as instructions.

use beebox::{
    Device, Engine, Filter, Metadata, Packet, Rules, Semantics, VlanTag,
    seccomp::{SeccompData, SeccompFilter},
};

use super::instructions;
use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "engines",
    property: "every engine gives the same answer as the plain interpreter",
    words: &[],
    run,
};

/// Bytes that describe the packet or the system call.
const ABOUT: usize = 24;

fn run(input: &[u8]) -> Signature {
    let Some((&choice, rest)) = input.split_first() else {
        return Signature::of(());
    };
    let Some((about, rest)) = rest.split_first_chunk::<ABOUT>() else {
        return Signature::of(());
    };
    let Some((&len, rest)) = rest.split_first() else {
        return Signature::of(());
    };
    let Some((bytes, program)) = rest.split_at_checked(len.into()) else {
        return Signature::of(());
    };
    let program = instructions(program);
    let semantics = if choice & 0x80 == 0 {
        Semantics::Capture
    } else {
        Semantics::Kernel
    };
    let answers = match choice % 3 {
        0 => on_packet(&program, Rules::Socket, semantics, about, bytes),
        1 => on_packet(&program, Rules::Capture, semantics, about, bytes),
        _ => on_call(&program, about),
    };
    for (engine, answer) in &answers {
        assert_eq!(
            *answer,
            answers[0].1,
            "{} answers differently",
            engine.name()
        );
    }
    let answer = answers.first().map(|(_, answer)| *answer);
    let opcodes = program
        .iter()
        .fold(0, |set, raw| set | 1_u64 << (raw.code % 64));
    Signature::of((
        choice % 3,
        answer.map(|answer| answer.map(|value| value.min(4))),
        opcodes,
    ))
}

/// Results of all engines; empty if the program is rejected.
type Answers = Vec<(Engine, Option<u32>)>;

fn on_packet(
    program: &[beebox::SockFilter],
    rules: Rules,
    semantics: Semantics,
    about: &[u8; ABOUT],
    bytes: &[u8],
) -> Answers {
    let metadata = metadata(about);
    let packet = match semantics {
        Semantics::Capture => {
            Packet::captured(bytes, bytes.len() as u32 + u32::from(about[0]), &metadata)
        }
        Semantics::Kernel => Packet::with_head(bytes, (about[0] % 32).into(), &metadata),
    };
    let answer = |&engine: &Engine| {
        let filter = Filter::builder()
            .rules(rules)
            .semantics(semantics)
            .engine(engine)
            .build(program)
            .ok()?;
        let mut runner = filter.seeded_runner(7);
        let first = runner.run(&packet).ok();
        let second = filter.seeded_runner(7).run(&packet).ok();
        assert_eq!(first, second, "a run leaves traces");
        Some((engine, first))
    };
    Engine::ALL.iter().filter_map(answer).collect()
}

fn on_call(program: &[beebox::SockFilter], about: &[u8; ABOUT]) -> Answers {
    let word =
        |at: usize| u32::from_le_bytes([about[at], about[at + 1], about[at + 2], about[at + 3]]);
    let wide = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    let call = SeccompData {
        nr: word(0) as i32,
        arch: word(4),
        instruction_pointer: wide(8),
        args: [wide(0), wide(4), wide(8), wide(12), wide(16), 0],
    };
    let answer = |&engine: &Engine| {
        let filter = SeccompFilter::builder()
            .engine(engine)
            .build(program)
            .ok()?;
        Some((engine, Some(filter.runner().run(&call))))
    };
    Engine::ALL.iter().filter_map(answer).collect()
}

fn metadata(about: &[u8; ABOUT]) -> Metadata {
    let half = |at: usize| u16::from_le_bytes([about[at], about[at + 1]]);
    let word = |at: usize| u32::from(half(at)) << 16 | u32::from(half(at + 2));
    Metadata {
        protocol: half(1),
        pkt_type: about[3] % 5,
        device: (about[4] & 1 == 1).then(|| Device {
            ifindex: half(5).into(),
            hatype: half(7),
        }),
        mark: word(9),
        queue: half(13),
        hash: word(12),
        cpu: about[16].into(),
        vlan: (about[4] & 2 == 2).then(|| VlanTag {
            protocol: half(17),
            tci: half(19),
        }),
        link_header: (about[4] & 4 == 4).then(|| -i32::from(about[21])),
        network_header: i32::from(about[22]) - 32,
    }
}
