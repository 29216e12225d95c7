//! `beebox gateway attach`: the data plane at a device of this machine.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use gateway::{Capacity, Hits, Hook, RuleSet};
use sys::signals::{Signal, Signals, Wakeup};

use super::control::Control;
use super::input::{self, Rules};
use super::kernel::Attached;
use crate::answer::{Answer, Failure};
use crate::answer_format::count;
use crate::kernel_input::{FOR_LINKING, note_assumed, running_or_assumed};
use crate::program_output::write_output;

/// Attach the gateway to an interface of this machine
///
/// The program is loaded into the running kernel and filters packets until the command ends:
/// by SIGINT, SIGTERM, or in any other way. `beebox gateway update` replaces the rules without a
/// gap; SIGHUP reads the file again and does so too. Needs root, or CAP_BPF and CAP_NET_ADMIN.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox gateway attach eth0 examples/gateway/office.rules --every 60
  beebox gateway attach lo examples/gateway/office.rules --duration 10    hits after 10 seconds")]
pub(super) struct Args {
    /// The interface
    #[arg(value_name = "IFACE")]
    interface: String,

    /// The rules, as text or compiled; `-` is standard input
    #[arg(value_name = "RULES|STATE")]
    rules: PathBuf,

    /// The program: at XDP or at the ingress of tc
    #[arg(long, value_enum, default_value = "xdp")]
    hook: super::run::HookName,

    /// Rules that later sets may have [default: as many as now, at least 1024]
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65536))]
    rules_room: Option<u32>,

    /// MiB that tables of later sets may have, a power of two [default: twice those of now]
    #[arg(long, value_name = "MIB")]
    #[arg(value_parser = table_room)]
    table_room: Option<u32>,

    /// Print hits every so many seconds, besides at the end
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,

    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
}

fn table_room(text: &str) -> Result<u32, String> {
    let room = text.parse().ok();
    let room = room.filter(|room: &u32| room.is_power_of_two() && *room <= 256);
    room.ok_or_else(|| "expected a power of two from 1 to 256".to_owned())
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let mut rules = input::read(&args.rules)?;
    let ifindex = input::interface(&args.interface).ok_or_else(|| {
        Failure::new(format_args!("no interface is called {}", args.interface))
            .hint("a name that `ip link` lists")
    })?;
    let own = Capacity::of(&rules.table);
    let table = args
        .table_room
        .map_or(own.table * 2, |mib| (mib as usize) << 20);
    let capacity = Capacity {
        table: table.next_power_of_two().max(own.table),
        rules: args
            .rules_room
            .map_or(own.rules.max(1024), |count| count as usize),
    };
    capacity.check(&rules.table).map_err(Failure::new)?;
    // From here on, so that no signal comes between attaching and waiting.
    let signals = Signals::block().map_err(Failure::new)?;
    let control = Control::listen(&args.interface)?;
    let kernel = running_or_assumed();
    note_assumed(&kernel, FOR_LINKING, "linked");
    let hook = Hook::from(args.hook);
    let mut attached = Attached::load(&rules.table, hook, ifindex, capacity, &kernel)?;
    diagnostic!(
        "{} at {}; `beebox gateway update {} RULES` replaces them",
        count(rules.set.rules.len(), "rule"),
        args.interface,
        args.interface
    );
    let replace = |attached: &mut Attached, old: &mut Rules, new: Rules| {
        let text = hits_text(&old.set, &attached.update(&new.table)?);
        *old = new;
        write_output(text.as_bytes(), None)?;
        let rules = count(old.set.rules.len(), "rule");
        diagnostic!("{rules} at {}", args.interface);
        Ok(text)
    };
    let start = Instant::now();
    let end = args
        .duration
        .map(|seconds| start + Duration::from_secs(seconds));
    let every = args.every.map(Duration::from_secs);
    let mut next = every.map(|every| start + every);
    loop {
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            break;
        }
        let wakes = [end, next].into_iter().flatten().min();
        let most = Duration::from_secs(3600);
        let timeout = wakes.map_or(most, |wake| wake.saturating_duration_since(now).min(most));
        match signals
            .wait(control.descriptor(), timeout)
            .map_err(Failure::new)?
        {
            Some(Wakeup::Signal(Signal::Stop)) => break,
            Some(Wakeup::Signal(Signal::HangUp)) => {
                // A faulty file leaves the rules as they are, and so does standard input, which
                // was read to its end.
                let new = match args.rules.as_os_str() == "-" {
                    true => Err(Failure::new("standard input can be read only once")),
                    false => input::read(&args.rules),
                };
                let replaced = new.and_then(|new| replace(&mut attached, &mut rules, new));
                if let Err(failure) = replaced {
                    let _ = failure.report();
                }
            }
            Some(Wakeup::Readable) => control
                .serve(&mut |set, table| replace(&mut attached, &mut rules, Rules { set, table })),
            None => {}
        }
        if let (Some(at), Some(every)) = (next, every)
            && Instant::now() >= at
        {
            write_output(hits_text(&rules.set, &attached.hits()?).as_bytes(), None)?;
            next = Some(at + every);
        }
    }
    write_output(hits_text(&rules.set, &attached.hits()?).as_bytes(), None)?;
    Ok(Answer::Yes)
}

/// The hits of all rules that have some.
fn hits_text(set: &RuleSet, hits: &[Hits]) -> String {
    let mut text = String::from("   packets         bytes  rule\n");
    for (rule, hits) in super::run::by_hits(hits) {
        let rule = input::describe_rule(set, rule);
        text += &format!("{:>10} {:>13}  {rule}\n", hits.packets, hits.bytes);
    }
    text
}
