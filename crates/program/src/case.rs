//! Text cases: a program as text, with recorded answers of kernels.
//!
//! A case is the text form of a [`Program`]: directives start with a dot, blocks end
//! with `.end`, every other line is an instruction in LLVM's syntax
//! ([`isa::ebpf::assemble`]), with labels. `#` and `//` start comments.
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
//! | directive | meaning |
//! |---|---|
//! | `.program`, `.section` | names |
//! | `.type`, `.attach_type` | program type and attach type by bpftool's names |
//! | `.expected_attach_type` | its number, if it is not that of the attach type |
//! | `.flags` | load flags, BPF_F_* |
//! | `.license`, `.kernel_version` | licence, `kern_version` |
//! | `.module` | a kernel module; numbered from 1 |
//! | `.attach btf_id= module= member=` | the attach target |
//! | `.target … .end` | the program whose function is replaced or traced, in the same form without answers |
//! | `.map … .end` | a map definition; `.inner`, `.data`, `.frozen`, `.entry`, `.arena`, `.struct_ops`, `.jump` within |
//! | `.extern` | an extern symbol |
//! | `.lacks INDEX` | a CO-RE relocation that failed: its instruction, the field, and what the kernel lacks |
//! | `.btf … .end` | BTF, a line for each type as in `bpftool btf dump format raw` |
//! | `.btf_bytes … .end` | BTF as bytes, for BTF that the lines cannot express |
//! | `.kernel RELEASE accepted\|refused ERRNO … .end` | a recorded answer, with `.log` lines and `.return` |
//! | `.subprog`, `.func_info`, `.file`, `.line` | records of the next instruction |
//! | `.line LINE COLUMN file=OFFSET text=OFFSET` | a record whose texts are no strings of the BTF |
//! | `.at INDEX` | the instruction of the next record, if it is not the next one |
//!
//! Reading a written case yields an equal program, except for the order of strings in
//! its BTF. Reading is linear in the text.

mod btf_text;
mod lexer;
mod map_text;
mod read;
mod write;

use std::fmt;

use isa::ebpf::AsmError;

use crate::Program;
use crate::builder::{InvalidProgram, MAX_TARGETS};

/// A program with recorded answers of kernels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The program.
    pub program: Program,
    /// Recorded answers.
    pub answers: Vec<KernelAnswer>,
}

/// Recorded answer of a kernel to `BPF_PROG_LOAD` of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelAnswer {
    /// Release of the kernel.
    pub release: String,
    /// Error number of the refusal; `None` if the kernel accepted the program.
    pub errno: Option<i32>,
    /// Selected lines of the verifier log.
    pub log: Vec<String>,
    /// Return value of a test run.
    pub returns: Option<u32>,
}

impl Case {
    /// Case without answers.
    pub fn new(program: Program) -> Case {
        Case {
            program,
            answers: Vec::new(),
        }
    }

    /// Parses the text of a case.
    pub fn parse(text: &str) -> Result<Case, CaseError> {
        read::read(text)
    }
}

impl fmt::Display for Case {
    /// Writes the text of the case.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write::write(self, f)
    }
}

/// Syntax error in the text of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaseError {
    /// Line number from 1; 0 for the text as a whole.
    pub line: usize,
    /// Kind of error.
    pub problem: CaseProblem,
}

/// Kind of error in the text of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseProblem {
    /// A line of instructions cannot be assembled.
    Asm(AsmError),
    /// The directive is unknown.
    Directive(String),
    /// An operand of a directive is missing, superfluous or invalid.
    Word {
        /// Expected operand.
        expected: &'static str,
        /// Rest of the line; empty at its end.
        found: String,
    },
    /// A string has no closing quote or an unknown escape.
    Text,
    /// A block lacks its `.end`.
    Unended(&'static str),
    /// The `.type` is missing.
    NoType,
    /// More than [`MAX_TARGETS`] target programs are nested.
    NestedTargets,
    /// A target program has a recorded answer.
    AnswerOfTarget,
    /// The index of an instruction is unknown, because a 64-bit load lacks its `ll`.
    Count,
    /// The BTF is malformed.
    Btf(btf::ParseError),
    /// The parts violate an invariant of programs.
    Program(InvalidProgram),
}

impl fmt::Display for CaseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors of the assembler state line and column themselves.
        if self.line != 0 && !matches!(self.problem, CaseProblem::Asm(_)) {
            write!(f, "line {}: ", self.line)?;
        }
        self.problem.fmt(f)
    }
}

impl fmt::Display for CaseProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaseProblem::Asm(error) => error.fmt(f),
            CaseProblem::Directive(name) => write!(f, "unknown directive {name}"),
            CaseProblem::Word { expected, found } if found.is_empty() => {
                write!(f, "expected {expected}, found the end of the line")
            }
            CaseProblem::Word { expected, found } => {
                write!(f, "expected {expected}, found {found:?}")
            }
            CaseProblem::Text => {
                f.write_str("string lacks its closing quote or has an unknown escape")
            }
            CaseProblem::Unended(block) => write!(f, "block {block} lacks its .end"),
            CaseProblem::NoType => {
                f.write_str("program type is missing: add a line such as .type xdp")
            }
            CaseProblem::NestedTargets => write!(
                f,
                "more than {MAX_TARGETS} blocks .target are nested: Linux allows fewer"
            ),
            CaseProblem::AnswerOfTarget => {
                f.write_str(".kernel within .target: state it for the program around it")
            }
            CaseProblem::Count => f.write_str("64-bit load lacks ll at its end"),
            CaseProblem::Btf(error) => error.fmt(f),
            CaseProblem::Program(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for CaseProblem {}

impl std::error::Error for CaseError {}

#[cfg(test)]
mod tests;
