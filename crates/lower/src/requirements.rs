//! The state that a run must set up for a program beside its registers and a packet's
//! bytes. One pass over the program.

use isa::ebpf::{Callee, Insn, Reg};
use spec::context::LEN;

use crate::flow::jump_target;
use crate::{Evidence, PacketRules};

/// The state that a run must set up for a program.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    /// The context in `r1`.
    pub context: bool,
    /// Fields of a packet's context other than the length.
    pub metadata: bool,
    /// A stack, and a frame pointer to it.
    pub stack: bool,
    /// Limits: the program has backward jumps or local calls.
    pub limits: bool,
    /// The run context: the program calls helpers, or has packet loads that may succeed
    /// outside the packet's bytes.
    pub run_context: bool,
}

impl Requirements {
    /// The requirements of a program. A program whose safety the caller asserts always
    /// gets a context and a stack.
    pub fn of(insns: &[Insn], rules: PacketRules, evidence: Evidence) -> Requirements {
        let always = match evidence {
            Evidence::CallerAsserted | Evidence::Verified(_) => true,
            Evidence::Classic(_) => false,
        };
        let mut requirements = Requirements {
            context: always,
            stack: always,
            ..Requirements::default()
        };
        for (slot, &insn) in insns.iter().enumerate() {
            requirements.add(insn, slot, rules);
        }
        requirements
    }

    fn add(&mut self, insn: Insn, slot: usize, rules: PacketRules) {
        match insn {
            Insn::Load { base: Reg::R10, .. } | Insn::Store { .. } | Insn::StoreRelease { .. } => {
                self.stack = true;
            }
            Insn::Load { base, off, .. } => {
                self.context = true;
                self.metadata |= !(base == Reg::R6 && off == LEN.offset);
            }
            Insn::LoadAcquire { .. } | Insn::Atomic { .. } => {
                (self.context, self.metadata) = (true, true);
            }
            Insn::Call(Callee::Local(_)) | Insn::CallReg { .. } | Insn::MayGoto { .. } => {
                self.limits = true;
            }
            // Helpers of converted programs receive the context.
            Insn::Call(Callee::Helper(_) | Callee::Kfunc { .. }) => {
                (self.run_context, self.context) = (true, true);
            }
            Insn::PacketAbs { imm, .. } => {
                self.run_context |= may_succeed_outside(rules, None, imm)
            }
            Insn::PacketInd { src, imm, .. } => {
                self.run_context |= may_succeed_outside(rules, Some(src), imm);
            }
            Insn::Jump { .. } | Insn::Goto { .. } | Insn::GotoLong { .. } => {
                self.limits |= jump_target(insn, slot).is_some_and(|target| target <= slot);
            }
            Insn::GotoReg { .. } => self.limits = true,
            Insn::Alu { .. }
            | Insn::Neg { .. }
            | Insn::MovSx { .. }
            | Insn::Endian { .. }
            | Insn::Cast { .. }
            | Insn::LoadImm64 { .. }
            | Insn::Imm64High
            | Insn::Exit
            | Insn::Invalid { .. } => {}
        }
    }
}

/// True if a packet load at a constant, or at a register and a constant, may succeed
/// outside the packet's bytes: Linux's rules define negative offsets, and sums that wrap
/// around.
pub fn may_succeed_outside(rules: PacketRules, index: Option<Reg>, imm: i32) -> bool {
    match rules {
        PacketRules::Kernel => index.is_some() || imm < 0,
        PacketRules::Capture => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use classic::Rules;
    use isa::ebpf::assemble;

    fn requirements(text: &str, rules: PacketRules) -> Requirements {
        let insns = assemble(text).expect(text);
        Requirements::of(&insns, rules, Evidence::Classic(Rules::Capture))
    }

    #[test]
    fn every_requirement_has_a_source() {
        let nothing = Requirements::default();
        let (context, metadata) = (true, true);
        let cases = [
            ("r6 = r1\nr0 = *(u8 *)skb[3]\nexit", nothing),
            (
                "r0 = *(u32 *)(r6 + 0)\nexit",
                Requirements { context, ..nothing },
            ),
            (
                "r0 = *(u32 *)(r6 + 4)\nexit",
                Requirements {
                    context,
                    metadata,
                    ..nothing
                },
            ),
            (
                "*(u32 *)(r10 - 8) = 1\nexit",
                Requirements {
                    stack: true,
                    ..nothing
                },
            ),
            (
                "goto -1",
                Requirements {
                    limits: true,
                    ..nothing
                },
            ),
            ("if w0 == 0 goto +0\nexit", nothing),
            (
                "call f\nexit\nf:\nexit",
                Requirements {
                    limits: true,
                    ..nothing
                },
            ),
            (
                "call 7\nexit",
                Requirements {
                    run_context: true,
                    context,
                    ..nothing
                },
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(requirements(text, PacketRules::Capture), expected, "{text}");
        }
    }

    #[test]
    fn only_linux_rules_define_loads_outside_the_packet() {
        let uses_run_context = |text, rules| requirements(text, rules).run_context;
        for (text, by_linux) in [
            ("r0 = *(u8 *)skb[3]\nexit", false),
            ("r0 = *(u8 *)skb[-1048576]\nexit", true),
            ("r0 = *(u8 *)skb[r7 + 3]\nexit", true),
        ] {
            assert_eq!(
                uses_run_context(text, PacketRules::Kernel),
                by_linux,
                "{text}"
            );
            assert!(!uses_run_context(text, PacketRules::Capture), "{text}");
        }
    }
}
