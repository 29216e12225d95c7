//! Filters by the names of their files: installed one after the other, listed, and refusals in words.

use std::fmt::Write;

use serde_json::{Value, json};

use super::profile::ProfileNote;
use super::{ByteOrder, FilterStack, SeccompFilter, annotate, errno};
use crate::internal::text::dump_line;
use crate::internal::{ClassicInsn, Refusal};
use crate::{Engine, FilterError, SockFilter};

/// A program and what to call it.
pub struct NamedFilter {
    /// The file's name.
    pub name: String,
    /// Its instructions, unchecked.
    pub insns: Vec<SockFilter>,
    /// Notes to the author of the profile that it was compiled from.
    pub notes: Vec<ProfileNote>,
}

impl NamedFilter {
    /// Installs it behind others, for an engine.
    ///
    /// # Errors
    /// If the kernel refuses it.
    pub fn install(
        &self,
        engine: Engine,
        order: ByteOrder,
        stack: &mut FilterStack,
    ) -> Result<(), Refusal> {
        let settings = SeccompFilter::builder().engine(engine).byte_order(order);
        match settings.build(&self.insns) {
            Ok(filter) => stack.install(filter),
            Err(FilterError::Rule { refusal, .. }) => Err(refusal),
            Err(error) => unreachable!("instructions are checked only: {error}"),
        }
    }

    /// A refusal in words: the instruction, the rule, the error number.
    pub fn refusal_text(&self, refusal: &Refusal) -> String {
        let errno = u16::try_from(refusal.errno).ok().and_then(errno::name);
        let errno = errno.map_or_else(|| refusal.errno.to_string(), str::to_owned);
        let sentence = refusal.rule.sentence();
        match refusal.at {
            Some(at) => {
                let line = dump_line(at, self.insns[at]);
                let line = line.trim_end();
                format!("{errno} at instruction {at}: {sentence}\n  {line}")
            }
            None => format!("{errno}: {sentence}"),
        }
    }

    /// The line of an instruction in a listing.
    pub fn line(&self, at: usize) -> String {
        let line = dump_line(at, self.insns[at]).replace('\t', " ");
        line.trim_end().to_owned()
    }

    /// The lines of all instructions with comments: names of actions, calls and architectures.
    fn lines(&self, order: ByteOrder) -> impl Iterator<Item = (String, String)> {
        let insns = self.insns.iter().map(|&raw| ClassicInsn::decode(raw));
        let comments = annotate(&insns.collect::<Vec<_>>(), order);
        let lines = (0..self.insns.len()).map(|at| self.line(at));
        lines.zip(comments)
    }
}

/// Filters as listings, with comments.
pub fn listings_text(filters: &[NamedFilter], order: ByteOrder) -> String {
    let mut text = String::new();
    for filter in filters {
        if filters.len() > 1 {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{}:", filter.name);
        }
        for (line, comment) in filter.lines(order) {
            let line = format!("{line:<48} {comment}");
            let _ = writeln!(text, "{}", line.trim_end());
        }
    }
    text
}

/// Filters as data, with comments.
pub fn listings_json(filters: &[NamedFilter], order: ByteOrder) -> Value {
    let filters = filters.iter().map(|filter| {
        let records = filter.lines(order);
        let records = records.map(|(line, comment)| json!({ "text": line, "comment": comment }));
        json!({ "file": filter.name, "insns": records.collect::<Vec<_>>() })
    });
    json!({ "filters": filters.collect::<Vec<_>>() })
}
