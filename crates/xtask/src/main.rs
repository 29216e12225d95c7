//! Repository tasks, as `cargo xtask TASK`: generators of committed pages and data, and
//! long comparisons with the running kernel.
#![forbid(unsafe_code)]

mod capture;
mod conformance;
mod execution;
mod gateway;
mod helpers;
mod kernel_data;
mod licenses;
mod listing;
mod man;
mod nightly;
mod objects;
mod optimizations;
mod oracle;
mod page;
mod performance;
mod runs;
mod seccomp;
mod soak;
mod tail_calls;
mod verifier;

use std::error::Error;
use std::process::ExitCode;

/// Result of a chore.
type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const USAGE: &str = "\
usage: cargo xtask CHORE

  asan         run the fuzz targets of the engines under AddressSanitizer, ten
               seconds each, or as many as given, tail calls whose targets change, and
               generated programs with maps for 60 seconds (needs nightly Rust; says so
               where there is none)
  capture      take examples/sample.pcap anew from real programs that talk in
               network namespaces of their own, and compile the filters beside it
               (as root; needs tcpdump, ssh, curl, python3, dig, ping, ethtool)
  conformance  run every case of every instruction on every engine, and write
               docs/conformance.md
  kfuncs       write docs/kfuncs.md, the list of kernel functions, and bpf_bits.h
  helpers      write docs/helpers.md, the list of helpers and which are built
  kernel-data  extract types, configuration and registry of the running kernel (6.18)
               into crates/kernel-data/data, for machines without that kernel
  licenses     write docs/licenses.md, the licences of what the commands are linked with
  listing      record how LLVM lists crates/isa/tests/llvm/every.c, for machines without
               it (needs clang-19 and llvm-19)
  man          write the man pages of the commands and completion scripts to target/man
               and target/completions, for packages
  miri         run tests of the machine's and the interpreter's unsafe code in Miri
               (minutes; needs nightly Rust with Miri; says so where there is none)
  oracle       compare generated programs with the running kernel (6.18) and the
               engines with each other, and write docs/classic-oracle.md and the kept
               answers (`oracle classic`), and docs/ebpf-oracle.md (`oracle ebpf`, or
               `oracle ebpf N` for another number of programs for the engines), and
               docs/btf-oracle.md (`oracle btf`); as root, best compiled with --release;
               minutes, and half an hour
  oracle helpers [PROGRAMS [FAMILY]]
               compare helpers with those of the running kernel, by default 3,000 programs of
               each family, or of those whose names have a part, 237,000 calls: results,
               error numbers, packets and contexts; as root
  oracle kfuncs [PART [PROGRAMS]]
               compare kfuncs with those of the running kernel, as oracle helpers does; of
               the families whose name has a part
  oracle maps [OPERATIONS]
                 replays operations on maps of each kind, 100,000 by default, here and in
                 the running kernel, and prints a table
  oracle numbers [CASES]
               compare a million values, or so many, of the verifier's numeric domain with
               those in the running kernel's logs
  oracle objects [--set v3|v4|6.12]... [--only TEXT] [--list]
               compare what Beebox and libbpf make of the objects of the kernel's own
               tests, print where they differ, and write docs/loading.md if all sets
               were compared whole (needs the selftests, built outside the tree);
               `--only` takes objects whose name has TEXT in it, `--list` prints one
               line for each difference
  oracle registry
               compare every entry of the built-in registry that can be asked about with
               the running kernel, and write the table in docs/verifier.md (half a minute)
  oracle live-code [--set 7.2/v3]... [--programs FILE] [--only TEXT] [--list]
               compare what dead code removal leaves of the accepted programs of the
               kernel's own tests with the instructions that the running kernel keeps, and
               write the table in docs/verifier.md (as root; needs the selftests)
  oracle log [--set 7.2/v3]... [--programs FILE] [--only TEXT] [--list]
               compare the whole logs of the kernel's own tests with those of the running
               kernel, and write the table in docs/verifier.md (as root; needs the
               selftests; `--programs` takes those in a list of names)
  oracle runs [--set 7.2/v3]... [--programs FILE] [--only TEXT] [--list]
               run every program of the kernel's own tests that the running kernel accepts
               and test-runs here and in the kernel, compare results, data, contexts and
               maps, and write the table in docs/helpers.md (as root; needs the selftests;
               `--list` names the programs that do not run here)
  oracle unprivileged [--set 7.2/v3]... [--programs FILE] [--only TEXT] [--list]
               compare verdict, counts and last line of the kernel's own tests, loaded by
               callers without capabilities, with the running kernel, and write the table
               in docs/verifier.md (as root; needs the selftests)
  oracle releases [--only TEXT]
               compare what the tables of releases refuse on older kernels with the recorded
               answers of these kernels, and write the table in docs/kernels.md (needs the
               selftests, and the kernels: tools/kernels/vm fetch 5.10 6.1 6.12)
  oracle tail-calls
               run the kernel's own tests of tail calls as native code, in the checked engine
               and in the running kernel, and write the table in docs/tail-calls.md (as root;
               needs the selftests)
  oracle verifier [--set 7.2/v3]... [--programs FILE] [--truth DIRECTORY] [--only TEXT]
                  [--list]
               verify the programs of the kernel's own tests, compare with what the kernel
               answered, print what differs, and write the table in docs/verifier.md (needs
               the selftests; the recorded answers are those of tools/selftests, or in a directory;
               `--programs` splits them by a list of names, `--list` names those that are
               not answered)
  optimizations
               count what each optimization of the compiler does for programs of others,
               and write the table in docs/performance.md (needs the selftests, libpcap
               and container profiles; says what is absent)
  performance [BENCHMARK]...
               run the benchmarks, or those that are named (engines, classic, load, maps,
               tail-calls, gateway, verify), and write their sections of docs/performance.md (minutes, on a
               machine that does nothing else; needs tcpdump)
  seccomp      analyse 10,000 generated seccomp filters and write their time and memory
               into docs/seccomp.md (a minute; compiles with --release)
  soak execution [PROGRAMS [SEED [WITNESSED]]]
               run generated programs with maps, 100,000 or so many from a seed on, as
               native code with and without each pass and in the checked engine, every
               tenth or so in the running kernel too, and stop at the first difference (as
               root; compile with --release)
  soak gateway [SETS [PACKETS]]
               filters random packets by random sets of rules, by default 1,000 sets and 10,000
               packets each: verdict and rule of the gateway's program here and in the running
               kernel, and by the definition; and 50 sets x 1,000 packets by nftables (as root)
  soak soundness [PROGRAMS [SEED]]
               run generated programs that the verifier accepts, so many from a seed on,
               with 100 inputs each, and hold every instruction to the states and facts of
               the verification; without numbers 10,000 and the programs of the kernel's own
               tests, and write the tables in docs/verifier.md (best compiled with
               --release)
  soak tail-calls [--seconds N]
               run programs that call each other on 2 and on 8 threads, while 2 threads
               compile, replace and remove the targets, ten minutes or so long, and check
               the trace of every run (best compiled with --release)
  soak verifier [PROGRAMS [SEED]] [--seconds N] [--privileges none|bpf]
               compare verdict, counts and last line of generated programs with the
               running kernel's verifier, 200,000 or so many from a seed on or for so
               long, and print what differs, reduced; as a caller without capabilities, or
               with CAP_BPF alone (as root; best compiled with --release)
  soak mutations [MUTATIONS [SEED]] [--seconds N] [--privileges none|bpf]
               the same of programs of the selftests and of our own with one instruction
               changed (needs the selftests; says so where they are absent)
  soak kfuncs [ROUNDS [SEED]]
               compares the verifier's answers to calls of every kfunc in programs of every
               type, 10 programs each by default, with those of the running kernel
  soak program SEED
               print the program that is generated from a seed, as a case
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
        ["listing"] => listing::record(),
        ["man"] => man::write(),
        ["miri"] => nightly::interpret_with_miri(),
        ["tsan"] => nightly::test_with_tsan(),
        ["optimizations"] => optimizations::count(),
        ["oracle"] => oracle::ask_about_classic()
            .and_then(|()| oracle::ask_about_ebpf(oracle::ENGINE_PROGRAMS))
            .and_then(|()| oracle::ask_about_btf(oracle::BTF_SEEDS)),
        ["oracle", "classic"] => oracle::ask_about_classic(),
        ["oracle", "ebpf"] => oracle::ask_about_ebpf(oracle::ENGINE_PROGRAMS),
        ["oracle", "ebpf", programs] => match programs.parse() {
            Ok(programs) => oracle::ask_about_ebpf(programs),
            Err(_) => Err(format!("{programs:?} is no number of programs").into()),
        },
        ["oracle", "helpers"] => oracle::ask_about_helpers(oracle::HELPER_PROGRAMS, ""),
        ["oracle", "helpers", programs] => match programs.parse() {
            Ok(programs) => oracle::ask_about_helpers(programs, ""),
            Err(_) => Err(format!("{programs:?} is no number of programs").into()),
        },
        ["oracle", "helpers", programs, family] => match programs.parse() {
            Ok(programs) => oracle::ask_about_helpers(programs, family),
            Err(_) => Err(format!("{programs:?} is no number of programs").into()),
        },
        ["oracle", "kfuncs", ref words @ ..] => oracle::ask_about_kfuncs(words),
        ["oracle", "maps"] => oracle::ask_about_maps(oracle::MAP_OPERATIONS),
        ["oracle", "maps", operations] => match operations.parse() {
            Ok(operations) => oracle::ask_about_maps(operations),
            Err(_) => Err(format!("{operations:?} is no number of operations").into()),
        },
        ["oracle", "numbers"] => oracle::ask_about_numbers(oracle::NUMBER_CASES),
        ["oracle", "numbers", cases] => match cases.parse() {
            Ok(cases) => oracle::ask_about_numbers(cases),
            Err(_) => Err(format!("{cases:?} is no number of cases").into()),
        },
        ["oracle", "objects", ref options @ ..] => objects::compare(options),
        ["oracle", "tail-calls"] => tail_calls::compare_selftests(),
        ["oracle", "registry"] => verifier::ask_about_registry(),
        ["oracle", "log", ref options @ ..] => verifier::compare_logs(options),
        ["oracle", "live-code", ref options @ ..] => verifier::compare_live_code(options),
        ["oracle", "releases", ref options @ ..] => verifier::compare_releases(options),
        ["oracle", "runs", ref options @ ..] => runs::compare(options),
        ["oracle", "unprivileged", ref options @ ..] => verifier::compare_unprivileged(options),
        ["oracle", "verifier", ref options @ ..] => verifier::score(options),
        ["oracle", "btf"] => oracle::ask_about_btf(oracle::BTF_SEEDS),
        ["performance", ref names @ ..] => performance::measure(names),
        ["kernel-data"] => kernel_data::extract(),
        ["seccomp"] => seccomp::measure(),
        ["soak", "execution", ref numbers @ ..] => execution::compare_runs(numbers),
        ["soak", "gateway", ref numbers @ ..] => gateway::compare(numbers),
        ["soak", "soundness", ref numbers @ ..] => verifier::check_soundness(numbers),
        ["soak", "tail-calls", ref words @ ..] => tail_calls::change_targets(words),
        ["soak", "verifier", ref words @ ..] => soak::compare_verifiers(words),
        ["soak", "kfuncs", ref words @ ..] => soak::compare_kfunc_calls(words),
        ["soak", "program", seed] => soak::print_generated(seed),
        ["licenses"] => licenses::write(),
        ["soak", "mutations", ref words @ ..] => soak::compare_mutated(words),
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
