//! What a program wants of a run beside its registers and a packet's bytes: an
//! engine then sets up nothing that the program does not look at. One pass over
//! the program.

use isa::ebpf::{Callee, Insn, Reg};
use spec::context::LEN;

use crate::jumps::jump_target;
use crate::{Evidence, PacketRules};

/// See the module.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// What it is told in `r1`.
    pub context: bool,
    /// Fields of a packet's context other than the length.
    pub metadata: bool,
    /// A stack, and a frame pointer to it.
    pub stack: bool,
    /// Limits to how long it runs: it jumps backwards, or calls functions of its
    /// own.
    pub limits: bool,
    /// The world: it calls functions of the host, or a packet load of it may mean
    /// something else than the packet's bytes.
    pub world: bool,
}

impl Wants {
    /// Looks at a program. What a host vouches for may use its registers as it
    /// likes, so it always gets a context and a stack.
    pub fn of(insns: &[Insn], rules: PacketRules, evidence: Evidence) -> Wants {
        let trusted = evidence == Evidence::Trusted;
        let mut wants = Wants {
            context: trusted,
            stack: trusted,
            ..Wants::default()
        };
        for (slot, &insn) in insns.iter().enumerate() {
            wants.add(insn, slot, rules);
        }
        wants
    }

    fn add(&mut self, insn: Insn, slot: usize, rules: PacketRules) {
        match insn {
            Insn::Load { base: Reg::R10, .. } | Insn::Store { .. } => self.stack = true,
            Insn::Load { base, off, .. } => {
                self.context = true;
                self.metadata |= !(base == Reg::R6 && off == LEN.offset);
            }
            Insn::LoadAcquire { .. } | Insn::Atomic { .. } => self.metadata = true,
            Insn::Call(Callee::Local(_)) | Insn::CallReg { .. } | Insn::MayGoto { .. } => {
                self.limits = true;
            }
            // Those of converted programs take the context as argument.
            Insn::Call(_) => (self.world, self.context) = (true, true),
            Insn::PacketAbs { imm, .. } => self.world |= may_lie_elsewhere(rules, None, imm),
            Insn::PacketInd { src, imm, .. } => {
                self.world |= may_lie_elsewhere(rules, Some(src), imm);
            }
            _ => self.limits |= jump_target(insn, slot).is_some_and(|target| target <= slot),
        }
    }
}

/// Whether a packet load at a constant, or at a register and a constant, may find
/// something where the packet's bytes end: Linux's rules know negative offsets, and
/// sums that wrap around.
pub fn may_lie_elsewhere(rules: PacketRules, index: Option<Reg>, imm: i32) -> bool {
    rules == PacketRules::Kernel && (index.is_some() || imm < 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use classic::Rules;
    use isa::ebpf::assemble;

    fn wants(text: &str, rules: PacketRules) -> Wants {
        let insns = assemble(text).expect(text);
        Wants::of(&insns, rules, Evidence::Classic(Rules::Capture))
    }

    #[test]
    fn each_want_comes_from_what_asks_for_it() {
        let nothing = Wants::default();
        let (context, metadata) = (true, true);
        let cases = [
            ("r6 = r1\nr0 = *(u8 *)skb[3]\nexit", nothing),
            ("r0 = *(u32 *)(r6 + 0)\nexit", Wants { context, ..nothing }),
            (
                "r0 = *(u32 *)(r6 + 4)\nexit",
                Wants {
                    context,
                    metadata,
                    ..nothing
                },
            ),
            (
                "*(u32 *)(r10 - 8) = 1\nexit",
                Wants {
                    stack: true,
                    ..nothing
                },
            ),
            (
                "goto -1",
                Wants {
                    limits: true,
                    ..nothing
                },
            ),
            ("if w0 == 0 goto +0\nexit", nothing),
            (
                "call f\nexit\nf:\nexit",
                Wants {
                    limits: true,
                    ..nothing
                },
            ),
            (
                "call 7\nexit",
                Wants {
                    world: true,
                    context,
                    ..nothing
                },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(wants(text, PacketRules::Capture), expected, "{text}");
        }
    }

    #[test]
    fn only_linux_finds_something_beyond_the_packet() {
        let world = |text, rules| wants(text, rules).world;
        for (text, by_linux) in [
            ("r0 = *(u8 *)skb[3]\nexit", false),
            ("r0 = *(u8 *)skb[-1048576]\nexit", true),
            ("r0 = *(u8 *)skb[r7 + 3]\nexit", true),
        ] {
            assert_eq!(world(text, PacketRules::Kernel), by_linux, "{text}");
            assert!(!world(text, PacketRules::Capture), "{text}");
        }
    }
}
