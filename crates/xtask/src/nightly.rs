//! Chores that need nightly Rust: AddressSanitizer on the engines and the C library, which sees
//! accesses beside what the interpreter and the code around native code should
//! touch; ThreadSanitizer on maps under threads; and Miri on the unsafe code of native
//! runs, maps and the interpreter, which sees whatever Rust leaves undefined.
//!
//! Without nightly Rust or Miri, they report that they were skipped. Each builds into a
//! directory of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Outcome;

/// The package of the fuzz targets, and its executable.
const FUZZER: &str = "beebox-fuzz";

/// Options of AddressSanitizer while programs run.
const ASAN_OPTIONS: &str = "detect_leaks=1";

/// The fuzz targets that run engines, and that of the C library.
const TARGETS: &[&str] = &["engines", "ebpf-raw", "ebpf-engines", "c-calls"];

/// The tests that run native code whose tail calls find freed and new targets, and generated
/// programs with maps, timers and packets as native code.
const TESTS: &[&str] = &["--test", "it", "--", "tail_call_stress::", "execution::"];

/// Seconds of generated programs.
const EXECUTION_SECONDS: &str = "60";

/// Seconds that an input may take under a sanitizer, where a generated program has been
/// seen to take 9 on a busy machine.
const SLOW: &str = "30";

/// Tests of a package that Miri runs.
struct InMiri {
    package: &'static str,
    addresses: Addresses,
    /// What is in the names of the tests.
    tests: &'static [&'static str],
}

/// What the tests do with addresses.
enum Addresses {
    /// Every pointer is made of another pointer: strict provenance.
    Pointers,
    /// They are numbers to programs, whose loads and stores make pointers of them, and to the
    /// epochs of the library `crossbeam-epoch`: provenance is exposed.
    Numbers,
}

/// What Miri runs. It is some thousand times as slow as the processor, so of the interpreter it
/// gets tests that come to every kind of unsafe operation without trying all operands, and threads
/// that share maps do fewer rounds. It runs no native code: tests of the memory of verified programs
/// (`direct::`) and functions in the place of code (`stand_ins::`) do what code does, and executable
/// memory is plain memory (`jit/src/memory/stand_in.rs`). The checked engine forbids unsafe code.
const FOR_MIRI: &[InMiri] = &[
    InMiri {
        package: "beebox-jit",
        addresses: Addresses::Pointers,
        tests: &[
            "code_runs_at_its_final_address",
            "small_programs_share_pages",
            "what_is_freed_traps_and_is_used_again",
            "every_alignment_up_to_a_page_is_kept",
            "sizes_that_cannot_be_are_refused",
            "a_writer_that_panics_frees_what_it_had",
            "images_keep_their_pool",
            "threads_install_and_drop_while_others_run",
        ],
    },
    InMiri {
        package: "beebox-jit",
        addresses: Addresses::Numbers,
        tests: &["native::stand_ins::"],
    },
    InMiri {
        package: "beebox-vm",
        addresses: Addresses::Pointers,
        tests: &[
            "cells::",
            "cell_groups::",
            "lock::",
            "packet_buffer::",
            "packet_context::",
            "socket_table::",
            "timers::",
            "what_an_object_owns_is_freed_with_it",
        ],
    },
    InMiri {
        package: "beebox-vm",
        addresses: Addresses::Numbers,
        tests: &[
            "direct::",
            "direct_access::",
            "machine::",
            "map_function::",
            "tail_table::",
        ],
    },
    InMiri {
        package: "beebox-kernel",
        addresses: Addresses::Numbers,
        tests: &[
            "a_pointer_to_a_replaced_value_still_reads_the_old_one",
            "prefixes_that_a_run_holds_are_not_recycled",
            "records_cross_the_end_of_a_ring_and_a_full_one_refuses",
            "additions_and_removals_balance",
            "values_under_their_lock_are_whole_and_lose_no_count",
            "rings_give_whole_records_in_the_order_of_each_writer",
        ],
    },
    InMiri {
        package: "beebox-interp",
        addresses: Addresses::Numbers,
        tests: &[
            "tests::chains",
            "tests::random",
            "tests::frames::frames_of_callees_are_zero_and_below_those_of_callers",
            "loads_return_what_was_stored",
            "a_failed_exchange_leaves_the_source",
            "an_unchecked_program_runs_on_memory",
            "each_of_eight_frames_is_separate",
            "a_packet_load_outside_the_packet_ends_its_function",
            "time_helpers_use_the_clock_of_the_host",
        ],
    },
];

/// Tries the seeds of every target and mutations of them for so many seconds
/// each, then runs [`TESTS`].
pub(crate) fn fuzz_with_asan(seconds: u64) -> Outcome {
    let Some(host) = host() else {
        println!(
            "SKIPPED AddressSanitizer: there is no nightly Rust (rustup toolchain add nightly)"
        );
        return Ok(());
    };
    let mut build = with_asan("build", &host);
    build.args(["--bin", FUZZER, "--test", "it"]);
    run(&mut build, "building the fuzzer")?;
    let mut fuzzer = Command::new(target("asan").join(&host).join("debug").join(FUZZER));
    fuzzer
        .env("ASAN_OPTIONS", ASAN_OPTIONS)
        .args(TARGETS)
        .args(["--seconds", &seconds.to_string(), "--slow", SLOW]);
    run(&mut fuzzer, "the fuzzer")?;
    let mut tests = with_asan("test", &host);
    tests.env("BEEBOX_EXECUTION_SECONDS", EXECUTION_SECONDS);
    tests.args(TESTS);
    run(&mut tests, "tests of native code")
}

/// Cargo's command for the fuzzer and the tests of native code under AddressSanitizer: always
/// for both packages, so that what both depend on has the same features and is built once.
fn with_asan(command: &str, host: &str) -> Command {
    let mut cargo = cargo("asan");
    // With a target named, build scripts and macros of the host stay as they are.
    cargo
        .env("RUSTFLAGS", "-Zsanitizer=address")
        .env("ASAN_OPTIONS", ASAN_OPTIONS)
        .args([command, "--locked", "--target", host])
        .args(["--package", FUZZER, "--package", "beebox-differential"]);
    cargo
}

/// Runs tests of maps under threads with ThreadSanitizer. The standard library is built with
/// it too: otherwise what it synchronises would seem to be races.
pub(crate) fn test_with_tsan() -> Outcome {
    let Some(host) = host().filter(|_| has_library_source()) else {
        println!(
            "SKIPPED ThreadSanitizer: there is no nightly Rust with the source of its library \
             (rustup toolchain add nightly --component rust-src)"
        );
        return Ok(());
    };
    let mut cargo = cargo("tsan");
    cargo
        .env("RUSTFLAGS", "-Zsanitizer=thread")
        .args(["test", "--locked", "--quiet", "-Zbuild-std"])
        .args(["--target", &host])
        .args(["--package", "beebox-kernel", "--lib"])
        .args(["--", "maps::tests::threads::"]);
    run(&mut cargo, "ThreadSanitizer")
}

/// True if the source of nightly's standard library is there.
fn has_library_source() -> bool {
    let said = nightly("rustc").args(["--print", "sysroot"]).output();
    said.is_ok_and(|said| {
        let sysroot = String::from_utf8_lossy(&said.stdout).trim().to_owned();
        Path::new(&sysroot)
            .join("lib/rustlib/src/rust/library")
            .exists()
    })
}

/// Runs tests of unsafe code in Miri.
pub(crate) fn interpret_with_miri() -> Outcome {
    if !is_there("cargo", &["miri", "--version"]) {
        println!(
            "SKIPPED Miri: there is none (rustup toolchain add nightly --component miri rust-src)"
        );
        return Ok(());
    }
    for entry in FOR_MIRI {
        let InMiri { package, tests, .. } = entry;
        println!("Miri on {package}");
        let listed = miri(entry).arg("--list").output()?;
        let listed = String::from_utf8_lossy(&listed.stdout);
        if let Some(gone) = tests.iter().find(|&name| !listed.contains(name)) {
            return Err(format!("{package} has no test of the name {gone}").into());
        }
        run(miri(entry).args(*tests), "Miri")?;
    }
    Ok(())
}

/// The tests of a package in Miri.
fn miri(entry: &InMiri) -> Command {
    let mut cargo = cargo("miri");
    // Garbage of epochs is not freed when the process ends. Epochs use what only tree
    // borrows allow, and an ordering of processors that the emulation of weak memory does
    // not have.
    let flags = [
        match entry.addresses {
            Addresses::Pointers => "-Zmiri-strict-provenance",
            Addresses::Numbers => "-Zmiri-permissive-provenance",
        },
        "-Zmiri-tree-borrows",
        "-Zmiri-ignore-leaks",
        "-Zmiri-disable-weak-memory-emulation",
    ];
    cargo
        .env("MIRIFLAGS", flags.join(" "))
        .args(["miri", "test", "--locked", "--quiet"])
        .args(["--package", entry.package])
        .args(["--tests", "--"]);
    cargo
}

/// Nightly's cargo at the root of the repository; `name` is where it builds.
fn cargo(name: &str) -> Command {
    let mut cargo = nightly("cargo");
    cargo
        .current_dir(root())
        .env("CARGO_TARGET_DIR", target(name));
    cargo
}

/// Root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Directory of a name below that of the builds.
fn target(name: &str) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or("target".into());
    root().join(target).join(name)
}

fn run(command: &mut Command, who: &str) -> Outcome {
    let status = command.status()?;
    if status.success() {
        Ok(())
    } else {
        Err(format!("{who} ended with {status}").into())
    }
}

/// A program of nightly Rust, whatever release of Rust runs this one: of the toolchain that `BEEBOX_NIGHTLY`
/// names (`.ci/common` sets it), else of `nightly`.
fn nightly(program: &str) -> Command {
    let mut command = Command::new(program);
    let toolchain = env::var_os("BEEBOX_NIGHTLY").unwrap_or("nightly".into());
    command
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env("RUSTUP_TOOLCHAIN", toolchain);
    command
}

fn is_there(program: &str, arguments: &[&str]) -> bool {
    nightly(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The triple of the machine, if nightly Rust is there.
fn host() -> Option<String> {
    let said = nightly("rustc")
        .arg("-vV")
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let said = String::from_utf8(said.stdout).ok()?;
    if !said.lines().next()?.contains("nightly") {
        return None;
    }
    let host = said.lines().find_map(|line| line.strip_prefix("host: "))?;
    Some(host.to_owned())
}
