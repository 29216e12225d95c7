//! Generated eBPF programs against the kernel's compiler.
//!
//! Each is loaded as an XDP program and run on a packet by BPF_PROG_TEST_RUN; the
//! reference evaluator runs the same body on the same bytes. The returned value
//! (its low 32 bits are seen) and every byte of the packet must be the same. A
//! program that the verifier refuses is counted by its reason and compared with
//! nothing.

use isa::ebpf::{Insn, encode};
use kernel_client::{Unavailable, kernel_release, unavailable};
use spec::SplitMix;
use spec::programs::ProgramType;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use sys::Errno;
use sys::bpf::{LoadError, LogLevel, ProgLoad, TestRun};
use testkit::ebpf::coverage::Coverage;
use testkit::ebpf::reference::{self, Limits};
use testkit::ebpf::shrink::shrink;
use testkit::ebpf::{Choices, Dialect, Entry, Generator, Program};

/// Packets that each program runs on.
const PACKETS: u64 = 2;
/// Differences after which a comparison stops.
const ENOUGH: usize = 5;
/// Programs of which the reason of a refusal is kept.
const KEPT_REASONS: usize = 200;

/// Result of a comparison.
#[derive(Clone, Debug)]
pub struct EbpfComparison {
    /// Programs generated.
    pub programs: u64,
    /// Programs that the verifier let pass.
    pub accepted: u64,
    /// Runs compared.
    pub runs: u64,
    /// Coverage of the accepted programs.
    pub coverage: Coverage,
    /// The verifier's reasons, each with how often and one seed.
    pub refused: BTreeMap<String, (u64, u64)>,
    /// Differences.
    pub differences: Vec<EbpfDifference>,
}

/// A run that ended differently.
#[derive(Clone, Debug)]
pub struct EbpfDifference {
    /// The seed that made the program.
    pub seed: u64,
    /// The program as the kernel was given it, shrunk.
    pub program: Vec<Insn>,
    /// The packet.
    pub packet: Vec<u8>,
    /// The kernel's result.
    pub kernel: String,
    /// The result of the reference evaluator.
    pub reference: String,
}

impl EbpfDifference {
    /// The difference in words, with the program.
    pub fn describe(&self) -> String {
        let mut text = format!(
            "seed {}: kernel {}, reference {}\npacket {}\n",
            self.seed,
            self.kernel,
            self.reference,
            hex(&self.packet)
        );
        for insn in &self.program {
            let _ = writeln!(text, "{insn}");
        }
        text
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A value and the packet afterwards.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    value: u32,
    packet: Vec<u8>,
}

/// Compares programs from these seeds.
pub fn compare_with_kernel(seeds: Range<u64>) -> Result<EbpfComparison, Unavailable> {
    kernel_release()?;
    let generator = Generator::new(Dialect::Kernel);
    let mut found = EbpfComparison::default();
    for seed in seeds {
        if found.differences.len() >= ENOUGH {
            break;
        }
        let mut choices = Choices::from_seed(seed);
        let program = generator.program(&mut choices);
        let packets: Vec<Vec<u8>> = (0..PACKETS)
            .map(|_| packet(&program, &mut choices))
            .collect();
        found.compare(seed, &program, &packets)?;
    }
    Ok(found)
}

/// A packet for the program: Linux requires 14 bytes at least.
fn packet(program: &Program, choices: &mut Choices<'_>) -> Vec<u8> {
    let words = program.memory(choices);
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl Default for EbpfComparison {
    fn default() -> EbpfComparison {
        EbpfComparison {
            programs: 0,
            accepted: 0,
            runs: 0,
            coverage: Coverage::new(),
            refused: BTreeMap::new(),
            differences: Vec::new(),
        }
    }
}

impl EbpfComparison {
    /// Adds another comparison.
    pub fn add(&mut self, other: EbpfComparison) {
        self.programs += other.programs;
        self.accepted += other.accepted;
        self.runs += other.runs;
        self.coverage.add(&other.coverage);
        for (reason, (count, seed)) in other.refused {
            self.refused.entry(reason).or_insert((0, seed)).0 += count;
        }
        self.differences.extend(other.differences);
    }

    fn compare(
        &mut self,
        seed: u64,
        program: &Program,
        packets: &[Vec<u8>],
    ) -> Result<(), Unavailable> {
        self.programs += 1;
        let (theirs, ours) = (program.code(Entry::Xdp), program.code(Entry::Memory));
        let answers = match ask(&theirs, packets) {
            Ok(answers) => answers,
            Err(Asked::Refused(refused)) if refused.is_unavailable() => {
                return Err(unavailable("BPF_PROG_LOAD")(refused.errno));
            }
            Err(Asked::Refused(_)) => {
                self.note_refusal(seed, &theirs);
                return Ok(());
            }
            Err(Asked::NotRun(errno)) => return Err(unavailable("BPF_PROG_TEST_RUN")(errno)),
        };
        self.accepted += 1;
        self.coverage.made(&program.notes);
        for (packet, kernel) in packets.iter().zip(answers) {
            self.runs += 1;
            let reference = evaluate(&ours, packet, seed, &mut self.coverage);
            if reference.as_ref() == Ok(&kernel) {
                continue;
            }
            let program = shrink(&theirs, |smaller| differs(smaller, packet, seed));
            self.differences.push(EbpfDifference {
                seed,
                packet: packet.clone(),
                kernel: describe(&ask_one(&program, packet)),
                reference: describe(&evaluate_xdp(&program, packet, seed).ok()),
                program,
            });
            break;
        }
        Ok(())
    }

    fn note_refusal(&mut self, seed: u64, program: &[Insn]) {
        let known: u64 = self.refused.values().map(|(count, _)| count).sum();
        let reason = if known < KEPT_REASONS as u64 {
            reason(program)
        } else {
            "another".to_owned()
        };
        self.refused.entry(reason).or_insert((0, seed)).0 += 1;
    }

    /// The counts as a row of a table.
    pub fn refusals_markdown(&self) -> String {
        let mut text = String::from("\n| Why Linux refused | programs |\n| --- | ---: |\n");
        for (reason, (count, _)) in &self.refused {
            let _ = writeln!(text, "| {} | {count} |", reason.replace('|', "\\|"));
        }
        text
    }
}

fn describe(answer: &Option<Answer>) -> String {
    match answer {
        Some(answer) => format!("{:#x} {}", answer.value, hex(&answer.packet)),
        None => "nothing".to_owned(),
    }
}

/// Reason why the kernel gave no answer.
enum Asked {
    Refused(LoadError),
    NotRun(Errno),
}

/// The kernel's answers.
fn ask(program: &[Insn], packets: &[Vec<u8>]) -> Result<Vec<Answer>, Asked> {
    // What was generated or is left of it has an encoding.
    let slots = encode(program).unwrap_or_default();
    let request = ProgLoad::new(ProgramType::Xdp.number(), &slots);
    let (program, _) = request.load().map_err(Asked::Refused)?;
    let run = |packet: &Vec<u8>| {
        let mut after = vec![0; packet.len()];
        let run = program.test_run(&TestRun::on(packet), &mut after, &mut []);
        run.map(|tested| Answer {
            value: tested.retval,
            packet: after,
        })
    };
    let answers: Result<Vec<Answer>, Errno> = packets.iter().map(run).collect();
    answers.map_err(Asked::NotRun)
}

fn ask_one(program: &[Insn], packet: &[u8]) -> Option<Answer> {
    let packets = [packet.to_vec()];
    ask(program, &packets).ok()?.pop()
}

/// The packet as an XDP program leaves it in the kernel.
pub fn kernel_packet(program: &[Insn], packet: &[u8]) -> Result<Vec<u8>, Unavailable> {
    kernel_release()?;
    let answers = ask(program, &[packet.to_vec()]);
    let errno = |why| match why {
        Asked::Refused(refused) => refused.errno,
        Asked::NotRun(errno) => errno,
    };
    let mut answers = answers.map_err(|why| unavailable("bpf(2)")(errno(why)))?;
    Ok(answers.pop().map_or(Vec::new(), |answer| answer.packet))
}

/// The packet as an XDP program leaves it by the reference evaluator.
pub fn reference_packet(program: &[Insn], packet: &[u8]) -> Result<Vec<u8>, reference::Fault> {
    Ok(evaluate_xdp(program, packet, 0)?.packet)
}

/// The reference's answer.
fn evaluate(
    program: &[Insn],
    packet: &[u8],
    seed: u64,
    coverage: &mut Coverage,
) -> Result<Answer, reference::Fault> {
    let mut packet = packet.to_vec();
    let mut random = SplitMix::new(seed);
    let limits = Limits::default();
    let value = reference::run(program, &mut packet, &mut random, limits, coverage)? as u32;
    Ok(Answer { value, packet })
}

/// The reference's answer to a program that begins as XDP programs do.
fn evaluate_xdp(program: &[Insn], packet: &[u8], seed: u64) -> Result<Answer, reference::Fault> {
    let mut packet = packet.to_vec();
    let mut random = SplitMix::new(seed);
    let limits = Limits::default();
    let mut coverage = Coverage::new();
    let value =
        reference::run_xdp(program, &mut packet, &mut random, limits, &mut coverage)? as u32;
    Ok(Answer { value, packet })
}

/// True if a reduced program still shows a difference and is safe by the verifier and the
/// reference evaluator.
fn differs(program: &[Insn], packet: &[u8], seed: u64) -> bool {
    let reference = evaluate_xdp(program, packet, seed);
    let kernel = ask_one(program, packet);
    matches!((reference, kernel), (Ok(ours), Some(theirs)) if ours != theirs)
}

/// The verifier's words, without its numbers and the registers it tells of.
fn reason(program: &[Insn]) -> String {
    let slots = encode(program).unwrap_or_default();
    let request = ProgLoad {
        log_level: LogLevel::LEVEL1,
        log_size: 1 << 24,
        ..ProgLoad::new(ProgramType::Xdp.number(), &slots)
    };
    let refused = match request.load() {
        Ok(_) => return "taken at the second time".to_owned(),
        Err(refused) => refused,
    };
    let words = refused
        .reason()
        .chars()
        .fold(String::new(), |mut text, letter| {
            match (letter.is_ascii_digit(), text.ends_with('#')) {
                (true, true) => {}
                (true, false) => text.push('#'),
                (false, _) => text.push(letter),
            }
            text
        });
    // The states in which it came by a second time are its last words.
    let words = match words.starts_with("old state:") {
        true => "infinite loop detected at insn #",
        false => words.as_str(),
    };
    format!("{}: {words}", refused.errno)
}
