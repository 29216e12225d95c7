//! Repository tasks, as `cargo xtask TASK`: generators of committed pages and data, and checks
//! that need nightly Rust. `cargo differential` has the comparisons.
#![deny(unsafe_code)]

mod capture;
mod conformance;
mod helpers;
mod kernel_data;
mod kernel_pages;
mod kernel_presets;
mod licenses;
mod listing;
mod man;
mod nightly;
mod optimizations;
mod performance;
mod seccomp;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Result of a task.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

/// Write pages and data of the repository, and run checks that need nightly Rust
#[derive(Parser)]
#[command(name = "xtask", bin_name = "cargo xtask")]
enum Task {
    /// Run the fuzz targets of the engines and of the C library under AddressSanitizer, tail calls whose
    /// targets change, and generated programs with maps for 60 seconds (needs nightly Rust; says so where
    /// there is none)
    Asan {
        /// Seconds of each target
        #[arg(default_value_t = 10)]
        seconds: u64,
    },
    /// Take examples/sample.pcap anew from real programs that talk in network namespaces of their own, and
    /// compile the filters beside it (as root; needs tcpdump, ssh, curl, python3, dig, ping, ethtool)
    Capture,
    /// Run every case of every instruction on every engine, and write docs/conformance.md
    Conformance,
    /// Write docs/kfuncs.md, the list of kernel functions, and bpf_bits.h
    Kfuncs,
    /// Write docs/helpers.md, the list of helpers and which are built
    Helpers,
    /// Extract types, configuration and registry of a kernel into crates/kernel-data/data, for machines
    /// without that kernel
    KernelData {
        /// Files of a kernel (Debian's 6.18); without it the running one is asked (6.18, the minimal
        /// configuration)
        directory: Option<PathBuf>,
    },
    /// Write a page of docs/ for each kernel that is compared: score and behaviours
    Kernels,
    /// Write the data of described kernels (tools/kernels/vm describe) into crates/kernel-presets/data, and
    /// the table of docs/kernels.md
    KernelPresets {
        /// Compare only
        #[arg(long)]
        check: bool,
        /// Described directories
        directories: Vec<String>,
    },
    /// Write docs/licenses.md, the licences of what the commands are linked with
    Licenses,
    /// Record how LLVM lists crates/isa/tests/llvm/every.c, for machines without it (needs clang-19 and
    /// llvm-19)
    Listing,
    /// Write the man pages of the commands and completion scripts to target/man and target/completions, for
    /// packages
    Man,
    /// Run tests of the unsafe code of native runs and the interpreter in Miri (minutes; needs nightly Rust
    /// with Miri; says so where there is none)
    Miri,
    /// Count what each optimization of the compiler does for programs of others, and write the table in
    /// docs/performance.md (needs the selftests, libpcap and container profiles; says what is absent)
    Optimizations,
    /// Run benchmarks, and write their sections of docs/performance.md (minutes, on a machine that does
    /// nothing else; needs tcpdump)
    Performance {
        /// Of engines, classic, load, maps, tail-calls, gateway, verify [default: all]
        benchmarks: Vec<String>,
    },
    /// Write docs/refusals.md, the most frequent refusals with their programs
    Refusals,
    /// Analyse 10,000 generated seccomp filters and write their time and memory into docs/seccomp.md (a
    /// minute; compiles with --release)
    Seccomp,
    /// Run tests of maps under threads with ThreadSanitizer (needs nightly Rust with rust-src; says so where
    /// there is none)
    Tsan,
    /// A program of ours inside a namespace of `capture`
    #[command(name = capture::DNS_SERVER, hide = true)]
    DnsServer,
    /// The other one
    #[command(name = capture::FRAME_SENDER, hide = true)]
    FrameSender {
        /// The interface
        interface: String,
    },
}

impl Task {
    fn run(self) -> Outcome {
        match self {
            Task::Asan { seconds } => nightly::fuzz_with_asan(seconds),
            Task::Capture => capture::take(),
            Task::Conformance => conformance::count(),
            Task::Kfuncs => helpers::list_kfuncs(),
            Task::Helpers => helpers::list(),
            Task::KernelData { directory } => kernel_data::extract(directory.as_deref()),
            Task::Kernels => kernel_pages::write(),
            Task::KernelPresets { check, directories } => kernel_presets::run(&directories, check),
            Task::Licenses => licenses::write(),
            Task::Listing => listing::record(),
            Task::Man => man::write(),
            Task::Miri => nightly::interpret_with_miri(),
            Task::Optimizations => optimizations::count(),
            Task::Performance { benchmarks } => performance::measure(&benchmarks),
            Task::Refusals => helpers::list_refusals(),
            Task::Seccomp => seccomp::measure(),
            Task::Tsan => nightly::test_with_tsan(),
            Task::DnsServer => capture::serve_dns(),
            Task::FrameSender { interface } => capture::send_frames(&interface),
        }
    }
}

fn main() -> ExitCode {
    match Task::parse().run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Task;

    #[test]
    fn arguments_are_consistent() {
        Task::command().debug_assert();
    }
}
