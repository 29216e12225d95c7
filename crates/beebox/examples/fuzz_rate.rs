//! Measures the fuzzer: runs a second of processor time on the firewall of examples/packets, and the time until
//! each planted bug of crates/beebox/tests/data/planted is found. With `--write` the figures go into docs/fuzz.md;
//! with numbers the bugs are looked for with these seeds alone.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::time::{Duration, Instant};

use beebox::MapsJson;
use beebox::Object;
use beebox::fuzz::{Fuzzer, Property};

#[path = "planted/bugs.rs"]
mod bugs;

/// Seconds that this thread had a processor, or that passed where the system does not say.
fn processor_time(start: Instant) -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let told = told.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    told.map_or(start.elapsed().as_secs_f64(), |nanoseconds| {
        nanoseconds / 1e9
    })
}

/// Runs a second, the best of some rounds: others may use the machine.
fn rate() -> Result<f64, Box<dyn Error>> {
    let object = Object::open("examples/packets/firewall.bpf.o")?;
    let (mut best, start): (f64, _) = (0.0, Instant::now());
    for seed in 0..5 {
        let before = processor_time(start);
        let report = Fuzzer::new(&object, "firewall")
            .maps(MapsJson::open("examples/packets/rules.json")?)
            .property(Property::never("XDP_ABORTED", None)?)
            .seed(seed)
            .runs(2_000_000)
            .run()?;
        best = best.max(report.runs as f64 / (processor_time(start) - before));
    }
    Ok(best)
}

/// Runs until each bug is found, by seed.
fn by_seed(seeds: &[u64]) -> Result<(), Box<dyn Error>> {
    for bug in bugs::BUGS {
        let mut line = format!("{}:", bug.name);
        for seed in seeds {
            let fuzzer = bug.fuzzer()?.seed(*seed).time(Duration::from_secs(60));
            let report = fuzzer.run()?;
            match report.finds.first() {
                Some(find) => write!(line, " {}", find.runs)?,
                None => write!(line, " not in {}", report.runs)?,
            }
        }
        println!("{line}");
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers = std::env::args().filter_map(|argument| argument.parse().ok());
    let seeds: Vec<u64> = numbers.collect();
    if !seeds.is_empty() {
        return by_seed(&seeds);
    }
    let mut text = format!(
        "{:.0} runs a second of processor time on the firewall.\n\n",
        rate()?
    );
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
