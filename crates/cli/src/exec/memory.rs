//! The memory of `beebox exec`: sources of its bytes, and its output.

use beebox::internal::bytes::ByteSource;
use beebox::internal::raw::Memory;

use crate::answer::Failure;
use crate::input::read_source;
use crate::output_path::OutputPath;
use crate::stdout::write_bytes;

/// A region as it was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MemoryArg {
    read_only: bool,
    name: Option<String>,
    source: ByteSource,
}

impl MemoryArg {
    pub(crate) fn source(&self) -> &ByteSource {
        &self.source
    }
}

/// `[ro:][NAME=]SOURCE`.
pub(crate) fn parse_region(text: &str) -> Result<MemoryArg, String> {
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
    Ok(MemoryArg {
        read_only,
        name,
        source: ByteSource::parse(source).map_err(|error| error.to_string())?,
    })
}

/// The regions of a run.
pub(crate) struct Regions(Vec<Region>);

pub(crate) struct Region {
    pub(crate) name: String,
    pub(crate) address: u64,
    pub(crate) bytes: Vec<u8>,
    read_only: bool,
}

impl Regions {
    pub(crate) fn read(given: &[MemoryArg]) -> Result<Regions, Failure> {
        if given.len() > 3 {
            return Err(Failure::new(
                "a run takes up to three regions, since there are five argument registers",
            ));
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
                bytes: read_source(&given.source)?,
                read_only: given.read_only,
            })
        });
        regions.collect::<Result<_, _>>().map(Regions)
    }

    /// Adds them to the memory, and puts their addresses and lengths into the
    /// argument registers.
    pub(crate) fn map<'m>(
        &'m mut self,
        memory: &mut Memory<'m>,
        arguments: &mut [u64; 5],
    ) -> Result<(), Failure> {
        for (index, region) in self.0.iter_mut().enumerate() {
            let len = region.bytes.len() as u64;
            let id = match region.read_only {
                true => memory.add_read_only(region.name.as_str(), &region.bytes),
                false => memory.add(region.name.as_str(), &mut region.bytes),
            };
            region.address = memory.address(id.map_err(Failure::new)?);
            arguments[2 * index] = region.address;
            if let Some(argument) = arguments.get_mut(2 * index + 1) {
                *argument = len;
            }
        }
        Ok(())
    }

    /// The bytes of the only region, for engines that know one.
    pub(crate) fn only_bytes(&mut self) -> Result<&mut [u8], Failure> {
        match &mut self.0[..] {
            [] => Ok(&mut []),
            [region] if !region.read_only => Ok(&mut region.bytes),
            [_] => Err(Failure::new("ro: is for --engine checked only")),
            _ => Err(Failure::new(
                "more than one --mem is for --engine checked only",
            )),
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Region> {
        self.0.iter()
    }

    /// Writes the first region to a file.
    pub(crate) fn write_first(&self, out: OutputPath<'_>) -> Result<(), Failure> {
        let Some(region) = self.0.first() else {
            return Ok(());
        };
        write_bytes(&region.bytes, Some(out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_as_people_ask_for_them() {
        let from = |read_only, name: Option<&str>, source| MemoryArg {
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
