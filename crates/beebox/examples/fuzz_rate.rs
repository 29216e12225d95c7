//! Measures the fuzzer: runs a second and core on the firewall of examples/packets, and the time until each
//! planted bug of crates/beebox/tests/data/planted is found. With `--write` the figures go into docs/fuzz.md.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::time::Duration;

use beebox::Object;
use beebox::fuzz::{Fuzzer, Property};
use beebox::maps_json::MapsJson;

#[path = "../tests/planted/bugs.rs"]
mod bugs;

/// Runs a second, the best of some rounds: others may use the machine.
fn rate() -> Result<f64, Box<dyn Error>> {
    let object = Object::open("examples/packets/firewall.bpf.o")?;
    let mut best: f64 = 0.0;
    for seed in 0..5 {
        let report = Fuzzer::new(&object, "firewall")
            .maps(MapsJson::open("examples/packets/rules.json")?)
            .property(Property::never("XDP_ABORTED", None)?)
            .seed(seed)
            .time(Duration::from_secs(2))
            .run()?;
        best = best.max(report.runs as f64 / report.time.as_secs_f64());
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut text = format!("{:.0} runs a second and core on the firewall.\n\n", rate()?);
    text.push_str("| planted bug | property | runs | seconds |\n|---|---|---|---|\n");
    for bug in bugs::BUGS {
        let report = bug.fuzzer()?.time(Duration::from_secs(60)).run()?;
        let find = report.finds.first();
        let (runs, time) = match find {
            Some(find) => (
                find.runs.to_string(),
                format!("{:.2}", find.time.as_secs_f64()),
            ),
            None => (format!("{}, not found", report.runs), "60".to_owned()),
        };
        writeln!(
            text,
            "| {} | `{}` | {runs} | {time} |",
            bug.what, bug.property
        )?;
    }
    print!("{text}");
    if std::env::args().any(|argument| argument == "--write") {
        let page = fs::read_to_string("docs/fuzz.md")?;
        let (start, end) = ("<!-- rate -->\n", "<!-- /rate -->");
        let (before, rest) = page.split_once(start).ok_or("no part rate")?;
        let (_, after) = rest.split_once(end).ok_or("no end of part rate")?;
        fs::write("docs/fuzz.md", format!("{before}{start}{text}{end}{after}"))?;
    }
    Ok(())
}
