//! The record of a run.

use btf::TypeId;
use isa::ebpf::{Cond, Width};
use packet::HeaderField;

/// What a run did.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The lines in their order; of a long run the first and the last ones.
    pub visits: Vec<Visit>,
    /// Index in [`Run::visits`] at which lines are left out.
    pub gap: usize,
    /// Index of the last line of the program; functions of timers may have lines behind it.
    pub last: Option<usize>,
    /// Number of lines that are left out there.
    pub left_out: u64,
    /// Executed instructions.
    pub instructions: u64,
    /// Variables in scope that no value was seen of.
    pub unseen: Vec<UnseenVariable>,
}

impl Run {
    /// The run of the function of a timer, which is no part of the program's.
    #[must_use]
    pub fn of_timer(self) -> Run {
        Run {
            last: None,
            instructions: 0,
            ..self
        }
    }

    /// Adds a run behind it.
    pub fn append(&mut self, next: Run) {
        let before = self.visits.len();
        if self.left_out == 0 {
            self.gap = before + next.gap;
        }
        self.last = next.last.map(|last| before + last).or(self.last);
        self.left_out += next.left_out;
        self.instructions += next.instructions;
        self.visits.extend(next.visits);
        for variable in next.unseen {
            if !self.unseen.contains(&variable) {
                self.unseen.push(variable);
            }
        }
    }
}

/// Instructions of one source line in one frame, executed one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visit {
    /// Number of the program.
    pub program: u32,
    /// First slot of the function.
    pub function: u32,
    /// Call depth: 0 in the entry function.
    pub depth: usize,
    /// Functions that the line is inlined from, the outermost first.
    pub inlined: Vec<String>,
    /// First and last slot of each sequence of instructions.
    pub spans: Vec<(u32, u32)>,
    /// What happened, in its order.
    pub events: Vec<TraceEvent>,
}

impl Visit {
    /// Slot of the first instruction.
    pub fn first(&self) -> u32 {
        self.spans.first().map_or(0, |(first, _)| *first)
    }

    /// Slot of the last instruction.
    pub fn last(&self) -> u32 {
        self.spans.last().map_or(0, |(_, last)| *last)
    }
}

/// Something that happened at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A branch.
    Branch {
        /// Slot of the instruction.
        insn: u32,
        /// The operand in front of the condition.
        left: NamedValue,
        /// The condition.
        cond: Cond,
        /// Width of the comparison.
        width: Width,
        /// The operand behind it.
        right: NamedValue,
        /// True if it holds.
        holds: bool,
        /// Slot of the next instruction.
        to: u32,
    },
    /// A call of a helper or kfunc.
    Call {
        /// Slot of the instruction.
        insn: u32,
        /// Name of the function.
        function: String,
        /// Its arguments.
        arguments: Vec<CallArgument>,
        /// What it returned; `None` if it did not return.
        result: Option<NamedValue>,
    },
    /// A write to an object other than the stack.
    Write {
        /// Slot of the instruction.
        insn: u32,
        /// The object.
        target: Target,
        /// Name of the part that is written.
        name: String,
        /// Its type; [`TypeId::VOID`] if it has none.
        kind: TypeId,
        /// Bytes before.
        before: Vec<u8>,
        /// Bytes after.
        after: Vec<u8>,
    },
    /// The function was entered, by a call or by a helper that calls it back.
    Enter {
        /// The helper, if one calls it.
        caller: Option<String>,
    },
    /// The function returns.
    Return {
        /// The value.
        value: NamedValue,
    },
    /// A tail call that was made.
    TailCall {
        /// Number of the program that it entered.
        program: u32,
    },
    /// A record that was handed over.
    Record {
        /// Index of the map.
        map: u32,
        /// The record.
        bytes: Vec<u8>,
    },
    /// A variable has a value that it did not have before.
    Variable(SeenVariable),
}

/// A value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedValue {
    /// The number.
    pub number: u64,
    /// What it is: a variable, a field of the packet, a member of a value of a map.
    pub name: Option<String>,
    /// The number, or what it points to, as people read it.
    pub text: String,
}

/// An argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallArgument {
    /// The value.
    pub value: NamedValue,
    /// Bytes that it points to, for keys, values and records.
    pub bytes: Vec<u8>,
    /// What they are.
    pub target: Target,
}

/// An object that is read or written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A number, or memory that is not shown.
    None,
    /// Key of a map.
    Key(u32),
    /// Value of a map, in front of the call or write.
    Value {
        /// Index of the map.
        map: u32,
        /// Its key, if it is known.
        key: Option<Vec<u8>>,
        /// The whole value before.
        before: Option<Vec<u8>>,
        /// The whole value after.
        after: Option<Vec<u8>>,
    },
    /// Bytes of the packet: of the field that they are, if they are one.
    Packet(Option<HeaderField>),
    /// The context.
    Context,
    /// Text.
    Text,
}

/// A variable with its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenVariable {
    /// Name.
    pub name: String,
    /// Its type in C.
    pub kind: String,
    /// Its value.
    pub value: String,
    /// The function that it is inlined from, if it is.
    pub within: Option<String>,
    /// First and last slots of the program at which it is in scope; none for those of the function.
    pub scope: Vec<(u32, u32)>,
}

/// A variable whose value was not seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnseenVariable {
    /// The function that has it.
    pub function: String,
    /// Name.
    pub name: String,
    /// Why not.
    pub why: String,
}
