//! Instructions that a run may reach, by constant propagation: conditional jumps whose operands
//! are constants are followed one way.
//!
//! What decides in programs that are made for several kernels are constants that the loader
//! writes: results of CO-RE relocations, addresses of weak symbols, values of the
//! configuration and of frozen maps. The caller gives them ([`Known`]). An analysis by the
//! worklist method over the slots; the value of a register is a constant, a place in a map, or
//! unknown, so each slot is visited at most a few times for each register.

use std::collections::HashMap;

use isa::ebpf::eval;
use isa::ebpf::{AluOp, Flow, Imm64, Insn, Operand, Reg, Size};

/// Value of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// Unknown.
    Unknown,
    /// A constant.
    Number(u64),
    /// Address of a byte of a map's value, or of a value of the configuration: index and
    /// offset are the caller's.
    Place {
        /// Index.
        index: u32,
        /// Offset in bytes.
        offset: u32,
    },
}

/// Constants that something beside the instructions decides.
pub(super) trait Known {
    /// Value that the instruction at a slot gives its destination.
    fn written(&self, slot: usize, insn: &Insn) -> Option<Value>;
    /// Constant at a place.
    fn at(&self, index: u32, offset: u32, size: Size) -> Option<u64>;
    /// True if calls enter functions in the same instructions.
    fn has_functions(&self) -> bool;
}

type Registers = [Value; Reg::COUNT];

/// True for each slot that a run from the first may reach.
pub(super) fn reached(insns: &[Insn], known: &dyn Known) -> Vec<bool> {
    let mut before: HashMap<usize, Registers> = HashMap::new();
    let mut open = Vec::new();
    let unknown = [Value::Unknown; Reg::COUNT];
    if !insns.is_empty() {
        before.insert(0, unknown);
        open.push(0);
    }
    let mut reached = vec![false; insns.len()];
    while let Some(at) = open.pop() {
        reached[at] = true;
        let insn = &insns[at];
        let registers = before[&at];
        let after = step(registers, at, insn, known);
        let target = |skip: i32| usize::try_from(at as i64 + 1 + i64::from(skip)).ok();
        let next = target(0).map(|next| (next, after));
        let (first, second) = match insn.flow() {
            Flow::Next => (next, None),
            Flow::SkipOne => (target(1).map(|next| (next, after)), None),
            Flow::Goto(skip) => (target(skip).map(|next| (next, after)), None),
            Flow::Branch(skip) => {
                let taken = target(skip).map(|next| (next, after));
                match decided(insn, &registers) {
                    Some(true) => (taken, None),
                    Some(false) => (next, None),
                    None => (next, taken),
                }
            }
            Flow::Call(Some(skip)) if known.has_functions() => {
                (next, target(skip).map(|entry| (entry, unknown)))
            }
            Flow::Call(_) => (next, None),
            Flow::GotoReg(_) | Flow::Exit | Flow::Nowhere => (None, None),
        };
        let callback = match *insn {
            Insn::LoadImm64 {
                imm: Imm64::Func { off, .. },
                ..
            } if known.has_functions() => target(off).map(|entry| (entry, unknown)),
            _ => None,
        };
        // An indirect jump may go to any slot.
        if matches!(insn.flow(), Flow::GotoReg(_)) {
            for at in 0..insns.len() {
                join(&mut before, &mut open, at, unknown);
            }
        }
        for (to, registers) in [first, second, callback].into_iter().flatten() {
            if to < insns.len() {
                join(&mut before, &mut open, to, registers);
            }
        }
    }
    reached
}

/// Joins registers into those before a slot, and opens the slot if they change.
fn join(
    before: &mut HashMap<usize, Registers>,
    open: &mut Vec<usize>,
    to: usize,
    registers: Registers,
) {
    let Some(known) = before.get_mut(&to) else {
        before.insert(to, registers);
        open.push(to);
        return;
    };
    let mut is_changed = false;
    for (known, value) in known.iter_mut().zip(registers) {
        if *known != value && *known != Value::Unknown {
            *known = Value::Unknown;
            is_changed = true;
        }
    }
    if is_changed {
        open.push(to);
    }
}

/// Way of a conditional jump between constants.
fn decided(insn: &Insn, registers: &Registers) -> Option<bool> {
    let Insn::Jump {
        cond,
        width,
        dst,
        src,
        ..
    } = *insn
    else {
        return None;
    };
    match (registers[dst.index()], operand(src, registers)) {
        (Value::Number(a), Value::Number(b)) => Some(eval::compare(cond, width, a, b)),
        _ => None,
    }
}

fn operand(src: Operand, registers: &Registers) -> Value {
    match src {
        Operand::Reg(reg) => registers[reg.index()],
        Operand::Imm(imm) => Value::Number(eval::imm(imm)),
    }
}

/// The registers after an instruction.
fn step(mut registers: Registers, at: usize, insn: &Insn, known: &dyn Known) -> Registers {
    let value = known.written(at, insn).unwrap_or_else(|| match *insn {
        Insn::Alu {
            op,
            width,
            dst,
            src,
        } => {
            let source = operand(src, &registers);
            match (op, registers[dst.index()], source) {
                (AluOp::Mov, _, Value::Number(value)) => {
                    Value::Number(eval::alu(op, width, 0, value))
                }
                (AluOp::Mov, _, source) => source,
                (_, Value::Number(a), Value::Number(b)) => {
                    Value::Number(eval::alu(op, width, a, b))
                }
                (AluOp::Add, Value::Place { index, offset }, Value::Number(by)) => Value::Place {
                    index,
                    offset: offset.wrapping_add(by as u32),
                },
                _ => Value::Unknown,
            }
        }
        Insn::MovSx {
            width, from, src, ..
        } => match registers[src.index()] {
            Value::Number(value) => Value::Number(eval::mov_sx(width, from, value)),
            _ => Value::Unknown,
        },
        Insn::LoadImm64 {
            imm: Imm64::Value(value),
            ..
        } => Value::Number(value.get()),
        Insn::Load {
            size,
            signed,
            base,
            off,
            ..
        } => match registers[base.index()] {
            Value::Place { index, offset } => {
                let value = known.at(index, offset.wrapping_add_signed(off.into()), size);
                let value = value.map(|value| eval::loaded(size, signed, value));
                value.map_or(Value::Unknown, Value::Number)
            }
            _ => Value::Unknown,
        },
        _ => Value::Unknown,
    });
    for register in insn.writes().iter() {
        registers[register.index()] = Value::Unknown;
    }
    if let Some(dst) = destination(insn) {
        registers[dst.index()] = value;
    }
    registers
}

/// The register that an instruction gives its value.
fn destination(insn: &Insn) -> Option<Reg> {
    match *insn {
        Insn::Alu { dst, .. }
        | Insn::MovSx { dst, .. }
        | Insn::LoadImm64 { dst, .. }
        | Insn::Load { dst, .. } => Some(dst),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use isa::ebpf::assemble;

    /// The constant 0 of the first instruction, and a map whose words are 7.
    struct Checks;

    impl Known for Checks {
        fn written(&self, slot: usize, _: &Insn) -> Option<Value> {
            match slot {
                0 => Some(Value::Number(0)),
                1 => Some(Value::Place {
                    index: 0,
                    offset: 0,
                }),
                _ => None,
            }
        }

        fn at(&self, _: u32, offset: u32, _: Size) -> Option<u64> {
            (offset == 4).then_some(7)
        }

        fn has_functions(&self) -> bool {
            true
        }
    }

    fn unreached(text: &str) -> Vec<usize> {
        let insns = assemble(text).unwrap();
        let reached = reached(&insns, &Checks);
        (0..insns.len()).filter(|&at| !reached[at]).collect()
    }

    #[test]
    fn constants_decide_branches() {
        let start = "r1 = 1\nr2 = 0\n";
        let with = |rest: &str| unreached(&format!("{start}{rest}"));
        assert_eq!(with("if r1 == 0 goto +1\ncall 1\nr0 = 0\nexit"), [3]);
        assert_eq!(with("if r1 != 0 goto +1\nr0 = 0\nexit"), [0; 0]);
        // Through arithmetic, and a value of a map.
        assert_eq!(
            with("r1 &= 1\nw1 ^= 1\nif w1 != 0 goto +1\ncall 1\nr0 = 0\nexit"),
            [5]
        );
        let load = "r3 = *(u32 *)(r2 + 4)\nif r3 > 6 goto +1\ncall 1\nr0 = 0\nexit";
        assert_eq!(with(load), [4]);
        // A call changes registers, and what meets is unknown.
        assert_eq!(
            with("call 1\nif r1 == 0 goto +1\ncall 1\nr0 = 0\nexit"),
            [0; 0]
        );
        let joined = "if r6 == 0 goto +1\nr1 = 5\nif r1 == 0 goto +1\ncall 1\nr0 = 0\nexit";
        assert_eq!(with(joined), [0; 0]);
    }

    #[test]
    fn functions_are_entered_by_reached_calls() {
        let text = "r1 = 1\nr2 = 0\nif r1 == 0 goto +1\ncall pc+2\nr0 = 0\nexit\nr0 = 1\nexit";
        assert_eq!(unreached(text), [3, 6, 7]);
    }
}
