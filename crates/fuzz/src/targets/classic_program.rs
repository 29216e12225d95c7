//! Checked classic programs run without a fault on any packet, and end.
//!
//! The input: one byte that selects rules and semantics, one with the packet's length, the
//! packet, and encoded instructions of eight bytes, little-endian.

use classic::run::{Next, PlainProgram};
use classic::{Rules, Semantics, check};
use isa::classic::{Insn, SockFilter};
use packet::{Metadata, Packet};
use spec::SplitMix;

use super::instructions;
use crate::{Signature, Target};

pub(super) const TARGET: Target = Target {
    name: "classic-program",
    property: "what the checker accepts ends, stays inside and reads no scratch word unwritten",
    words: &[],
    run,
};

fn run(input: &[u8]) -> Signature {
    let Some((program, rules, semantics, packet)) = split(input) else {
        return Signature::of(());
    };
    let checked = match check(&program, rules) {
        Err(refusal) => {
            assert!(refusal.at.is_none_or(|at| at < program.len()));
            return Signature::of((refusal.rule, refusal.at.map(|at| program[at].code)));
        }
        Ok(checked) => checked,
    };
    let insns = checked.insns();
    assert_eq!(insns.len(), program.len());

    let prepared = PlainProgram::prepare(&checked, semantics);
    let metadata = Metadata::UNKNOWN;
    let packet = Packet::captured(packet, packet.len() as u32 + 7, &metadata);
    let mut written = [false; 16];
    let mut steps = 0_usize;
    let mut last = None;
    let traced = prepared.trace(&packet, &mut SplitMix::new(1), &mut |step| {
        steps += 1;
        let forward_only = rules != Rules::Capture;
        match insns[step.at] {
            Insn::Store(k) | Insn::StoreX(k) => written[k as usize] = true,
            Insn::LoadMem(k) | Insn::LoadXMem(k) if forward_only => {
                assert!(written[k as usize], "M[{k}] is read before it is written");
            }
            Insn::Invalid(raw) => panic!("an unknown instruction ran: {raw:?}"),
            _ => (),
        }
        if let Next::Insn(next) = step.next {
            assert!(next < insns.len());
            assert!(next > step.at || !forward_only);
        }
        last = Some(step.next);
    });
    let untraced = prepared.run(&packet, &mut SplitMix::new(1));
    assert_eq!(traced, untraced, "tracing changes the answer");
    match last.expect("a program has an instruction") {
        Next::End(value) => assert_eq!(traced, Ok(value)),
        Next::Stopped => assert!(traced.is_err()),
        Next::Insn(_) => panic!("a run ended without an end"),
    }
    Signature::of((traced.is_ok(), steps.min(64), insns.len().min(64)))
}

type Case<'a> = (Vec<SockFilter>, Rules, Semantics, &'a [u8]);

fn split(input: &[u8]) -> Option<Case<'_>> {
    let [choice, len, rest @ ..] = input else {
        return None;
    };
    let (packet, program) = rest.split_at_checked(usize::from(*len))?;
    let rules = if choice & 1 == 0 {
        Rules::Socket
    } else {
        Rules::Capture
    };
    let semantics = if choice & 0x80 == 0 {
        Semantics::Capture
    } else {
        Semantics::Kernel
    };
    Some((instructions(program), rules, semantics, packet))
}
