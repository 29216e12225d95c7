//! What a program of an object is run on: the object, packets, maps and the machine, as `run` and `debug`
//! take it.

use std::path::PathBuf;

use beebox::internal::bytes::ByteSource;
use beebox::network::System;

use super::changes::Changes;
use super::choice::Given;
use super::maps_file::MapsFile;
use super::read_network;
use crate::answer::Failure;
use crate::input::source_failure;
use crate::kernel_input::parse_size;
use crate::loading::LoadingArgs;

/// Most CPUs of Linux on x86-64 (`NR_CPUS`).
const MOST_CPUS: u32 = 8192;

/// The options.
#[derive(clap::Args)]
pub(crate) struct RunInputs {
    /// An object (`.bpf.o`)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,

    /// The program [default: the only one that runs on packets]
    #[arg(long, value_name = "NAME")]
    pub(crate) prog: Option<String>,

    /// The packet
    #[arg(long, value_name = "SOURCE", value_parser = ByteSource::parse_packet)]
    pub(crate) packet: Option<ByteSource>,

    /// Run on each packet of a capture (`-` is standard input), at the time of its capture
    #[arg(long, value_name = "IN", conflicts_with = "packet")]
    pub(crate) pcap: Option<PathBuf>,

    /// The context of the run, as ctx_in of BPF_PROG_TEST_RUN: of programs that get no packet
    /// (syscall, raw_tracepoint, sk_lookup) the only input
    #[arg(long, value_name = "SOURCE", value_parser = ByteSource::parse)]
    #[arg(conflicts_with = "pcap")]
    pub(crate) ctx: Option<ByteSource>,

    /// Seed of the random numbers of helpers, of hashes, and of the addresses that programs see
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,

    /// Fixed time of the clock of helpers, in nanoseconds [default: with --pcap the time of the
    /// packet, otherwise 0]
    #[arg(long, value_name = "NS")]
    pub(crate) time: Option<u64>,

    /// Run a program that the verifier refuses or does not support
    #[arg(long)]
    pub(crate) unverified: bool,

    /// Fill maps from a file, as `beebox run --dump-maps` prints them with --format json; the values of
    /// program arrays are names of programs, those of maps of sockets cookies of the network
    #[arg(long, value_name = "FILE")]
    pub(crate) maps: Option<PathBuf>,

    /// Put a record into a user ring buffer before the run; may be given several times
    #[arg(long = "user-record", value_name = "MAP=SOURCE")]
    pub(crate) user_records: Vec<String>,

    #[command(flatten)]
    pub(crate) changes: Changes,

    #[command(flatten)]
    pub(crate) loading: LoadingArgs,

    /// Most memory of the maps of the program: bytes, or a number with K, M or G. A run that
    /// needs more ends with exit code 1
    #[arg(long = "memory", value_name = "SIZE")]
    #[arg(value_parser = parse_size, default_value = "1G")]
    pub(crate) map_memory: u64,

    /// Possible CPUs of the machine, for each of which per-CPU maps have values [default: those
    /// of the kernel, or more for --cpu and the threads of a run]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_CPUS)))]
    pub(crate) cpus: Option<u32>,

    /// The CPU that the program runs on
    #[arg(long, value_name = "N", default_value_t = 0)]
    #[arg(value_parser = clap::value_parser!(u32).range(..i64::from(MOST_CPUS)))]
    pub(crate) cpu: u32,

    /// The network that the program sees: devices, routes, rules and neighbours, as JSON of what
    /// `ip -json` prints
    #[arg(long, value_name = "FILE")]
    pub(crate) network: Option<PathBuf>,

    /// Index of the interface that packets come from [default: 1, the loopback device]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=i64::from(i32::MAX)))]
    pub(crate) ifindex: Option<u32>,
}

impl RunInputs {
    /// What chooses the program.
    pub(crate) fn given(&self) -> Given<'_> {
        Given {
            prog: self.prog.as_deref(),
            has_packet: self.packet.is_some() || self.pcap.is_some(),
            has_ifindex: self.ifindex.is_some(),
        }
    }

    /// The network of `--network`.
    ///
    /// # Errors
    /// For a file that cannot be read, or is no network.
    pub(crate) fn network(&self) -> Result<Option<System>, Failure> {
        self.network.as_deref().map(read_network).transpose()
    }

    /// The contents of `--maps`.
    ///
    /// # Errors
    /// For a file that cannot be read, or has no contents of maps.
    pub(crate) fn filling(&self) -> Result<Option<MapsFile>, Failure> {
        self.maps.as_deref().map(MapsFile::read).transpose()
    }

    /// The packet of `--packet`.
    ///
    /// # Errors
    /// For a source that cannot be read.
    pub(crate) fn packet(&self) -> Result<Option<Vec<u8>>, Failure> {
        let packet = self.packet.as_ref().map(ByteSource::read_packet);
        packet.transpose().map_err(source_failure)
    }
}
