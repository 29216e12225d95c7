//! Why a packet got its verdict: the path of a run, as text and JSON.

mod text;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::value::Ordered;

pub use text::text;

/// The run on a packet.
#[derive(Clone, Debug, Serialize)]
pub struct Why {
    /// Number of the packet in its capture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet: Option<u64>,
    /// Protocol, addresses and ports.
    pub packet_text: String,
    /// Bytes of the packet.
    pub bytes: usize,
    /// The program.
    pub prog: String,
    /// Name of the returned value, if the program returned.
    pub verdict: Option<String>,
    /// The returned value.
    pub retval: Option<u32>,
    /// Where the packet was redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Map<String, Value>>,
    /// The same in words.
    #[serde(skip)]
    pub redirect_text: Option<String>,
    /// What stopped the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// The last line: that which returned the verdict, or where the program was stopped.
    pub source: Option<CodeLine>,
    /// Executed instructions.
    pub executed: u64,
    /// The lines, with loops folded.
    pub steps: Vec<WhyStep>,
    /// Number of lines that are left out in the middle.
    #[serde(skip_serializing_if = "is_zero")]
    pub omitted: u64,
    /// Fields of the packet that the run changed.
    pub packet_changes: Vec<FieldChange>,
    /// Variables in scope that cannot be shown.
    pub unseen_variables: Vec<Unseen>,
    /// True if the object has no debug information, so that local variables have no names.
    pub lacks_debug_info: bool,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CodeLine {
    /// The file.
    pub file: String,
    /// Its number, from 1.
    pub line: u32,
    /// Its text.
    pub text: String,
}

/// A line that was executed, or a loop.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum WhyStep {
    /// A line.
    Line(WhyLine),
    /// Iterations of the same lines.
    Loop {
        /// Their number.
        times: usize,
        /// The first one.
        first_steps: Vec<WhyStep>,
        /// The last one.
        last_steps: Vec<WhyStep>,
    },
    /// Lines that are left out.
    Omitted {
        /// Their number.
        omitted: u64,
    },
}

/// A line that was executed.
#[derive(Clone, Debug, Serialize)]
pub struct WhyLine {
    /// The program.
    pub prog: String,
    /// The function.
    pub function: String,
    /// Functions that the line is inlined from, the outermost first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inlined_names: Vec<String>,
    /// Call depth.
    pub depth: usize,
    /// The line; `null` for instructions without one.
    pub source: Option<CodeLine>,
    /// First and last instruction of each sequence.
    pub insn_ranges: Vec<(u32, u32)>,
    /// Text of the first instruction.
    #[serde(skip)]
    pub insn_text: String,
    /// What happened.
    pub events: Vec<WhyEvent>,
}

/// What happened at a line.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum WhyEvent {
    /// A branch.
    Branch {
        /// Index of the instruction.
        insn: u32,
        /// The operand in front of the condition.
        left_operand: WhyOperand,
        /// The condition.
        condition: &'static str,
        /// The operand behind it.
        right_operand: WhyOperand,
        /// True if it holds.
        holds: bool,
        /// The line that it goes on at, if it is another one.
        next_line: Option<u32>,
    },
    /// A call of a helper or kfunc.
    Call {
        /// Index of the instruction.
        insn: u32,
        /// The function that is called.
        callee: String,
        /// Its arguments.
        operands: Vec<WhyOperand>,
        /// What it returned; `null` if it did not.
        result_operand: Option<WhyOperand>,
    },
    /// A write to a map, the packet or the context.
    Write {
        /// What was written.
        target_name: String,
        /// The map, if it is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        map: Option<String>,
        /// The key of the entry, if it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        map_key: Option<Content>,
        /// What was there; `null` for an entry that was not.
        before: Option<Content>,
        /// What is there.
        after: Option<Content>,
    },
    /// The function was entered.
    Enter {
        /// The helper, if one called it back.
        callback_of: Option<String>,
    },
    /// The function returns.
    Return {
        /// The value.
        result_operand: WhyOperand,
    },
    /// A tail call entered a program.
    TailCall {
        /// The program.
        target_prog: String,
    },
    /// A record was handed over.
    Record {
        /// The map.
        map: String,
        /// The record.
        record_content: Content,
    },
    /// A text was printed.
    Printk {
        /// The text.
        text: String,
    },
    /// A variable has a new value.
    Variable {
        /// Its name.
        name: String,
        /// Its type in C.
        c_type: String,
        /// Its value.
        text: String,
        /// The function that it is inlined from, if it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        inlined_name: Option<String>,
        /// Where it is in scope: the first and last instructions of ranges; none for the function.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        insn_ranges: Vec<(u32, u32)>,
    },
}

/// A value that was used.
#[derive(Clone, Debug, Serialize)]
pub struct WhyOperand {
    /// What it is.
    pub name: Option<String>,
    /// The value as text.
    pub text: String,
    /// What it points to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<Content>,
}

/// Bytes by their type.
#[derive(Clone, Debug, Serialize)]
pub struct Content {
    /// The value.
    pub value: Ordered,
}

/// A field of the packet that a run changed.
#[derive(Clone, Debug, Serialize)]
pub struct FieldChange {
    /// The field.
    pub name: String,
    /// Its text before; `null` for what was added.
    pub text_before: Option<String>,
    /// Its text after; `null` for what was removed.
    pub text_after: Option<String>,
}

/// A variable that cannot be shown.
#[derive(Clone, Debug, Serialize)]
pub struct Unseen {
    /// The function.
    pub function: String,
    /// Name.
    pub name: String,
    /// Why.
    pub reason: String,
}
