//! Streams whose reading signals end, on systems other than Linux: there they do to the process
//! what they do.

use std::fs::File;
use std::io::{self, Read};

/// The signal that ended the reading of streams: none.
#[derive(Clone, Debug, Default)]
pub struct Interruption(());

/// A signal, of which there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {}

impl Signal {
    /// Does to the process what the signal does when it arrives.
    pub fn raise(self) {
        match self {}
    }
}

impl Interruption {
    /// Changes nothing here.
    pub fn arm(&self) {}

    /// The signal that ended the reading: none.
    pub fn received(&self) -> Option<Signal> {
        None
    }
}

/// A stream.
#[derive(Debug)]
pub struct Interruptible(File);

impl Interruptible {
    /// The stream of a file.
    pub fn new(file: File, _: &Interruption) -> Interruptible {
        Interruptible(file)
    }
}

impl Read for Interruptible {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}
