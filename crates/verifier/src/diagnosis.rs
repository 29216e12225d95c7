//! The report that kernels write into the log behind the words of a refusal, since Linux 7.3: its
//! category, the reason, the place in source and instructions, the path that led to it, and a
//! suggestion.
//!
//! | file | contents |
//! |---|---|
//! | `page` | headings, wrapped text, places |
//! | `history` | events on the path, and which of them a report shows |
//! | `value` | registers in words |
//! | `findings` | what is said of each rejection of values, memory, sections and resources |
//! | `arguments` | what is said of arguments of calls |
//!
//! The log notes each rejection as it writes its words ([`Noted`]). A refused program is verified
//! again with a recorder of its path in the log's place, as explanations are
//! ([`crate::reason`]); reports are read from the recorded states and then put where their
//! rejections stand in the log.

mod arguments;
mod findings;
mod history;
mod page;
mod value;

use crate::analysis::Analysis;
use crate::input::Input;
use crate::reason::Trace;
use crate::rejection::Rejection;
use history::{History, Scope};
use page::Page;

/// A rejection whose words are in the log.
#[derive(Clone, Debug)]
pub(crate) struct Noted {
    /// The end of its words in the log.
    pub(crate) position: usize,
    pub(crate) rejection: Rejection,
    /// The instruction.
    pub(crate) insn: u32,
    /// The memory that an access is outside of.
    pub(crate) access: Option<Access>,
}

/// An access to a region of known size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Access {
    /// Offset of the instruction.
    pub(crate) off: i32,
    pub(crate) size: i32,
    /// Bytes of the region.
    pub(crate) region: u32,
}

/// What a report says of a rejection.
struct Finding {
    category: Category,
    /// The heading's second part, and the words at the place where it is `label`.
    problem: &'static str,
    reason: String,
    /// The words at the place, if they are not the problem.
    label: Option<String>,
    suggestion: String,
    /// The events of the path that it shows.
    scope: Option<Scope>,
    /// A lock that is held: the instruction that took it, and words.
    lock: Option<(u32, String)>,
}

/// Kinds of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Category {
    RegisterType,
    Memory,
    Resource,
    CallType,
    Context,
    Structure,
    Policy,
}

impl Category {
    const fn title(self) -> &'static str {
        match self {
            Category::RegisterType => "Register Type Safety",
            Category::Memory => "Memory Safety",
            Category::Resource => "Resource Lifetime Safety",
            Category::CallType => "Call Type Safety",
            Category::Context => "Execution Context Safety",
            Category::Structure => "Program Structure",
            Category::Policy => "Policy",
        }
    }
}

impl Finding {
    fn new(category: Category, problem: &'static str, reason: String, suggestion: &str) -> Finding {
        Finding {
            category,
            problem,
            reason,
            label: None,
            suggestion: suggestion.to_owned(),
            scope: None,
            lock: None,
        }
    }

    fn labelled(mut self, label: String) -> Finding {
        self.label = Some(label);
        self
    }

    fn with_scope(mut self, scope: Scope) -> Finding {
        self.scope = Some(scope);
        self
    }
}

/// A refused program and the path to the refusal.
pub(crate) struct Scene<'a> {
    input: &'a Input<'a>,
    analysis: &'a Analysis,
    trace: &'a Trace,
    history: Option<History>,
}

impl<'a> Scene<'a> {
    pub(crate) fn new(input: &'a Input<'a>, analysis: &'a Analysis, trace: &'a Trace) -> Scene<'a> {
        Scene {
            input,
            analysis,
            trace,
            history: History::along(input, trace),
        }
    }

    /// The report of a rejection; `None` if the kernel writes none, or the path is too long for the
    /// recorder.
    pub(crate) fn report(&self, noted: &Noted) -> Option<String> {
        let finding = findings::find(self, noted)?;
        let mut page = Page::new(self.input, self.analysis);
        page.header(finding.category.title(), finding.problem);
        page.section("Reason");
        page.paragraph(&finding.reason);
        page.section("At");
        let label = finding.label.as_deref().unwrap_or(finding.problem);
        page.place(noted.insn, "error", label);
        if let Some((insn, words)) = &finding.lock {
            page.section("Active lock");
            page.place(*insn, "acquired", words);
        }
        if let Some(scope) = finding.scope {
            page.section("Causal path");
            self.history.as_ref()?.write(self, scope, &mut page);
        }
        page.section("Suggestion");
        page.paragraph(&finding.suggestion);
        Some(page.finish())
    }
}
