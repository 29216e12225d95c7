//! The check of a program's structure.
//!
//! Engines rest on the structure of programs whose safety the caller asserts, so it is
//! checked here: every slot is a valid instruction, jumps stay in their function and lead to
//! instructions, calls lead to functions, no function falls off its end, the frame pointer
//! is never written, and calls neither recurse nor exceed the frames.
//!
//! A function extends from the entry or the target of a call to the next one, as in Linux.
//! Cost: linear: one pass over the slots; the other checks visit jumps and calls only.

use std::fmt;

use isa::ebpf::{AddrSpaceCast, Callee, Fault, Imm64, Insn, Reg};
use vm::{MAX_FRAMES, find_call};

use crate::jumps::falls_through;

/// Slots that a program may have (`BPF_COMPLEXITY_LIMIT_INSNS`).
pub const MAX_SLOTS: usize = 1_000_000;

/// A function of a program: the slots from `start` up to `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its first slot, where calls lead.
    pub start: usize,
    /// The slot after its last one.
    pub end: usize,
}

/// A program that no engine can run, and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    /// The slot at fault.
    pub slot: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What can be wrong with a program's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// It has no instruction.
    Empty,
    /// It has more than [`MAX_SLOTS`] slots.
    TooLong,
    /// The slot is no instruction.
    Invalid(Fault),
    /// The instruction has a value that no slot can hold.
    NoEncoding,
    /// The second slot of a 64-bit immediate is missing, or stands alone.
    BrokenImm64,
    /// A jump or a call leads out of the program.
    TargetOutside,
    /// A jump or a call leads to the second slot of a 64-bit immediate.
    TargetInsideImm64,
    /// A jump leads to another function.
    TargetInOtherFunction,
    /// The last instruction of a function goes on behind it.
    FallsOffEnd,
    /// It writes `r10`.
    WritesFramePointer,
    /// No helper has this number.
    UnknownHelper(i32),
    /// A cast between other address spaces than 0 and 1.
    UnknownAddressSpace(AddrSpaceCast),
    /// It refers to what is only known after linking: a map, a variable, a
    /// function's address, a kernel function.
    Unlinked,
    /// An indirect jump or call; Linux 6.18 has none either.
    Indirect,
    /// A function calls itself, directly or by way of others.
    Recursion,
    /// More functions would be under way at once than there are frames.
    TooDeep,
}

/// Checks the form of a program and finds its functions, the entry first.
pub(crate) fn check_structure(insns: &[Insn]) -> Result<Vec<Function>, Malformed> {
    if insns.is_empty() {
        return Err(Problem::Empty.at(0));
    }
    if insns.len() > MAX_SLOTS {
        return Err(Problem::TooLong.at(MAX_SLOTS));
    }
    let ways = check_slots(insns)?;
    let (functions, numbers) = functions(insns, &ways.calls)?;
    check_flow(insns, &functions, &ways.jumps)?;
    if !ways.calls.is_empty() {
        check_depth(&functions, &numbers, &ways.calls)?;
    }
    Ok(functions)
}

/// Where control leaves the order of slots, in ascending order.
struct Ways {
    jumps: Vec<Way>,
    /// Of functions of the program.
    calls: Vec<Way>,
}

/// A jump or a call.
#[derive(Clone, Copy)]
struct Way {
    slot: u32,
    /// Slots after the next one.
    distance: i32,
}

impl Way {
    fn new(slot: usize, distance: i32) -> Way {
        let slot = slot as u32;
        Way { slot, distance }
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

/// Looks at every slot; where they lead.
#[inline(never)]
fn check_slots(insns: &[Insn]) -> Result<Ways, Malformed> {
    let mut ways = Ways {
        jumps: Vec::with_capacity(insns.len() / 4 + 1),
        calls: Vec::new(),
    };
    for (slot, insn) in insns.iter().enumerate() {
        // Slots can hold every value of the frequent kinds (a test holds that).
        match *insn {
            Insn::Alu { dst, .. }
            | Insn::Load {
                signed: false, dst, ..
            } if dst != Reg::R10 => {}
            Insn::Store { .. } => {}
            Insn::Jump { off, .. } => ways.jumps.push(Way::new(slot, off.into())),
            _ => check_slot(insns, slot, &mut ways).map_err(|problem| problem.at(slot))?,
        }
    }
    Ok(ways)
}

/// What can be said of an instruction without the others but its neighbours;
/// notes where it leads.
#[inline(never)]
fn check_slot(insns: &[Insn], slot: usize, ways: &mut Ways) -> Result<(), Problem> {
    match insns[slot] {
        Insn::Exit => {}
        Insn::Goto { off } | Insn::MayGoto { off } => {
            ways.jumps.push(Way::new(slot, off.into()));
        }
        Insn::GotoLong { off } => ways.jumps.push(Way::new(slot, off)),
        Insn::Call(Callee::Local(off)) => {
            if ways.calls.is_empty() {
                ways.calls.reserve(insns.len() / 4 + 1);
            }
            ways.calls.push(Way::new(slot, off));
        }
        insn => return check_rare(insns, slot, insn),
    }
    Ok(())
}

fn check_rare(insns: &[Insn], slot: usize, insn: Insn) -> Result<(), Problem> {
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
        Insn::Call(Callee::Helper(number)) if find_call(number).is_none() => {
            return Err(Problem::UnknownHelper(number));
        }
        Insn::Call(Callee::Kfunc { .. }) => return Err(Problem::Unlinked),
        Insn::GotoReg { .. } | Insn::CallReg { .. } => return Err(Problem::Indirect),
        Insn::Cast { cast, .. } if cast != NEAR_TO_FAR && cast != FAR_TO_NEAR => {
            return Err(Problem::UnknownAddressSpace(cast));
        }
        _ => {}
    }
    if insn.row().is_none() {
        return Err(Problem::NoEncoding);
    }
    if insn.writes().contains(Reg::R10) {
        return Err(Problem::WritesFramePointer);
    }
    Ok(())
}

/// Cuts the program where calls lead to; the number of the function that starts at a
/// slot, for each slot where one does. Without calls nobody asks for that.
fn functions(insns: &[Insn], calls: &[Way]) -> Result<(Vec<Function>, Vec<u32>), Malformed> {
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

fn check_target(insns: &[Insn], way: Way) -> Result<usize, Malformed> {
    let target = usize::try_from(way.target()).ok();
    match target.and_then(|target| Some((target, insns.get(target)?))) {
        None => Err(Problem::TargetOutside.at(way.slot())),
        Some((_, Insn::Imm64High)) => Err(Problem::TargetInsideImm64.at(way.slot())),
        Some((target, _)) => Ok(target),
    }
}

/// Jumps stay in their function, and no function's end is run over.
fn check_flow(insns: &[Insn], functions: &[Function], jumps: &[Way]) -> Result<(), Malformed> {
    let mut jumps = jumps.iter().peekable();
    for &Function { start, end } in functions {
        while let Some(&jump) = jumps.next_if(|jump| jump.slot() < end) {
            if !(start..end).contains(&check_target(insns, jump)?) {
                return Err(Problem::TargetInOtherFunction.at(jump.slot()));
            }
        }
        let last = end - 1;
        if falls_through(insns[last]) {
            return Err(Problem::FallsOffEnd.at(last));
        }
    }
    Ok(())
}

/// How far the walk over a function's calls has come, with the frames that it needs by
/// what was seen, its own among them.
#[derive(Clone, Copy)]
enum Walk {
    New,
    UnderWay(usize),
    Done(usize),
}

/// The walk over a function's calls, and which of all calls are still to be followed.
struct Visit {
    walk: Walk,
    next: usize,
    end: usize,
}

/// Calls do not recurse and fit into the frames, whichever way control goes.
fn check_depth(functions: &[Function], numbers: &[u32], calls: &[Way]) -> Result<(), Malformed> {
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
        let walk = Walk::New;
        visits.push(Visit { walk, next, end });
    }
    // Functions under way.
    let mut path = Vec::with_capacity(MAX_FRAMES);
    for entry in 0..functions.len() {
        if let Walk::New = visits[entry].walk {
            visits[entry].walk = Walk::UnderWay(1);
            path.push(entry);
        }
        while let Some(&function) = path.last() {
            let visit = &mut visits[function];
            if visit.next == visit.end {
                if let Walk::UnderWay(frames) = visit.walk {
                    visit.walk = Walk::Done(frames);
                }
                path.pop();
                continue;
            }
            let call = calls[visit.next];
            // Every target is a start.
            let callee = numbers[call.target() as usize] as usize;
            match visits[callee].walk {
                Walk::UnderWay(_) => return Err(Problem::Recursion.at(call.slot())),
                Walk::Done(frames) if frames == MAX_FRAMES => {
                    return Err(Problem::TooDeep.at(call.slot()));
                }
                Walk::Done(frames) => {
                    let visit = &mut visits[function];
                    if let Walk::UnderWay(needs) = &mut visit.walk {
                        *needs = (*needs).max(frames + 1);
                    }
                    visit.next += 1;
                }
                Walk::New => {
                    visits[callee].walk = Walk::UnderWay(1);
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
            Problem::Empty => f.write_str("there is no instruction"),
            Problem::TooLong => write!(f, "there are more than {MAX_SLOTS} slots"),
            Problem::Invalid(fault) => f.write_str(match fault {
                Fault::UnknownOpcode => "no instruction has this opcode",
                Fault::ReservedField => "a field has a reserved value",
                Fault::RegisterOutOfRange => "there is no register of that number",
                Fault::BrokenImm64 => "the second slot of the 64-bit immediate is missing",
            }),
            Problem::NoEncoding => f.write_str("no slot can hold this instruction"),
            Problem::BrokenImm64 => {
                f.write_str("the two slots of a 64-bit immediate are not together")
            }
            Problem::TargetOutside => f.write_str("it leads out of the program"),
            Problem::TargetInsideImm64 => f.write_str("it leads into a 64-bit immediate"),
            Problem::TargetInOtherFunction => f.write_str("it jumps to another function"),
            Problem::FallsOffEnd => f.write_str("the function goes on behind its end"),
            Problem::WritesFramePointer => f.write_str("it writes r10, the frame pointer"),
            Problem::UnknownHelper(number) => write!(f, "no helper has the number {number}"),
            Problem::UnknownAddressSpace(AddrSpaceCast { to, from }) => {
                write!(f, "there is no cast from address space {from} to {to}")
            }
            Problem::Unlinked => f.write_str("it refers to something that is not linked"),
            Problem::Indirect => f.write_str("indirect jumps and calls are not supported"),
            Problem::Recursion => f.write_str("the function calls itself by this call"),
            Problem::TooDeep => {
                write!(f, "this call can be more than {MAX_FRAMES} functions deep")
            }
        }
    }
}

impl std::error::Error for Malformed {}
