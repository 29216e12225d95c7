//! Whether the kernel installs filters, what is suspicious about them, and expectations that they
//! miss, as text and as data.

use std::fmt::Write;

use report::count;
use report::seccomp::{
    ACCEPTED, REFUSED, action_text, call_json, call_text, finding_json, finding_text,
};
use serde_json::{Value, json};

use super::{Analysis, ByteOrder, Expectation, FilterStack, Finding, Miss, NamedFilter};
use crate::{Engine, Error};

/// Expectations that filters miss.
pub struct Misses<'e>(Vec<(&'e Expectation, Miss)>);

impl Analysis {
    /// The expectations of a list that the filters miss.
    ///
    /// # Errors
    /// Beyond the budget of the analysis.
    #[doc(hidden)]
    pub fn misses<'e>(&mut self, list: &'e [Expectation]) -> Result<Misses<'e>, Error> {
        let mut misses = Vec::new();
        for expectation in list {
            if let Some(miss) = self.check(expectation)? {
                misses.push((expectation, miss));
            }
        }
        Ok(Misses(misses))
    }
}

impl Misses<'_> {
    /// True if a call is known that shows one; otherwise the filters are too complex to decide some.
    pub fn has_example(&self) -> bool {
        self.0.iter().any(|(_, miss)| miss.example.is_some())
    }

    /// True if there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// For people: the name of the list, and how many expectations it has.
    pub fn text(&self, name: &str, count: usize) -> String {
        let mut text = String::new();
        for (expectation, miss) in &self.0 {
            let Expectation {
                line, text: what, ..
            } = expectation;
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name}:{line}: missed: {what}");
            let found = action_text(miss.found);
            let _ = match &miss.example {
                Some(data) => writeln!(text, "  {} gives {found}", call_text(data)),
                None => writeln!(text, "  undecided: perhaps {found}"),
            };
        }
        let held = count - self.0.len();
        let _ = writeln!(text, "{held} of {count} expectations hold");
        text
    }

    /// As data.
    pub fn json(&self) -> Vec<Value> {
        let misses = self.0.iter().map(|(expectation, miss)| {
            json!({
                "line": expectation.line,
                "expectation": expectation.text,
                "found": miss.found.to_string(),
                "example": miss.example.as_ref().map(call_json),
            })
        });
        misses.collect()
    }
}

/// The name of the finding that a rule has no effect.
const INEFFECTIVE: &str = "rule-without-effect";

/// What the kernel and the analysis say of filters.
pub struct FilterCheck<'f> {
    /// The filters, and why the kernel refuses them, if it does.
    installed: Vec<(&'f NamedFilter, Option<String>)>,
    /// What is suspicious, of filters that are installed.
    pub findings: Result<Vec<Finding>, Error>,
}

impl<'f> FilterCheck<'f> {
    /// Installs filters one after the other, and analyses them if the kernel takes all.
    pub fn new(filters: &'f [NamedFilter], order: ByteOrder) -> FilterCheck<'f> {
        let mut stack = FilterStack::default();
        let installed = filters.iter().map(|filter| {
            let refusal = filter.install(Engine::Checked, order, &mut stack).err();
            (filter, refusal.map(|refusal| filter.refusal_text(&refusal)))
        });
        let installed: Vec<_> = installed.collect();
        let findings = match installed.iter().all(|(_, refusal)| refusal.is_none()) {
            true => stack.analyze().and_then(|mut analysis| analysis.findings()),
            false => Ok(Vec::new()),
        };
        FilterCheck {
            installed,
            findings,
        }
    }

    /// True if the kernel takes all filters.
    pub fn is_installed(&self) -> bool {
        self.installed.iter().all(|(_, refusal)| refusal.is_none())
    }

    /// For people, with messages about rules without effect.
    pub fn text(&self, ineffective: &[String]) -> String {
        let mut text = String::new();
        for (filter, refusal) in &self.installed {
            let name = &filter.name;
            let count = count(filter.insns.len(), "instruction");
            // Writing to a string cannot fail.
            let _ = match refusal {
                None => writeln!(text, "{name}: {ACCEPTED}accepted{ACCEPTED:#}, {count}"),
                Some(why) => writeln!(text, "{name}: {REFUSED}refused{REFUSED:#}: {why}"),
            };
        }
        for finding in self.findings.as_deref().unwrap_or_default() {
            let _ = writeln!(text, "{}", finding_text(finding));
        }
        for message in ineffective {
            let _ = writeln!(text, "{INEFFECTIVE}: {message}");
        }
        text
    }

    /// As data, with messages about rules without effect.
    pub fn json(&self, ineffective: &[String]) -> Value {
        let filters = self.installed.iter().map(|(filter, refusal)| {
            json!({
                "file": filter.name,
                "insn_count": filter.insns.len(),
                "accepted": refusal.is_none(),
                "refusal": refusal,
            })
        });
        let list = self.findings.as_deref().unwrap_or_default().iter();
        let rules = ineffective.iter();
        let rules = rules
            .map(|message| json!({ "name": INEFFECTIVE, "message": message, "example": null }));
        json!({
            "filters": filters.collect::<Vec<_>>(),
            "findings": list.map(finding_json).chain(rules).collect::<Vec<_>>(),
            "not_analysed": self.findings.as_ref().err().map(ToString::to_string),
        })
    }
}
