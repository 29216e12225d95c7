//! Records that the host puts into user ring buffers before a run.

use beebox::internal::bytes::ByteSource;
use beebox::internal::run::{DataError, Errno, LoadedObject};

use crate::answer::Failure;
use crate::input::read_source;

/// Puts records, each given as MAP=SOURCE, into their maps in order.
pub(super) fn put(loaded: &LoadedObject, given: &[String]) -> Result<(), Failure> {
    for (text, number) in given.iter().zip(1..) {
        let (map, source) = text.split_once('=').ok_or_else(|| {
            Failure::new(format_args!("--user-record {text:?} is not MAP=SOURCE"))
        })?;
        let source = ByteSource::parse(source)
            .map_err(|error| Failure::new(format_args!("--user-record {text}: {error}")))?;
        let written = loaded.write_user_record(map, &read_source(&source)?);
        written.map_err(|error| describe(map, number, error))?;
    }
    Ok(())
}

fn describe(map: &str, number: u32, error: DataError) -> Failure {
    let DataError::Map { errno, .. } = &error else {
        return Failure::new(error);
    };
    match *errno {
        Errno::EINVAL => Failure::new(format_args!("map {map} is no user ring buffer")),
        Errno::E2BIG => Failure::new(format_args!(
            "map {map}: record {number} is larger than the ring"
        )),
        Errno::ENOSPC => Failure::new(format_args!(
            "map {map}: no room for record {number}: nothing is read before the run"
        )),
        _ => Failure::new(error),
    }
}
