//! Fusions of the interpreter on packet filters: with all of them, and with each disabled in
//! turn, on packets truncated at every length, against the plain interpreter.

use classic::text::{self, Form};
use classic::{Checked, PlainProgram, Rules, Semantics, check, convert};
use interp::{Fusion, Fusions, ThreadedProgram};
use lower::ClassicFilter;
use packet::{Metadata, Packet};
use spec::SplitMix;
use testkit::generate::Generator;
use vm::{Machine, Outcome};

/// Backward jumps of a run; these filters make none.
const BUDGET: u64 = 1 << 20;

/// The fusions that only packet filters have.
const OF_PACKETS: [Fusion; 4] = [
    Fusion::PacketTest,
    Fusion::HeaderLength,
    Fusion::PacketTests,
    Fusion::PortTests,
];

/// Number of times that each of [`OF_PACKETS`] was applied to a filter, after its runs
/// agreed.
fn agrees(
    filter: &str,
    checked: &Checked,
    semantics: Semantics,
    fusions: Fusions,
    packets: &[Vec<u8>],
) -> [u32; 4] {
    let plain = PlainProgram::prepare(checked, semantics);
    let lowered = ClassicFilter::from_converted(convert(checked, semantics)).packet();
    let lowered = lowered.expect("the rules are those of packets");
    let code = ThreadedProgram::compile_with(&lowered, fusions).expect("every filter compiles");
    let mut machine = Machine::new();
    for bytes in packets {
        for len in 0..=bytes.len() {
            let (data, meta) = (&bytes[..len], Metadata::UNKNOWN);
            let packet = Packet::captured(data, bytes.len() as u32, &meta);
            let expected = plain.run(&packet, &mut SplitMix::new(7));
            let outcome = code.run(&mut machine, &packet, &mut SplitMix::new(7), BUDGET);
            let Outcome::Returned(found) = outcome else {
                panic!("{filter}\nended with {outcome:?}");
            };
            assert_eq!(
                Ok(found as u32),
                expected,
                "{filter}\n{semantics:?} {fusions:?} {data:02x?}"
            );
        }
    }
    OF_PACKETS.map(|fusion| code.code().applied().count(fusion))
}

#[oracle::test]
fn generated_filters_agree() {
    let mut applied = [0; 4];
    for seed in 0..12_000 {
        let mut generator = Generator::new(seed);
        let program = generator.filter();
        let checked = check(&program, Rules::Capture).expect("generated programs are valid");
        let packets: Vec<_> = (0..4).map(|_| generator.packet_bytes(70)).collect();
        let one = Fusion::ALL[seed as usize % Fusion::ALL.len()];
        let filter = format!("seed {seed}: {program:x?}");
        for semantics in [Semantics::Capture, Semantics::Kernel] {
            let counts = agrees(&filter, &checked, semantics, Fusions::ALL, &packets);
            for (sum, count) in applied.iter_mut().zip(counts) {
                *sum += count;
            }
            let fewer = Fusions::ALL.without(one);
            agrees(&filter, &checked, semantics, fewer, &packets);
        }
    }
    // Otherwise the test proves little.
    assert!(applied.iter().all(|&count| count >= 20), "{applied:?}");
}

/// An SSH packet, and others in which one or two bytes of the tested fields differ.
fn packets() -> Vec<Vec<u8>> {
    let mut ssh = vec![0; 60];
    ssh[12..15].copy_from_slice(&[8, 0, 0x45]);
    ssh[23] = 6;
    ssh[34..38].copy_from_slice(&[0xc0, 0x01, 0, 22]);
    let changes = [12, 13, 14, 20, 21, 23, 34, 35, 36, 37]
        .into_iter()
        .flat_map(|at| [0, 1, 6, 17, 22, 0x46, 0x86].map(|value| (at, value)));
    let changes: Vec<(usize, u8)> = changes.collect();
    let mut packets = vec![ssh.clone()];
    for &(at, value) in &changes {
        for &(other, second) in &changes {
            let mut bytes = ssh.clone();
            (bytes[at], bytes[other]) = (value, second);
            packets.push(bytes);
        }
    }
    packets
}

#[oracle::test]
fn every_fusion_can_be_disabled() {
    let filter = include_str!("../../bench/programs/port-22.asm");
    let program = text::read(filter.as_bytes(), Some(Form::Asm)).expect(filter);
    let checked = check(&program, Rules::Capture).expect(filter);
    let packets = packets();
    for semantics in [Semantics::Capture, Semantics::Kernel] {
        let counts = agrees(filter, &checked, semantics, Fusions::ALL, &packets);
        assert!(counts[3] > 0, "{counts:?}");
        for &one in Fusion::ALL {
            let fewer = Fusions::ALL.without(one);
            agrees(filter, &checked, semantics, fewer, &packets);
        }
    }
}
