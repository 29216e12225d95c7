//! Answers for objects that are not loaded, and for maps that need more memory than they may take.

use beebox::Kernel;
use beebox::internal::object::{AttachFault, Object, Problem};
use beebox::internal::raw::limit_json;
use beebox::internal::run::{LoadError, LoadedObject, RunError};
use beebox::internal::verify::{MapFault, RefusedMap};
use report::json::pretty;
use serde_json::{Value, json};

use super::RunFormat;
use super::changes::Changes;
use super::output::limit_text;
use crate::answer::{Answer, Failure};
use crate::object_input::{SET_TYPE, refused};
use crate::stdout::write_json;

/// An object that is not loaded.
pub(crate) struct Loading<'a, 'o> {
    /// Its name in messages.
    pub(crate) name: &'a str,
    pub(crate) object: &'a Object<'o>,
    pub(crate) changes: &'a Changes,
    pub(crate) kernel: &'a Kernel,
    pub(crate) format: RunFormat,
}

impl Loading<'_, '_> {
    /// The answer: no where Linux refuses the program or a map, and where the maps need more
    /// memory than they may take.
    pub(super) fn answer(&self, error: LoadError) -> Result<Answer, Failure> {
        let name = self.name;
        let record = match &error {
            LoadError::Refused {
                program, refusal, ..
            } => {
                json!({ "prog": program, "verifier_verdict": "failure", "reason": refusal.reason() })
            }
            LoadError::Map(map) => {
                json!({ "map": map.name, "verifier_verdict": "failure", "reason": map.refusal.to_string() })
            }
            LoadError::Memory { map, .. } => {
                json!({ "map": map, "trap": limit_json("memory", &error.to_string()) })
            }
            LoadError::Unsupported { program, why } => {
                let record =
                    json!({ "prog": program, "verifier_verdict": "unsupported", "reason": why });
                print_record(&record, self.format)?;
                return Err(self.failure(error));
            }
            _ => return Err(self.failure(error)),
        };
        let failure = match &error {
            LoadError::Refused { program, .. } => Failure::new(&error).within(name).hint(
                format_args!("beebox verify {name} --prog {program} --explain"),
            ),
            _ => self.failure(error),
        };
        no(&failure, &record, self.format)
    }

    /// The failure, with a hint.
    pub(crate) fn failure(&self, error: LoadError) -> Failure {
        let hint = match &error {
            LoadError::Unsupported { .. } => Some("--unverified runs it all the same".to_owned()),
            LoadError::Memory { .. } => Some(MORE_MEMORY.to_owned()),
            LoadError::Map(RefusedMap { refusal, .. })
                if matches!(refusal.fault, MapFault::Memory { .. }) =>
            {
                Some("--machine-memory SIZE, as 64G".to_owned())
            }
            LoadError::Map(RefusedMap { name, .. }) => self.hint_for_map(name),
            _ => None,
        };
        match error {
            LoadError::Link(error) => match error.problem() {
                Problem::Attach(AttachFault::NoType { .. }) => refused(*error, None).hint(SET_TYPE),
                _ => refused(*error, Some(self.kernel)),
            },
            error => {
                let failure = Failure::new(error).within(self.name);
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
        }
    }

    /// The remedy for a map whose size the object leaves to its loader.
    fn hint_for_map(&self, name: &str) -> Option<String> {
        let maps = self.object.maps();
        let map = maps.get(maps.named(name)?)?;
        if map.params().max_entries != 0 {
            return None;
        }
        Some(match self.changes.has_size_of(name) {
            true => format!("--max-entries {name}=N with N from 1"),
            false => format!("--max-entries {name}=N: the object leaves its size to its loader"),
        })
    }
}

const MORE_MEMORY: &str = "--memory SIZE, as 4G";

/// The answer where maps are filled: no if they need more memory than they may take, otherwise the
/// failure.
pub(super) fn not_filled(
    failure: Failure,
    loaded: &LoadedObject,
    name: &str,
    format: RunFormat,
) -> Result<Answer, Failure> {
    let limit = loaded.take_memory_limit().ok_or(failure)?;
    let error = RunError::Memory(limit);
    let record = json!({ "trap": limit_json("memory", &limit_text(&error)) });
    let failure = Failure::new(error).within(name).hint(MORE_MEMORY);
    no(&failure, &record, format)
}

/// Says why the answer is no: on standard error, and as JSON if that is the format.
fn no(why: &Failure, record: &Value, format: RunFormat) -> Result<Answer, Failure> {
    why.report();
    print_record(record, format)?;
    Ok(Answer::No)
}

/// Prints the answer if JSON is the format.
fn print_record(record: &Value, format: RunFormat) -> Result<(), Failure> {
    match format {
        RunFormat::Json => write_json(pretty(&record).as_bytes()),
        _ => Ok(()),
    }
}
