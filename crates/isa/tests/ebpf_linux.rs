//! Valid slots and the text of Linux's verifier log.

use beebox_isa::ebpf::{Callee, Fault, Group, Insn, decode, encode, from_bytes};

const ANSWERS: &str = include_str!("linux-6.18/slots.txt");

struct Answer<'a> {
    insn: Insn,
    bytes: Vec<u8>,
    verdict: &'a str,
    text: Option<&'a str>,
}

fn answers() -> impl Iterator<Item = Answer<'static>> {
    ANSWERS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let mut words = line.splitn(3, ' ');
            let hex = words.next().expect("a slot");
            let bytes: Vec<u8> = (0..hex.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
                .collect();
            let insn = decode(&from_bytes(&bytes).expect("whole slots"))[0];
            Answer {
                insn,
                bytes,
                verdict: words.next().expect("a verdict"),
                text: words.next(),
            }
        })
}

#[oracle::test]
fn faults_match_linux() {
    let mut wrong = Vec::new();
    for Answer {
        insn,
        bytes,
        verdict,
        ..
    } in answers()
    {
        let fault = match insn {
            Insn::Invalid { fault, .. } => Some(fault),
            _ => None,
        };
        let later = insn.row().is_some_and(|row| row.group == Group::Later);
        // For loads of an unknown mode, Linux reports fields although the opcode is
        // unknown.
        let load_mode = bytes[0] & 7 == 1 && fault == Some(Fault::UnknownOpcode);
        let agrees = match verdict.trim_end_matches('!') {
            "unknown" => fault == Some(Fault::UnknownOpcode) || later,
            "reserved" => fault == Some(Fault::ReservedField) || load_mode,
            "register" => fault == Some(Fault::RegisterOutOfRange),
            // Linux may report another error before it checks registers.
            "fields" => matches!(fault, None | Some(Fault::RegisterOutOfRange)),
            other => panic!("unknown verdict {other}"),
        };
        if !agrees {
            wrong.push(format!(
                "{bytes:02x?}: Linux says {verdict}, we say {insn:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Invalid slots that Linux's log prints by no row: atomics of one and two bytes, 32-bit
/// moves from 32 bits, per-CPU addresses, the slot of `may_goto` as a conditional branch,
/// and a broken 64-bit immediate (of which the invalid value holds the first slot only).
fn has_its_own_text(bytes: &[u8]) -> bool {
    let off = i16::from_le_bytes([bytes[2], bytes[3]]);
    match bytes[0] {
        0xcb | 0xd3 | 0xe5 | 0x18 => true,
        0xbc => off == 32,
        0xbf => off == -1,
        _ => false,
    }
}

#[oracle::test]
fn the_log_form_matches_linux() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for Answer {
        insn, bytes, text, ..
    } in answers()
    {
        let Some(text) = text else { continue };
        if matches!(insn, Insn::Invalid { .. }) && has_its_own_text(&bytes) {
            continue;
        }
        // Names of helpers are tested elsewhere.
        let name = text
            .strip_prefix("(85) call ")
            .and_then(|rest| rest.split('#').next());
        let ours = insn.kernel_form(&|_: Callee| name).to_string();
        if ours != text {
            wrong.push(format!(
                "{bytes:02x?}: Linux prints {text}, we print {ours}"
            ));
        }
        compared += 1;
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(compared > 1_500, "{compared}");
}

#[oracle::test]
fn valid_slots_encode_to_themselves() {
    for Answer {
        insn,
        bytes,
        verdict,
        ..
    } in answers()
    {
        // Linux ignores the offset of `exit`.
        if verdict != "fields" || insn == Insn::Exit {
            continue;
        }
        let slots = from_bytes(&bytes).expect("whole slots");
        assert_eq!(encode(&decode(&slots)), Ok(slots));
    }
}
