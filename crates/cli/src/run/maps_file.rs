//! Files of map contents, and notes on what they leave out.

use std::path::Path;

use beebox::internal::maps_json::{FieldFormat, MapsJsonError};
use beebox::internal::object::Object;
use beebox::internal::run::LoadedObject;
use beebox::{LeftOut, MapsJson};

use crate::answer::Failure;
use crate::input::{name, read_at_most};

/// A file of map contents.
pub(crate) struct MapsFile {
    name: String,
    pub(crate) contents: MapsJson,
}

/// What a file fills.
pub(crate) fn contents(file: Option<&MapsFile>) -> Option<&MapsJson> {
    file.map(|file| &file.contents)
}

impl MapsFile {
    pub(crate) fn read(path: &Path) -> Result<MapsFile, Failure> {
        let name = name(path);
        let contents = MapsJson::try_parse(&read_at_most(path, MapsJson::MOST_BYTES)?);
        let contents = contents.map_err(|error| failure(&name, &error))?;
        Ok(MapsFile { name, contents })
    }

    /// Fills the maps; a failure names the forms that were chosen for the map.
    pub(crate) fn fill(
        &self,
        loaded: &LoadedObject,
        object: &Object<'_>,
        formats: &[FieldFormat],
    ) -> Result<(), Failure> {
        let filled = self.contents.fill(loaded, object);
        let left_out = match &filled {
            Ok(left_out) => left_out,
            Err(error) => &error.left_out,
        };
        note_left_out(&self.name, left_out);
        filled.map(|_| ()).map_err(|error| {
            let map = error.map().unwrap_or_default();
            let chosen = formats.iter();
            let chosen: Vec<String> = chosen
                .filter(|format| format.is_of_map(map, loaded, object))
                .map(|format| format!("--show {format}"))
                .collect();
            match chosen.is_empty() {
                true => failure(&self.name, &error),
                false => Failure::new(&error).within(&self.name).hint(format_args!(
                    "{}, by {}",
                    error.form(),
                    chosen.join(" ")
                )),
            }
        })
    }
}

fn failure(name: &str, error: &MapsJsonError) -> Failure {
    Failure::new(error).within(name).hint(error.form())
}

/// Says which members of keys and values a file leaves out.
pub(crate) fn note_left_out(file: &str, all: &[LeftOut]) {
    for left_out in all {
        let line = left_out.line.map(|line| format!(":{line}"));
        let (line, map) = (line.unwrap_or_default(), &left_out.map);
        diagnostic!("{file}{line}: map {map}: note: {left_out}");
    }
}
