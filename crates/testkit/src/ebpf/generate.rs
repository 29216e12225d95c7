//! Whole programs: functions that call each other, what they begin with, and how
//! what they computed is made to show.

use super::draft::Item;
use super::palette::Palette;
use super::scope::{
    Frame, Holds, Param, R10, Scope, ScopeContext, Signature, alu, bit, branch, load, mov, reg,
    store,
};
use super::statements::{KINDS, WEIGHTS};
use super::{Choices, Dialect, Notes, Program};
use isa::ebpf::{AluOp, Cond, Insn, Operand, Reg, Size, Width};

/// Generator of programs of one dialect.
#[derive(Clone, Debug)]
pub struct Generator {
    dialect: Dialect,
    palette: Palette,
}

/// Bytes of stack over a chain of calls, as Linux allows them, and the multiple
/// to which it rounds each frame.
const LINUX_STACK: i32 = 512;
const LINUX_FRAME_STEP: i32 = 32;
/// Bytes of stack of one frame.
const FRAME: i32 = 512;
/// Frames of a chain of calls.
const FRAMES: u32 = 8;

impl Generator {
    /// A generator of programs of that dialect.
    pub fn new(dialect: Dialect) -> Generator {
        Generator {
            dialect,
            palette: Palette::new(dialect),
        }
    }

    /// A program.
    pub fn program(&self, choices: &mut Choices<'_>) -> Program {
        let mut program = Program {
            functions: vec![Vec::new()],
            memory_len: 0,
            notes: Notes::default(),
        };
        let memory_len = memory_len(choices, self.dialect);
        let weights = weights(choices);
        let mut callable = Vec::new();
        let functions = match choices.below(8) {
            0..4 => 0,
            4..6 => 1 + choices.below(2),
            6 => 1 + choices.below(4),
            _ => 1 + choices.below(9),
        };
        for number in 1..=functions as usize {
            let context = ScopeContext {
                choices: &mut *choices,
                dialect: self.dialect,
                palette: &self.palette,
                notes: &mut program.notes,
                memory_len,
                callable: &callable,
                weights,
            };
            let (items, signature) = function(context, number);
            program.functions.push(items);
            callable.push(signature);
        }
        let context = ScopeContext {
            choices,
            dialect: self.dialect,
            palette: &self.palette,
            notes: &mut program.notes,
            memory_len,
            callable: &callable,
            weights,
        };
        let (items, len) = main(context);
        program.functions[0] = items;
        program.memory_len = len;
        program.functions = called(program.functions);
        program
    }
}

/// The functions that the first one calls, itself or by others: Linux refuses
/// code that nothing leads to.
fn called(mut functions: Vec<Vec<Item>>) -> Vec<Vec<Item>> {
    let mut order = vec![0];
    let mut at = 0;
    while let Some(&function) = order.get(at) {
        for item in &functions[function] {
            if let Item::Call(callee) = *item
                && !order.contains(&callee)
            {
                order.push(callee);
            }
        }
        at += 1;
    }
    order
        .iter()
        .map(|&function| {
            let mut items = std::mem::take(&mut functions[function]);
            for item in &mut items {
                if let Item::Call(callee) = item {
                    // Whatever is called is in the order.
                    *callee = order.iter().position(|to| to == callee).unwrap_or(0);
                }
            }
            items
        })
        .collect()
}

/// Bytes of memory that programs work on, beside those where the end shows.
fn memory_len(choices: &mut Choices<'_>, dialect: Dialect) -> i32 {
    match choices.below(64) {
        0..40 => 32 + 8 * choices.below(12) as i32,
        40..60 => 128 + 8 * choices.below(32) as i32,
        60..63 => 1024,
        _ => match dialect {
            Dialect::Kernel => 2048,
            Dialect::Engines => 30_000,
        },
    }
}

/// Each program prefers some kinds of statements and lacks others, so that what
/// seldom meets does.
fn weights(choices: &mut Choices<'_>) -> [u32; KINDS] {
    if choices.one_in(3) {
        return WEIGHTS;
    }
    let mut weights = WEIGHTS.map(|weight| weight * choices.pick(&[0, 1, 1, 2, 6]));
    weights[0] += 1;
    weights
}

/// Number of top-level statements of a function.
fn statements(choices: &mut Choices<'_>) -> u32 {
    match choices.below(100) {
        0..60 => 1 + choices.below(6),
        60..90 => 4 + choices.below(10),
        90..99 => 12 + choices.below(30),
        _ => 60 + choices.below(100),
    }
}

/// Approximate limit of executed instructions of a run.
fn cost_limit(dialect: Dialect) -> u32 {
    match dialect {
        Dialect::Engines => 6_000,
        Dialect::Kernel => 500,
    }
}

/// The entry: `r2` and `r3` hold the start and the end of the memory. Its items,
/// and the number of bytes of memory that it needs.
fn main(context: ScopeContext<'_, '_>) -> (Vec<Item>, usize) {
    let dialect = context.dialect;
    let choices = context.choices;
    let counters = choices.below(3) as i32;
    let frames: u32 = context.callable.iter().map(|f| f.frames).max().unwrap_or(0);
    // Linux counts the frames of a chain together.
    let most = match (dialect, frames) {
        (Dialect::Engines, _) => FRAME,
        // Room for what it keeps itself where a loop has `may_goto`.
        (Dialect::Kernel, 0) => FRAME - 32,
        (Dialect::Kernel, _) => 256,
    };
    let (frame, depth) = frame(choices, [true, true], None, counters, most);
    let context = ScopeContext { choices, ..context };
    let mut s = Scope::new(context, frame);
    s.frames_left = FRAMES - 1;
    s.stack_left = match dialect {
        Dialect::Engines => i32::MAX,
        Dialect::Kernel => LINUX_STACK - linux_frame(depth) - 32,
    };
    s.cost_limit = cost_limit(dialect);
    s.usable = usable(s.choices);
    s.holds[2] = Holds::Memory(0);
    s.holds[3] = Holds::End;

    let bail = s.label();
    // The length is not known before the end.
    let check = s.items.len() + 1;
    s.emit(mov(Reg::R4, Reg::R2));
    s.emit(alu(AluOp::Add, Width::W64, Reg::R4, Operand::Imm(0)));
    let beyond = branch(Cond::Gt, Width::W64, Reg::R4, Operand::Reg(Reg::R3));
    s.jump(beyond, bail);
    for (kept, from) in [(frame.memory, Reg::R2), (frame.end, Reg::R3)] {
        if let Some(slot) = kept {
            s.emit(store(Size::DW, R10, slot, Operand::Reg(from)));
        }
    }
    begin(&mut s);
    let count = statements(s.choices);
    s.block(count);
    let len = show(&mut s);
    s.give_number();
    s.emit(Insn::Exit);
    s.place_label(bail);
    s.emit(alu(AluOp::Mov, Width::W32, Reg::R0, Operand::Imm(0)));
    s.emit(Insn::Exit);
    let mut items = s.items;
    items[check] = Item::Plain(alu(AluOp::Add, Width::W64, Reg::R4, Operand::Imm(len)));
    (items, len as usize)
}

/// A function that others call, and what they need to know of it.
fn function(context: ScopeContext<'_, '_>, number: usize) -> (Vec<Item>, Signature) {
    let dialect = context.dialect;
    let choices = context.choices;
    let mut params = Vec::new();
    for _ in 0..choices.below(6) {
        let lent = params.iter().any(|param| matches!(param, Param::Lent(_)));
        let memory = params.contains(&Param::Memory);
        params.push(match choices.below(4) {
            0 if !memory => Param::Memory,
            1 if !lent => Param::Lent(8 + 8 * choices.below(3) as i32),
            _ => Param::Scalar,
        });
    }
    let lent = params.iter().find_map(|param| match param {
        Param::Lent(len) => Some(*len),
        _ => None,
    });
    let takes_memory = params.contains(&Param::Memory);
    let counters = choices.below(2) as i32;
    let most = match dialect {
        Dialect::Engines => FRAME,
        Dialect::Kernel => 64,
    };
    let (frame, depth) = frame(choices, [takes_memory, false], lent, counters, most);
    let context = ScopeContext { choices, ..context };
    let limit = cost_limit(dialect);
    let mut s = Scope::new(context, frame);
    // The entry and this one.
    s.frames_left = FRAMES - 2;
    s.stack_left = match dialect {
        Dialect::Engines => i32::MAX,
        Dialect::Kernel => LINUX_STACK - 288 - linux_frame(depth),
    };
    s.cost_limit = limit / 4;
    s.usable = usable(s.choices);
    for (at, param) in params.iter().enumerate() {
        let (holds, kept) = match param {
            Param::Scalar => (Holds::Scalar, None),
            Param::Memory => (Holds::Memory(0), frame.memory),
            Param::Lent(_) => (Holds::Lent(0), frame.lent.map(|(slot, _)| slot)),
        };
        let from = reg(at as u32 + 1);
        s.holds[from.index()] = holds;
        if let Some(slot) = kept {
            s.emit(store(Size::DW, R10, slot, Operand::Reg(from)));
        }
    }
    begin(&mut s);
    let count = statements(s.choices).min(20);
    s.block(count);
    fold(&mut s);
    s.emit(Insn::Exit);
    let signature = Signature {
        number,
        params,
        cost: s.cost,
        frames: s.frames_used + 1,
        stack: s.stack_used + linux_frame(depth),
    };
    (s.items, signature)
}

/// Stack depth that Linux charges for a frame.
fn linux_frame(depth: i32) -> i32 {
    let depth = depth.max(1);
    (depth + LINUX_FRAME_STEP - 1) / LINUX_FRAME_STEP * LINUX_FRAME_STEP
}

/// A frame with slots for addresses (of the memory and of its end, and of what a
/// caller lent), counters and some numbers; and how deep it is.
fn frame(
    choices: &mut Choices<'_>,
    [memory, end]: [bool; 2],
    lent: Option<i32>,
    counters: i32,
    most: i32,
) -> (Frame, i32) {
    let mut depth = 0;
    let mut slot = |wanted: bool| {
        wanted.then(|| {
            depth += 8;
            -depth as i16
        })
    };
    let memory = slot(memory);
    let end = slot(end);
    let lent = slot(lent.is_some()).zip(lent);
    let own = slot(choices.one_in(4));
    let counters = [slot(counters > 0), slot(counters > 1)];
    let room = most - depth;
    let bytes = match choices.below(16) {
        0 => 0,
        1 => room,
        2 => choices.below(room as u32) as i32,
        _ => 8 + 8 * choices.below(6) as i32,
    };
    let bytes = bytes.min(room) & !7;
    let high = -depth;
    let frame = Frame {
        memory,
        end,
        lent,
        own,
        counters,
        low: high - bytes,
        high,
    };
    (frame, depth + bytes)
}

/// The registers that a function uses: all, or some.
fn usable(choices: &mut Choices<'_>) -> u16 {
    if choices.one_in(2) {
        return 0x3ff;
    }
    let mut set = 0;
    for _ in 0..5 + choices.below(4) {
        set |= 1 << choices.below(10);
    }
    // At least these, for what needs some.
    set | 0b11 << choices.below(9)
}

/// Numbers for the stack and for registers.
fn begin(s: &mut Scope<'_, '_>) {
    if let Some(slot) = s.frame.own {
        s.emit(store(Size::DW, R10, slot, Operand::Reg(R10)));
    }
    let mut at = s.frame.low;
    while at < s.frame.high {
        let size = s.choices.pick(&[Size::DW, Size::DW, Size::DW, Size::W]);
        let mut put = |at: i32| {
            let scalars = s.scalars();
            let src = if scalars != 0 && s.choices.one_in(2) {
                Operand::Reg(s.scalar())
            } else {
                Operand::Imm(s.choices.immediate())
            };
            s.emit(store(size, R10, at as i16, src));
        };
        put(at);
        if size == Size::W {
            put(at + 4);
        }
        at += 8;
    }
    for number in 0..10u32 {
        let dst = reg(number);
        let is_used = s.usable & bit(dst) != 0;
        let may_lose = match s.holds[dst.index()] {
            Holds::Nothing => true,
            Holds::Scalar => s.choices.one_in(8),
            _ => s.choices.one_in(2),
        };
        if is_used && may_lose && !s.choices.one_in(12) {
            s.fill(dst);
        }
    }
}

/// Stores registers and stack behind the memory that the program works on: all, a
/// half, or none of them, so that some values stay dead. Returns the number of bytes of
/// memory with them.
fn show(s: &mut Scope<'_, '_>) -> i32 {
    let Some((base, origin)) = s.memory_base(0) else {
        return s.memory_len;
    };
    let mut at = s.memory_len;
    for number in 0..10 {
        let shown = reg(number);
        if s.holds[shown.index()] != Holds::Scalar {
            continue;
        }
        let size = match s.choices.below(10) {
            0..7 => Size::DW,
            7 => Size::W,
            8 => Size::B,
            _ => continue,
        };
        let off = (at - origin) as i16;
        s.emit(store(size, base, off, Operand::Reg(shown)));
        at += 8;
    }
    let spare = s.target_beside(bit(base));
    let mut word = s.frame.low;
    while word < s.frame.high {
        if s.choices.percent(70) {
            s.compute(spare, load(Size::DW, spare, R10, word as i16));
            let off = (at - origin) as i16;
            s.emit(store(Size::DW, base, off, Operand::Reg(spare)));
            at += 8;
        }
        word += 8;
    }
    at
}

/// Folds registers and stack into `r0`.
fn fold(s: &mut Scope<'_, '_>) {
    s.give_number();
    let ops = [AluOp::Add, AluOp::Xor, AluOp::Sub, AluOp::Mul];
    for number in 1..10 {
        let folded = reg(number);
        if s.holds[folded.index()] == Holds::Scalar && s.choices.percent(60) {
            let op = s.choices.pick(&ops[..3]);
            let width = s
                .choices
                .pick(&[Width::W64, Width::W64, Width::W64, Width::W32]);
            s.emit(alu(op, width, Reg::R0, Operand::Reg(folded)));
            if s.choices.one_in(2) {
                s.emit(alu(
                    AluOp::Mul,
                    Width::W64,
                    Reg::R0,
                    Operand::Imm(0x0100_0193),
                ));
            }
        }
    }
    let spare = s.target_beside(bit(Reg::R0));
    let mut word = s.frame.low;
    while word < s.frame.high {
        if s.choices.percent(50) {
            s.compute(spare, load(Size::DW, spare, R10, word as i16));
            let op = s.choices.pick(&ops[..3]);
            s.emit(alu(op, Width::W64, Reg::R0, Operand::Reg(spare)));
        }
        word += 8;
    }
}
