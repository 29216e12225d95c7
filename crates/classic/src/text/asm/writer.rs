//! Writer of the assembly language.

use std::collections::BTreeSet;
use std::fmt::Write;

use isa::classic::{Cond, Extension, Insn, SockFilter};

use super::{RAW_INSN, RET_X};
use crate::text::operand::Operand;

pub(in crate::text) fn write(program: &[SockFilter]) -> String {
    let lines: Vec<Line> = (0..program.len()).map(|at| Line::of(program, at)).collect();
    let labelled: BTreeSet<usize> = lines.iter().flat_map(Line::labels).collect();
    let mut out = String::with_capacity(program.len() * 32);
    for (index, line) in lines.iter().enumerate() {
        if labelled.contains(&index) {
            let _ = write!(out, "{:<8}", format!("{}:", label(index)));
        } else {
            out.push_str("        ");
        }
        line.write(&mut out);
        out.push('\n');
    }
    out
}

fn label(index: usize) -> String {
    format!("L{index}")
}

/// Form of a written instruction.
enum Line {
    /// By its fields, because the language has no syntax for it.
    Fields(SockFilter),
    /// A mnemonic and an operand.
    Plain(&'static str, String),
    /// An unconditional jump to an instruction.
    Goto(usize),
    /// A branch: to the first target if the condition holds, otherwise to the second one or
    /// the next instruction.
    Branch(&'static str, String, usize, Option<usize>),
}

impl Line {
    fn of(program: &[SockFilter], index: usize) -> Line {
        let raw = program[index];
        let insn = Insn::decode(raw);
        if raw == SockFilter::new(RET_X, 0, 0, 0) {
            return Line::Plain("ret", "x".to_owned());
        }
        let (Some(mnemonic), Some(operand)) = (insn.mnemonic(), Operand::of(insn)) else {
            return Line::Fields(raw);
        };
        let in_program = |target: usize| (target < program.len()).then_some(target);
        match (insn, operand) {
            (_, Operand::Skip(k)) => {
                let target = (index as u32 + 1).wrapping_add(k);
                in_program(target as usize).map_or(Line::Fields(raw), Line::Goto)
            }
            (Insn::Jump { cond, jt, jf, .. }, operand) => {
                let next = index + 1;
                let targets = [jt, jf].map(|skip| in_program(next + usize::from(skip)));
                let [Some(jt), Some(jf)] = targets else {
                    return Line::Fields(raw);
                };
                let inverse = match cond {
                    Cond::Eq => Some("jneq"),
                    Cond::Ge => Some("jlt"),
                    Cond::Gt => Some("jle"),
                    Cond::Set => None,
                };
                let text = operand_text(mnemonic, operand);
                match inverse {
                    Some(inverse) if jt == next && jf != next => {
                        Line::Branch(inverse, text, jf, None)
                    }
                    _ if jf == next => Line::Branch(mnemonic, text, jt, None),
                    _ => Line::Branch(mnemonic, text, jt, Some(jf)),
                }
            }
            (_, operand) => Line::Plain(mnemonic, operand_text(mnemonic, operand)),
        }
    }

    /// Instructions that need a label for it.
    fn labels(&self) -> impl Iterator<Item = usize> + use<> {
        let targets = match *self {
            Line::Fields(_) | Line::Plain(..) => [None, None],
            Line::Goto(target) => [Some(target), None],
            Line::Branch(_, _, first, second) => [Some(first), second],
        };
        targets.into_iter().flatten()
    }

    fn write(&self, out: &mut String) {
        // Writing to a string cannot fail.
        let _ = match self {
            Line::Fields(SockFilter { code, jt, jf, k }) => {
                write!(out, "{RAW_INSN} 0x{code:x}, {jt}, {jf}, 0x{k:x}")
            }
            Line::Plain(mnemonic, operand) if operand.is_empty() => write!(out, "{mnemonic}"),
            Line::Plain(mnemonic, operand) => write!(out, "{mnemonic:<7} {operand}"),
            Line::Goto(target) => write!(out, "{:<7} {}", "jmp", label(*target)),
            Line::Branch(mnemonic, operand, first, None) => {
                write!(out, "{mnemonic:<7} {operand}, {}", label(*first))
            }
            Line::Branch(mnemonic, operand, first, Some(second)) => {
                let (first, second) = (label(*first), label(*second));
                write!(out, "{mnemonic:<7} {operand}, {first}, {second}")
            }
        };
    }
}

fn operand_text(mnemonic: &str, operand: Operand) -> String {
    match operand {
        Operand::Nothing | Operand::Skip(_) => String::new(),
        Operand::A => "a".to_owned(),
        Operand::X => "x".to_owned(),
        Operand::Len => "#len".to_owned(),
        Operand::Imm(k) => match mnemonic {
            "add" | "sub" => format!("#{}", k as i32),
            "mul" | "div" | "mod" | "lsh" | "rsh" => format!("#{k}"),
            _ => format!("#0x{k:x}"),
        },
        // bpf_asm has no name for the historical xor.
        Operand::Abs(k) => match Extension::from_offset(k) {
            Some(extension) if extension != Extension::AluXorX => format!("#{}", extension.name()),
            _ => format!("[{}]", k as i32),
        },
        Operand::Ind(k) => format!("[x + {}]", k as i32),
        Operand::Mem(k) => format!("M[{k}]"),
        Operand::Msh(k) => format!("4*([{}]&0xf)", k as i32),
    }
}
