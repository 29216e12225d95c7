//! Cases: a program as text, with the answers that kernels gave for it.
//!
//! A case is everything that a [`Program`] holds, in one readable file: directives
//! start with a dot, blocks end with `.end`, every other line is an instruction in
//! LLVM's form ([`isa::ebpf::assemble`]), with labels. `#` and `//` start comments.
//!
//! ```text
//! .program "count"
//! .type xdp
//! .license "GPL"
//! .map "hits" type=array key=4 value=8 entries=1
//!     .data size=8 01
//! .end
//! .kernel "6.18.44" refused 13
//!     .log "R0 invalid mem access 'scalar'"
//! .end
//! .subprog "count"
//!     r1 = map_idx_value(0, 0) ll
//!     r0 = *(u64 *)(r1 + 0)
//!     exit
//! ```
//!
//! | directive | says |
//! |---|---|
//! | `.program`, `.section` | names |
//! | `.type`, `.attach_type` | program type and attach type by bpftool's names |
//! | `.expected_attach_type` | its number, where it is not that of the attach type |
//! | `.flags` | BPF_F_* of the load |
//! | `.license`, `.kernel_version` | what the object states |
//! | `.module` | a kernel module; they are numbered from 1 |
//! | `.attach btf_id= module= member=` | the attach target |
//! | `.map … .end` | a map definition; `.inner`, `.data`, `.frozen`, `.entry`, `.arena`, `.struct_ops`, `.jump` within |
//! | `.extern` | an extern symbol |
//! | `.btf … .end` | BTF, a line for each type as in `bpftool btf dump format raw` |
//! | `.btf_bytes … .end` | BTF as bytes, where the lines cannot say it |
//! | `.kernel RELEASE accepted\|refused ERRNO … .end` | an answer, with `.log` lines and `.return` |
//! | `.subprog`, `.func_info`, `.file`, `.line` | about the instruction that follows |
//!
//! Reading what was written gives an equal program, but for the order of strings in its
//! BTF. Cost: linear in the text.

mod btf_text;
mod lexer;
mod map_text;
mod read;
mod write;

use std::fmt;

use isa::ebpf::AsmError;

use crate::Program;
use crate::builder::InvalidProgram;

/// A program, and what kernels answered about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// The answers.
    pub answers: Vec<KernelAnswer>,
}

/// What a kernel answered about a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelAnswer {
    /// Release of the kernel.
    pub release: String,
    /// The error number with which it refused the program; `None` if it accepted it.
    pub errno: Option<i32>,
    /// Lines of its log, those that matter.
    pub log: Vec<String>,
    /// What a test run returned.
    pub returns: Option<u32>,
}

impl Case {
    /// A program without answers.
    pub fn new(program: Program) -> Case {
        Case {
            program,
            answers: Vec::new(),
        }
    }

    /// Reads a text.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        read::read(text)
    }
}

impl fmt::Display for Case {
    /// The text of the case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::write(self, f)
    }
}

/// Why a text is no case, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// Line, from 1; 0 for the text as a whole.
    pub line: usize,
    /// What is wrong there.
    pub problem: CaseProblem,
}

/// What is wrong with the text of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseProblem {
    /// A line of instructions cannot be assembled.
    Asm(AsmError),
    /// There is no such directive.
    Directive(String),
    /// A directive lacks a word, has one too many, or has one that cannot stand there.
    Word {
        /// What is expected.
        expected: &'static str,
        /// What stands there; empty at the end of the line.
        found: String,
    },
    /// A text has no closing quote, or an escape that is not known.
    Text,
    /// A block is not ended by `.end`.
    Unended(&'static str),
    /// There is no `.type`.
    NoType,
    /// Instructions cannot be counted by line: a 64-bit load is not written with `ll`.
    Count,
    /// The BTF cannot be read.
    Btf(btf::ParseError),
    /// The parts do not make a program.
    Program(InvalidProgram),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line != 0 {
            write!(f, "line {}: ", self.line)?;
        }
        match &self.problem {
            CaseProblem::Asm(error) => error.fmt(f),
            CaseProblem::Directive(name) => write!(f, "there is no directive {name}"),
            CaseProblem::Word { expected, found } if found.is_empty() => {
                write!(f, "expected {expected}, found the end of the line")
            }
            CaseProblem::Word { expected, found } => {
                write!(f, "expected {expected}, found {found:?}")
            }
            CaseProblem::Text => {
                f.write_str("a text without closing quote, or with an unknown escape")
            }
            CaseProblem::Unended(block) => write!(f, "the block {block} is not ended by .end"),
            CaseProblem::NoType => f.write_str("no program type is stated: .type xdp"),
            CaseProblem::Count => f.write_str("a 64-bit load is written without ll"),
            CaseProblem::Btf(error) => error.fmt(f),
            CaseProblem::Program(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CaseError {}

#[cfg(test)]
mod tests;
