//! Programs that the reference evaluator accepts have one result for all addresses of
//! memory and stack.

use isa::ebpf::{Insn, assemble, decode, encode};
use spec::SplitMix;
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference::{self, Addresses, Fault, Limits};
use testkit::ebpf::{Choices, Dialect, Entry, Generator};

/// Up there with other low bits, below what a 32-bit constant takes away, and where
/// numbers would be negative.
const ELSEWHERE: [Addresses; 3] = [
    Addresses {
        memory: 0x8234_5678_a3c8,
        stack: 0x8100_0012_3458,
    },
    Addresses {
        memory: 0x1000_0eb0,
        stack: 0x0100_0a30,
    },
    Addresses {
        memory: 0xffff_8880_9000_0000,
        stack: 0xffff_c900_9012_3000,
    },
];
const PROGRAMS: u64 = 5_000;

type Outcome = Result<(u64, Vec<u8>), Fault>;

fn run(insns: &[Insn], memory: &[u8], place: Addresses) -> Outcome {
    let mut memory = memory.to_vec();
    let mut random = SplitMix::new(1);
    let limits = Limits {
        steps: 100_000,
        place,
    };
    let r0 = reference::run(
        insns,
        &mut memory,
        &mut random,
        limits,
        &mut Coverage::new(),
    )?;
    Ok((r0, memory))
}

/// One or two bits of an instruction other than they were.
fn damaged(insns: &[Insn], random: &mut SplitMix) -> Option<Vec<Insn>> {
    let mut slots = encode(insns).ok()?;
    for _ in 0..1 + random.next_u64() % 2 {
        let at = random.next_u64() as usize % slots.len();
        let slot = &mut slots[at];
        match random.next_u64() % 4 {
            0 => slot.code ^= 1 << (random.next_u64() % 8),
            1 => slot.off ^= 1 << (random.next_u64() % 16),
            2 => slot.imm ^= 1 << (random.next_u64() % 32),
            _ => slot.regs ^= 1 << (random.next_u64() % 8),
        }
    }
    Some(decode(&slots))
}

fn listing(insns: &[Insn]) -> String {
    insns.iter().map(|insn| format!("{insn}\n")).collect()
}

#[oracle::test]
fn what_is_safe_is_so_everywhere() {
    let generator = Generator::new(Dialect::Engines);
    let mut random = SplitMix::new(0x91ace);
    let (mut safe, mut telling) = (0, 0);
    for seed in 0..PROGRAMS {
        let mut choices = Choices::from_seed(seed);
        let program = generator.program(&mut choices);
        let words = program.memory(&mut choices);
        let memory: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let Some(insns) = damaged(&program.code(Entry::Memory), &mut random) else {
            continue;
        };
        match run(&insns, &memory, Addresses::default()) {
            Ok(outcome) => {
                safe += 1;
                for place in ELSEWHERE {
                    let there = run(&insns, &memory, place);
                    assert_eq!(
                        there.as_ref(),
                        Ok(&outcome),
                        "{place:x?}:\n{}",
                        listing(&insns)
                    );
                }
            }
            Err(Fault::AddressDependent) => telling += 1,
            Err(_) => {}
        }
    }
    assert!(safe > PROGRAMS / 8, "{safe} safe programs");
    assert!(telling > PROGRAMS / 500, "{telling} programs that tell");
}

fn outcome(text: &str) -> Outcome {
    run(&assemble(text).unwrap(), &[7; 16], Addresses::default())
}

#[oracle::test]
fn what_tells_a_place_is_refused() {
    for text in [
        "r0 = r1\nexit",
        "r0 = 0\n*(u64 *)(r1 + 0) = r10\nexit",
        "r0 = (s32)r1\nif r0 > r1 goto +0\nr0 = 0\nexit",
        "r0 = 0\n*(u64 *)(r10 - 8) = r1\nr3 = *(u32 *)(r10 - 6)\nif r3 == 5 goto +0\nexit",
        "r0 = 0\nif r1 > r10 goto +0\nexit",
        "r0 = 0\nif w1 == w1 goto +0\nexit",
        "r0 = 0\nif r1 > 4096 goto +0\nexit",
        "r0 = 0\nr3 = r1\nr1 <<= 63\nr3 += r1\nif r3 == r1 goto +0\nexit",
        "r0 = r1\nr3 = -1 ll\nr0 += r3\nr0 -= r10\nexit",
    ] {
        assert_eq!(outcome(text), Err(Fault::AddressDependent), "{text}");
    }
    // An address that was made of another region's, or of a number.
    let guessed = format!(
        "r1 = {} ll\nr0 = *(u64 *)(r1 + 0)\nexit",
        0x7000_0000_1000_u64
    );
    assert!(matches!(outcome(&guessed), Err(Fault::OutOfBounds(_))));
    // The stack of a function that has ended.
    let ended = "call pc+3\n*(u64 *)(r10 - 8) = 1\nr0 = *(u64 *)(r0 - 8)\nexit\n\
                 *(u64 *)(r10 - 8) = 1\nr0 = r10\nexit";
    assert!(matches!(outcome(ended), Err(Fault::OutOfBounds(_))));
}

#[oracle::test]
fn addresses_may_be_kept_and_compared() {
    for text in [
        "r0 = r1\nr0 -= r1\nexit",
        "*(u64 *)(r10 - 8) = r1\nr3 = *(u64 *)(r10 - 8)\nr0 = *(u8 *)(r3 + 3)\nr0 -= 7\nexit",
        "r3 = r1\nr3 += 8\nr0 = 0\nif r3 > r1 goto +1\nr0 = 1\nexit",
        "r3 = r1\nr3 += 8\nr0 = 0\nif r3 s> r1 goto +1\nr0 = 1\nexit",
        "r3 = r10\nr3 = *(u64 *)(r1 + 0)\nr0 = 0\nexit",
    ] {
        assert_eq!(outcome(text), Ok((0, vec![7; 16])), "{text}");
    }
}
