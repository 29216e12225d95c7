//! Conversions to several instructions, and those that depend on rules, semantics or
//! liveness.

use isa::classic::{self as cbpf, AluOp, Extension, Size, SockFilter};
use isa::ebpf::{self, Insn, Reg};
use spec::{calls, context};

use super::forms::{alu_op, memory_size};
use super::insns::*;
use super::liveness::Places;
use crate::{Rules, Semantics};

/// Context of such conversions.
pub(super) struct Special {
    pub(super) rules: Rules,
    pub(super) semantics: Semantics,
}

impl Special {
    /// Largest number of slots of a prologue.
    pub(super) const PROLOGUE: usize = 3 + cbpf::MEMORY_WORDS as usize;

    /// True if the offset is one of packet bytes under either semantics.
    #[inline(always)]
    pub(super) fn is_plain(&self, offset: i32) -> bool {
        offset >= 0 && self.rules != Rules::Seccomp
    }

    /// Emits the prologue: initialises live places and saves the context.
    pub(super) fn prologue(&self, live: Places, code: &mut Vec<Insn>) {
        code.push(mov64(CTX, Reg::R1));
        if live.has(Places::A) {
            code.push(mov_imm(A, 0));
        }
        if live.has(Places::X) {
            code.push(mov_imm(X, 0));
        }
        for k in 0..cbpf::MEMORY_WORDS {
            if live.has(Places::memory(k)) {
                code.push(Insn::Store {
                    size: ebpf::Size::W,
                    base: Reg::R10,
                    off: memory_offset(k),
                    src: ebpf::Operand::Imm(0),
                });
            }
        }
    }

    /// Converts an instruction with the live-out set `live`.
    #[inline(never)]
    pub(super) fn convert(&self, raw: SockFilter, live: Places, code: &mut Vec<Insn>) {
        match cbpf::Insn::decode(raw) {
            cbpf::Insn::LoadAbs { size, k } => self.load_absolute(code, size, k),
            cbpf::Insn::LoadXMsh(k) => self.load_header_length(code, k, live),
            cbpf::Insn::LoadLen => self.load_length(code, A, live.has(Places::A)),
            cbpf::Insn::LoadXLen => self.load_length(code, X, live.has(Places::X)),
            cbpf::Insn::Alu { op, .. } => self.arithmetic_by_x(code, op, live.has(Places::A)),
            other => unreachable!("{other:?} is converted by its template"),
        }
    }

    fn load_absolute(&self, code: &mut Vec<Insn>, size: Size, k: u32) {
        if self.rules == Rules::Seccomp {
            code.push(load_context(A, k as i16));
            return;
        }
        match self.semantics {
            // Such an offset is outside every packet.
            Semantics::Capture if k > i32::MAX as u32 => self.return_zero(code),
            Semantics::Kernel if let Some(extension) = Extension::from_offset(k) => {
                self.load_extension(code, extension);
            }
            _ => code.push(Insn::PacketAbs {
                size: memory_size(size),
                imm: k as i32,
            }),
        }
    }

    /// `X = 4 * (packet[k] & 15)`.
    fn load_header_length(&self, code: &mut Vec<Insn>, k: u32, live: Places) {
        if self.semantics == Semantics::Capture && k > i32::MAX as u32 {
            self.return_zero(code);
            return;
        }
        let keep = live.has(Places::A);
        if keep {
            code.push(mov64(SAVED, A));
        }
        code.push(Insn::PacketAbs {
            size: ebpf::Size::B,
            imm: k as i32,
        });
        if live.has(Places::X) {
            code.push(alu_imm(ebpf::AluOp::And, A, 15));
            code.push(alu_imm(ebpf::AluOp::Lsh, A, 2));
            code.push(mov32(X, A));
        }
        if keep {
            code.push(mov64(A, SAVED));
        }
    }

    fn load_length(&self, code: &mut Vec<Insn>, dst: Reg, live: bool) {
        if !live {
            return;
        }
        if self.rules == Rules::Seccomp {
            code.push(mov_imm(dst, context::SECCOMP_DATA_SIZE as i32));
        } else {
            code.push(load_context(dst, context::LEN.offset));
        }
    }

    fn load_extension(&self, code: &mut Vec<Insn>, extension: Extension) {
        let field = |code: &mut Vec<Insn>, field: context::Field| {
            code.push(load_context(A, field.offset));
        };
        match extension {
            Extension::Protocol => {
                field(code, context::PROTOCOL);
                code.push(from_network_order(A));
            }
            Extension::PktType => field(code, context::PKT_TYPE),
            Extension::Ifindex => self.load_from_device(code, context::IFINDEX),
            Extension::Hatype => self.load_from_device(code, context::HATYPE),
            Extension::Mark => field(code, context::MARK),
            Extension::Queue => field(code, context::QUEUE_MAPPING),
            Extension::Rxhash => field(code, context::HASH),
            Extension::VlanTci => field(code, context::VLAN_TCI),
            Extension::VlanPresent => field(code, context::VLAN_PRESENT),
            Extension::VlanTpid => {
                field(code, context::VLAN_PROTO);
                code.push(from_network_order(A));
            }
            Extension::AluXorX => code.push(alu_reg(ebpf::AluOp::Xor, A, X)),
            Extension::Cpu => field(code, context::CPU),
            Extension::Random => code.push(call(calls::GET_PRANDOM_U32)),
            Extension::PayOffset => {
                code.push(mov64(Reg::R1, CTX));
                code.push(call(calls::PAYLOAD_OFFSET));
            }
            Extension::Nlattr => self.call_with_a_and_x(code, calls::NETLINK_ATTRIBUTE),
            Extension::NlattrNest => self.call_with_a_and_x(code, calls::NETLINK_NESTED_ATTRIBUTE),
        }
    }

    /// Without a device the program ends with the accumulator.
    fn load_from_device(&self, code: &mut Vec<Insn>, field: context::Field) {
        code.push(load_context(Reg::R1, context::HAS_DEVICE.offset));
        code.push(jump_imm(ebpf::Cond::Ne, Reg::R1, 0, 1));
        code.push(Insn::Exit);
        code.push(load_context(A, field.offset));
    }

    fn call_with_a_and_x(&self, code: &mut Vec<Insn>, number: i32) {
        code.push(mov64(Reg::R1, CTX));
        code.push(mov64(Reg::R2, A));
        code.push(mov64(Reg::R3, X));
        code.push(call(number));
    }

    /// Operations with special cases for some values of `X`.
    fn arithmetic_by_x(&self, code: &mut Vec<Insn>, op: AluOp, live: bool) {
        match op {
            // Division by a zero X ends the program with 0.
            AluOp::Div | AluOp::Mod => {
                code.push(jump_imm(ebpf::Cond::Ne, X, 0, 2));
                self.return_zero(code);
            }
            // The count is masked, and shifting 0 changes nothing.
            AluOp::Lsh | AluOp::Rsh => {
                if self.semantics == Semantics::Capture && live {
                    code.push(jump_imm(ebpf::Cond::Lt, X, 32, 1));
                    code.push(mov_imm(A, 0));
                }
            }
            AluOp::Add | AluOp::Sub | AluOp::Mul | AluOp::Or | AluOp::And | AluOp::Xor => {}
        }
        if live {
            code.push(alu_reg(alu_op(op), A, X));
        }
    }

    fn return_zero(&self, code: &mut Vec<Insn>) {
        code.push(mov_imm(A, 0));
        code.push(Insn::Exit);
    }
}
