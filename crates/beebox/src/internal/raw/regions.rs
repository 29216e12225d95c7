//! The memory of a run in words: names, sources of bytes, and the registers that have addresses.

use std::error::Error;
use std::fmt;

use super::{Memory, NoRoom};
use crate::internal::bytes::{ByteSource, ByteSourceError};

/// Why a run does not get its regions.
#[derive(Debug)]
pub enum RegionError {
    /// There are more than three.
    TooMany,
    /// The bytes of a region cannot be read.
    Source(ByteSourceError),
    /// There is no room for a region.
    NoRoom(NoRoom),
    /// The engine takes one that can be written.
    ReadOnly,
    /// The engine takes one.
    Several,
}

impl fmt::Display for RegionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RegionError::TooMany => f.write_str(
                "a run takes up to three regions, since there are five argument registers",
            ),
            RegionError::Source(error) => error.fmt(f),
            RegionError::NoRoom(error) => error.fmt(f),
            RegionError::ReadOnly => f.write_str("this engine takes no read-only region"),
            RegionError::Several => f.write_str("this engine takes one region"),
        }
    }
}

impl Error for RegionError {}

/// A region as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionSource {
    read_only: bool,
    name: Option<String>,
    source: ByteSource,
}

impl RegionSource {
    /// Where its bytes are from.
    pub fn source(&self) -> &ByteSource {
        &self.source
    }
}

/// `[ro:][NAME=]SOURCE`.
pub fn parse_region(text: &str) -> Result<RegionSource, String> {
    let (read_only, rest) = match text.strip_prefix("ro:") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    // A name is a word; what else stands before a `=` belongs to a path.
    let is_name = |name: &str| {
        !name.is_empty()
            && name
                .chars()
                .all(|c| c.is_alphanumeric() || "_-".contains(c))
    };
    let (name, source) = match rest.split_once('=') {
        Some((name, source)) if is_name(name) => (Some(name.to_owned()), source),
        _ => (None, rest),
    };
    Ok(RegionSource {
        read_only,
        name,
        source: ByteSource::parse(source).map_err(|error| error.to_string())?,
    })
}

/// The regions of a run.
pub struct Regions(Vec<Region>);

/// A region.
pub struct Region {
    /// Its name in messages.
    pub name: String,
    /// The address that the program sees.
    pub address: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
    read_only: bool,
}

impl Regions {
    /// Reads their bytes.
    ///
    /// # Errors
    /// For too many, and for sources that cannot be read.
    pub fn read(given: &[RegionSource]) -> Result<Regions, RegionError> {
        if given.len() > 3 {
            return Err(RegionError::TooMany);
        }
        let numbered = given.iter().enumerate();
        let regions = numbered.map(|(index, given)| {
            Ok(Region {
                name: match (&given.name, index) {
                    (Some(name), _) => name.clone(),
                    (None, 0) => "memory".to_owned(),
                    (None, _) => format!("memory {}", index + 1),
                },
                address: 0,
                bytes: given.source.read().map_err(RegionError::Source)?,
                read_only: given.read_only,
            })
        });
        regions.collect::<Result<_, _>>().map(Regions)
    }

    /// Adds them to the memory, and puts their addresses and lengths into the
    /// argument registers.
    pub fn map<'m>(
        &'m mut self,
        memory: &mut Memory<'m>,
        arguments: &mut [u64; 5],
    ) -> Result<(), RegionError> {
        for (index, region) in self.0.iter_mut().enumerate() {
            let len = region.bytes.len() as u64;
            let id = match region.read_only {
                true => memory.add_read_only(region.name.as_str(), &region.bytes),
                false => memory.add(region.name.as_str(), &mut region.bytes),
            };
            region.address = memory.address(id.map_err(RegionError::NoRoom)?);
            arguments[2 * index] = region.address;
            if let Some(argument) = arguments.get_mut(2 * index + 1) {
                *argument = len;
            }
        }
        Ok(())
    }

    /// The bytes of the only region, for engines that know one.
    pub fn only_bytes(&mut self) -> Result<&mut [u8], RegionError> {
        match &mut self.0[..] {
            [] => Ok(&mut []),
            [region] if !region.read_only => Ok(&mut region.bytes),
            [_] => Err(RegionError::ReadOnly),
            _ => Err(RegionError::Several),
        }
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Region> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_as_people_ask_for_them() {
        let from = |read_only, name: Option<&str>, source| RegionSource {
            read_only,
            name: name.map(str::to_owned),
            source,
        };
        let given = |read_only, name, bytes: &[u8]| {
            from(read_only, name, ByteSource::Bytes(bytes.to_vec()))
        };
        for (text, expected) in [
            ("0102", given(false, None, &[1, 2])),
            ("key=0x01 02", given(false, Some("key"), &[1, 2])),
            ("ro:key=hex:ff", given(true, Some("key"), &[255])),
            ("zero:3", from(false, None, ByteSource::Zeros(3))),
            ("", given(false, None, &[])),
        ] {
            assert_eq!(parse_region(text), Ok(expected), "{text}");
        }
        for wrong in [
            "no-such-file",
            "zero:x",
            "zero:99999999999",
            "hex:1",
            "key=zz",
        ] {
            assert!(parse_region(wrong).is_err(), "{wrong}");
        }
    }
}
