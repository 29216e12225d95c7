//! Measures, and writes down what was found.
//!
//! The page holds the report that `beebox-bench` prints for a user, made by an
//! optimised build, so that anybody can compare.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

const INTRODUCTION: &str = "\
# Performance

<!-- Written by `cargo xtask performance`: change the benchmark, not this page. -->

Beebox beside its peers and beside native code, all in one run on one machine.
Absolute figures move from machine to machine, ratios much less. Measure on yours:

```sh
cargo run --release -p beebox-bench -- engines
cargo run --release -p beebox-bench -- classic
cargo run --release -p beebox-bench -- load
```

In the tables, `8.12 ±2% 2.10×` is a value, its spread, and how many times as good
it is as the baseline of its line, which is the column without a ratio. Engines of
a line gave the same answers to all of its items before anything was timed. Each
value is the fastest of many short samples, taken in turns, in each of several new
processes: the median of the processes counts, and the spread is the distance of
their quartiles. A ratio of the summary is formed in each process, and the median
is taken of the ratios. Of whole processes the fastest of several turns counts.

`cargo build --release` uses thin link-time optimisation; `--profile dist`, for packages,
full. Both filter a capture of 300 MB in the same time: 0.023 to 0.038 s and 0.020 to
0.039 s of user time in seven runs each. The executable has 43 MB and 34 MB with line
tables.
";

/// The benchmarks, each with what a reader must know of it.
const SECTIONS: &[(&str, &str)] = &[
    (
        "engines",
        "\
eBPF programs, and classic filters as native code. Every workload is one XDP program
in C (`crates/bench/workloads`); where the work is short, the program repeats it.

- `native` is the same source compiled for this processor by clang when the benchmark
  runs (for the filters, the same logic in Rust). Where clang makes use of vector
  instructions, by its own account, the comparison stands in a column of its own and
  out of the mean.
- `jit`, `interp` and `checked` are ours: native code, the threaded interpreter, and
  the interpreter that checks every access.
- `kernel` is Linux's compiler on this machine: BPF_PROG_TEST_RUN, whose clock counts
  whole nanoseconds, less what it takes for an empty program (`a test run of nothing`).
- `rbpf jit` and `rbpf` are the compiler and the interpreter of rbpf. Its compiler
  has room for 4,096 bytes of native code; where it needs more, its cell is empty.
- `solana jit` and `solana` are those of solana-sbpf, for the dialect that is nearest
  to eBPF, and set as fast as they can be: without the translation of addresses that
  is its check of memory, without a count of instructions, and without the no-ops and
  blinded constants of code for untrusted programs.
- `dpdk jit` and `dpdk` are those of DPDK's librte_bpf, which takes filters only: its
  verifier refuses loops and 32-bit jumps.
- `lower + jit` and `check + rbpf jit` are the ways from bytes to native code that may
  run: each checks the form of a program itself, rbpf when it is handed over, we when
  it is lowered. `decode + jit` and `rbpf jit` are the same without the checks.

Where `jit` takes more than 1.3 times what native code takes, and why:

- W4a, on Intel's Golden Cove (not on Zen 4): its loop is nine instructions, the same
  that clang writes, but clang writes two rounds one after the other. Alone, a round
  takes 0.67 ns wherever the loop lies; written twice by hand, 0.51 ns, about what
  native code takes, in an image that is larger than the kernel's. We keep the small
  one.
- `tcp port 22 with payload` over 16,384 packets took 1.86 on Zen 4 before one jump
  asked several tests, for a reason that nobody established: native code had as many
  jumps that cannot be predicted (0.57 wrong guesses a packet at best, counted in both
  codes). Now ours has 0.19; on Zen 4 it has not been measured again.
",
    ),
    (
        "classic",
        "\
Packet and seccomp filters, and whole processes.
",
    ),
    (
        "load",
        "\
From files to linked programs, beside libbpf in the same process.

- libbpf is that of the kernel's selftests, where these are built: its sources are
  compiled once, with the options of its own Makefile and a stand-in for the kernel
  (`crates/bench/libbpf/stand_in.c`), into a shared object beside them. So its system
  calls cost next to nothing, and what is measured is its own work. `BEEBOX_LIBBPF`
  names another one; without either the system's is measured, as far as it needs no
  kernel.
- `open` is an object in memory to what can be asked and changed. `link` goes on to
  programs as a kernel gets them: parsing the kernel's types, which libbpf does for
  each object, and 100 or 10,000 CO-RE relocations (`crates/bench/objects`). With
  `types at hand` they were parsed before.
",
    ),
];

/// Runs the benchmarks and writes docs/performance.md.
pub(crate) fn measure() -> Outcome {
    let mut text = INTRODUCTION.to_owned();
    for (name, about) in SECTIONS {
        let report = run(name)?;
        text.push_str(&format!("\n## `beebox-bench {name}`\n\n{about}\n{report}"));
    }
    text.push_str(&format!("\n{}", crate::optimizations::section()));
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    fs::write(page, text)?;
    println!("docs/performance.md is written");
    Ok(())
}

/// What a benchmark reports.
fn run(name: &str) -> Outcome<String> {
    let mut bench = Command::new(env!("CARGO"));
    bench.args(["run", "--release", "--package", "beebox-bench", "--"]);
    bench.args([name, "--format", "markdown"]);
    let measured = bench.stderr(Stdio::inherit()).output()?;
    if !measured.status.success() {
        return Err(format!("measuring {name}: {}", measured.status).into());
    }
    Ok(String::from_utf8(measured.stdout)?)
}
