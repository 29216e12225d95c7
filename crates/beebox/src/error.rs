//! Errors of building a filter.

use std::error::Error;
use std::fmt;

use classic::Refusal;
use classic::text::dump_line;
use isa::classic::SockFilter;

use crate::internal::text::ReadError;

/// Error of building a filter, by kind.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FilterError {
    /// The text is not a program.
    #[doc(hidden)]
    Text(ReadError),
    /// The program breaks a rule.
    Rule {
        /// The broken rule and the instruction.
        #[doc(hidden)]
        refusal: Refusal,
        /// The program.
        program: Vec<SockFilter>,
    },
    /// The rules are those of filters of the other kind: packets have those of captures and
    /// sockets, system calls those of seccomp.
    OtherRules,
    /// An expression needs libpcap, which can't be loaded. The loader's message for each
    /// name that was tried.
    NoLibpcap(String),
    /// libpcap refuses the expression.
    Expression {
        /// The expression.
        text: String,
        /// libpcap's message.
        message: String,
    },
    /// The link type or the file header is unsupported by libpcap. Its message.
    LinkType(String),
    /// The expression has a NUL character.
    Nul,
    /// libpcap had no memory.
    OutOfMemory,
}

/// Most characters of an expression in a message.
const SHOWN: usize = 200;

/// The start of a text that may be a whole file.
fn start_of(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FilterError::Text(error) => write!(f, "{error}"),
            FilterError::Rule { refusal, program } => match refusal.at {
                Some(at) => write!(
                    f,
                    "instruction {at} ({}) breaks a rule: {}",
                    dump_line(at, program[at])
                        .split_whitespace()
                        .skip(1)
                        .collect::<Vec<_>>()
                        .join(" "),
                    refusal.rule.sentence()
                ),
                None => write!(f, "the program breaks a rule: {}", refusal.rule.sentence()),
            },
            FilterError::OtherRules => f.write_str(
                "the rules are those of another kind of filters: filters of packets obey \
                 those of captures or sockets, filters of system calls those of seccomp",
            ),
            FilterError::NoLibpcap(reasons) => {
                write!(
                    f,
                    "an expression needs libpcap, which can't be loaded: {reasons}"
                )
            }
            FilterError::Expression { text, message } => {
                write!(f, "libpcap refuses {:?}: {message}", start_of(text))
            }
            FilterError::LinkType(message) => {
                write!(f, "link type is unsupported by libpcap: {message}")
            }
            FilterError::Nul => write!(f, "the expression has a NUL character"),
            FilterError::OutOfMemory => write!(f, "libpcap is out of memory"),
        }
    }
}

impl Error for FilterError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            FilterError::Text(error) => Some(error),
            _ => None,
        }
    }
}

#[doc(hidden)]
impl From<ReadError> for FilterError {
    fn from(error: ReadError) -> FilterError {
        FilterError::Text(error)
    }
}
