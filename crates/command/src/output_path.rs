//! Output files, which must not be files that the same command reads: writing would destroy
//! the input. Every command that takes an output makes one of these.

use std::path::{Path, PathBuf};

use sys::files::FileId;

use crate::answer::Failure;
use crate::input::name;

/// The option of a command whose main output is its answer.
#[derive(clap::Args)]
pub struct OutputArg {
    /// Write to OUT, which is complete or absent [default: standard output, as for `-`]
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,
}

impl OutputArg {
    /// The path, with the paths of all inputs.
    pub fn path<'p>(
        &self,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Option<OutputPath<'_>>, Failure> {
        OutputPath::optional(self.output.as_deref(), inputs)
    }
}

/// The option of a command whose main output is packets.
#[derive(clap::Args)]
pub struct PacketOutputArg {
    /// Write the packets that pass to OUT, a capture that is complete or absent: pcap or pcapng by
    /// its name, else as the input
    #[arg(
        short,
        long,
        value_name = "OUT",
        visible_short_alias = 'w',
        visible_alias = "write"
    )]
    output: Option<PathBuf>,
}

impl PacketOutputArg {
    /// The path as it was given.
    pub fn given(&self) -> Option<&Path> {
        self.output.as_deref()
    }

    /// The path, with the paths of all inputs.
    ///
    /// # Errors
    /// If the output is the file of an input.
    pub fn path<'p>(
        &self,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Option<OutputPath<'_>>, Failure> {
        OutputPath::optional(self.given(), inputs)
    }
}

/// The path of an output that is none of the inputs; `-` is standard output.
#[derive(Clone, Copy)]
pub struct OutputPath<'a>(&'a Path);

impl<'a> OutputPath<'a> {
    /// Takes the path of an output, with the paths of all inputs (`-` is standard input).
    ///
    /// # Errors
    /// If the output is the file of an input.
    pub fn new<'p>(
        output: &'a Path,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<OutputPath<'a>, Failure> {
        let Some(file) = FileId::at(output) else {
            return Ok(OutputPath(output));
        };
        let is_same = |input: &&Path| {
            let of_input = match *input == Path::new("-") {
                true => FileId::of_standard_input(),
                false => FileId::at(input),
            };
            of_input.is_some_and(|input| input == file)
        };
        match inputs.into_iter().find(is_same) {
            None => Ok(OutputPath(output)),
            Some(input) => {
                let input = name(input);
                let failure =
                    Failure::new(format_args!("output is also an input (read as {input})"));
                Err(failure
                    .within(output.display())
                    .hint("another name for the output"))
            }
        }
    }

    /// The same for an output that may not be given.
    pub fn optional<'p>(
        output: Option<&'a Path>,
        inputs: impl IntoIterator<Item = &'p Path>,
    ) -> Result<Option<OutputPath<'a>>, Failure> {
        output
            .map(|output| OutputPath::new(output, inputs))
            .transpose()
    }

    /// The path.
    pub fn path(self) -> &'a Path {
        self.0
    }

    /// The path of a file of packets.
    ///
    /// # Errors
    /// If it is standard output, which holds the results.
    pub fn of_packets(self) -> Result<&'a Path, Failure> {
        match self.is_standard() {
            false => Ok(self.0),
            true => {
                Err(Failure::new("-o -: standard output holds the results")
                    .hint("the name of a file"))
            }
        }
    }

    /// True for standard output.
    pub fn is_standard(self) -> bool {
        self.0 == Path::new("-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_no_input_under_another_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        std::fs::write(path("a"), "").unwrap();
        std::os::unix::fs::symlink(path("a"), path("b")).unwrap();
        let (a, b, c) = (path("a"), path("b"), path("c"));
        let made = |output: &Path| OutputPath::new(output, [a.as_path()]).is_ok();
        assert!(!made(&a) && !made(&b));
        assert!(made(&c) && made(Path::new("-")) && made(Path::new("/dev/null")));
    }
}
