//! What reports say of rejections of values, memory, sections, resources and structure.

use isa::ebpf::{Callee, Insn, Operand, Reg};

use super::history::Scope;
use super::{Category, Finding, Noted, Scene, arguments, value};
use crate::alu::symbol;
use crate::log::TypeText;
use crate::mem::MAX_VAR_OFF;
use crate::rejection::{Alu, Call, Flow, Mem, Program, Rejection};
use crate::state::{Reference, ReferenceKind, RegState, Section};

/// What is said of a rejection; `None` if the kernel reports nothing.
pub(super) fn find(scene: &Scene<'_>, noted: &Noted) -> Option<Finding> {
    match &noted.rejection {
        Rejection::Alu(row) => arithmetic(scene, noted, row),
        Rejection::Flow(Flow::NotReadable { reg }) => unreadable(scene, reg.number()),
        Rejection::Flow(_) | Rejection::Signature(_) => None,
        Rejection::Mem(row) => memory(scene, noted, row),
        Rejection::Program(row) => structure(scene, row),
        Rejection::Call(row) => policy(scene, noted, row)
            .or_else(|| section(scene, noted, row))
            .or_else(|| resource(scene, row))
            .or_else(|| arguments::find(scene, noted, row)),
    }
}

impl Scene<'_> {
    /// A register before the refused instruction.
    pub(super) fn reg(&self, reg: u8) -> Option<&RegState> {
        self.trace.reg(self.trace.len().checked_sub(1)?, reg.into())
    }

    fn refs(&self) -> &[Reference] {
        let last = self.trace.len().checked_sub(1);
        let known = last.and_then(|last| self.trace.known(last));
        known.map_or(&[], |known| &known.refs)
    }

    fn depth(&self, section: Section) -> u32 {
        let last = self.trace.len().checked_sub(1);
        let known = last.and_then(|last| self.trace.known(last));
        known.map_or(0, |known| section.depth(known))
    }
}

fn unreadable(scene: &Scene<'_>, reg: u8) -> Option<Finding> {
    let is_lost = scene.history.as_ref()?.was_invalidated(reg);
    let (reason, suggestion) = match is_lost {
        true => (
            format!("R{reg} is not readable here. A previous operation invalidated this register, so the verifier cannot use it as an input."),
            "Avoid using the register after it is invalidated, or initialize it again before this instruction.".to_owned(),
        ),
        false => (
            format!("R{reg} has never been initialized on this path, so the verifier cannot use it as an input."),
            format!("Initialize R{reg} on every path before this instruction."),
        ),
    };
    let finding = Finding::new(
        Category::RegisterType,
        "unreadable register",
        reason,
        &suggestion,
    );
    Some(
        finding
            .labelled(format!("R{reg} is not readable"))
            .with_scope(Scope::Reg(reg)),
    )
}

/// The pointer of an arithmetic instruction, and the register that it computes.
fn pointer_of(scene: &Scene<'_>, insn: u32) -> Option<(u8, u8)> {
    let Insn::Alu { dst, src, .. } = scene.input.insns[insn as usize] else {
        return None;
    };
    let is_pointer = |reg: Reg| scene.reg(reg.number()).is_some_and(|reg| !reg.is_scalar());
    let pointer = match src {
        Operand::Reg(src) if !is_pointer(dst) => src,
        Operand::Reg(_) | Operand::Imm(_) => dst,
    };
    Some((pointer.number(), dst.number()))
}

fn arithmetic(scene: &Scene<'_>, noted: &Noted, row: &Alu) -> Option<Finding> {
    let (ptr, dst) = pointer_of(scene, noted.insn)?;
    let reg = scene.reg(ptr)?;
    let holds = value::plain(reg);
    let limits = format!("[-{MAX_VAR_OFF}, {MAX_VAR_OFF}]");
    let (problem, reason, suggestion) = match row {
        Alu::Pointer32Bit { .. } => (
            "32-bit pointer arithmetic",
            format!(
                "R{ptr} holds {holds}. 32-bit ALU operations on pointers discard pointer tracking, so the verifier cannot keep the result as a safe pointer."
            ),
            "Use a 64-bit ALU instruction with an allowed, bounded scalar offset.",
        ),
        Alu::PointerMaybeNull { kind, .. } => (
            "pointer arithmetic before NULL check",
            format!(
                "R{ptr} may be NULL ({kind}). Pointer arithmetic is allowed only after the program proves the pointer is non-NULL on this path."
            ),
            "Make sure that a NULL check precedes any arithmetic performed on the pointer.",
        ),
        Alu::PointerKind { .. } => (
            "pointer arithmetic is not allowed",
            format!("R{ptr} holds {holds}. This pointer kind does not allow offset arithmetic."),
            "Do not change this pointer's offset; use it only in operations accepted for its kind.",
        ),
        Alu::PointerPlusConstant { .. } | Alu::PointerPlusUnbounded { .. } => (
            "pointer offset is not safe",
            format!(
                "The scalar offset used with R{ptr} is unbounded or outside the verifier's safe pointer-offset range {limits}."
            ),
            "Clamp or bounds-check the scalar offset before applying it to the pointer.",
        ),
        Alu::PointerOffset { .. } | Alu::PointerOutOfBounds { .. } => {
            let offset = reg.whole_offset(scene.input.rules);
            let is_out = offset.smin <= -MAX_VAR_OFF || offset.smax >= MAX_VAR_OFF;
            match is_out {
                true => (
                    "pointer offset is not safe",
                    format!(
                        "R{ptr} already has an offset outside the verifier's safe range {limits} for {holds}."
                    ),
                    "Keep the base pointer within the verifier's allowed offset range before applying more arithmetic.",
                ),
                false => (
                    "pointer offset is not safe",
                    format!(
                        "After this arithmetic, R{dst} would be outside the verifier's safe offset range {limits} for {holds}."
                    ),
                    "Tighten the scalar bounds before the arithmetic so the resulting pointer remains within the allowed range.",
                ),
            }
        }
        Alu::PointerFromScalar { .. } => (
            "pointer subtracted from scalar",
            format!(
                "This operation subtracts pointer register R{ptr} from scalar register R{dst}. The verifier only tracks pointer-minus-scalar arithmetic for allowed pointer types."
            ),
            "Keep the pointer as the base; only add or subtract bounded scalars when permitted.",
        ),
        Alu::StackSubtraction { .. } => (
            "subtraction from stack pointer",
            format!(
                "R{ptr} is a stack pointer. The verifier does not allow BPF_SUB to move stack pointers."
            ),
            "Use addition from R10 to form stack addresses within the tracked stack frame.",
        ),
        Alu::BitwiseOperator { op, .. } => (
            "bitwise operation on pointer",
            format!(
                "R{ptr} holds {holds}. Bitwise operator {} would destroy the pointer value the verifier is tracking.",
                symbol(*op)
            ),
            "Do bitwise operations on scalar values, not on pointer-valued registers.",
        ),
        Alu::PointerOperator { op, .. } => (
            "invalid pointer arithmetic operator",
            format!(
                "R{ptr} holds {holds}. Operator {} is not one of the limited pointer arithmetic operations the verifier can track.",
                symbol(*op)
            ),
            "Use only verifier-supported addition or subtraction with a bounded scalar offset, or perform this operation on a scalar value.",
        ),
        _ => return None,
    };
    let finding = Finding::new(Category::RegisterType, problem, reason, suggestion);
    Some(finding.with_scope(Scope::Reg(ptr)))
}

fn memory(scene: &Scene<'_>, noted: &Noted, row: &Mem) -> Option<Finding> {
    match row {
        Mem::MaybeNull { reg, .. } | Mem::NotMemory { reg, .. } => {
            let number = reg.number();
            let reg = scene.reg(number)?;
            let holds = value::plain(reg);
            let (reason, suggestion) = match (reg.is_scalar(), reg.may_be_null()) {
                (true, _) => (
                    format!("R{number} is an integer scalar here, not a pointer to memory."),
                    STALE,
                ),
                (false, true) => (
                    format!(
                        "R{number} may be NULL here ({holds}). The program could dereference NULL on this path, so the verifier cannot prove this access is safe."
                    ),
                    "Add a NULL check before the access and dereference the pointer only on the non-NULL path.",
                ),
                (false, false) => (
                    format!(
                        "R{number} has type {holds} here, which is not valid for this memory access."
                    ),
                    STALE,
                ),
            };
            let finding = Finding::new(Category::RegisterType, DEREFERENCE, reason, suggestion);
            let label = format!("invalid dereference of R{number} ({holds})");
            Some(finding.labelled(label).with_scope(Scope::Reg(number)))
        }
        Mem::Modified { reg, off, .. } => {
            let number = reg.number();
            let holds = value::plain(scene.reg(number)?);
            let reason = format!(
                "R{number} has offset {off} here, but this pointer type must be dereferenced in its original form."
            );
            let finding = Finding::new(
                Category::RegisterType,
                DEREFERENCE,
                reason,
                "Preserve the original pointer in another register, or use only offsets this pointer type permits before dereferencing it.",
            );
            let label = format!("dereference requires the original {holds} pointer");
            Some(finding.labelled(label).with_scope(Scope::Reg(number)))
        }
        Mem::NegativeIndex { reg }
        | Mem::BelowRegion { reg }
        | Mem::Unbounded { reg }
        | Mem::AboveRegion { reg } => bounds(scene, noted, row, reg.number()),
        Mem::StackUnread { off, index, size } => Some(Finding::new(
            Category::Memory,
            "uninitialized stack read",
            format!(
                "This rejected read uses {size} bytes at stack offset {off}, but byte {index} in that range is uninitialized on this path. Programs loaded with CAP_PERFMON can be allowed to read uninitialized stack bytes, but this program is being rejected without that allowance."
            ),
            "Initialize every byte in the stack range before reading it, adjust the offset and size so the read covers only initialized bytes, or load with CAP_PERFMON if uninitialized stack reads are intended.",
        )),
        Mem::StackHelperVariable { var_off, off, size } => Some(Finding::new(
            Category::Memory,
            "variable stack access",
            format!(
                "The helper would access the stack through variable offset {var_off} plus fixed offset {off} and size {size}. Helper stack memory arguments require a constant stack offset and a precise initialized range."
            ),
            "Use a fixed stack offset for helper memory arguments, or copy the needed bytes into a fixed stack slot first.",
        )),
        Mem::CorruptsSpill => {
            let access = scene.input.insns[noted.insn as usize].access()?;
            let base = scene
                .reg(access.base.number())?
                .whole_offset(scene.input.rules);
            let off = base.as_const()? as i64 + i64::from(access.off);
            Some(Finding::new(
                Category::Memory,
                "stack spill corruption",
                format!(
                    "This store writes {} bytes at stack offset {off} into a stack slot that currently holds a spilled pointer. Partial writes to spilled pointers are rejected because they can corrupt pointer metadata and leak kernel pointers.",
                    access.size.bytes()
                ),
                "Write the full 8-byte spilled pointer slot, or use a separate stack slot for scalar data before overwriting only part of it.",
            ))
        }
        _ => None,
    }
}

const DEREFERENCE: &str = "invalid dereference";
const STALE: &str = "Preserve a pointer-valued register where needed, or reload and revalidate the pointer after scalar arithmetic, helper calls, or other operations that can invalidate it.";

fn bounds(scene: &Scene<'_>, noted: &Noted, row: &Mem, number: u8) -> Option<Finding> {
    let access = noted.access?;
    let reg = scene.reg(number)?;
    let offset = reg.whole_offset(scene.input.rules);
    let (off, size, region) = (access.off, access.size, access.region);
    let start = value::sum(offset.smin, off);
    let proof = match row {
        Mem::NegativeIndex { .. } => {
            format!("the minimal bound for a memory access is a negative value: {start}")
        }
        Mem::BelowRegion { .. } => format!(
            "the minimal bound for a memory access is {start} and is outside of the object of size {region}"
        ),
        Mem::Unbounded { .. } => format!(
            "the maximal bound for a memory access is {} and exceeds maximum allowed offset of {MAX_VAR_OFF}",
            offset.umax
        ),
        _ => {
            let start = (offset.umax as i64).wrapping_add(off.into());
            let end = start.wrapping_add(size.into());
            format!(
                "the maximal bound for a memory access is {end}: start {start} + access_size {size}, beyond object_size {region}"
            )
        }
    };
    let at = value::access_offset(&offset, off);
    let kind = TypeText::from(reg.reg_type());
    let reason = format!(
        "The verifier cannot prove offset + access_size <= object_size. Here, {proof}. R{number} is {kind}; offset is {at}; access_size is {size}; object_size is {region}."
    );
    let finding = Finding::new(
        Category::Memory,
        "access outside bounds",
        reason,
        "Add or adjust a bounds check that proves offset + access_size stays within the object.",
    );
    let label = "access may be outside object bounds".to_owned();
    Some(finding.labelled(label).with_scope(Scope::Reg(number)))
}

fn structure(scene: &Scene<'_>, row: &Program) -> Option<Finding> {
    let (problem, reason, suggestion) = match row {
        Program::BackEdge { from, target } => (
            "back-edge is not allowed",
            format!(
                "Instruction {from} branches back to instruction {target}. This program is being rejected without the privilege needed for this back-edge."
            ),
            "Load with privileges that allow this back-edge, or rewrite the control flow so it does not branch backward.",
        ),
        Program::Unreachable { index } => (
            "unreachable instruction",
            format!("Instruction {index} is not reachable from the program entry point."),
            "Remove the unreachable instruction or add valid control flow that reaches it.",
        ),
        Program::JumpIntoWideLoad { index } => (
            "jump into ldimm64 immediate",
            format!(
                "Control flow reaches the second half of the ldimm64 instruction pair that starts at instruction {index}."
            ),
            "Target the first instruction of the ldimm64 pair, or restructure the jump target.",
        ),
        Program::JumpOutOfRange { from, to } => {
            let mut subprogs = scene.analysis.subprogs.iter().enumerate();
            let has_it = |start: u32, end: u32| (i64::from(start)..i64::from(end)).contains(from);
            let (number, subprog) = subprogs.find(|(_, it)| has_it(it.start, it.end))?;
            let (first, last) = (subprog.start, subprog.end - 1);
            (
                "Jump out of range",
                format!(
                    "Instruction {from} jumps to instruction {to}, but subprogram {number} only contains instructions {first} through {last}. A branch target must stay inside the same subprogram."
                ),
                "Keep branch targets within the same subprogram, or use an explicit subprogram call.",
            )
        }
        Program::NoJumpTable { start } => (
            "missing jump table",
            format!(
                "No jump table was found for the subprogram that starts at instruction {start}."
            ),
            "Make sure subprograms containing gotox instructions are accompanied by jump tables referencing these subprograms.",
        ),
        Program::JumpTableOutside { index, start, end } => (
            "jump table target out of range",
            format!(
                "The jump table for instruction {index} points outside subprogram range [{start},{end})."
            ),
            "Keep every jump-table target inside the same subprogram.",
        ),
        Program::Recursion { .. } => (
            "recursive subprogram call",
            "This bpf2bpf call would make the subprogram call graph recursive. The verifier requires a finite, acyclic call graph so it can bound stack depth and analysis.".to_owned(),
            "Rewrite the recursion as an explicit bounded loop, or split the logic so subprogram calls do not form a cycle.",
        ),
        _ => return None,
    };
    let finding = Finding::new(Category::Structure, problem, reason, suggestion);
    Some(match row {
        Program::JumpOutOfRange { .. } => finding.labelled("jump out of range".to_owned()),
        _ => finding,
    })
}

fn policy(scene: &Scene<'_>, noted: &Noted, row: &Call) -> Option<Finding> {
    let (operation, why, suggestion) = match row {
        Call::HelperOfOtherType { name, id } => (
            format!("helper {name}#{id}"),
            "this program type does not allow the helper",
            "Use a helper allowed for this program type, or move the logic to a compatible program type.",
        ),
        Call::KfuncNotAllowed { name } => (
            format!("kfunc {name}"),
            "this program cannot call the kfunc",
            "Use a kfunc allowed for this program type and attach point, or change the program context.",
        ),
        Call::NotInProbe => {
            let Insn::Call(Callee::Helper(id)) = scene.input.insns[noted.insn as usize] else {
                return None;
            };
            let name = arguments::callee(scene, noted.insn)?;
            (
                format!("helper {name}#{id}"),
                "the helper-specific policy callback rejected this program",
                "Use the helper only from an allowed attach point or program configuration.",
            )
        }
        _ => return None,
    };
    let reason = format!("The {operation} is not allowed: {why}.");
    let finding = Finding::new(
        Category::Policy,
        "operation is not allowed",
        reason,
        suggestion,
    );
    Some(finding.labelled(format!("policy check failed for {operation}")))
}

const NOT_HERE: &str = "operation is not allowed in this context";

fn section(scene: &Scene<'_>, noted: &Noted, row: &Call) -> Option<Finding> {
    const MOVE_KFUNC: &str =
        "Move the kfunc call outside the critical section, or use a non-sleepable kfunc.";
    Some(match row {
        Call::MightSleep { name, id, .. } | Call::SleepableHelper { name, id, .. } => forbidden(
            scene,
            &format!("sleepable helper {name}#{id}"),
            "Move the helper call outside the critical section, or use a non-sleepable helper.",
        ),
        Call::GlobalMightSleep { name, .. } => forbidden(
            scene,
            &format!("sleepable global function {name}()"),
            "Move the call outside the critical section, or use a non-sleepable function.",
        ),
        Call::SleepableKfunc { name } => forbidden(
            scene,
            &format!("sleepable kfunc {name}"),
            "Mark the program sleepable if the program type allows it, or use a non-sleepable kfunc.",
        ),
        Call::SleepsUnderRcu { name }
        | Call::SleepsNonPreemptible { name }
        | Call::SleepsIrqDisabled { name } => {
            forbidden(scene, &format!("sleepable kfunc {name}"), MOVE_KFUNC)
        }
        Call::GlobalUnderLock => active(
            scene,
            &format!(
                "global function {}()",
                arguments::callee(scene, noted.insn)?
            ),
            Section::Lock,
            "Release the lock before calling the global function, or use a static function instead.",
        ),
        Call::UnderLock => active(
            scene,
            "function call",
            Section::Lock,
            "Release the BPF spin lock before making this call, or move the call outside the locked region.",
        ),
        Call::InsideLock { what } => active(
            scene,
            &what.to_string(),
            Section::Lock,
            "Release the BPF spin lock before this operation on every path.",
        ),
        Call::InsideSection { what, section } => active(
            scene,
            &what.to_string(),
            *section,
            match section {
                Section::Irq => "Restore the saved IRQ state before this operation on every path.",
                Section::Rcu => "Call bpf_rcu_read_unlock() before this operation on every path.",
                Section::Preempt | Section::Lock => {
                    "Call bpf_preempt_enable() before this operation on every path."
                }
            },
        ),
        Call::RequiresRcu { name } => required(
            name,
            "Call this kfunc between bpf_rcu_read_lock() and bpf_rcu_read_unlock(), keeping all exit paths balanced.",
        ),
        Call::UnmatchedRcuUnlock { name } => underflow(
            name,
            Section::Rcu,
            "Remove the extra bpf_rcu_read_unlock() call, or ensure this path first enters an RCU read lock region.",
        ),
        Call::UnmatchedPreemptEnable { name } => underflow(
            name,
            Section::Preempt,
            "Remove the extra bpf_preempt_enable() call, or ensure this path first disables preemption.",
        ),
        _ => return None,
    })
}

/// The depth of a section, in words.
fn depth_words(section: Section, depth: u32) -> String {
    let name = section.name();
    match depth {
        1 => format!("an active {name} (depth 1)"),
        depth => format!("{depth} active {name}s (depth {depth})"),
    }
}

fn forbidden(scene: &Scene<'_>, operation: &str, suggestion: &str) -> Finding {
    let found = Section::ALL
        .into_iter()
        .find(|section| scene.depth(*section) > 0);
    let Some(section) = found else {
        let reason = format!("The operation {operation} cannot be used in non-sleepable program.");
        let finding = Finding::new(Category::Context, NOT_HERE, reason, suggestion);
        return finding.labelled(format!(
            "{operation} is not allowed in non-sleepable program"
        ));
    };
    let code = match section {
        Section::Rcu => "RCU read-side critical sections",
        Section::Preempt => "preemption-disabled code",
        Section::Irq => "IRQ-disabled code",
        Section::Lock => "code holding a BPF spin lock",
    };
    let depth = scene.depth(section);
    let name = section.name();
    let reason = format!(
        "The operation {operation} cannot be used in {name} because {code} cannot call operations that may sleep. This path is still inside {}.",
        depth_words(section, depth)
    );
    let finding = Finding::new(Category::Context, NOT_HERE, reason, suggestion);
    let label = format!("{operation} is not allowed in {name}");
    finding
        .labelled(label)
        .with_scope(Scope::Section(section, depth))
}

fn active(scene: &Scene<'_>, operation: &str, section: Section, suggestion: &str) -> Finding {
    let depth = scene.depth(section);
    let reason = format!(
        "The operation {operation} cannot be used while this path is still inside {}. Leave the region before this operation.",
        depth_words(section, depth)
    );
    let finding = Finding::new(Category::Context, NOT_HERE, reason, suggestion);
    let label = format!(
        "{operation} is not allowed before leaving {}",
        section.name()
    );
    finding
        .labelled(label)
        .with_scope(Scope::Section(section, depth))
}

pub(super) fn required(operation: &str, suggestion: &str) -> Finding {
    let name = Section::Rcu.name();
    let reason = format!(
        "The operation {operation} requires an active {name}, but this path is outside one."
    );
    let finding = Finding::new(
        Category::Context,
        "required context is not active",
        reason,
        suggestion,
    );
    finding.labelled(format!("{operation} requires {name}"))
}

fn underflow(operation: &str, section: Section, suggestion: &str) -> Finding {
    let name = section.name();
    let reason = format!(
        "The operation {operation} tries to leave {name}, but this path has no active {name} to leave. The current depth is 0."
    );
    let finding = Finding::new(
        Category::Context,
        "unmatched context exit",
        reason,
        suggestion,
    );
    let label = format!("{operation} has no matching enter on this path");
    finding
        .labelled(label)
        .with_scope(Scope::Section(section, 0))
}

fn resource(scene: &Scene<'_>, row: &Call) -> Option<Finding> {
    let new = |problem, reason: &str, suggestion| {
        Finding::new(Category::Resource, problem, reason.to_owned(), suggestion)
    };
    let held = |finding: Finding| {
        let mut locks = scene.refs().iter().filter(|held| held.kind.is_lock());
        let lock = locks.next_back().map(|held| {
            let name = match held.kind {
                ReferenceKind::Lock | ReferenceKind::Pointer | ReferenceKind::Irq => {
                    "bpf_spin_lock"
                }
                ReferenceKind::ResLock => "resource spin lock",
                ReferenceKind::ResLockIrq => "IRQ-saving resource spin lock",
            };
            (
                held.insn_idx,
                format!("active {name} has verifier identity {}", held.id),
            )
        });
        Finding { lock, ..finding }
    };
    Some(match row {
        Call::Unreleased { id, insn } => {
            let reason = format!(
                "Owned resource (id={id}) was acquired at instruction {insn} and still needs to be released before this exit path."
            );
            let finding = new(
                "unreleased resource",
                &reason,
                "Release or transfer ownership of the acquired resource on every path before the program exits.",
            );
            let label = format!("owned resource (id={id}) still needs release");
            finding
                .labelled(label)
                .with_scope(Scope::Reference(*id as u32))
        }
        Call::UnlockOther { .. } => held(new(
            "unlock of a different lock",
            "This unlock does not match any active lock with the same tracked identity on the current path.",
            "Unlock the same lock object that was most recently acquired.",
        )),
        Call::UnlockOrder { .. } => held(new(
            "unlock out of order",
            "Locks must be released in last-in, first-out order, but this unlock does not match the currently active lock.",
            "Release nested locks in the reverse order they were acquired.",
        )),
        Call::UnlockWithoutLock { .. } => new(
            "unlock without lock",
            "This unlock operation has no matching active lock on the current path.",
            "Take the matching lock before this unlock, or remove the unmatched unlock path.",
        ),
        Call::SecondLock => held(new(
            "nested spin lock",
            "This path already holds a bpf_spin_lock. The verifier allows only one regular BPF spin lock at a time.",
            "Unlock the current bpf_spin_lock before taking another one.",
        )),
        Call::LockAgain => held(new(
            "recursive resource spin lock",
            "This path already holds the same resource spin lock. Taking it again would deadlock.",
            "Avoid reacquiring the same resource spin lock before it is unlocked.",
        )),
        Call::OverwritesDynptr => new(
            "referenced dynptr overwrite",
            "This stack slot contains a dynptr that owns or protects a referenced resource. Overwriting the last dynptr for that resource would lose the verifier-tracked release path.",
            "Release or clone the dynptr so another live dynptr still tracks the referenced resource before overwriting this stack slot.",
        ),
        Call::DynptrNotUninit => new(
            "dynptr is already initialized",
            "This kfunc constructs a dynptr and requires an uninitialized dynptr stack slot, but the selected slot already holds dynptr state.",
            "Use a fresh stack dynptr slot, or release/destroy the existing dynptr before reusing the slot.",
        ),
        Call::ReleasesConstDynptr => new(
            "const dynptr release",
            "This release operation was given a const dynptr. Const dynptr values are verifier-provided views and cannot be released by the program.",
            "Release only mutable dynptrs that the program initialized or reserved.",
        ),
        Call::DynptrNotInit { .. } => new(
            "uninitialized dynptr use",
            "This operation requires an initialized dynptr, but the stack slot does not currently hold a valid dynptr on this path.",
            "Initialize the dynptr on every path before this call, and avoid overwriting or releasing it before this use.",
        ),
        Call::IteratorNotUninit { .. } => new(
            "iterator is already initialized",
            "Iterator creation requires an uninitialized iterator stack object, but this stack range already contains iterator state.",
            "Use a fresh iterator stack slot, or destroy the existing iterator before reusing the slot.",
        ),
        Call::IteratorNotInit { .. } => new(
            "uninitialized iterator use",
            "This iterator operation requires an initialized iterator state object, but the stack range does not contain a live iterator on this path.",
            "Call the matching iterator new kfunc on every path before calling next or destroy, and do not destroy the iterator before this use.",
        ),
        Call::IrqFlagNotUninit { .. } => new(
            "IRQ flag is already initialized",
            "Saving IRQ state requires an uninitialized stack slot for the IRQ flag, but this slot already contains tracked IRQ flag state.",
            "Use a fresh stack slot for this save operation, or restore the existing IRQ flag before reusing the slot.",
        ),
        Call::IrqFlagNotInit { .. } => new(
            "uninitialized IRQ flag restore",
            "Restoring IRQ state requires a stack slot that was initialized by a matching IRQ save operation on this path.",
            "Pass the same stack slot that was previously initialized by the matching IRQ save kfunc.",
        ),
        Call::IrqFlagClass { saved, used } => {
            let reason = format!(
                "This IRQ flag was saved by {saved} IRQ kfuncs, but the restore call belongs to the {used} IRQ kfunc family. Save and restore operations must use the same family."
            );
            irq(
                scene,
                new(
                    "IRQ flag restore mismatch",
                    &reason,
                    "Restore the flag with the matching IRQ restore kfunc for the save operation that created it.",
                ),
            )
        }
        Call::IrqFlagOrder { .. } => irq(
            scene,
            new(
                "IRQ flag restore out of order",
                "IRQ-disabled regions must be restored in last-in, first-out order, but this restore does not match the currently active IRQ flag.",
                "Restore nested IRQ flags in the reverse order they were saved.",
            ),
        ),
        _ => return None,
    })
}

/// A finding that shows saved IRQ flags.
fn irq(scene: &Scene<'_>, finding: Finding) -> Finding {
    match scene.depth(Section::Irq) {
        0 => finding,
        depth => finding.with_scope(Scope::Section(Section::Irq, depth)),
    }
}
