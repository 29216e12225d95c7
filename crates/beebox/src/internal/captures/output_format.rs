//! The format of an output: chosen, by the suffix of its name, or that of the inputs.

use std::error::Error;
use std::fmt;
use std::path::Path;

use super::{CaptureError, Format, Input, OtherLinkType};

/// Formats of captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// One link type; no comments, no interface names.
    Pcap,
    /// Several interfaces, options, other blocks.
    Pcapng,
}

impl FileFormat {
    /// That of a name with the suffix `.pcap` or `.pcapng`.
    pub fn from_name(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()? {
            "pcap" => Some(FileFormat::Pcap),
            "pcapng" => Some(FileFormat::Pcapng),
            _ => None,
        }
    }

    /// The format for packets of these captures, in order; without a choice (`None`) the one that
    /// holds all that the captures hold.
    ///
    /// # Errors
    /// A file of the format pcap has one link type: if the captures have several, or the first
    /// interface of one cannot be read.
    pub fn for_inputs(
        choice: Option<FileFormat>,
        inputs: &mut [&mut Input],
    ) -> Result<Format, OutputFormatError> {
        let formats: Vec<_> = inputs.iter().map(|input| input.format()).collect();
        match (choice, Format::common(&formats)) {
            (None, natural) | (Some(FileFormat::Pcap), natural @ Format::Pcap(_)) => Ok(natural),
            (Some(FileFormat::Pcapng), _) => Ok(Format::Pcapng),
            (Some(FileFormat::Pcap), Format::Pcapng) => {
                let mut interfaces = Vec::new();
                for (index, input) in inputs.iter_mut().enumerate() {
                    let first = input.first_interface();
                    let unreadable = |error| OutputFormatError::Input { index, error };
                    interfaces.extend(first.map_err(unreadable)?);
                }
                Format::pcap_of(&interfaces).map_err(OutputFormatError::LinkTypes)
            }
        }
    }
}

/// Reason why an output has no format.
#[derive(Debug)]
pub enum OutputFormatError {
    /// The start of a capture cannot be read.
    Input {
        /// Its place among the inputs.
        index: usize,
        /// Reason.
        error: CaptureError,
    },
    /// Packets have several link types, and a file of the format pcap has one.
    LinkTypes(OtherLinkType),
}

impl fmt::Display for OutputFormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OutputFormatError::Input { index, error } => write!(f, "capture {index}: {error}"),
            OutputFormatError::LinkTypes(error) => error.fmt(f),
        }
    }
}

impl Error for OutputFormatError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            OutputFormatError::Input { error, .. } => Some(error),
            OutputFormatError::LinkTypes(error) => Some(error),
        }
    }
}
