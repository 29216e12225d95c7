//! Errors of maps as JSON, and what values leave out.

use std::error::Error;
use std::fmt;

use report::value::MOST_LEFT_OUT;

/// Reason why maps are not filled from JSON: the map, the entry and the fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapsJsonError {
    /// The fault.
    #[doc(hidden)]
    pub fault: MapsJsonFault,
    /// Members that entries of the maps before it leave out.
    pub left_out: Vec<LeftOut>,
}

/// Kinds of faults of maps as JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MapsJsonFault {
    /// The text is not JSON, for the reason that the parser states.
    Json(String),
    /// The JSON is not an object with maps by name.
    NoObject,
    /// No loaded program uses a map of this name.
    NoMap {
        /// The name.
        name: String,
        /// Names of the maps that loaded programs use.
        known: Vec<String>,
    },
    /// A place is neither one of a map nor one of a variable.
    NoPlace {
        /// The place.
        place: String,
        /// Names of the variables of the object.
        variables: Vec<String>,
    },
    /// The contents of a map are not a list of entries.
    NoList {
        /// Name of the map.
        map: String,
    },
    /// A form does not fit a field of a map.
    Format {
        /// Name of the map.
        map: String,
        /// The fact, in one line.
        what: String,
    },
    /// An entry does not fit its map, or the map does not take it. The entries before it are
    /// in the map.
    Entry {
        /// Name of the map.
        map: String,
        /// Place of the entry in the list, from 0.
        entry: usize,
        /// The fact, in one line.
        what: String,
        /// The form of entries of this map.
        form: &'static str,
    },
}

impl MapsJsonError {
    /// The form that is expected in its place.
    pub fn form(&self) -> &'static str {
        match self.fault {
            MapsJsonFault::Entry { form, .. } => form,
            _ => super::FORM,
        }
    }
}

impl MapsJsonError {
    /// The map whose contents do not fit.
    #[doc(hidden)]
    pub fn map(&self) -> Option<&str> {
        match &self.fault {
            MapsJsonFault::NoList { map } | MapsJsonFault::Entry { map, .. } => Some(map),
            _ => None,
        }
    }
}

impl From<MapsJsonFault> for MapsJsonError {
    fn from(fault: MapsJsonFault) -> MapsJsonError {
        MapsJsonError {
            fault,
            left_out: Vec::new(),
        }
    }
}

impl fmt::Display for MapsJsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapsJsonFault::Json(error) => write!(f, "invalid JSON: {error}"),
            MapsJsonFault::NoObject => write!(f, "no object with maps by name"),
            MapsJsonFault::NoMap { name, known } => {
                write!(f, "no program uses a map {name:?}; ")?;
                match &known[..] {
                    [] => write!(f, "the programs that are loaded use none"),
                    known => write!(f, "there are {}", known.join(", ")),
                }
            }
            MapsJsonFault::NoPlace { place, variables } => {
                write!(f, "{place} is no MAP.key, MAP.value or variable")?;
                match &variables[..] {
                    [] => write!(f, "; the object has no variables"),
                    names => write!(f, "; there are {}", names.join(", ")),
                }
            }
            MapsJsonFault::Format { map, what } => write!(f, "map {map}: {what}"),
            MapsJsonFault::NoList { map } => write!(f, "map {map}: no list of entries"),
            MapsJsonFault::Entry {
                map, entry, what, ..
            } => write!(f, "map {map}: entry {entry}: {what}"),
        }
    }
}

impl Error for MapsJsonFault {}

impl fmt::Display for MapsJsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.fault.fmt(f)
    }
}

impl Error for MapsJsonError {}

/// Members that values for a map leave out, which are 0 there. Its text names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Line of an expectation file, from 1; `None` for a file of maps.
    pub line: Option<usize>,
    /// Name of the map.
    pub map: String,
    /// The members, as paths; those of keys begin with `key`.
    pub members: Vec<String>,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.members;
        let shown = all[..all.len().min(MOST_LEFT_OUT)].join(", ");
        let rest = if all.len() >= MOST_LEFT_OUT {
            ", …"
        } else {
            ""
        };
        write!(f, "left out, so 0: {shown}{rest}")
    }
}
