//! Measures, and writes down what was found.
//!
//! The page is made of the same report that `beebox bench` prints for a user, by
//! an optimised build of the command, so that anybody can compare.

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
cargo run --release -- bench classic
```

In the tables, `8.12 ±2% 2.10×` is a value, its spread, and how many times as good
it is as the baseline of its line, which is the column without a ratio. Engines of
a line gave the same answers to all of its items before anything was timed. Each
value is the fastest of many short samples, taken in turns, in each of several new
processes: the median of the processes counts, and the spread is the distance of
their quartiles. A ratio of the summary is formed in each process, and the median
is taken of the ratios. Of whole processes the fastest of several turns counts.

## `beebox bench classic`

";

/// Runs the benchmarks and writes docs/performance.md.
pub(crate) fn measure() -> Outcome {
    let mut bench = Command::new(env!("CARGO"));
    bench.args(["run", "--release", "--package", "beebox-cli", "--"]);
    bench.args(["bench", "classic", "--format", "markdown"]);
    let measured = bench.stderr(Stdio::inherit()).output()?;
    if !measured.status.success() {
        return Err(format!("measuring: {}", measured.status).into());
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/performance.md");
    let report = String::from_utf8(measured.stdout)?;
    fs::write(page, format!("{INTRODUCTION}{report}"))?;
    println!("docs/performance.md is written");
    Ok(())
}
