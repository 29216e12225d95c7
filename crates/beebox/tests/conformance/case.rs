//! A row of a case file, and the program that performs its instruction.
//!
//! The memory of such a program holds, in this order, the registers as they are
//! before the instruction, as they are after it, and the memory of the row, with
//! room on both sides for the furthest offset. The program loads the first, does
//! the instruction, and stores the second; operands come from memory so that no
//! engine (and no verifier) knows them beforehand. On entry `r1` is the address
//! of all of it.

use isa::ebpf::{AluOp, Cond, Insn, Op, Operand, Reg, Size, Width, assemble};

/// Where the registers before the instruction are.
const BEFORE: i16 = 0;
/// Where the registers after it go.
const AFTER: i16 = 80;
/// Where it is written whether a jump was taken.
const TAKEN: i16 = 160;
/// Where the row's memory begins.
pub(crate) const MEMORY: usize = 33_024;
/// How much there is in all.
pub(crate) const LEN: usize = MEMORY + 33_024;
/// Registers that rows name: `r0` to `r9`.
const REGS: usize = 10;

/// A register before the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(u64),
    /// The address of this byte of the row's memory.
    Address(i64),
}

/// Where a jump goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Branch {
    Taken,
    Falls,
}

/// One row.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    /// File and line, for messages.
    pub(crate) place: String,
    pub(crate) insn: Vec<Insn>,
    before: [Value; REGS],
    /// Registers that are named after the instruction.
    after: Vec<(usize, u64)>,
    memory_before: Vec<u8>,
    memory_after: Option<Vec<u8>>,
    branch: Option<Branch>,
}

impl Row {
    /// Reads a line.
    pub(crate) fn parse(place: String, line: &str) -> Row {
        // `|=` is an operator, ` | ` is not.
        let line = format!(" {line}");
        let columns: Vec<&str> = line.split(" | ").collect();
        let [before, insn, after] = columns[..] else {
            panic!("{place}: three columns: {line}");
        };
        let insn = assemble(insn).unwrap_or_else(|error| panic!("{place}: {error}"));
        let mut row = Row {
            place,
            insn,
            before: [Value::Number(0); REGS],
            after: Vec::new(),
            memory_before: Vec::new(),
            memory_after: None,
            branch: None,
        };
        for word in before.split_whitespace() {
            match word.split_once('=') {
                Some(("m", hex)) => row.memory_before = bytes(hex),
                Some((name, value)) => row.before[register(name)] = value_of(value),
                None => panic!("{}: {word}", row.place),
            }
        }
        for word in after.split_whitespace() {
            match (word, word.split_once('=')) {
                ("taken", _) => row.branch = Some(Branch::Taken),
                ("falls", _) => row.branch = Some(Branch::Falls),
                (_, Some(("m", hex))) => row.memory_after = Some(bytes(hex)),
                (_, Some((name, value))) => row.after.push((register(name), number(value))),
                _ => panic!("{}: {word}", row.place),
            }
        }
        row
    }

    /// The row of the table that it is about.
    pub(crate) fn op(&self) -> Op {
        let row = self.insn[0].row();
        row.unwrap_or_else(|| panic!("{}: no instruction", self.place))
            .op
    }

    /// The memory before the program runs.
    pub(crate) fn memory(&self) -> Vec<u8> {
        let mut memory = vec![0; LEN];
        for (number, value) in self.before.iter().enumerate() {
            if let Value::Number(value) = value {
                let at = BEFORE as usize + 8 * number;
                memory[at..at + 8].copy_from_slice(&value.to_le_bytes());
            }
        }
        memory[MEMORY..MEMORY + self.memory_before.len()].copy_from_slice(&self.memory_before);
        memory
    }

    /// What differs from what is expected, when the memory is this afterwards.
    pub(crate) fn check(&self, memory: &[u8]) -> Result<(), String> {
        let word = |at: usize| u64::from_le_bytes(memory[at..at + 8].try_into().unwrap());
        for (number, before) in self.before.iter().enumerate() {
            let named = self.after.iter().find(|(name, _)| *name == number);
            let expected = match (named, before) {
                (Some((_, value)), _) => *value,
                (None, Value::Number(value)) => *value,
                (None, Value::Address(_)) => continue,
            };
            let found = word(AFTER as usize + 8 * number);
            if found != expected {
                return Err(format!("r{number} is {found:#x}, not {expected:#x}"));
            }
        }
        let expected = self.memory_after.as_ref().unwrap_or(&self.memory_before);
        let rest = &memory[MEMORY..];
        if !rest.starts_with(expected) || rest[expected.len()..].iter().any(|byte| *byte != 0) {
            let found = &rest[..expected.len()];
            return Err(format!("the memory is {found:02x?}, not {expected:02x?}"));
        }
        let taken = word(TAKEN as usize) == 1;
        match self.branch {
            Some(branch) if taken != (branch == Branch::Taken) => Err(format!(
                "the jump {}",
                if taken { "is taken" } else { "falls through" }
            )),
            _ => Ok(()),
        }
    }

    /// The program: `r1` is the address of the memory, and it returns 0.
    pub(crate) fn program(&self) -> Vec<Insn> {
        let mut start = self.prologue();
        let end = self.epilogue();
        let Some(distance) = self.distance() else {
            return [start, self.insn.clone(), end].concat();
        };
        if matches!(self.insn[0], Insn::Goto { .. } | Insn::GotoLong { .. }) {
            // Never taken; Linux wants every instruction to be reachable.
            start.push(Insn::Jump {
                cond: Cond::Eq,
                width: Width::W64,
                dst: Reg::R10,
                src: Operand::Imm(0),
                off: 1,
            });
        }
        // r10 - 24 says whether the jump was taken.
        let note = |taken| Insn::Store {
            size: Size::DW,
            base: Reg::R10,
            off: -24,
            src: Operand::Imm(taken),
        };
        let skip = |off| Insn::GotoLong { off };
        let nothing = Insn::Goto { off: 0 };
        match usize::try_from(distance) {
            // start; insn; note 0; nothing …; skip; note 1; end
            Ok(distance) => {
                let padding = vec![nothing; distance - 2];
                let falls = [vec![note(0)], padding, vec![skip(1)]].concat();
                [start, self.insn.clone(), falls, vec![note(1)], end].concat()
            }
            // skip; note 1; skip to the end; nothing …; start; insn; note 0; end
            Err(_) => {
                let back = -distance as usize;
                let padding = vec![nothing; back - 3 - start.len()];
                let between = padding.len() + start.len() + 2;
                let taken = [skip(2), note(1), skip(between as i32)];
                [
                    taken.to_vec(),
                    padding,
                    start,
                    self.insn.clone(),
                    vec![note(0)],
                    end,
                ]
                .concat()
            }
        }
    }

    /// How far the instruction jumps, if it does.
    fn distance(&self) -> Option<i64> {
        match self.insn[0] {
            Insn::Jump { off, .. } | Insn::Goto { off } | Insn::MayGoto { off } => Some(off.into()),
            Insn::GotoLong { off } => Some(off.into()),
            _ => None,
        }
    }

    /// Loads the registers, `r1` last.
    fn prologue(&self) -> Vec<Insn> {
        let mut insns = vec![store(Reg::R10, -8, Reg::R1)];
        for number in [0, 2, 3, 4, 5, 6, 7, 8, 9, 1] {
            let dst = reg(number);
            match self.before[number] {
                Value::Number(_) => {
                    insns.push(load(dst, Reg::R1, BEFORE + 8 * number as i16));
                }
                Value::Address(byte) => insns.extend([
                    alu(AluOp::Mov, dst, Operand::Reg(Reg::R1)),
                    alu(AluOp::Add, dst, Operand::Imm((MEMORY as i64 + byte) as i32)),
                ]),
            }
        }
        insns
    }

    /// Stores the registers that hold numbers.
    fn epilogue(&self) -> Vec<Insn> {
        let base = Reg::R9;
        let is_number = |number: usize| {
            matches!(self.before[number], Value::Number(_))
                || self.after.iter().any(|(name, _)| *name == number)
        };
        let mut insns = Vec::new();
        if is_number(9) {
            insns.push(store(Reg::R10, -16, base));
        }
        insns.push(load(base, Reg::R10, -8));
        for number in (0..9).filter(|number| is_number(*number)) {
            insns.push(store(base, AFTER + 8 * number as i16, reg(number)));
        }
        if is_number(9) {
            insns.push(load(Reg::R0, Reg::R10, -16));
            insns.push(store(base, AFTER + 72, Reg::R0));
        }
        if self.branch.is_some() {
            insns.push(load(Reg::R0, Reg::R10, -24));
            insns.push(store(base, TAKEN, Reg::R0));
        }
        insns.push(alu(AluOp::Mov, Reg::R0, Operand::Imm(0)));
        insns.push(Insn::Exit);
        insns
    }
}

/// The rows of a file.
pub(crate) fn parse_file(name: &str, text: &str) -> Vec<Row> {
    let numbered = text.lines().enumerate();
    numbered
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'))
        .map(|(index, line)| Row::parse(format!("{name}:{}", index + 1), line))
        .collect()
}

fn load(dst: Reg, base: Reg, off: i16) -> Insn {
    Insn::Load {
        size: Size::DW,
        signed: false,
        dst,
        base,
        off,
    }
}

fn store(base: Reg, off: i16, src: Reg) -> Insn {
    Insn::Store {
        size: Size::DW,
        base,
        off,
        src: Operand::Reg(src),
    }
}

fn alu(op: AluOp, dst: Reg, src: Operand) -> Insn {
    Insn::Alu {
        op,
        width: Width::W64,
        dst,
        src,
    }
}

fn reg(number: usize) -> Reg {
    Reg::new(number as u8).expect("0 to 9")
}

fn register(name: &str) -> usize {
    let number = name
        .strip_prefix('r')
        .and_then(|digits| digits.parse().ok());
    number
        .filter(|number| *number < REGS)
        .unwrap_or_else(|| panic!("no register {name}"))
}

fn value_of(text: &str) -> Value {
    match text.strip_prefix('@') {
        Some(byte) => Value::Address(byte.parse().expect("a byte of the memory")),
        None => Value::Number(number(text)),
    }
}

/// A number in hexadecimal or decimal.
pub(crate) fn number(text: &str) -> u64 {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Bytes in hexadecimal.
pub(crate) fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal"))
        .collect()
}
