//! The check of a program's structure.
//!
//! Engines rely on the structure of programs whose safety the caller asserts: every slot is
//! a valid instruction, jumps target instructions of their function, calls target
//! functions, no function falls off its end, the frame pointer is never written, and calls
//! neither recurse nor exceed the frames.
//!
//! A function extends from the entry or the target of a call to the next one, as in Linux.
//! Cost: linear: one pass over the slots; the other checks visit jumps and calls only.

use std::fmt;

use isa::ebpf::{AddrSpaceCast, Callee, Fault, Imm64, Insn, Reg};
use vm::{Implementation, MAX_FRAMES};

use crate::flow::falls_through;
use spec::limits;

/// Largest number of slots of a program (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const MAX_SLOTS: usize = limits::INSNS_PROCESSED as usize;

/// A function of a program: the slots `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// First slot, the target of calls.
    pub start: usize,
    /// Slot after the last one.
    pub end: usize,
}

/// A structural error of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// Slot of the error.
    pub slot: usize,
    /// Description of the error.
    pub problem: Problem,
}

/// Kind of a structural error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// The program has no instructions.
    Empty,
    /// The program has more than [`MAX_SLOTS`] slots.
    TooLong,
    /// The slot is no valid instruction.
    Invalid(Fault),
    /// The instruction has no encoding.
    NoEncoding,
    /// The second slot of a 64-bit immediate is missing, or has no first slot.
    BrokenImm64,
    /// A jump or call out of the program.
    TargetOutside,
    /// A jump or call to the second slot of a 64-bit immediate.
    TargetInsideImm64,
    /// A jump to another function.
    TargetInOtherFunction,
    /// The last instruction of a function falls through.
    FallsOffEnd,
    /// A write to `r10`.
    WritesFramePointer,
    /// An unknown helper.
    UnknownHelper(i32),
    /// A cast between address spaces other than 0 and 1.
    UnknownAddressSpace(AddrSpaceCast),
    /// A reference that needs linking: a map, a variable, a function's address, a kfunc.
    Unlinked,
    /// An indirect jump or call, which Linux 6.18 does not have either.
    Indirect,
    /// A function calls itself, directly or indirectly.
    Recursion,
    /// The call depth exceeds the number of frames.
    TooDeep,
}

/// Finds the function of a helper or kfunc by its number.
pub type FindCall = fn(i32) -> Option<Implementation>;

/// Checks the structure of a program, whose helpers have these numbers; returns its
/// functions, the entry first.
pub(crate) fn check_structure(
    insns: &[Insn],
    is_helper: impl Fn(i32) -> bool,
) -> Result<Vec<Function>, Malformed> {
    if insns.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    if insns.len() > MAX_SLOTS {
        return Err(Problem::TooLong.at(MAX_SLOTS));
    }
    let transfers = check_slots(insns, &is_helper)?;
    let (functions, numbers) = functions(insns, &transfers.calls)?;
    check_flow(insns, &functions, &transfers.jumps)?;
    if !transfers.calls.is_empty() {
        check_depth(&functions, &numbers, &transfers.calls)?;
    }
    Ok(functions)
}

/// The jumps and local calls of a program, in ascending order of slot.
struct Transfers {
    jumps: Vec<Transfer>,
    /// Local calls.
    calls: Vec<Transfer>,
}

/// A jump or local call.
#[derive(Clone, Copy)]
struct Transfer {
    slot: u32,
    /// Distance in slots from the next one.
    distance: i32,
}

impl Transfer {
    fn new(slot: usize, distance: i32) -> Transfer {
        let slot = slot as u32;
        Transfer { slot, distance }
    }

    fn slot(self) -> usize {
        self.slot as usize
    }

    fn target(self) -> i64 {
        i64::from(self.slot) + 1 + i64::from(self.distance)
    }
}

impl Problem {
    fn at(self, slot: usize) -> Malformed {
        Malformed {
            slot,
            problem: self,
        }
    }
}

/// Checks every slot; returns the jumps and calls.
#[inline(never)]
fn check_slots(insns: &[Insn], is_helper: &dyn Fn(i32) -> bool) -> Result<Transfers, Malformed> {
    let mut transfers = Transfers {
        jumps: Vec::with_capacity(insns.len() / 4 + 1),
        calls: Vec::new(),
    };
    for (slot, insn) in insns.iter().enumerate() {
        // Every value of the frequent kinds has an encoding (tested).
        match *insn {
            Insn::Alu { dst, .. }
            | Insn::Load {
                signed: false, dst, ..
            } if dst != Reg::R10 => {}
            Insn::Store { .. } => {}
            Insn::Jump { off, .. } => transfers.jumps.push(Transfer::new(slot, off.into())),
            _ => check_slot(insns, slot, &mut transfers, is_helper)
                .map_err(|problem| problem.at(slot))?,
        }
    }
    Ok(transfers)
}

/// Checks an instruction by itself and its neighbours; records its target.
#[inline(never)]
fn check_slot(
    insns: &[Insn],
    slot: usize,
    transfers: &mut Transfers,
    is_helper: &dyn Fn(i32) -> bool,
) -> Result<(), Problem> {
    match insns[slot] {
        Insn::Exit => {}
        Insn::Goto { off } | Insn::MayGoto { off } => {
            transfers.jumps.push(Transfer::new(slot, off.into()));
        }
        Insn::GotoLong { off } => transfers.jumps.push(Transfer::new(slot, off)),
        Insn::Call(Callee::Local(off)) => {
            if transfers.calls.is_empty() {
                transfers.calls.reserve(insns.len() / 4 + 1);
            }
            transfers.calls.push(Transfer::new(slot, off));
        }
        insn => return check_infrequent(insns, slot, insn, is_helper),
    }
    Ok(())
}

fn check_infrequent(
    insns: &[Insn],
    slot: usize,
    insn: Insn,
    is_helper: &dyn Fn(i32) -> bool,
) -> Result<(), Problem> {
    const NEAR_TO_FAR: AddrSpaceCast = AddrSpaceCast { to: 1, from: 0 };
    const FAR_TO_NEAR: AddrSpaceCast = AddrSpaceCast { to: 0, from: 1 };
    match insn {
        Insn::Invalid { fault, .. } => return Err(Problem::Invalid(fault)),
        Insn::Imm64High => {
            let whole = slot > 0 && matches!(insns[slot - 1], Insn::LoadImm64 { .. });
            return if whole {
                Ok(())
            } else {
                Err(Problem::BrokenImm64)
            };
        }
        Insn::LoadImm64 { imm, .. } => {
            if insns.get(slot + 1) != Some(&Insn::Imm64High) {
                return Err(Problem::BrokenImm64);
            }
            if !matches!(imm, Imm64::Value(_)) {
                return Err(Problem::Unlinked);
            }
        }
        Insn::Call(Callee::Helper(number)) if !is_helper(number) => {
            return Err(Problem::UnknownHelper(number));
        }
        Insn::Call(Callee::Kfunc { .. }) => return Err(Problem::Unlinked),
        Insn::GotoReg { .. } | Insn::CallReg { .. } => return Err(Problem::Indirect),
        Insn::Cast { cast, .. } if cast != NEAR_TO_FAR && cast != FAR_TO_NEAR => {
            return Err(Problem::UnknownAddressSpace(cast));
        }
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Endian { .. }
        | Insn::Cast { .. }
        | Insn::Load { .. }
        | Insn::Store { .. }
        | Insn::Atomic { .. }
        | Insn::LoadAcquire { .. }
        | Insn::StoreRelease { .. }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::MayGoto { .. }
        | Insn::Call(Callee::Helper(_) | Callee::Local(_))
        | Insn::Exit => {}
    }
    if insn.row().is_none() {
        return Err(Problem::NoEncoding);
    }
    if insn.writes().contains(Reg::R10) {
        return Err(Problem::WritesFramePointer);
    }
    Ok(())
}

/// Splits the program at the targets of calls; returns the functions and, if there are
/// calls, the index of the function that starts at each slot.
fn functions(insns: &[Insn], calls: &[Transfer]) -> Result<(Vec<Function>, Vec<u32>), Malformed> {
    if calls.is_empty() {
        let end = insns.len();
        return Ok((vec![Function { start: 0, end }], Vec::new()));
    }
    const START: u32 = 1;
    let mut numbers = vec![0; insns.len()];
    numbers[0] = START;
    for &call in calls {
        numbers[check_target(insns, call)?] = START;
    }
    let mut functions: Vec<Function> = Vec::with_capacity(1 + calls.len());
    for (start, number) in numbers.iter_mut().enumerate() {
        if *number == START {
            *number = functions.len() as u32;
            if let Some(before) = functions.last_mut() {
                before.end = start;
            }
            let end = insns.len();
            functions.push(Function { start, end });
        }
    }
    Ok((functions, numbers))
}

fn check_target(insns: &[Insn], transfer: Transfer) -> Result<usize, Malformed> {
    let target = usize::try_from(transfer.target()).ok();
    match target.and_then(|target| Some((target, insns.get(target)?))) {
        None => Err(Problem::TargetOutside.at(transfer.slot())),
        Some((_, Insn::Imm64High)) => Err(Problem::TargetInsideImm64.at(transfer.slot())),
        Some((target, _)) => Ok(target),
    }
}

/// Checks that jumps stay in their function and that no function falls through its end.
fn check_flow(insns: &[Insn], functions: &[Function], jumps: &[Transfer]) -> Result<(), Malformed> {
    let mut jumps = jumps.iter().peekable();
    for &Function { start, end } in functions {
        while let Some(&jump) = jumps.next_if(|jump| jump.slot() < end) {
            if !(start..end).contains(&check_target(insns, jump)?) {
                return Err(Problem::TargetInOtherFunction.at(jump.slot()));
            }
        }
        let last = end - 1;
        if falls_through(&insns[last]) {
            return Err(Problem::FallsOffEnd.at(last));
        }
    }
    Ok(())
}

/// State of the depth-first search at a function, with the frames that it needs so far,
/// including its own.
#[derive(Clone, Copy)]
enum Progress {
    New,
    Active(usize),
    Done(usize),
}

/// A function in the depth-first search: its state and the calls that remain.
struct Visit {
    progress: Progress,
    next: usize,
    end: usize,
}

/// Checks that calls do not recurse and do not exceed the frames (depth-first search).
fn check_depth(
    functions: &[Function],
    numbers: &[u32],
    calls: &[Transfer],
) -> Result<(), Malformed> {
    let mut visits = Vec::with_capacity(functions.len());
    let mut end = 0;
    for function in functions {
        let next = end;
        while calls
            .get(end)
            .is_some_and(|call| call.slot() < function.end)
        {
            end += 1;
        }
        let progress = Progress::New;
        visits.push(Visit {
            progress,
            next,
            end,
        });
    }
    // The current path.
    let mut path = Vec::with_capacity(MAX_FRAMES);
    for entry in 0..functions.len() {
        if let Progress::New = visits[entry].progress {
            visits[entry].progress = Progress::Active(1);
            path.push(entry);
        }
        while let Some(&function) = path.last() {
            let visit = &mut visits[function];
            if visit.next == visit.end {
                if let Progress::Active(frames) = visit.progress {
                    visit.progress = Progress::Done(frames);
                }
                path.pop();
                continue;
            }
            let call = calls[visit.next];
            // Every target is the start of a function.
            let callee = numbers[call.target() as usize] as usize;
            match visits[callee].progress {
                Progress::Active(_) => return Err(Problem::Recursion.at(call.slot())),
                Progress::Done(frames) if frames == MAX_FRAMES => {
                    return Err(Problem::TooDeep.at(call.slot()));
                }
                Progress::Done(frames) => {
                    let visit = &mut visits[function];
                    if let Progress::Active(needs) = &mut visit.progress {
                        *needs = (*needs).max(frames + 1);
                    }
                    visit.next += 1;
                }
                Progress::New => {
                    visits[callee].progress = Progress::Active(1);
                    path.push(callee);
                }
            }
        }
    }
    Ok(())
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {}: {}", self.slot, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Problem::Empty => f.write_str("the program has no instructions"),
            Problem::TooLong => write!(f, "the program has more than {MAX_SLOTS} slots"),
            Problem::Invalid(fault) => fault.fmt(f),
            Problem::NoEncoding => f.write_str("the instruction has no encoding"),
            Problem::BrokenImm64 => {
                f.write_str("the two slots of a 64-bit immediate are not adjacent")
            }
            Problem::TargetOutside => f.write_str("the target is outside the program"),
            Problem::TargetInsideImm64 => {
                f.write_str("the target is the second slot of a 64-bit immediate")
            }
            Problem::TargetInOtherFunction => f.write_str("the target is in another function"),
            Problem::FallsOffEnd => f.write_str("the function falls through its end"),
            Problem::WritesFramePointer => {
                f.write_str("the instruction writes r10, the frame pointer")
            }
            Problem::UnknownHelper(number) => write!(f, "unknown helper {number}"),
            Problem::UnknownAddressSpace(AddrSpaceCast { to, from }) => {
                write!(
                    f,
                    "the cast from address space {from} to {to} is not supported"
                )
            }
            Problem::Unlinked => f.write_str("the instruction has an unresolved reference"),
            Problem::Indirect => f.write_str("indirect jumps and calls are not supported"),
            Problem::Recursion => f.write_str("the call is recursive"),
            Problem::TooDeep => {
                write!(f, "the call depth exceeds {MAX_FRAMES} frames")
            }
        }
    }
}

impl std::error::Error for Problem {}

impl std::error::Error for Malformed {}
