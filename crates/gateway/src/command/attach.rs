//! `beebox-gateway attach`: the data plane at a device of this machine.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use gateway::{Capacity, Hits, Hook, RuleSet, Table};
use sys::network::InterfaceChanges;
use sys::signals::{Signal, Signals, Wakeup};

use super::control::{Control, Request};
use super::input::{self, Interface, Rules};
use super::kernel::DataPlane;
use command::answer::{Answer, Failure};
use command::answer_format::count;
use command::input::name;
use command::kernel_input::{FOR_LINKING, note_assumed, running_or_assumed};
use command::stdout::write_output;

/// Attach the gateway to an interface of this machine
///
/// The program is loaded into the running kernel and filters packets until the command ends:
/// by SIGINT, SIGTERM, or in any other way, or until the interface is removed, which is an error
/// without --follow. `beebox-gateway update` replaces the rules without a gap; SIGHUP reads the
/// file again and does so too. Needs root, or CAP_BPF and CAP_NET_ADMIN.
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway attach eth0 examples/gateway/office.rules --every 60
  beebox-gateway attach lo examples/gateway/office.rules --duration 10    hits after 10 seconds")]
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
    max_rules: Option<u32>,

    /// MiB that tables of later sets may have, a power of two [default: twice those of now]
    #[arg(long, value_name = "MIB")]
    #[arg(value_parser = max_table_size)]
    max_table_size: Option<u32>,

    /// Print hits every so many seconds, besides at the end
    #[arg(long, value_name = "SECONDS")]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    every: Option<u64>,

    /// When the interface is removed, wait until there is one of its name, and attach to that
    #[arg(long)]
    follow: bool,

    /// End after so many seconds
    #[arg(long, value_name = "SECONDS")]
    duration: Option<u64>,
}

fn max_table_size(text: &str) -> Result<u32, String> {
    let room = text.parse().ok();
    let room = room.filter(|room: &u32| room.is_power_of_two() && *room <= 256);
    room.ok_or_else(|| "expected a power of two from 1 to 256".to_owned())
}

impl Args {
    /// Room for the rules and for later ones.
    ///
    /// # Errors
    /// If an option states less than the rules need.
    fn capacity(&self, table: &Table) -> Result<Capacity, Failure> {
        let own = Capacity::of(table);
        let too_small = |option: &str, needed: String| {
            let what = format_args!("{option} is too small: {} has {needed}", name(&self.rules));
            Failure::new(what)
        };
        let rules = match self.max_rules {
            None => own.rules.max(1024),
            Some(room) if (room as usize) < own.rules => {
                let failure = too_small("--max-rules", count(own.rules, "rule"));
                return Err(failure.hint(format_args!("--max-rules {} or more", own.rules)));
            }
            Some(room) => room as usize,
        };
        let table = match self.max_table_size.map(|mib| (mib as usize) << 20) {
            None => (own.table * 2).next_power_of_two(),
            Some(room) if room < own.table => {
                let mib = own.table.div_ceil(1 << 20).next_power_of_two();
                let failure = too_small("--max-table-size", format!("a table of {mib} MiB"));
                return Err(failure.hint(format_args!("--max-table-size {mib} or more")));
            }
            Some(room) => room,
        };
        Ok(Capacity { table, rules })
    }
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let rules = input::read_for_interface(&args.rules)?;
    let interface = Interface::find(&args.interface)?;
    let capacity = args.capacity(&rules.table)?;
    // From here on, so that no signal comes between attaching and waiting, and no change of the
    // interface is missed.
    let signals = Signals::block().map_err(Failure::new)?;
    let changes = InterfaceChanges::watch().map_err(Failure::new)?;
    let control = Control::listen(&interface)?;
    let kernel = running_or_assumed();
    note_assumed(&kernel, FOR_LINKING, "linked");
    let hook = Hook::from(args.hook);
    let mut plane = DataPlane::load(&rules.table, hook, capacity, &kernel)?;
    let is_attached = plane.attach(&interface)?;
    if is_attached {
        diagnostic!(
            "{} at {interface}; `beebox-gateway update {} RULES` replaces them",
            count(rules.set.rules.len(), "rule"),
            interface.name
        );
    }
    let mut gateway = Gateway {
        plane,
        rules,
        interface,
        control: Some(control),
        follow: args.follow,
        is_ending: false,
    };
    let start = Instant::now();
    let end = args
        .duration
        .map(|seconds| start + Duration::from_secs(seconds));
    let every = args.every.map(Duration::from_secs);
    let mut next = every.map(|every| start + every);
    let mut result = match is_attached {
        true => Ok(Answer::Yes),
        false => gateway.check_interface().map(|()| Answer::Yes),
    };
    while result.is_ok() && !gateway.is_ending {
        let now = Instant::now();
        if end.is_some_and(|end| now >= end) {
            break;
        }
        let wakes = [end, next].into_iter().flatten().min();
        let most = Duration::from_secs(3600);
        let timeout = wakes.map_or(most, |wake| wake.saturating_duration_since(now).min(most));
        let control = gateway.control.as_ref().map(Control::descriptor);
        let sources: Vec<_> = [changes.as_fd()].into_iter().chain(control).collect();
        match signals.wait(&sources, timeout).map_err(Failure::new)? {
            Some(Wakeup::Signal(Signal::Interrupt | Signal::Terminate)) => break,
            Some(Wakeup::Signal(Signal::HangUp)) => {
                // A faulty file leaves the rules as they are, and so does standard input, which
                // was read to its end.
                let new = match args.rules.as_os_str() == "-" {
                    true => Err(Failure::new("standard input can be read only once")),
                    false => input::read_for_interface(&args.rules),
                };
                if let Err(failure) = new.and_then(|new| gateway.replace(new)) {
                    let _ = failure.report();
                }
            }
            Some(Wakeup::Readable(0)) => {
                changes.take().map_err(Failure::new)?;
                result = gateway.check_interface().map(|()| Answer::Yes);
            }
            Some(Wakeup::Readable(_)) => gateway.serve(),
            None => {}
        }
        if let (Some(at), Some(every)) = (next, every)
            && Instant::now() >= at
        {
            gateway.write_hits()?;
            next = Some(at + every);
        }
    }
    gateway.write_hits()?;
    result
}

/// A data plane with its rules at an interface.
struct Gateway {
    plane: DataPlane,
    rules: Rules,
    interface: Interface,
    /// `None` while the interface is gone.
    control: Option<Control>,
    follow: bool,
    /// A request to detach was answered.
    is_ending: bool,
}

impl Gateway {
    /// Notices that the interface was removed, renamed, or is there again.
    ///
    /// # Errors
    /// If the interface is gone, unless it is to be followed.
    fn check_interface(&mut self) -> Result<(), Failure> {
        if self.plane.is_attached()? {
            let name = sys::network::interface_name(self.interface.index);
            if let Ok(name) = name
                && name != self.interface.name
            {
                let old = std::mem::replace(&mut self.interface.name, name);
                diagnostic!("{old} is called {} now; its rules stay", self.interface);
            }
            return Ok(());
        }
        if self.control.take().is_some() {
            let what = format_args!("{} is gone: no packet is filtered", self.interface);
            let failure = Failure::new(what);
            if !self.follow {
                return Err(failure.hint("--follow waits for an interface of its name"));
            }
            diagnostic!("{what}; waiting for an interface of its name");
        }
        let Ok(interface) = Interface::find(&self.interface.name) else {
            return Ok(());
        };
        // What else may be attached there goes away with a later change.
        let attached = Control::listen(&interface)
            .and_then(|control| Ok(self.plane.attach(&interface)?.then_some(control)));
        match attached {
            // Gone again: there is another change to come.
            Ok(None) => {}
            Ok(Some(control)) => {
                self.control = Some(control);
                self.interface = interface;
                let rules = count(self.rules.set.rules.len(), "rule");
                diagnostic!("{rules} at {}", self.interface);
            }
            Err(failure) => drop(failure.report()),
        }
        Ok(())
    }

    /// Answers a request at the control socket.
    fn serve(&mut self) {
        let Some(control) = self.control.take() else {
            return;
        };
        control.serve(&mut |request| match request {
            Request::Replace(set, table) => self.replace(Rules { set, table }),
            Request::Detach => {
                self.plane.detach();
                self.is_ending = true;
                Ok(String::new())
            }
        });
        self.control = Some(control);
    }

    /// Puts other rules in force; returns and prints the hits of the old ones.
    fn replace(&mut self, new: Rules) -> Result<String, Failure> {
        if !self.plane.is_attached()? {
            let what = format_args!("{} is gone: no packet is filtered", self.interface);
            return Err(Failure::new(what));
        }
        let text = hits_text(&self.rules.set, &self.plane.update(&new.table)?);
        self.rules = new;
        write_output(text.as_bytes(), None)?;
        let rules = count(self.rules.set.rules.len(), "rule");
        diagnostic!("{rules} at {}", self.interface);
        Ok(text)
    }

    fn write_hits(&self) -> Result<(), Failure> {
        let text = hits_text(&self.rules.set, &self.plane.hits()?);
        write_output(text.as_bytes(), None)
    }
}

/// The hits of all rules that have some.
fn hits_text(set: &RuleSet, hits: &[Hits]) -> String {
    let mut text = String::from("   packets         bytes  rule\n");
    for (rule, hits) in super::run::by_hits(hits) {
        let rule = set.rule_text(rule);
        text += &format!("{:>10} {:>13}  {rule}\n", hits.packets, hits.bytes);
    }
    text
}
