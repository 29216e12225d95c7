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
cargo run --release -p beebox-bench -- verify
```

In the tables, `8.12 ±2% 2.10×` is a value, its spread, and how many times as good
it is as the baseline of its line, which is the column without a ratio. Engines of
a line gave the same answers to all of its items before anything was timed. Each
value is the fastest of many short samples, taken in turns, in each of several new
processes: the median of the processes counts, and the spread is the distance of
their quartiles. A ratio of the summary is formed in each process, and the median
is taken of the ratios. Of whole processes the fastest of several turns counts.

`cargo build --release` optimises each crate for itself; `--profile dist`, for packages,
has full link-time optimisation. Thin link-time optimisation makes nothing faster, and
takes 218 s of processor time to build instead of 182 s (medians of user time):

| | thin | none |
|---|---|---|
| `filter`, native code, 2.3 GB of captures | 0.263 s | 0.260 s |
| `filter --engine interp` | 0.269 s | 0.273 s |
| `verify`, 12 large selftests | 1.293 s | 1.261 s |
| `run --engine interp`, a loop of 50,000,000 rounds | 0.166 s | 0.166 s |
| `run`, the same loop, every access checked | 0.303 s | 0.244 s |
| `dis --jit` of pyperf600 | 0.113 s | 0.111 s |
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
    ("verify", VERIFY),
];

const VERIFY: &str = "\
The verifier beside the running kernel's, over the programs of the kernel's selftests
(7.2, cpu v3), our example object and generated families. The kernel's figure is the one
that it states itself (log level 4, through veristat): it ends after rewriting and, for
programs with subprograms, includes their compilation. Ours is the whole of
`verifier::verify`. Both are the least of five rounds; logs, BTF loading and map creation
are in neither. One program, `verifier_liveness_exp`, takes longer than all others together
and is left out.

Where time goes, over heavy programs (pyperf, strobemeta, test_verif_scale, core_kern,
loop3, verifier_loops1), by samples of `perf record -e cpu-clock -F 1999`:

| part | share |
|---|---:|
| precision tracking (`precise`) | 15 % |
| live stack slots (`facts/live_stack`) | 15 % |
| comparing states and keeping checkpoints (`explore`) | 15 % |
| arithmetic and ranges (`alu`, `domain`) | 14 % |
| allocation and copies | 13 % |
| memory accesses (`mem`) | 8 % |
| the walk itself (`explore`) | 5 % |
| everything else: page faults, linking, calls, branches | 15 % |

Design choices that this led to:

- States share frames, and frames share stacks, until one of them is written (copy on
  write). A branch or a checkpoint copies some hundred bytes.
- Checkpoints live in an arena by index and are freed when they are evicted and no path
  below them is open; all are freed when a function is verified.
- Precise registers and slots are bit masks beside the state, so that a walk back over the
  history allocates nothing, and requests that would mark nothing new end at once
  (`precision-skip`).
- Comparison looks at live registers and slots only, first at the register that differed
  in the last comparison with the same checkpoint.
- Live registers, dead slots and postorders are computed once for each function.

Memory grows with the checkpoints that are kept, by up to 10 kB each where all 64 slots of
a frame are in use and one of them differs. The worst programs keep many: a loop of 960,000
instructions with a full stack 12,003 (119 MB), 200,000 instructions in a row with a full
stack 25,000 (255 MB), the loop with a checkpoint at every prune point
(BPF_F_TEST_STATE_FREQ) 480,001 (1.3 GB).
";

/// Runs benchmarks and writes their sections of docs/performance.md: those that are
/// named, or all and the whole page.
pub(crate) fn measure(names: &[&str]) -> Outcome {
    if let Some(unknown) = names.iter().find(|name| !is_benchmark(name)) {
        return Err(format!("no benchmark is called {unknown:?}").into());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let text = match names {
        [] => {
            let mut text = INTRODUCTION.to_owned();
            for (name, about) in SECTIONS {
                text.push_str(&format!("\n{}", section(name, about)?));
            }
            text.push_str(&format!("\n{}", crate::optimizations::section()));
            text
        }
        names => {
            let mut text = fs::read_to_string(&path)?;
            for (name, about) in SECTIONS.iter().filter(|(name, _)| names.contains(name)) {
                text = with_section(&text, &heading(name), &section(name, about)?);
            }
            text
        }
    };
    fs::write(path, text)?;
    println!("docs/performance.md is written");
    Ok(())
}

fn is_benchmark(name: &str) -> bool {
    SECTIONS.iter().any(|(known, _)| *known == name)
}

fn heading(name: &str) -> String {
    format!("## `beebox-bench {name}`")
}

/// The section of a benchmark, measured.
fn section(name: &str, about: &str) -> Outcome<String> {
    Ok(format!("{}\n\n{about}\n{}", heading(name), run(name)?))
}

/// The page with a section in place of the one with its heading, or before the last
/// section if there is none yet.
fn with_section(page: &str, heading: &str, section: &str) -> String {
    let next = |from: usize| page[from..].find("\n## ").map(|at| from + at + 1);
    let start = page.find(&format!("{heading}\n"));
    let (start, end) = match start {
        Some(start) => (start, next(start + 1).unwrap_or(page.len())),
        None => {
            let last = page.rfind("\n## ").map_or(page.len(), |at| at + 1);
            (last, last)
        }
    };
    let section = section.trim_end();
    match &page[end..] {
        "" => format!("{}{section}\n", &page[..start]),
        rest => format!("{}{section}\n\n{rest}", &page[..start]),
    }
}

/// Report of a benchmark.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_replaced_or_added_before_the_last() {
        let page = "# P\n\n## `a`\n\nold\n\n## last\n\nend\n";
        let new = with_section(page, "## `a`", "## `a`\n\nnew\n");
        assert_eq!(new, "# P\n\n## `a`\n\nnew\n\n## last\n\nend\n");
        let more = with_section(&new, "## `b`", "## `b`\n\nx\n\n");
        assert_eq!(
            more,
            "# P\n\n## `a`\n\nnew\n\n## `b`\n\nx\n\n## last\n\nend\n"
        );
        assert_eq!(
            with_section(&more, "## last", "## last\n\nE"),
            more.replace("end", "E")
        );
    }
}
