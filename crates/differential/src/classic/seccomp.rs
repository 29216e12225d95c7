//! seccomp: verdict, errno, every action, and stacks of filters, in forked
//! children.
//!
//! A filter under test decides only about numbers that no system call has, 600 and
//! above, so that the child survives and no call has an effect: an allowed call
//! fails with ENOSYS. Half of the programs return actions, in stacks of up to four;
//! of the others a [`state_dump`] shows the whole values.

use super::{
    Disagreement, FilterComparison, Unavailable, compare_seeds, in_own_namespace, unavailable,
};
use ::seccomp::{Action, decide};
use classic::kernel_limits::{ConvertedLen, check_conversion, check_seccomp_memory};
use classic::{Checked, PlainProgram, Refusal, Rules, SeccompData, Semantics, check};
use isa::classic::{Cond, Insn, Operand, Size, SockFilter};
use std::ops::Range;
use sys::Errno;
use sys::seccomp::{self, Call, Convention, Outcome, instruction_pointer};
use testkit::generate::{Dialect, Generator};
use testkit::state_dump::{Ladder, state_dump};

/// First system call number that filters under test decide about.
const FIRST_NUMBER: u32 = 600;
const X32_BIT: u32 = 0x4000_0000;
const ALLOW: u32 = 0x7fff_0000;
const SIGSYS: i32 = 31;
const ENOSYS: i64 = 38;

/// Compares one generated stack of filters, or the state dump of one, for each seed.
pub fn compare_with_kernel(seeds: Range<u64>) -> Result<FilterComparison, Unavailable> {
    in_own_namespace(|_| {
        let host = Host::explore().map_err(unavailable("fork"))?;
        let mut comparison = FilterComparison::default();
        let make = |seed| question(seed, &host);
        compare_seeds(seeds, &mut comparison, make, |newest, question, found| {
            compare(newest, question, &host, found)
        })
        .map_err(unavailable("seccomp(2)"))?;
        Ok(comparison)
    })
}

/// Compares every 16-bit opcode, and loads at every offset around the data: is a
/// filter of it taken?
pub fn compare_every_opcode() -> Result<FilterComparison, Unavailable> {
    const BATCH: u64 = 64;
    let question = |number: u64| {
        let filter = |number: u64| {
            let insn = match number.checked_sub(1 << 16) {
                Some(offset) => Insn::LoadAbs {
                    size: Size::W,
                    k: (offset as u32).wrapping_sub(8),
                }
                .encode(),
                None => SockFilter::new(number as u16, 0, 0, 1),
            };
            let allow = Insn::RetK(ALLOW).encode();
            vec![insn, allow, allow]
        };
        let mut older: Vec<_> = (number * BATCH..(number + 1) * BATCH).map(filter).collect();
        let newest = older.pop().unwrap_or_default();
        let question = Question {
            older,
            calls: vec![],
            by_state_dump: false,
        };
        (newest, question)
    };
    in_own_namespace(|_| {
        let host = Host::explore().map_err(unavailable("fork"))?;
        let mut comparison = FilterComparison::default();
        let batches = 0..(1 << 16) / BATCH + 2;
        compare_seeds(
            batches,
            &mut comparison,
            question,
            |newest, asked, found| compare(newest, asked, &host, found),
        )
        .map_err(unavailable("seccomp(2)"))?;
        comparison.programs *= BATCH;
        Ok(comparison)
    })
}

/// Properties of this machine that filters can see.
struct Host {
    conventions: Vec<Convention>,
    pointers: [u64; 2],
}

impl Host {
    fn explore() -> Result<Host, Errno> {
        let nobody = Call {
            convention: Convention::I386,
            nr: FIRST_NUMBER as i32,
            args: [0; 6],
        };
        let mut host = Host {
            conventions: vec![Convention::X86_64],
            pointers: [instruction_pointer(Convention::X86_64), 0],
        };
        // A kernel without 32-bit system calls kills who makes one.
        let answer = seccomp::run(&[], &[nobody])?;
        if answer.outcomes == [Outcome::Returned(-ENOSYS)] {
            host.conventions.push(Convention::I386);
            host.pointers[1] = instruction_pointer(Convention::I386);
        }
        Ok(host)
    }

    /// Input of a filter for a call.
    fn data(&self, call: &Call) -> SeccompData {
        let (arch, instruction_pointer) = match call.convention {
            Convention::X86_64 => (0xc000_003e, self.pointers[0]),
            Convention::I386 => (0x4000_0003, self.pointers[1]),
        };
        SeccompData {
            nr: call.nr,
            arch,
            instruction_pointer,
            // Whole registers, although `int 0x80` uses their lower halves.
            args: call.args,
        }
    }
}

struct Question {
    /// Filters installed before the program.
    older: Vec<Vec<SockFilter>>,
    calls: Vec<Call>,
    /// Show the values of the program by a state dump?
    by_state_dump: bool,
}

fn question(seed: u64, host: &Host) -> (Vec<SockFilter>, Question) {
    let mut generator = Generator::new(seed);
    let by_state_dump = seed % 2 == 1;
    let calls = calls(&mut generator, host);
    let filter = |generator: &mut Generator| {
        let program = match generator.below(4) {
            0 => generator.mutant(Dialect::Seccomp),
            _ => {
                let len = generator.program_len();
                generator.program(Dialect::Seccomp, len)
            }
        };
        if by_state_dump {
            program
        } else {
            with_actions(generator, &program)
        }
    };
    let newest = filter(&mut generator);
    let older = match generator.below(200) {
        // More than a process may have.
        0 => (0..12)
            .map(|_| generator.program(Dialect::Seccomp, 4000))
            .collect(),
        _ if by_state_dump => vec![],
        n => (0..n % 4).map(|_| filter(&mut generator)).collect(),
    };
    let question = Question {
        older,
        calls,
        by_state_dump,
    };
    (newest, question)
}

/// Calls of different numbers.
fn calls(generator: &mut Generator, host: &Host) -> Vec<Call> {
    (0..8)
        .map(|n| {
            let convention = generator.pick(&host.conventions);
            let number = FIRST_NUMBER + 50 * n + generator.below(50);
            let x32 = convention == Convention::X86_64 && generator.one_in(4);
            let args = [(); 6].map(|()| match generator.below(3) {
                0 => u64::from(generator.below(9)),
                1 => u64::from(generator.bits()),
                _ => u64::from(generator.bits()) << 32 | u64::from(generator.below(3)),
            });
            Call {
                convention,
                nr: (number | if x32 { X32_BIT } else { 0 }) as i32,
                args,
            }
        })
        .collect()
}

/// The program with most of its return values replaced by actions.
fn with_actions(generator: &mut Generator, program: &[SockFilter]) -> Vec<SockFilter> {
    const ACTIONS: [u32; 9] = [
        0x8000_0000,
        0,
        0x0003_0000,
        0x0005_0000,
        0x7fc0_0000,
        0x7ff0_0000,
        0x7ffc_0000,
        ALLOW,
        ALLOW,
    ];
    let mut action = || match generator.below(8) {
        0 => generator.bits(), // mostly one that nobody knows
        1 => generator.pick(&[0x0005_0fff, 0x0005_1000, 0x0005_ffff, 0xffff_0000]),
        // Killing would end the story early too often.
        2 => generator.pick(&ACTIONS) | generator.below(0x1_0000),
        _ => generator.pick(&ACTIONS[2..]) | generator.below(200),
    };
    let act = |&raw: &SockFilter| match Insn::decode(raw) {
        Insn::RetK(_) | Insn::RetA => Insn::RetK(action()).encode(),
        _ => raw,
    };
    program.iter().map(act).collect()
}

/// The filter that applies the program to numbers from [`FIRST_NUMBER`] on and
/// allows the others. The program finds its registers zero, as it expects.
fn guarded(program: &[SockFilter]) -> Vec<SockFilter> {
    if program.is_empty() {
        return vec![];
    }
    let guard = [
        Insn::LoadAbs {
            size: Size::W,
            k: 0,
        },
        Insn::Jump {
            cond: Cond::Ge,
            src: Operand::K(FIRST_NUMBER),
            jt: 1,
            jf: 0,
        },
        Insn::RetK(ALLOW),
        Insn::LoadImm(0),
    ];
    let guard = guard.into_iter().map(Insn::encode);
    guard.chain(program.iter().copied()).collect()
}

fn compare(
    newest: &[SockFilter],
    question: &Question,
    host: &Host,
    found: &mut FilterComparison,
) -> Result<Option<Disagreement>, Errno> {
    let mut filters: Vec<_> = question.older.iter().map(|old| guarded(old)).collect();
    let data: Vec<SeccompData> = question.calls.iter().map(|call| host.data(call)).collect();
    let mut newest = guarded(newest);
    if question.by_state_dump
        && let Ok(checked) = check(&newest, Rules::Seccomp)
    {
        let values = data
            .iter()
            .map(|data| (data.nr as u32, run(&checked, data)));
        let values: Vec<_> = values.collect();
        newest = match state_dump(&newest, Ladder::BY_SYSCALL, &values) {
            Some(state_dump) => led_past_the_ladder(state_dump),
            None => return Ok(None),
        };
    }
    filters.push(newest);
    let verdicts = verdicts(&filters);
    let borrowed: Vec<&[SockFilter]> = filters.iter().map(|filter| &filter[..]).collect();
    let kernel = seccomp::run(&borrowed, &question.calls)?;
    for (model, &kernel) in verdicts.iter().zip(&kernel.installed) {
        let same = match (model, kernel) {
            (Ok(_), Ok(())) => true,
            (Err(refusal), Err(Errno(errno))) => refusal.errno == errno,
            _ => false,
        };
        if !same {
            let model = model.as_ref().map(|_| ()).map_err(|&refusal| refusal);
            return Ok(Some(Disagreement::Verdict { kernel, model }));
        }
        match model {
            Ok(_) => found.coverage.accept(),
            Err(refusal) => found.coverage.refuse(refusal),
        }
    }
    let accepted: Vec<&Checked> = verdicts.iter().flatten().collect();
    let mut alive = true;
    for ((call, data), outcome) in question.calls.iter().zip(&data).zip(kernel.outcomes) {
        let model = if alive {
            expected(call, data, &accepted)
        } else {
            Outcome::NotMade
        };
        alive &= !matches!(model, Outcome::Killed { .. });
        if model != outcome {
            return Ok(Some(Disagreement::Result {
                input: format!("{call:x?} with {} filters", accepted.len()),
                kernel: format!("{outcome:?}"),
                model: format!("{model:?}"),
            }));
        }
        found.runs += 1;
    }
    if let (Some(Ok(checked)), Some(filter), Some(data)) =
        (verdicts.last(), filters.last(), data.first())
    {
        let mut steps = Vec::new();
        let program = PlainProgram::prepare(checked, Semantics::Kernel);
        let ended = program.trace_seccomp(data, &mut |step| steps.push(step));
        debug_assert!(ended.is_ok());
        found.coverage.run(filter, Rules::Seccomp, &steps);
    }
    Ok(None)
}

/// A state dump leads every return to its ladder, the guard's too: that one has to
/// allow, or the child could not even end.
fn led_past_the_ladder(mut state_dump: Vec<SockFilter>) -> Vec<SockFilter> {
    // Of the guard's `ret` became a load and a jump; a return in the place of the
    // load makes the jump unreachable.
    if let Some(insn) = state_dump.get_mut(2) {
        *insn = Insn::RetK(ALLOW).encode();
    }
    state_dump
}

/// The model's result for each filter, installed in this order.
fn verdicts(filters: &[Vec<SockFilter>]) -> Vec<Result<Checked, Refusal>> {
    let mut installed: Vec<ConvertedLen> = Vec::new();
    let mut verdict_of = |filter: &Vec<SockFilter>| {
        let checked = check(filter, Rules::Seccomp)?;
        let len = check_conversion(&checked)?;
        check_seccomp_memory(len, installed.iter().copied())?;
        installed.push(len);
        Ok(checked)
    };
    filters.iter().map(&mut verdict_of).collect()
}

fn run(checked: &Checked, data: &SeccompData) -> u32 {
    PlainProgram::prepare(checked, Semantics::Kernel)
        .run_seccomp(data)
        .expect("programs for seccomp only jump forward")
}

/// Result of a call, without tracer and supervisor.
fn expected(call: &Call, data: &SeccompData, filters: &[&Checked]) -> Outcome {
    let action = decide(filters.iter().map(|filter| run(filter, data)));
    match action.effect() {
        Action::KillProcess | Action::KillThread | Action::Unknown(_) => {
            Outcome::Killed { signal: SIGSYS }
        }
        Action::Trap(value) => Outcome::Trapped {
            data: value.into(),
            nr: call.nr,
            arch: data.arch,
        },
        Action::Errno(errno) => Outcome::Returned(-i64::from(errno)),
        Action::UserNotif | Action::Trace(_) | Action::Log | Action::Allow => {
            Outcome::Returned(-ENOSYS)
        }
    }
}
