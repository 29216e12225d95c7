//! From evidence that a program is safe to code that an engine can run.
//!
//! Engines run a [`Lowered`] without checking what its evidence already says, so
//! the only ways to make one are the constructors here, each of which takes the
//! evidence itself. Today that is classic BPF: its checker proves that every
//! jump stays inside and every scratch word is in range, and the conversion
//! makes no other memory access than to its own context and stack.
#![forbid(unsafe_code)]

use classic::{Converted, Rules, Semantics};
use isa::ebpf::Insn;

/// Why a program may run unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The classic checker passed it by these rules, and our conversion made
    /// the code.
    Classic(Rules),
}

/// What a packet load beyond the packet means to the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketRules {
    /// libpcap's: offsets are unsigned and do not wrap.
    Capture,
    /// Linux's: offsets wrap, negative ones count from a header.
    Kernel,
}

/// A program that an engine can run.
#[derive(Clone, Debug)]
pub struct Lowered {
    insns: Vec<Insn>,
    evidence: Evidence,
    packet_rules: PacketRules,
}

impl Lowered {
    /// Lowers a converted classic program.
    pub fn from_classic(program: Converted) -> Lowered {
        Lowered {
            evidence: Evidence::Classic(program.rules()),
            packet_rules: match program.semantics() {
                Semantics::Capture => PacketRules::Capture,
                Semantics::Kernel => PacketRules::Kernel,
            },
            insns: program.into_insns(),
        }
    }

    /// The code, one element per slot.
    pub fn insns(&self) -> &[Insn] {
        &self.insns
    }

    /// Why it may run.
    pub fn evidence(&self) -> Evidence {
        self.evidence
    }

    /// What its packet loads mean beyond the packet.
    pub fn packet_rules(&self) -> PacketRules {
        self.packet_rules
    }
}
