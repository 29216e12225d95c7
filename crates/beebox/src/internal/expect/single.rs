//! An expectation alone: about one run that was made otherwise than by a file.

use std::path::Path;

use object::Object;

use super::compare::{compare_maps, compare_run};
use super::resolve::{check_applicable, resolve};
use super::runs::Ran;
use super::statement::{Expected, Statement, statement};
use crate::internal::maps_json::KeyNames;
use crate::internal::run::{LoadedObject, TestRunOutput};

/// An expectation.
#[derive(Clone)]
pub(crate) struct Expectation {
    text: String,
    expected: Expected,
}

/// What an expectation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExpectationKind {
    /// The value of a run.
    Value,
    /// Packet, context or redirect of a run.
    Output,
    /// Its instructions.
    Instructions,
    /// Maps and variables.
    Maps,
}

impl Expectation {
    /// Reads an expectation.
    ///
    /// # Errors
    /// For a text that is no expectation, or one about the order of what runs leave.
    pub(crate) fn parse(text: &str) -> Result<Expectation, String> {
        let Statement::Expect(expected) = statement(text.trim(), Path::new(""))? else {
            return Err(format!("{text:?} is no expectation"));
        };
        match expected {
            Expected::Printk(_) | Expected::NoPrintk | Expected::Record { .. } => Err(format!(
                "{text:?} is about the order of texts and records, which no single run has"
            )),
            Expected::Call { .. }
            | Expected::Seq(_)
            | Expected::ContextFields(_)
            | Expected::Memory { .. } => Err(format!(
                "{text:?} is about a model of the kernel, which this run has not"
            )),
            Expected::Verdict { count: Some(_), .. } => {
                Err("a count is of packets of a capture".to_owned())
            }
            _ => Ok(Expectation {
                text: text.trim().to_owned(),
                expected,
            }),
        }
    }

    /// As it was read.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn kind(&self) -> ExpectationKind {
        match &self.expected {
            Expected::Verdict { .. } | Expected::NotVerdict(_) | Expected::Retval(_) => {
                ExpectationKind::Value
            }
            Expected::Instructions { .. } => ExpectationKind::Instructions,
            Expected::Element { .. } | Expected::Entries { .. } | Expected::Global { .. } => {
                ExpectationKind::Maps
            }
            Expected::Unchanged(_)
            | Expected::Bytes(..)
            | Expected::BytesAt { .. }
            | Expected::Redirect(_)
            | Expected::Checksums
            | Expected::Field { .. }
            | Expected::Printk(_)
            | Expected::NoPrintk
            | Expected::Record { .. }
            | Expected::Call { .. }
            | Expected::Seq(_)
            | Expected::ContextFields(_)
            | Expected::Memory { .. } => ExpectationKind::Output,
        }
    }

    /// The most instructions of a run, of those with a verdict if there is one.
    pub(crate) fn most_instructions(&self) -> Option<(Option<&str>, u64)> {
        match &self.expected {
            Expected::Instructions { verdict, most } => Some((verdict.as_deref(), *most)),
            _ => None,
        }
    }

    /// Checks that what it names is there, and that a run of the program can give it.
    pub(crate) fn resolve(
        &self,
        object: &Object<'_>,
        loaded: &LoadedObject,
        program: &str,
    ) -> Result<(), String> {
        let expect = Statement::Expect(self.expected.clone());
        resolve(&expect, object, loaded, 0)?;
        let run = Statement::Run {
            program: program.to_owned(),
            packet: None,
            context: None,
            repeat: 1,
        };
        check_applicable(&self.expected, &run, loaded)
    }

    /// What differs in what a run gave.
    pub(crate) fn differs(
        &self,
        packet: &[u8],
        context: Option<&[u8]>,
        run: TestRunOutput,
    ) -> Option<String> {
        let ran = Ran::Packet {
            packet: packet.to_vec(),
            context: context.map(<[u8]>::to_vec),
            run: Box::new(run),
            executed: None,
        };
        compare_run(&self.expected, &ran).map(|difference| difference.what)
    }

    /// What differs in the maps.
    pub(crate) fn maps_differ(
        &self,
        object: &Object<'_>,
        loaded: &LoadedObject,
    ) -> Result<Option<String>, String> {
        let owner = |name: &str| Err(format!("no @{name} is given"));
        let names = KeyNames {
            cpu: 0,
            owner: &owner,
        };
        let compared = compare_maps(&self.expected, object, loaded, names)?;
        Ok(compared.difference.map(|difference| difference.what))
    }
}
