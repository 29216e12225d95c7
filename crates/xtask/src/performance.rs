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

Beebox beside its peers and beside native code, all in one run on one machine.
Absolute figures move from machine to machine, ratios much less; ± is the spread
of repeated measurements. Measure on yours:

```sh
cargo run --release -- bench classic
```

This page is written by `cargo xtask performance`.

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
