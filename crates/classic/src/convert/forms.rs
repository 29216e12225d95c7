//! Templates: the conversion of opcodes that does not depend on context.
//!
//! The table is indexed by opcode and derives from the instruction set.

use isa::classic::{self as cbpf, AluOp, Cond, Operand, Size, SockFilter};
use isa::ebpf::{self, Insn, Reg, Width};

use super::insns::{A, X, alu_reg, mov32};
use super::liveness::{Effect, Places};

/// The conversion of an opcode.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) step: Step,
    /// The place that it writes, if it has no other effect.
    pub(super) writes: Places,
    /// Its effect on liveness.
    pub(super) effect: Effect,
}

/// Template of a conversion.
#[derive(Clone, Copy)]
#[repr(u8)]
pub(super) enum Step {
    /// A load from the packet at the constant.
    Load(ebpf::Size),
    /// A load from the packet at `X` and the constant.
    LoadIndirect(ebpf::Size),
    /// Arithmetic of a register and the constant.
    Constant { op: ebpf::AluOp, dst: Reg },
    /// One instruction without a constant.
    Fixed(Insn),
    /// A load from scratch memory.
    LoadWord(Reg),
    /// A store to scratch memory.
    StoreWord(Reg),
    /// A branch on `A`.
    Branch {
        /// The condition and its inverse, or the condition again if it has none.
        conds: [ebpf::Cond; 2],
        /// True if the condition has an inverse.
        turns: bool,
        /// True if the operand is `X`.
        by_x: bool,
    },
    /// A jump.
    Goto,
    /// Return of the constant.
    Return,
    /// Return of `A`.
    ReturnA,
    /// A conversion that depends on context.
    Special,
}

/// The conversion of a valid instruction.
#[inline(always)]
pub(super) fn form(raw: SockFilter) -> &'static Form {
    &FORMS[usize::from(raw.code as u8)]
}

static FORMS: [Form; 256] = {
    let mut forms = [Form::of(cbpf::Insn::RetA); 256];
    let mut code = 0;
    while code < forms.len() {
        let raw = SockFilter::new(code as u16, 0, 0, 0);
        forms[code] = Form::of(cbpf::Insn::decode(raw));
        code += 1;
    }
    forms
};

impl Form {
    const fn of(insn: cbpf::Insn) -> Form {
        use cbpf::Insn::*;
        const MOV: ebpf::AluOp = ebpf::AluOp::Mov;
        const NONE: Places = Places::NONE;
        let (step, writes) = match insn {
            LoadAbs { size, .. } => (Step::Load(memory_size(size)), NONE),
            LoadInd { size, .. } => (Step::LoadIndirect(memory_size(size)), NONE),
            LoadImm(_) => (Step::Constant { op: MOV, dst: A }, Places::A),
            LoadXImm(_) => (Step::Constant { op: MOV, dst: X }, Places::X),
            LoadMem(_) => (Step::LoadWord(A), Places::A),
            LoadXMem(_) => (Step::LoadWord(X), Places::X),
            Store(_) => (Step::StoreWord(A), NONE),
            StoreX(_) => (Step::StoreWord(X), NONE),
            Alu { op, src } => {
                let wide = alu_op(op);
                match (src, op) {
                    (Operand::K(_), _) => (Step::Constant { op: wide, dst: A }, Places::A),
                    // Some values of X are special.
                    (Operand::X, AluOp::Div | AluOp::Mod | AluOp::Lsh | AluOp::Rsh) => {
                        (Step::Special, NONE)
                    }
                    (Operand::X, _) => (Step::Fixed(alu_reg(wide, A, X)), Places::A),
                }
            }
            Neg => {
                let width = Width::W32;
                (Step::Fixed(Insn::Neg { width, dst: A }), Places::A)
            }
            Tax => (Step::Fixed(mov32(X, A)), Places::X),
            Txa => (Step::Fixed(mov32(A, X)), Places::A),
            Jump { cond, src, .. } => {
                let cond = condition(cond);
                let inverse = cond.inverse();
                let branch = Step::Branch {
                    conds: match inverse {
                        Some(inverse) => [cond, inverse],
                        None => [cond, cond],
                    },
                    turns: inverse.is_some(),
                    by_x: matches!(src, Operand::X),
                };
                (branch, NONE)
            }
            Goto(_) => (Step::Goto, NONE),
            RetK(_) => (Step::Return, NONE),
            RetA => (Step::ReturnA, NONE),
            LoadLen | LoadXLen | LoadXMsh(_) | Invalid(_) => (Step::Special, NONE),
        };
        Form {
            step,
            writes,
            effect: Effect::of(insn),
        }
    }
}

/// A condition of classic BPF in eBPF.
const fn condition(cond: Cond) -> ebpf::Cond {
    match cond {
        Cond::Eq => ebpf::Cond::Eq,
        Cond::Gt => ebpf::Cond::Gt,
        Cond::Ge => ebpf::Cond::Ge,
        Cond::Set => ebpf::Cond::Set,
    }
}

/// The eBPF operation of the same name.
pub(super) const fn alu_op(op: AluOp) -> ebpf::AluOp {
    match op {
        AluOp::Add => ebpf::AluOp::Add,
        AluOp::Sub => ebpf::AluOp::Sub,
        AluOp::Mul => ebpf::AluOp::Mul,
        AluOp::Div => ebpf::AluOp::Div,
        AluOp::Or => ebpf::AluOp::Or,
        AluOp::And => ebpf::AluOp::And,
        AluOp::Lsh => ebpf::AluOp::Lsh,
        AluOp::Rsh => ebpf::AluOp::Rsh,
        AluOp::Mod => ebpf::AluOp::Mod,
        AluOp::Xor => ebpf::AluOp::Xor,
    }
}

/// The eBPF size of the same name.
pub(super) const fn memory_size(size: Size) -> ebpf::Size {
    match size {
        Size::B => ebpf::Size::B,
        Size::H => ebpf::Size::H,
        Size::W => ebpf::Size::W,
    }
}
