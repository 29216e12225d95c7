//! Measures what coverage costs: the time of a run on each packet of a capture with counters beside that
//! without, in native code and in the checked engine. Both take turns; the ratio is that of the least
//! times. With `--write` the table goes into docs/coverage.md.

use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::time::Instant;

use beebox::captures::Input;
use beebox::internal::captures::Event;
use beebox::{Engine, Loader, Object};

const CAPTURE: &str = "examples/sample.pcap";
const PROGRAMS: [(&str, &str); 4] = [
    ("examples/packets/firewall.bpf.o", "firewall"),
    ("examples/packets/router.bpf.o", "route"),
    ("examples/why/edge.bpf.o", "edge"),
    ("crates/cli/tests/data/why.bpf.o", "rounds"),
];

/// Least nanoseconds of a packet without counters and with them.
fn costs(path: &str, name: &str, engine: Engine) -> Result<[f64; 2], Box<dyn Error>> {
    let object = Object::open(path)?;
    let load = |counts| {
        Loader::default()
            .engine(engine)
            .coverage(counts)
            .load(&object)
    };
    let instances = [load(false)?, load(true)?];
    let mut packets = Vec::new();
    let mut input = Input::open_path(CAPTURE)?;
    while let Some(event) = input.next_event()? {
        if let Event::Packet(record) = event {
            packets.push(record.data().to_vec());
        }
    }
    let (rounds, repeats) = match engine {
        Engine::Checked => (60, 1),
        Engine::Native | Engine::Interp => (400, 4),
    };
    let mut least = [f64::MAX; 2];
    for _ in 0..rounds {
        for (instance, least) in instances.iter().zip(&mut least) {
            let program = instance.program(name)?;
            let mut runner = program.runner();
            let start = Instant::now();
            for _ in 0..repeats {
                for packet in &packets {
                    runner.run(packet)?;
                }
            }
            let each = start.elapsed().as_nanos() as f64 / (packets.len() * repeats) as f64;
            *least = least.min(each);
        }
    }
    Ok(least)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut table = String::from(
        "| program | native | with counters | | checked | with counters | |\n|---|---|---|---|---|---|---|\n",
    );
    for (path, name) in PROGRAMS {
        let mut row = format!("| `{name}`");
        for engine in [Engine::Native, Engine::Checked] {
            let [plain, counted] = costs(path, name, engine)?;
            let ratio = counted / plain;
            write!(row, " | {plain:.0} ns | {counted:.0} ns | {ratio:.2}")?;
        }
        writeln!(table, "{row} |")?;
    }
    print!("{table}");
    if std::env::args().any(|argument| argument == "--write") {
        let page = fs::read_to_string("docs/coverage.md")?;
        let (start, end) = ("<!-- cost -->\n", "<!-- /cost -->");
        let (before, rest) = page.split_once(start).ok_or("no part cost")?;
        let (_, after) = rest.split_once(end).ok_or("no end of part cost")?;
        fs::write(
            "docs/coverage.md",
            format!("{before}{start}{table}{end}{after}"),
        )?;
    }
    Ok(())
}
