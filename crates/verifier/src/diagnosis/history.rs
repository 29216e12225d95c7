//! Events on the path to a refusal, in the order in which the kernel records them, and those that a
//! report shows: branches, changes of registers and stack slots, references, and sections.
//!
//! Events are read from the states that the recorder keeps: what an instruction changed is the
//! difference of the states before it and behind it. Invariant: a path whose middle the recorder
//! dropped has no events, and no report.
//!
//! Complexity: linear in the path, times the registers and slots of its calls.

use isa::ebpf::properties::Halves;
use isa::ebpf::{AluOp, Callee, Insn, Operand, Reg, Size};
use spec::behaviour::Behaviours;

use super::Scene;
use super::page::Page;
use super::value;
use crate::input::Input;
use crate::reason::{StepState, Trace};
use crate::state::{Frame, ReferenceKind, RegKind, RegState, Section, TypeFlags};

/// Most events that a report shows.
const SHOWN: usize = 64;

/// Which events a report shows, beside all branches from the first of them on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Scope {
    /// Where the value of a register of the frame at the end came from.
    Reg(u8),
    /// A reference.
    Reference(u32),
    /// A section that is so deep at the end.
    Section(Section, u32),
}

impl Section {
    pub(super) const ALL: [Section; 4] =
        [Section::Rcu, Section::Preempt, Section::Irq, Section::Lock];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Section::Rcu => "RCU read lock region",
            Section::Preempt => "non-preemptible region",
            Section::Irq => "IRQ-disabled region",
            Section::Lock => "lock region",
        }
    }

    /// How deep a path is in such sections.
    pub(super) fn depth(self, state: &StepState) -> u32 {
        let saved = |held: &&crate::state::Reference| held.kind == ReferenceKind::Irq;
        match self {
            Section::Rcu => state.rcu,
            Section::Preempt => state.preempt,
            Section::Irq => state.refs.iter().filter(saved).count() as u32,
            Section::Lock => state.locks,
        }
    }
}

/// A register or slot of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Holder {
    /// Number of the frame, and the step that entered it.
    frame: (usize, usize),
    place: Place,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Reg(u8),
    Slot(usize),
    /// Bytes of the stack.
    Bytes(i64, i64),
}

impl Holder {
    /// True if a change of this holder is one of the other.
    fn is_of(&self, other: &Holder) -> bool {
        if let (Place::Bytes(min, max), Place::Slot(spi)) = (self.place, other.place) {
            let slot = -8 * (spi as i64 + 1);
            return self.frame == other.frame && min < slot + 8 && max > slot;
        }
        self == other
    }
}

/// Why a holder changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    Write,
    Spill,
    Release,
    PacketMoved,
    SectionLeft,
    Call,
}

#[derive(Clone, Debug)]
enum What {
    Branch {
        is_taken: bool,
    },
    Change(Box<Change>),
    Reference {
        id: u32,
        is_acquired: bool,
    },
    Section {
        section: Section,
        is_entered: bool,
        depth: u32,
    },
}

#[derive(Clone, Debug)]
struct Change {
    holder: Holder,
    /// Where the new value came from.
    origin: Option<Holder>,
    why: Why,
    old: RegState,
    new: RegState,
}

#[derive(Clone, Debug)]
struct Event {
    insn: u32,
    what: What,
}

/// The events of a path.
pub(super) struct History {
    events: Vec<Event>,
    /// The frames at its end, by the steps that entered them.
    frames: Vec<usize>,
}

impl History {
    /// The events along a path; `None` if the recorder dropped some of its states.
    pub(super) fn along(input: &Input<'_>, trace: &Trace) -> Option<History> {
        let mut history = History {
            events: Vec::new(),
            frames: vec![0],
        };
        for at in 1..trace.len() {
            let (before, after) = (trace.known(at - 1)?, trace.known(at)?);
            let insn = trace.steps()[at - 1].insn;
            let next = trace.steps()[at].insn;
            let step = Step {
                input,
                insn,
                next,
                before,
                after,
            };
            step.record(&mut history)?;
            let depth = after.frames.len();
            history.frames.truncate(depth);
            history.frames.resize(depth, at);
        }
        Some(history)
    }

    fn holder(&self, frame: usize, place: Place) -> Holder {
        let entered = self.frames.get(frame).copied().unwrap_or_default();
        Holder {
            frame: (frame, entered),
            place,
        }
    }

    fn push(&mut self, insn: u32, what: What) {
        self.events.push(Event { insn, what });
    }

    /// True if the last change of a register of the frame at the end made it unreadable.
    pub(super) fn was_invalidated(&self, reg: u8) -> bool {
        let holder = self.holder(self.frames.len() - 1, Place::Reg(reg));
        let mut changes = self.events.iter().rev().filter_map(Event::change);
        let last = changes.find(|change| change.holder.is_of(&holder));
        last.is_some_and(|change| matches!(change.new.kind, RegKind::NotInit))
    }

    /// The changes that the value of a register came by, newest first.
    fn lineage(&self, input: &Input<'_>, reg: u8) -> Vec<usize> {
        let mut holder = self.holder(self.frames.len() - 1, Place::Reg(reg));
        let mut found = Vec::new();
        for (at, event) in self.events.iter().enumerate().rev() {
            let Some(change) = event.change().filter(|it| it.holder.is_of(&holder)) else {
                continue;
            };
            found.push(at);
            if let Some(origin) = change.origin {
                holder = origin;
                continue;
            }
            let is_written = matches!(change.why, Why::Write | Why::Spill)
                && !matches!(change.holder.place, Place::Bytes(..));
            let is_computed = change.why == Why::Write
                && matches!(change.holder.place, Place::Reg(_))
                && computes(input.insns[event.insn as usize]);
            if is_written && !is_computed {
                break;
            }
        }
        found
    }

    /// Writes the events of a scope.
    pub(super) fn write(&self, scene: &Scene<'_>, scope: Scope, page: &mut Page<'_>) {
        let lineage = match scope {
            Scope::Reg(reg) => self.lineage(scene.input, reg),
            Scope::Reference(_) | Scope::Section(..) => Vec::new(),
        };
        let first = match scope {
            Scope::Reg(_) => lineage.last().copied(),
            Scope::Reference(wanted) => self.events.iter().rposition(|event| {
                matches!(event.what, What::Reference { id, is_acquired: true } if id == wanted)
            }),
            Scope::Section(_, 0) => None,
            Scope::Section(wanted, _) => self.section_start(wanted),
        };
        let is_shown = |at: usize, event: &Event| match (&event.what, scope) {
            (What::Branch { .. }, _) => true,
            (What::Change(_), _) => lineage.contains(&at),
            (What::Reference { id, .. }, Scope::Reference(wanted)) => *id == wanted,
            (What::Section { section, .. }, Scope::Section(wanted, _)) => *section == wanted,
            (What::Reference { .. } | What::Section { .. }, _) => false,
        };
        let events = self.events.iter().enumerate().skip(first.unwrap_or(0));
        let shown: Vec<&Event> = events
            .filter(|(at, event)| is_shown(*at, event))
            .map(|(_, event)| event)
            .collect();
        let omitted = match shown.len().checked_sub(SHOWN) {
            Some(more @ 1..) => SHOWN / 2..SHOWN / 2 + more,
            _ => 0..0,
        };
        for (at, event) in shown.iter().enumerate() {
            if omitted.contains(&at) && at != omitted.start {
                continue;
            }
            if at > 0 {
                page.gap();
            }
            match omitted.contains(&at) {
                true => page.line(format_args!(
                    "  {} intermediate causal-history events omitted",
                    omitted.len()
                )),
                false => event.write(scene.input, page),
            }
        }
        if shown.is_empty() {
            page.line(format_args!("  no retained diagnostic events on this path"));
        }
    }

    /// The event that entered the outermost section that the path is in.
    fn section_start(&self, wanted: Section) -> Option<usize> {
        let mut events = self.events.iter().enumerate().rev();
        events.find_map(|(at, event)| match event.what {
            What::Section {
                section,
                is_entered,
                depth,
            } if section == wanted => match (is_entered, depth) {
                (true, 1) => Some(Some(at)),
                (false, 0) => Some(None),
                _ => None,
            },
            _ => None,
        })?
    }
}

impl Event {
    fn change(&self) -> Option<&Change> {
        match &self.what {
            What::Change(change) => Some(change),
            What::Branch { .. } | What::Reference { .. } | What::Section { .. } => None,
        }
    }

    fn write(&self, input: &Input<'_>, page: &mut Page<'_>) {
        let (label, words) = match &self.what {
            What::Branch { is_taken } => {
                let (branch, goto) = match is_taken {
                    true => ("true", "followed"),
                    false => ("false", "not followed"),
                };
                let words = format!("took the {branch} branch of this conditional, goto {goto}");
                ("branch", words)
            }
            What::Change(change) => change.words(input),
            What::Reference { id, is_acquired } => {
                let label = if *is_acquired { "acquired" } else { "released" };
                (label, format!("owned resource (id={id})"))
            }
            What::Section {
                section,
                is_entered,
                depth,
            } => {
                let verb = if *is_entered { "entered" } else { "left" };
                let words = format!("{verb} {}; depth is now {depth}", section.name());
                ("context", words)
            }
        };
        page.place(self.insn, label, &words);
    }
}

impl Change {
    fn words(&self, input: &Input<'_>) -> (&'static str, String) {
        let (holder, is_reg) = match self.holder.place {
            Place::Reg(reg) => (format!("R{reg}"), true),
            Place::Slot(spi) => (format!("stack slot fp{}", -8 * (spi as i64 + 1)), false),
            Place::Bytes(min, max) => {
                let last = max - 1;
                let words = format!(
                    "variable-offset stack write may affect bytes fp{min} through fp{last}"
                );
                return ("invalidated", words);
            }
        };
        let reason = match self.why {
            Why::Release if is_reg => "resource release invalidated this pointer",
            Why::Release => "resource release invalidated this value",
            Why::PacketMoved => "packet data may have moved",
            Why::SectionLeft => "leaving the protected region invalidated this borrowed pointer",
            Why::Call => "call invalidated this caller-saved register",
            Why::Write if !is_reg => "a later stack write overwrote this spilled value",
            Why::Write | Why::Spill => "",
        };
        let (old, new) = (
            value::describe(input, &self.old),
            value::describe(input, &self.new),
        );
        match reason {
            "" => {
                let label = if self.why == Why::Spill {
                    "spilled"
                } else {
                    "update"
                };
                (label, format!("{holder} changed from {old} to {new}"))
            }
            reason => (
                "invalidated",
                format!("{holder}: {reason}; previous value was {old}"),
            ),
        }
    }
}

/// True for arithmetic that computes a value from the one that its register had.
fn computes(insn: Insn) -> bool {
    match insn {
        Insn::Alu { op, .. } => !op.is_division() && op.reads_of_dst() != Halves::Neither,
        Insn::Neg { .. } | Insn::Endian { .. } => true,
        _ => false,
    }
}

/// True if a report says the same of both.
fn is_alike(rules: Behaviours, one: &RegState, other: &RegState) -> bool {
    // How much of a packet is proven is not told.
    let is_same_kind = match one.kind.packet_range() {
        Some(_) => one.kind.base() == other.kind.base(),
        None => one.kind == other.kind,
    };
    is_same_kind && one.flags == other.flags && one.whole_offset(rules) == other.whole_offset(rules)
}

/// One instruction on the path.
struct Step<'s> {
    input: &'s Input<'s>,
    insn: u32,
    next: u32,
    before: &'s StepState,
    after: &'s StepState,
}

impl Step<'_> {
    /// Records the events of the instruction; `None` if it is none that a path goes through.
    fn record(&self, history: &mut History) -> Option<()> {
        let number = self.before.frames.len() - 1;
        let frame = &*self.before.frames[number];
        let insn = self.input.insns[self.insn as usize];
        let reg = |history: &History, reg: Reg| history.holder(number, Place::Reg(reg.number()));
        let old = |reg: Reg| frame.regs[reg.index()];
        match insn {
            Insn::Jump { off, .. } | Insn::MayGoto { off } if off != 0 => {
                let fallthrough = self.insn + 1;
                let target = fallthrough.wrapping_add_signed(off.into());
                if self.next == target || self.next == fallthrough {
                    let is_taken = self.next == target;
                    history.push(self.insn, What::Branch { is_taken });
                }
            }
            Insn::Alu { op, dst, src, .. } => {
                let origin = match (op, src) {
                    (AluOp::Mov, Operand::Reg(src)) => Some(reg(history, src)),
                    _ => None,
                };
                self.write(history, dst, old(dst), origin);
            }
            Insn::MovSx { dst, src, .. } | Insn::Cast { dst, src, .. } => {
                let origin = Some(reg(history, src));
                self.write(history, dst, old(dst), origin);
            }
            Insn::Neg { dst, .. } | Insn::Endian { dst, .. } => {
                self.write(history, dst, old(dst), None);
            }
            Insn::LoadImm64 { dst, .. } => self.write(history, dst, RegState::UNKNOWN, None),
            Insn::Load { dst, base, off, .. } | Insn::LoadAcquire { dst, base, off, .. } => {
                let origin = self.slot(frame, base, off);
                let origin = origin.map(|(frame, at)| history.holder(frame, Place::Slot(spi(at))));
                self.write(history, dst, old(dst), origin);
            }
            Insn::Store {
                size,
                base,
                off,
                src,
            } => self.store(history, frame, (base, off, size), Some(src)),
            Insn::StoreRelease {
                size,
                base,
                off,
                src,
            } => self.store(history, frame, (base, off, size), Some(Operand::Reg(src))),
            Insn::Atomic {
                op,
                size,
                base,
                off,
                src,
            } => {
                let fetched = match op {
                    op if op.fetches_into_r0() => Some(Reg::R0),
                    op if op.fetches_into_src() => Some(src),
                    _ => None,
                };
                if let Some(dst) = fetched {
                    let origin = self.slot(frame, base, off);
                    let origin =
                        origin.map(|(frame, at)| history.holder(frame, Place::Slot(spi(at))));
                    self.write(history, dst, RegState::UNKNOWN, origin);
                }
                self.store(history, frame, (base, off, size), None);
            }
            Insn::PacketAbs { .. } | Insn::PacketInd { .. } => {
                self.scrub_caller_saved(history, number, |reg| frame.regs[reg]);
                self.write(history, Reg::R0, old(Reg::R0), None);
            }
            Insn::Call(callee) => self.call(history, callee),
            Insn::Exit => self.leave(history, frame),
            Insn::Jump { .. }
            | Insn::MayGoto { .. }
            | Insn::Imm64High
            | Insn::Goto { .. }
            | Insn::GotoLong { .. }
            | Insn::GotoReg { .. }
            | Insn::CallReg { .. }
            | Insn::Invalid { .. } => {}
        }
        Some(())
    }

    /// Records a register of the executing frame as it is behind the instruction.
    fn write(&self, history: &mut History, dst: Reg, old: RegState, origin: Option<Holder>) {
        let number = self.before.frames.len() - 1;
        let Some(after) = self.after.frames.get(number) else {
            return;
        };
        let new = after.regs[dst.index()];
        let insn = self.input.insns[self.insn as usize];
        if origin.is_none() && computes(insn) && is_alike(self.input.rules, &old, &new) {
            return;
        }
        let holder = history.holder(number, Place::Reg(dst.number()));
        self.change(history, holder, origin, Why::Write, old, new);
    }

    fn change(
        &self,
        history: &mut History,
        holder: Holder,
        origin: Option<Holder>,
        why: Why,
        old: RegState,
        new: RegState,
    ) {
        let change = Change {
            holder,
            origin,
            why,
            old,
            new,
        };
        history.push(self.insn, What::Change(Box::new(change)));
    }

    /// Records that a holder lost its value, if it had one.
    fn scrub(&self, history: &mut History, holder: Holder, why: Why, old: RegState) {
        if !matches!(old.kind, RegKind::NotInit) {
            self.change(history, holder, None, why, old, RegState::NOT_INIT);
        }
    }

    fn scrub_caller_saved(
        &self,
        history: &mut History,
        number: usize,
        old: impl Fn(usize) -> RegState,
    ) {
        for reg in 0..=5 {
            let holder = history.holder(number, Place::Reg(reg as u8));
            self.scrub(history, holder, Why::Call, old(reg));
        }
    }

    /// The frame and the offset of a stack access at a constant offset.
    fn slot(&self, frame: &Frame, base: Reg, off: i16) -> Option<(usize, i64)> {
        let reg = &frame.regs[base.index()];
        let RegKind::Stack { frame } = reg.kind else {
            return None;
        };
        let start = reg.whole_offset(self.input.rules).as_const()? as i64;
        Some((frame as usize, start.checked_add(off.into())?))
    }

    /// Records a store to the stack.
    fn store(
        &self,
        history: &mut History,
        frame: &Frame,
        (base, off, size): (Reg, i16, Size),
        src: Option<Operand>,
    ) {
        let reg = &frame.regs[base.index()];
        let RegKind::Stack { frame: number } = reg.kind else {
            return;
        };
        let number = number as usize;
        let Some((_, at)) = self.slot(frame, base, off) else {
            let range = reg.whole_offset(self.input.rules);
            let bytes = i64::from(size.bytes());
            let (min, max) = (
                range.smin + i64::from(off),
                range.smax + i64::from(off) + bytes,
            );
            let holder = history.holder(number, Place::Bytes(min, max));
            let none = RegState::NOT_INIT;
            return self.change(history, holder, None, Why::Write, none, none);
        };
        let place = spi(at);
        let (Some(before), Some(after)) = (
            self.before.frames.get(number),
            self.after.frames.get(number),
        ) else {
            return;
        };
        let old = before
            .stack
            .get(place)
            .map_or(RegState::NOT_INIT, |slot| slot.reg);
        let holder = history.holder(number, Place::Slot(place));
        let origin = match src {
            Some(Operand::Reg(src)) => {
                let executing = self.before.frames.len() - 1;
                Some(history.holder(executing, Place::Reg(src.number())))
            }
            Some(Operand::Imm(_)) | None => None,
        };
        let spilled = after
            .spilled(place)
            .filter(|_| at % 8 == 0 && src.is_some());
        match spilled {
            Some(new) => self.change(history, holder, origin, Why::Spill, old, *new),
            None if before.spilled(place).is_some() => {
                self.change(history, holder, origin, Why::Write, old, RegState::NOT_INIT);
            }
            None => {}
        }
    }

    /// Records a return to the caller.
    fn leave(&self, history: &mut History, frame: &Frame) {
        let number = self.before.frames.len() - 1;
        let is_called = matches!(
            usize::try_from(frame.callsite)
                .ok()
                .map(|at| self.input.insns[at]),
            Some(Insn::Call(Callee::Local(_)))
        );
        if !is_called || self.after.frames.len() >= self.before.frames.len() {
            return;
        }
        let caller = number - 1;
        let origin = history.holder(number, Place::Reg(0));
        let holder = history.holder(caller, Place::Reg(0));
        let (old, new) = (self.before.frames[caller].regs[0], frame.regs[0]);
        self.change(history, holder, Some(origin), Why::Write, old, new);
    }

    /// Records a call.
    fn call(&self, history: &mut History, callee: Callee) {
        let number = self.before.frames.len() - 1;
        let frame = &self.before.frames[number];
        let is_entered = self.after.frames.len() > self.before.frames.len();
        let is_local = matches!(callee, Callee::Local(_));
        if is_entered {
            // A callback begins before the call ends.
            if is_local {
                let holder = history.holder(number, Place::Reg(0));
                self.scrub(history, holder, Why::Call, frame.regs[0]);
                self.scrub_caller_saved(history, number, |reg| frame.regs[reg]);
            }
            return;
        }
        let mut lost = self.sections(history);
        lost.extend(self.releases(history));
        if !is_local {
            self.overwritten(history, &lost);
        }
        let Some(after) = self.after.frames.get(number) else {
            return;
        };
        let is_void = matches!(after.regs[0].kind, RegKind::NotInit);
        if is_local && is_void {
            let holder = history.holder(number, Place::Reg(0));
            self.scrub(history, holder, Why::Call, frame.regs[0]);
        }
        let old = |reg: usize| match lost.contains(&(number, Place::Reg(reg as u8))) {
            true => RegState::UNKNOWN,
            false => frame.regs[reg],
        };
        self.scrub_caller_saved(history, number, old);
        for acquired in &self.after.refs {
            let is_held = self.before.refs.iter().any(|held| held.id == acquired.id);
            if acquired.kind == ReferenceKind::Pointer && !is_held {
                let (id, is_acquired) = (acquired.id, true);
                history.push(self.insn, What::Reference { id, is_acquired });
            }
        }
        if !(is_local && is_void) {
            self.write(history, Reg::R0, old(0), None);
        }
        self.packet_moved(history);
    }

    /// Records sections that the call enters or leaves, and the pointers that go with them.
    fn sections(&self, history: &mut History) -> Vec<(usize, Place)> {
        let mut lost = Vec::new();
        for section in Section::ALL {
            let (before, after) = (section.depth(self.before), section.depth(self.after));
            if before == after {
                continue;
            }
            let is_entered = after > before;
            history.push(
                self.insn,
                What::Section {
                    section,
                    is_entered,
                    depth: after,
                },
            );
            if is_entered {
                continue;
            }
            if section == Section::Lock {
                lost.extend(self.lose(history, Why::SectionLeft, RegState::is_non_owning));
            }
            let after = self.after;
            let in_section = after.rcu > 0 || after.preempt > 0 || after.locks > 0;
            let in_section = in_section || !self.input.context.sleepable;
            if matches!(section, Section::Rcu | Section::Preempt) && !in_section {
                self.distrust(history);
            }
        }
        lost
    }

    /// Pointers that RCU protected may dangle behind its section.
    fn distrust(&self, history: &mut History) {
        let gone = TypeFlags::MEM_RCU | TypeFlags::PTR_MAYBE_NULL | TypeFlags::NON_OWN_REF;
        for (number, place, old) in self.values() {
            if old.flags.has(TypeFlags::MEM_RCU) {
                let mut new = old;
                new.flags = old.flags.without(gone) | TypeFlags::PTR_UNTRUSTED;
                let holder = history.holder(number, place);
                self.change(history, holder, None, Why::Write, old, new);
            }
        }
    }

    fn releases(&self, history: &mut History) -> Vec<(usize, Place)> {
        let mut lost = Vec::new();
        for held in &self.before.refs {
            let is_held = self.after.refs.iter().any(|it| it.id == held.id);
            if held.kind != ReferenceKind::Pointer || is_held {
                continue;
            }
            let (id, is_acquired) = (held.id, false);
            history.push(self.insn, What::Reference { id, is_acquired });
            lost.extend(self.lose(history, Why::Release, |reg| reg.ref_obj_id == id));
        }
        lost
    }

    /// Records the values that a call takes away.
    fn lose(
        &self,
        history: &mut History,
        why: Why,
        is_lost: impl Fn(&RegState) -> bool,
    ) -> Vec<(usize, Place)> {
        let mut lost = Vec::new();
        for (number, place, old) in self.values() {
            if is_lost(&old) {
                let holder = history.holder(number, place);
                self.scrub(history, holder, why, old);
                lost.push((number, place));
            }
        }
        lost
    }

    /// Records spilled values that the call overwrote.
    fn overwritten(&self, history: &mut History, lost: &[(usize, Place)]) {
        for (number, place, old) in self.values() {
            let Place::Slot(spi) = place else {
                continue;
            };
            let after = self.after.frames.get(number);
            let is_kept = after.is_none_or(|after| after.spilled(spi).is_some());
            if !is_kept && !lost.contains(&(number, place)) && !is_packet(&old) {
                let holder = history.holder(number, place);
                self.scrub(history, holder, Why::Write, old);
            }
        }
    }

    /// Records pointers to packets that the call made invalid.
    fn packet_moved(&self, history: &mut History) {
        let executing = self.before.frames.len() - 1;
        for (number, place, old) in self.values() {
            let now = self.after.frames.get(number).and_then(|frame| match place {
                Place::Reg(reg) => Some(&frame.regs[usize::from(reg)]),
                Place::Slot(spi) => frame.spilled(spi),
                Place::Bytes(..) => None,
            });
            let is_saved = !(number == executing && matches!(place, Place::Reg(0..=5)));
            if is_saved && is_packet(&old) && !now.is_some_and(is_packet) {
                let holder = history.holder(number, place);
                self.scrub(history, holder, Why::PacketMoved, old);
            }
        }
    }

    /// The values in registers and slots before the instruction.
    fn values(&self) -> Vec<(usize, Place, RegState)> {
        let mut values = Vec::new();
        for (number, frame) in self.before.frames.iter().enumerate() {
            for reg in 0..10 {
                values.push((number, Place::Reg(reg as u8), frame.regs[reg]));
            }
            let slots = (0..frame.stack.len()).filter_map(|spi| Some((spi, *frame.spilled(spi)?)));
            values.extend(slots.map(|(spi, reg)| (number, Place::Slot(spi), reg)));
        }
        values
    }
}

fn is_packet(reg: &RegState) -> bool {
    reg.kind.is_packet() || matches!(reg.kind, RegKind::PacketEnd)
}

/// The slot of an offset into the stack.
fn spi(off: i64) -> usize {
    usize::try_from(-off - 1).unwrap_or(0) / 8
}
