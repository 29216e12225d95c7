//! Kinds of programs, by what their entries take.
//!
//! A [`Lowered`] has its kind as a type: an engine has exactly the entries for it that give a
//! program what its evidence demands, so that no program is entered with the context of
//! another kind. Where only the program tells the kind, lowering returns one of several:
//! [`ClassicFilter`] and [`VerifiedProgram`].

use std::fmt::Debug;
use std::ops::Deref;

use isa::ebpf::{Insn, Reg};
use spec::context::LEN;
use vm::ContextKind;

use crate::{EntrySizes, LoweredCode};

mod sealed {
    pub trait Sealed {}
}

/// A kind of programs.
pub trait Kind: sealed::Sealed + Debug + 'static {
    /// What entries need of a program of this kind.
    type EntryInfo: Copy + Debug + Send + Sync;
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident($entry_info:ty);)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub enum $name {}

        impl sealed::Sealed for $name {}

        impl Kind for $name {
            type EntryInfo = $entry_info;
        }
    )*};
}

kinds! {
    /// Classic filters of packets: the context in `r1` is a [`vm::SkBuff`].
    PacketFilter(FilterContext);
    /// Classic filters of system calls (seccomp): `struct seccomp_data` at `r1`.
    SyscallFilter(());
    /// eBPF programs whose safety the caller asserts: memory at `r1`, its length in `r2`.
    MemoryProgram(());
    /// Verified programs that reach a packet through their context, which is of this kind.
    PacketProgram(ContextKind);
    /// Verified programs that have a context of this kind alone.
    ContextProgram(ContextKind);
    /// Functions of verified programs that the host calls with a map and an entry of it, whose
    /// key and value have these sizes.
    EntryFunction(EntrySizes);
}

/// Kinds of programs that the verifier accepted as a whole.
pub trait Verified: Kind<EntryInfo = ContextKind> {}

impl Verified for PacketProgram {}
impl Verified for ContextProgram {}

/// Part of its context that a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterContext {
    /// Nothing: `r1` is not live at the entry.
    Nothing,
    /// The length of the packet at most.
    Length,
    /// Any field.
    Fields,
}

impl FilterContext {
    /// Context fields that a converted program reads; the conversion keeps the context in `r6`.
    fn of(code: &LoweredCode) -> FilterContext {
        if !code.def_use().nodes()[0].live_in().has(Reg::R1) {
            return FilterContext::Nothing;
        }
        match code.insns().iter().any(|insn| reads_fields(*insn)) {
            true => FilterContext::Fields,
            false => FilterContext::Length,
        }
    }
}

/// True if an instruction of a converted program may read a field of the context other than
/// the length.
fn reads_fields(insn: Insn) -> bool {
    match insn {
        Insn::Load { base, off, .. } => {
            let is_length = base == Reg::R6 && off == LEN.offset;
            base != Reg::R10 && !is_length
        }
        Insn::LoadAcquire { .. } | Insn::Atomic { .. } => true,
        Insn::Alu { .. }
        | Insn::Neg { .. }
        | Insn::MovSx { .. }
        | Insn::Endian { .. }
        | Insn::Cast { .. }
        | Insn::LoadImm64 { .. }
        | Insn::Imm64High
        | Insn::Store { .. }
        | Insn::StoreRelease { .. }
        | Insn::Jump { .. }
        | Insn::Goto { .. }
        | Insn::GotoLong { .. }
        | Insn::GotoReg { .. }
        | Insn::MayGoto { .. }
        // Helpers of converted programs read the packet of the run.
        | Insn::Call(_)
        | Insn::CallReg { .. }
        | Insn::PacketAbs { .. }
        | Insn::PacketInd { .. }
        | Insn::Exit
        | Insn::Invalid { .. } => false,
    }
}

/// A program of a kind that an engine can run.
#[derive(Clone, Debug)]
pub struct Lowered<K: Kind> {
    code: LoweredCode,
    entry_info: K::EntryInfo,
}

impl<K: Kind> Lowered<K> {
    pub(crate) fn new(code: LoweredCode, entry_info: K::EntryInfo) -> Lowered<K> {
        Lowered { code, entry_info }
    }

    /// Facts about the program that entries need.
    pub fn entry_info(&self) -> K::EntryInfo {
        self.entry_info
    }

    /// The code without its kind, for what does not run it.
    pub fn into_code(self) -> LoweredCode {
        self.code
    }
}

impl<K: Kind> Deref for Lowered<K> {
    type Target = LoweredCode;

    fn deref(&self) -> &LoweredCode {
        &self.code
    }
}

/// A classic program that was lowered.
#[derive(Clone, Debug)]
pub enum ClassicFilter {
    /// A filter of packets.
    Packet(Lowered<PacketFilter>),
    /// A filter of system calls.
    Syscall(Lowered<SyscallFilter>),
}

impl ClassicFilter {
    /// The filter of packets, if it is one.
    pub fn packet(self) -> Option<Lowered<PacketFilter>> {
        match self {
            ClassicFilter::Packet(filter) => Some(filter),
            ClassicFilter::Syscall(_) => None,
        }
    }

    /// The filter of system calls, if it is one.
    pub fn syscall(self) -> Option<Lowered<SyscallFilter>> {
        match self {
            ClassicFilter::Packet(_) => None,
            ClassicFilter::Syscall(filter) => Some(filter),
        }
    }

    /// The code without its kind.
    pub fn into_code(self) -> LoweredCode {
        match self {
            ClassicFilter::Packet(filter) => filter.into_code(),
            ClassicFilter::Syscall(filter) => filter.into_code(),
        }
    }

    pub(crate) fn of_packets(code: LoweredCode) -> ClassicFilter {
        let context = FilterContext::of(&code);
        ClassicFilter::Packet(Lowered::new(code, context))
    }
}

/// A verified program that was lowered.
#[derive(Clone, Debug)]
pub enum VerifiedProgram {
    /// It reaches a packet through its context.
    Packet(Lowered<PacketProgram>),
    /// It has a context alone.
    Context(Lowered<ContextProgram>),
}

impl VerifiedProgram {
    pub(crate) fn new(code: LoweredCode, kind: ContextKind) -> VerifiedProgram {
        match kind.has_packet() {
            true => VerifiedProgram::Packet(Lowered::new(code, kind)),
            false => VerifiedProgram::Context(Lowered::new(code, kind)),
        }
    }

    /// The program, if it reaches a packet through its context.
    pub fn packet(self) -> Option<Lowered<PacketProgram>> {
        match self {
            VerifiedProgram::Packet(program) => Some(program),
            VerifiedProgram::Context(_) => None,
        }
    }

    /// The program, if it has a context alone.
    pub fn context(self) -> Option<Lowered<ContextProgram>> {
        match self {
            VerifiedProgram::Packet(_) => None,
            VerifiedProgram::Context(program) => Some(program),
        }
    }
}

impl Deref for VerifiedProgram {
    type Target = LoweredCode;

    fn deref(&self) -> &LoweredCode {
        match self {
            VerifiedProgram::Packet(program) => program,
            VerifiedProgram::Context(program) => program,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classic::text::{self, Form};
    use classic::{Rules, Semantics, check, convert};

    fn lowered(text: &str, rules: Rules, semantics: Semantics) -> ClassicFilter {
        let program = text::read(text.as_bytes(), Some(Form::Asm)).expect(text);
        let checked = check(&program, rules).expect(text);
        ClassicFilter::from_converted(convert(&checked, semantics))
    }

    #[test]
    fn filters_read_what_their_loads_need() {
        use FilterContext::{Fields, Length, Nothing};
        for (text, expected) in [
            ("ret #1\n", Nothing),
            ("ldh [12]\nret a\n", Nothing),
            // The stack is no context.
            ("ld #7\nst M[0]\nldb [3]\nld M[0]\nret a\n", Nothing),
            ("ld #len\nret a\n", Length),
            ("ldx #len\nldb [x + 0]\nret a\n", Length),
            // A length that nothing uses.
            ("ld #len\nret #1\n", Nothing),
            // Helpers get the context.
            ("ld #rand\nret a\n", Length),
            ("ld #mark\nret a\n", Fields),
            ("ld #proto\nret a\n", Fields),
            ("ld #ifidx\nret a\n", Fields),
            ("ld #len\nld #vlan_tci\nret a\n", Fields),
        ] {
            let filter = lowered(text, Rules::Socket, Semantics::Kernel).packet();
            let entry_info = filter.map(|filter| filter.entry_info());
            assert_eq!(entry_info, Some(expected), "{text}");
        }
    }

    #[test]
    fn rules_tell_the_kind_of_a_classic_filter() {
        for (rules, semantics) in [
            (Rules::Capture, Semantics::Capture),
            (Rules::Socket, Semantics::Kernel),
        ] {
            let filter = || lowered("ret #0\n", rules, semantics);
            assert!(filter().packet().is_some() && filter().syscall().is_none());
        }
        let filter = || lowered("ld [0]\nret a\n", Rules::Seccomp, Semantics::Kernel);
        assert!(filter().packet().is_none() && filter().syscall().is_some());
    }
}
