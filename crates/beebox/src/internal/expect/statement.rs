//! Statements of expectation files.
//!
//! `read.rs` reads one, `fault.rs` those that have helpers fail, `packet.rs` packets; statements about models
//! of the kernel are in `model_statement.rs`.

mod fault;
mod packet;
mod read;

use std::path::PathBuf;

use ::kernel::model::ModelValue;
use serde_json::{Map, Value};

use crate::internal::bytes::ByteSource;
use crate::internal::run::ForcedResult;

pub(super) use packet::repeated;
pub(super) use read::statement;

/// A statement and its place.
#[derive(Clone)]
pub(crate) struct Line {
    /// From 1.
    pub(crate) number: usize,
    /// As written, without blanks around it, in one line.
    pub(crate) text: String,
    /// As written, in its lines.
    pub(crate) source: String,
    /// It stands in front of the tests of its file.
    pub(crate) is_setup: bool,
    pub(crate) statement: Statement,
}

/// A statement.
#[derive(Clone)]
pub(crate) enum Statement {
    /// The name of the statements behind it, to the next one.
    Test(String),
    /// The object of the tests of the file.
    Object(PathBuf),
    /// Tests have the maps as the test before left them.
    SharedMaps,
    /// The file of the network that the programs see.
    Network(PathBuf),
    Delete {
        map: String,
        key: Value,
    },
    /// The clock of the next runs, in nanoseconds: set, or advanced.
    Time {
        nanoseconds: u64,
        is_advance: bool,
    },
    Seed(u64),
    Cpu(u32),
    /// The interface that the packets of the next runs come from.
    Ifindex(u32),
    Fault(ForcedResult),
    Set {
        map: String,
        key: Value,
        value: Value,
    },
    Run {
        program: String,
        packet: Option<ByteSource>,
        context: Option<ContextSource>,
        repeat: u32,
    },
    Capture {
        program: String,
        path: PathBuf,
    },
    /// An object of kernel memory, or more of one.
    Given {
        name: String,
        /// `TYPE {…}` of a new one.
        value: ModelValue,
        is_new: bool,
    },
    /// The process that the next runs are in.
    Process(ModelValue),
    /// What calls of a function return, and what they write through arguments.
    Result {
        function: String,
        at: Option<u64>,
        value: ModelValue,
        fills: Vec<(String, ModelValue)>,
    },
    /// A run by arguments or fields, in a model of the kernel.
    RunModel {
        program: String,
        value: ModelValue,
        repeat: u32,
    },
    /// Runs of an iterator: one for each element, and the last without one.
    Iterate {
        program: String,
        elements: Vec<ModelValue>,
    },
    Expect(Expected),
}

impl Statement {
    /// What a file names once, if it is that.
    pub(super) fn named_once(&self) -> Option<&'static str> {
        match self {
            Statement::Object(_) => Some("object"),
            Statement::Network(_) => Some("network"),
            _ => None,
        }
    }

    /// The program that it runs.
    pub(super) fn program(&self) -> Option<&str> {
        match self {
            Statement::Run { program, .. }
            | Statement::Capture { program, .. }
            | Statement::RunModel { program, .. }
            | Statement::Iterate { program, .. } => Some(program),
            Statement::Test(_)
            | Statement::Object(_)
            | Statement::SharedMaps
            | Statement::Network(_)
            | Statement::Delete { .. }
            | Statement::Time { .. }
            | Statement::Seed(_)
            | Statement::Cpu(_)
            | Statement::Ifindex(_)
            | Statement::Fault(_)
            | Statement::Set { .. }
            | Statement::Given { .. }
            | Statement::Process(_)
            | Statement::Result { .. }
            | Statement::Expect(_) => None,
        }
    }

    /// True if it is about a model of the kernel.
    pub(super) fn is_of_model(&self) -> bool {
        matches!(
            self,
            Statement::Given { .. }
                | Statement::Process(_)
                | Statement::Result { .. }
                | Statement::RunModel { .. }
                | Statement::Iterate { .. }
        )
    }
}

/// A context.
#[derive(Clone)]
pub(crate) enum ContextSource {
    Bytes(ByteSource),
    /// By the names of its fields.
    Fields(Value),
}

/// Bytes that a run leaves.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Data,
    Context,
}

/// An expected value.
#[derive(Clone)]
pub(crate) enum Expected {
    Verdict {
        name: String,
        count: Option<u64>,
    },
    /// Any verdict but this one.
    NotVerdict(String),
    Retval(u32),
    Unchanged(Output),
    Bytes(Output, Vec<u8>),
    BytesAt {
        output: Output,
        offset: usize,
        bytes: Vec<u8>,
    },
    Record {
        map: String,
        /// `None` if there is no further one.
        value: Option<Value>,
    },
    Printk(String),
    NoPrintk,
    Element {
        map: String,
        key: Value,
        /// `None` if it is absent.
        value: Option<Value>,
    },
    Entries {
        map: String,
        count: usize,
    },
    Global {
        name: String,
        value: Value,
    },
    /// Where the packet is redirected: members that are named; `None` for nowhere.
    Redirect(Option<Map<String, Value>>),
    /// All checksums of the packet are right.
    Checksums,
    /// The text of a header field of the packet.
    Field {
        name: String,
        text: String,
    },
    /// The next call of a function that is not modelled, or of any.
    Call {
        /// `None` for any function.
        function: Option<String>,
        /// `None` if there is no further one.
        arguments: Option<Vec<(String, ModelValue)>>,
    },
    /// The text that an iterator wrote; `None` for nothing.
    Seq(Option<String>),
    /// Fields of the context after the run.
    ContextFields(ModelValue),
    /// A member of an object after the run.
    Memory {
        name: String,
        path: Vec<String>,
        value: ModelValue,
    },
    /// Most instructions of a run, or of the runs with a verdict.
    Instructions {
        verdict: Option<String>,
        most: u64,
    },
}
