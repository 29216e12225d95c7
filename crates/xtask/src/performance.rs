//! `cargo xtask performance`: writes docs/performance.md from the reports of
//! `beebox-bench`, built as a user builds it.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::Outcome;

const INTRODUCTION: &str = "\
# Performance

<!-- Written by `cargo xtask performance`: change the benchmark, not this page. -->

Beebox, its peers and native code, measured in one run on one machine. Absolute figures
differ between machines, ratios much less. To measure on yours:

```sh
cargo beebox-bench engines
cargo beebox-bench classic
cargo beebox-bench load
cargo beebox-bench maps
cargo beebox-bench tail-calls
cargo beebox-bench gateway
cargo beebox-bench verify
```

In the tables, `8.12 ±2% 2.10×` is a value, its spread, and its ratio to the baseline of
the line, which is the column without a ratio. Before anything is timed, the engines of a
line are checked to give the same results for all items. Samples of the engines are
interleaved; the fastest of many short samples is taken in each of several new processes.
The value is the median over the processes, the spread the distance of their quartiles. A
ratio of the summary is computed in each process, and the median of the ratios is shown.
For whole processes the fastest of several runs is shown.

`cargo build --release` optimises each library for itself, and the command line not at all;
`--profile dist`, for packages, optimises it too and has full link-time optimisation.
";

/// The benchmarks, each with what a reader must know of it.
const SECTIONS: &[(&str, &str)] = &[
    (
        "engines",
        "\
eBPF programs, and classic filters as native code. Every workload is one XDP program
in C (`crates/bench/workloads`); short work is repeated in a loop.

- `compiled` is the same source compiled for this processor by clang when the benchmark
  runs (for the filters, the same logic in Rust). Where clang reports that it uses vector
  instructions, the comparison has a column of its own and is left out of the mean.
- `native`, `interp` and `checked` are ours: native code, the threaded interpreter, and
  the interpreter that checks every access (for filters, the plain interpreter).
- `kernel` is Linux's compiler on this machine: the time of BPF_PROG_TEST_RUN, in whole
  nanoseconds, less the time of an empty program (`a test run of nothing`).
- `rbpf jit` and `rbpf` are the compiler and the interpreter of rbpf. Its compiler
  emits at most 4,096 bytes of native code; for larger programs the cell is empty.
- `solana jit` and `solana` are those of solana-sbpf, for the dialect that is nearest
  to eBPF, with its fastest settings: without address translation (its memory check),
  without instruction counting, and without the no-ops and blinded constants for
  untrusted programs.
- `dpdk jit` and `dpdk` are those of DPDK's librte_bpf, which runs filters only: its
  verifier refuses loops and 32-bit jumps.
- `lower + native` and `check + rbpf jit` go from bytes to executable native code, with the
  structural check of the program: in rbpf when the program is set, in Beebox when it is
  lowered. `decode + native` and `rbpf jit` are the same without the check.

Where `native` takes more than 1.3 times what `compiled` takes, and why:

- W4a, on Intel's Golden Cove (not on Zen 4): its loop has nine instructions, the same as
  clang's, but clang unrolls it twice. One iteration takes 0.67 ns at any alignment of the
  loop; unrolled by hand 0.51 ns, about as native code, with code that is larger than the
  kernel's. Beebox keeps the smaller code.
- `tcp port 22 with payload` over 16,384 packets, on Zen 4: both codes have a branch for each
  test, and mispredict about as many.
- One packet, on Zen 5: `tcp port 22 with payload` 0.87 to 1.36, `port 22` 1.12 to 1.33, by
  where the linker puts the Rust code (1.9 to 2.7 ns; ours 2.4 to 2.6 ns in every build).

W8 is a ladder of tests of one bit each. Linux's code branches, ours has conditional moves,
whose time does not depend on the numbers. On Zen 5, which learns the branches of hundreds of
repeated numbers, Linux's code is as fast; in runs in which it had not learnt them, ours took
0.71 of its time. With only 64 numbers ours took 1.01 ±2% of its time, and 0.95 with branches.
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
From files to linked programs, with libbpf in the same process.

- libbpf is that of the kernel's selftests, where these are built: its sources are
  compiled once, with the options of its own Makefile and a stub for the kernel's
  bpf(2) (`crates/bench/libbpf/stand_in.c`), into a shared object beside them. Its system
  calls cost almost nothing, so its own work is measured. `BEEBOX_LIBBPF` names another
  one; without either the system's is measured, as far as it needs no kernel.
- `open` parses an object in memory. `link` also makes the programs that a kernel gets:
  it parses the kernel's BTF, which libbpf does for each object, and resolves 100 or
  10,000 CO-RE relocations (`crates/bench/objects`). With `types at hand` the BTF is
  parsed before.
",
    ),
    (
        "maps",
        "\
Verified programs as native code, with maps (`crates/bench/src/maps`). A run of a program
does 32 operations in a loop, with keys from a generator whose state lies in the packet.

- `beebox` is our native code with our maps, `kernel` the kernel's test run of the same
  program (BPF_PROG_TEST_RUN with `repeat`, by the kernel's own clock). Both include the
  cost of a run itself, of which an operation bears a 32nd part.
- `hash table` is the same work in Rust on hashbrown with its default hash function. Its
  values are boxed, so that their addresses are stable as in a map; `inline values` has
  them beside the keys.
- Keys of hashes are 16 bytes, values too. Prefixes have the lengths of a routing table of
  the Internet; nine of ten addresses that are looked up lie below one.
- `firewall` is the one of the examples: on one packet, a TCP segment that passes, and
  over a capture of 262,144 packets of 84 to 516 bytes, which is in the page cache, reading
  included.
",
    ),
    (
        "tail-calls",
        "\
Programs that do nothing but go on with each other, 33 times in a run (`crates/bench/src/
tail_calls.rs`): `beebox` is native code, `kernel` the kernel's test run of the same programs by
its own clock. [tail-calls.md](tail-calls.md) describes the native code.

The designs of a tail call, as chains of 34 hand-written programs, in nanoseconds for a tail
call (`cargo test -p beebox-jit --release --test it tail_call_cost:: -- --nocapture`, fastest of 200
timings): one chain again and again, whose targets the processor predicts, and 64 and 1,024
chains in an order that changes, whose targets exceed the branch predictor's capacity.

| design | 1 chain | 64 | 1,024 |
|---|---:|---:|---:|
| patched code in three parts: a skip, the unwinding, a direct jump | 0.39 | 0.93 | 6.07 |
| one aligned patch point, a direct jump to a stub that unwinds and jumps | 0.45 | 1.51 | 10.59 |
| a jump through a data slot at a known address (constant array and index) | 0.45 | 1.09 | 7.66 |
| a jump through a table, with the checks of the index | 0.52 | 1.39 | 7.89 |
| the same with a retpoline | 6.49 | 8.32 | 17.34 |

A direct jump saves 0.06 ns of 0.45 where targets are predicted, and a fifth of the time where
they are not, because direct jumps need entries of the branch predictor too. With retpolines a
direct jump is 3 to 16 times as fast as an indirect one.
",
    ),
    (
        "gateway",
        "\
The access-control gateway ([gateway.md](gateway.md)) on generated rules and traffic
(`crates/bench/src/gateway`), frames of 64 bytes in memory.

- Rules have the structure of real ones: prefixes come from few networks of 16 bits and share
  networks of 24; 90 of 100 source ports and 20 of 100 destination ports are any, most others
  well known; 68 of 100 rules are for TCP. The notes below have the classes of each field.
- `Zipf` is 4,096 flows, the n-th frequent with a probability proportional to 1 / n, each made
  for a rule that is drawn uniformly; `uniform` has as many flows as packets, 16,384; `no hit`
  are 4,096 flows that no rule matches, in the order of Zipf. The others are one flow.
- `beebox` is our native code of `gateway_xdp` on a frame of the flow. `native bitmaps` is the
  same algorithm on the same table in Rust, with counters; `native, rule by rule` compares the
  rules one after the other.
- `beebox, replay` and `kernel, replay` are one program that copies the next frame over the
  packet and goes on as `gateway_xdp`, as our native code and in the kernel's test run by its own
  clock, a pass of 16,384 packets at a time, each behind one that warms the caches.
- Tables include their cache. 64 MiB hold a set of 65,536 rules with 7,000 classes even if all
  their blocks differ (`crates/gateway/tests/memory.rs`).
",
    ),
    ("verify", VERIFY),
];

const VERIFY: &str = "\
The verifier and the running kernel's, over the programs of the kernel's selftests
(7.2, cpu v3), our example object and generated families. The kernel's time is the one
in its log (log level 4, read by veristat): it includes the rewriting of instructions and,
for programs with subprograms, their compilation. Ours is the time of
`verifier::verify`. Both are the minimum of five rounds; logs, BTF loading and map creation
are in neither. One program, `verifier_liveness_exp`, takes longer than all others together
and is left out.

Where time goes, over heavy programs (pyperf, strobemeta, test_verif_scale, core_kern,
loop3, verifier_loops1), by samples of `perf record -e cpu-clock -F 1999`:

| part | share |
|---|---:|
| the walk, comparing states and keeping checkpoints (`explore`) | 24 % |
| arithmetic and ranges (`alu`, `domain`) | 18 % |
| memory accesses (`mem`) | 12 % |
| allocation and copies | 11 % |
| precision tracking (`precise`) | 10 % |
| live stack slots (`analysis/live_stack`) | 4 % |
| everything else: page faults, linking, calls, branches | 21 % |

Design choices that this led to:

- States share frames, chunks of four registers and chunks of eight stack slots until one
  of them is written (copy on write). A branch or a checkpoint copies some hundred bytes.
- Checkpoints live in an arena by index and are freed when they are evicted and no path
  below them is open; all are freed when a function is verified.
- Precise registers and slots are bit masks beside the state, so that a walk back over the
  history allocates nothing, and requests that would mark nothing new end at once
  (`precision-skip`).
- Comparison looks at live registers and slots only, first at the register that differed
  in the last comparison with the same checkpoint.
- Live registers, dead slots and postorders are computed once for each function.
- A walk back for precision passes over instructions that no requested register concerns, by
  a mask for each instruction; an update of live stack slots visits what changed, by bits in
  postorder.
- Ranges that are as narrow as the known bits need no reduction.
- Back edges of loops keep outlines of their states, as evicted checkpoints do.

Memory grows with the checkpoints that are kept, by 0.6 kB each, and by 0.4 kB for every
chunk of registers and 0.9 kB for every chunk of stack slots that changed since the last one.
The worst programs keep many: 200,000 instructions without a loop, all 64 slots in use, 25,000
of them; a loop of 960,000 instructions 12,001, with a checkpoint at every prune point
(BPF_F_TEST_STATE_FREQ, a flag for tests) 480,001. The running kernel, measured by a memory
cgroup, takes 280, 138 and 5,029 MB for these.
";

/// Figures that tests print, behind the benchmarks.
const OPTIONS: &str = "\
## Options of native code

[native-code.md](native-code.md) describes the options. The time to install and free a program
of 1 KiB, in a virtual machine, whose page tables are slow to change
(`cargo test -p beebox-jit --test it install_cost:: -- --ignored --nocapture`):

| `PoolOptions::writing` | µs |
|---|---:|
| `PersistentView` | 0.4 |
| `TemporaryView` | 14 |
| `OwnPages` | 9 |

`Options::deadline` costs up to 0.25 ns per iteration in a loop without calls, and up to 1 ns in
other loops.
";

/// Runs benchmarks and writes their sections of docs/performance.md: those that are
/// named, or all and the whole page.
pub(crate) fn measure(names: &[String]) -> Outcome {
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
            text.push_str(&format!("\n{OPTIONS}\n{}", crate::optimizations::section()));
            text
        }
        names => {
            let mut text = fs::read_to_string(&path)?;
            for (name, about) in SECTIONS
                .iter()
                .filter(|(name, _)| names.iter().any(|it| it == name))
            {
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
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut bench = Command::new(env!("CARGO"));
    bench.current_dir(root);
    // The alias in `.cargo/config.toml`.
    bench.args(["beebox-bench", name, "--format", "markdown"]);
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
