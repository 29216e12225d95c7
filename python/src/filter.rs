//! Packet filters: expressions and compiled programs.

use std::path::PathBuf;

use beebox::captures::{self, FilterSource, LinkType};
use beebox::internal::captures::{FilterCaptureError, Options, Output};
use beebox::internal::captures::FileFormat;
use beebox::internal::captures::filter_capture;
use beebox::{Expression, FilterBuilder, FilterError, Metadata, Packet, Semantics};
use pyo3::prelude::*;

use crate::batch::array_of;
use crate::bytes::bytes_of;
use crate::capture::{open, unreadable, whole_file};
use crate::errors::Fault;
use crate::load::engine;
use crate::packets::Packets;

/// What packets are matched with.
enum Source {
    Expression(Expression),
    Program(beebox::Filter),
}

/// A packet filter: an expression of tcpdump, or with `Filter.compiled` a program.
///
/// `semantics` is `"capture"` (as libpcap runs it on a capture) or `"kernel"` (as a socket does).
///
/// Raises FilterError if libpcap, which compiles expressions, is not there or refuses it.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Filter {
    source: Source,
    text: String,
    link_type: LinkType,
}

fn refused(error: FilterError) -> PyErr {
    Fault::new("filter", error).into()
}

fn builder(semantics: &str, engine_name: Option<&str>) -> PyResult<FilterBuilder> {
    let semantics = match semantics {
        "capture" => Semantics::Capture,
        "kernel" => Semantics::Kernel,
        _ => {
            let what = format!("no semantics {semantics:?}; there are capture and kernel");
            return Err(Fault::absent(what).into());
        }
    };
    let builder = beebox::Filter::builder().semantics(semantics);
    Ok(match engine_name {
        Some(name) => builder.engine(engine(name)?),
        None => builder,
    })
}

#[pymethods]
impl Filter {
    #[new]
    #[pyo3(signature = (expression, *, link_type = 1, optimize = true, semantics = "capture",
        engine = None))]
    fn new(
        py: Python<'_>,
        expression: &str,
        link_type: u32,
        optimize: bool,
        semantics: &str,
        engine: Option<&str>,
    ) -> PyResult<Filter> {
        let built = builder(semantics, engine)?.expression(expression);
        let built = built.map_err(refused)?.optimize(optimize);
        let link_type = LinkType(link_type);
        // Faults of the expression are raised here, and not by the first packet.
        py.detach(|| built.for_link_type(link_type).map(|_| ()))
            .map_err(refused)?;
        Ok(Filter {
            source: Source::Expression(built),
            text: expression.to_owned(),
            link_type,
        })
    }

    /// A compiled filter: `struct sock_filter` records, or text in any form that tools write
    /// (tcpdump -ddd, bpf_asm), which is detected.
    ///
    /// Raises FilterError with the instruction and the rule that it breaks.
    #[staticmethod]
    #[pyo3(signature = (program, *, semantics = "capture", engine = None))]
    fn compiled(
        program: &Bound<'_, PyAny>,
        semantics: &str,
        engine: Option<&str>,
    ) -> PyResult<Filter> {
        let builder = builder(semantics, engine)?;
        let given;
        let bytes = match program.extract::<&str>() {
            Ok(text) => text.as_bytes(),
            Err(_) => {
                given = bytes_of(program)?;
                given.as_slice()
            }
        };
        let built = program.py().detach(|| builder.parse(bytes));
        Ok(Filter {
            source: Source::Program(built.map_err(refused)?),
            text: "compiled".to_owned(),
            link_type: LinkType::ETHERNET,
        })
    }

    /// The filter's value for a packet: 0 drops it, anything else is how many bytes to keep.
    /// `wire_len` is its length on the wire [default: that of its bytes].
    #[pyo3(signature = (packet, *, wire_len = None))]
    fn run(&self, packet: &Bound<'_, PyAny>, wire_len: Option<u32>) -> PyResult<u32> {
        let bytes = bytes_of(packet)?;
        let bytes = bytes.as_slice();
        let meta = Metadata::UNKNOWN;
        let packet = match wire_len {
            Some(len) => Packet::captured(bytes, len, &meta),
            None => Packet::whole(bytes, &meta),
        };
        let ran = self.program()?.runner().run(&packet);
        ran.map_err(|error| Fault::new("limit", error).into())
    }

    /// True if a packet matches.
    #[pyo3(signature = (packet, *, wire_len = None))]
    fn matches(&self, packet: &Bound<'_, PyAny>, wire_len: Option<u32>) -> PyResult<bool> {
        Ok(self.run(packet, wire_len)? != 0)
    }

    /// The filter's values for many packets, as an `array.array` of type "I"; the packets are those
    /// of `Program.run_batch`.
    ///
    /// Raises LimitError if the filter jumps back too often.
    #[pyo3(signature = (packets, *, offsets = None))]
    fn run_batch<'py>(
        &self,
        packets: &Bound<'py, PyAny>,
        offsets: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = packets.py();
        let filter = self.program()?;
        let run = |packets: &[&[u8]]| {
            let (mut runner, meta) = (filter.runner(), Metadata::UNKNOWN);
            let packets = packets.iter();
            let values = packets.map(|bytes| runner.run(&Packet::whole(bytes, &meta)));
            values.collect::<Result<Vec<u32>, _>>()
        };
        let values = Packets::read(packets, offsets)?.with(|packets| py.detach(|| run(packets)))?;
        let values = values.map_err(|error| PyErr::from(Fault::new("limit", error)))?;
        array_of(py, &values)
    }

    /// Counts the packets of a capture that match, in `jobs` threads.
    ///
    /// Raises FileError and CaptureError for captures that cannot be read, FilterError if the
    /// expression cannot be compiled for a link type of the capture.
    #[pyo3(signature = (path, *, jobs = 1))]
    fn count(&self, py: Python<'_>, path: PathBuf, jobs: usize) -> PyResult<PacketCounts> {
        let options = Options {
            jobs,
            ..Options::default()
        };
        let counts = py.detach(|| {
            let input = open(&path)?;
            let done = filter_capture(input, self.programs(), &options, None, &mut |_| ());
            counted(&path, done)
        });
        Ok(PacketCounts(counts?))
    }

    /// Copies the packets of a capture that match to `output`, which is complete or absent; its
    /// format is that of its suffix, .pcap or .pcapng, else that of the capture. `limit` is the most
    /// packets, `snaplen` the most bytes of each.
    ///
    /// Raises as `count`.
    #[pyo3(signature = (path, output, *, jobs = 1, limit = None, snaplen = None))]
    fn copy(
        &self,
        py: Python<'_>,
        path: PathBuf,
        output: PathBuf,
        jobs: usize,
        limit: Option<u64>,
        snaplen: Option<u32>,
    ) -> PyResult<PacketCounts> {
        let options = Options {
            jobs,
            limit,
            snaplen,
        };
        let counts = py.detach(|| {
            let mut input = open(&path)?;
            let format = FileFormat::for_inputs(FileFormat::from_name(&output), &mut [&mut input]);
            let format = format.map_err(|error| Fault::new("capture", error))?;
            whole_file(&output, |file| {
                let mut output = Output { format, file };
                let started = output.start_file(&options);
                started.map_err(|error| Fault::new("file", error))?;
                let out = Some(&mut output);
                let done = filter_capture(input, self.programs(), &options, out, &mut |_| ());
                counted(&path, done)
            })
        });
        Ok(PacketCounts(counts?))
    }

    /// The instructions, for the link type of the filter: (code, jt, jf, k).
    #[getter]
    fn instructions(&self) -> PyResult<Vec<(u16, u8, u8, u32)>> {
        let program = self.program()?.checked().program();
        let insns = program.iter();
        Ok(insns
            .map(|insn| (insn.code, insn.jt, insn.jf, insn.k))
            .collect())
    }

    fn __repr__(&self) -> String {
        format!("<Filter {:?}>", self.text)
    }
}

impl Filter {
    /// The program for packets in memory.
    fn program(&self) -> PyResult<&beebox::Filter> {
        match &self.source {
            Source::Program(filter) => Ok(filter),
            Source::Expression(expression) => {
                expression.for_link_type(self.link_type).map_err(refused)
            }
        }
    }

    /// The programs for the packets of captures.
    pub(crate) fn programs(&self) -> &dyn FilterSource {
        match &self.source {
            Source::Program(filter) => filter,
            Source::Expression(expression) => expression,
        }
    }
}

/// The counts, if filtering came to the end.
fn counted(
    path: &std::path::Path,
    (counts, done): (captures::PacketCounts, Result<(), FilterCaptureError>),
) -> Result<captures::PacketCounts, Fault> {
    let fault = |error: FilterCaptureError| match &error {
        FilterCaptureError::Capture(error) => unreadable(path, error),
        FilterCaptureError::Program { .. } => {
            Fault::new("filter", format_args!("{}: {error}", path.display()))
        }
        FilterCaptureError::JumpLimit { .. } => {
            Fault::new("limit", format_args!("{}: {error}", path.display()))
        }
        FilterCaptureError::LinkType { .. } => {
            Fault::new("capture", format_args!("{}: {error}", path.display()))
        }
        FilterCaptureError::Output(error) => Fault::new("file", error),
    };
    done.map(|()| counts).map_err(fault)
}

/// Packets and bytes, read and kept.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct PacketCounts(captures::PacketCounts);

#[pymethods]
impl PacketCounts {
    /// Packets read.
    #[getter]
    fn packets(&self) -> u64 {
        self.0.packets
    }

    /// Their captured bytes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Packets that match.
    #[getter]
    fn matched(&self) -> u64 {
        self.0.matched
    }

    /// Their captured bytes.
    #[getter]
    fn matched_bytes(&self) -> u64 {
        self.0.matched_bytes
    }

    fn __repr__(&self) -> String {
        format!("<{} of {} packets match>", self.0.matched, self.0.packets)
    }
}
