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
mod oracle;
mod performance;
mod seccomp;

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

/// Result of a chore.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: cargo xtask CHORE

  asan         run the fuzz targets of the engines and of the C library under
               AddressSanitizer, ten seconds each, or as many as given, tail calls whose targets change, and
               generated programs with maps for 60 seconds (needs nightly Rust; says so
               where there is none)
  capture      take examples/sample.pcap anew from real programs that talk in
               network namespaces of their own, and compile the filters beside it
               (as root; needs tcpdump, ssh, curl, python3, dig, ping, ethtool)
  conformance  run every case of every instruction on every engine, and write
               docs/conformance.md
  kfuncs       write docs/kfuncs.md, the list of kernel functions, and bpf_bits.h
  helpers      write docs/helpers.md, the list of helpers and which are built
  kernel-data  extract types, configuration and registry of the running kernel (6.18, the
               minimal configuration), or of one whose files are in a directory (Debian's
               6.18), into crates/kernel-data/data, for machines without that kernel
  kernels      write a page of docs/ for each kernel that is compared: score and behaviours
  kernel-presets
               write the data of the kernels whose described directories are named (tools/kernels/vm
               describe) into crates/kernel-presets/data, and the table of docs/kernels.md; --check
               compares them
  licenses     write docs/licenses.md, the licences of what the commands are linked with
  listing      record how LLVM lists crates/isa/tests/llvm/every.c, for machines without
               it (needs clang-19 and llvm-19)
  man          write the man pages of the commands and completion scripts to target/man
               and target/completions, for packages
  miri         run tests of the unsafe code of native runs and the interpreter in Miri
               (minutes; needs nightly Rust with Miri; says so where there is none)
  optimizations
               count what each optimization of the compiler does for programs of others,
               and write the table in docs/performance.md (needs the selftests, libpcap
               and container profiles; says what is absent)
  oracle kernels [NAME]...
               boot the kernels that tools/kernels/vm keeps, or those that are named, and ask them
               about the objects of this repository (needs QEMU; says what is absent)
  performance [BENCHMARK]...
               run the benchmarks, or those that are named (engines, classic, load, maps,
               tail-calls, gateway, verify), and write their sections of docs/performance.md (minutes, on a
               machine that does nothing else; needs tcpdump)
  refusals     write docs/refusals.md, the most frequent refusals with their programs
  seccomp      analyse 10,000 generated seccomp filters and write their time and memory
               into docs/seccomp.md (a minute; compiles with --release)
  tsan         run tests of maps under threads with ThreadSanitizer (needs nightly Rust
               with rust-src; says so where there is none)";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments[..] {
        ["asan"] => nightly::fuzz_with_asan(10),
        ["asan", seconds] => match seconds.parse() {
            Ok(seconds) => nightly::fuzz_with_asan(seconds),
            Err(_) => Err(format!("{seconds:?} is no number of seconds").into()),
        },
        ["capture"] => capture::take(),
        ["conformance"] => conformance::count(),
        ["helpers"] => helpers::list(),
        ["kfuncs"] => helpers::list_kfuncs(),
        ["refusals"] => helpers::list_refusals(),
        ["listing"] => listing::record(),
        ["man"] => man::write(),
        ["miri"] => nightly::interpret_with_miri(),
        ["tsan"] => nightly::test_with_tsan(),
        ["kernels"] => kernel_pages::write(),
        ["oracle", "kernels", ref names @ ..] => oracle::kernels(names),
        ["optimizations"] => optimizations::count(),
        ["performance", ref names @ ..] => performance::measure(names),
        ["kernel-data"] => kernel_data::extract(None),
        ["kernel-presets", "--check", ref directories @ ..] => {
            kernel_presets::run(directories, true)
        }
        ["kernel-presets", ref directories @ ..] => kernel_presets::run(directories, false),
        ["kernel-data", directory] => kernel_data::extract(Some(Path::new(directory))),
        ["seccomp"] => seccomp::measure(),
        ["licenses"] => licenses::write(),
        // The two below are our own programs inside the namespaces.
        [capture::DNS_SERVER] => capture::serve_dns(),
        [capture::FRAME_SENDER, interface] => capture::send_frames(interface),
        [] | ["-h" | "--help" | "help"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        [unknown, ..] => Err(format!("no chore {unknown:?}\n\n{USAGE}").into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error}");
            ExitCode::from(2)
        }
    }
}
