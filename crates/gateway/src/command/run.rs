//! `beebox-gateway run`: the data plane on the packets of a capture.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::PathBuf;

use beebox::internal::run::{LoadOptions, PacketOutput, SplitMix};
use gateway::{Action, Address, Capacity, Header, Hits, Hook, Plane, RuleSet};
use report::seccomp::{ACCEPTED, REFUSED};
use report::terminal::TerminalWriter;

use super::input;
use command::answer::{Answer, Failure};
use command::answer_format::{AnswerFormat, FormatArgs, count};
use command::capture_file;
use command::capture_file::output_format;
use command::input::check_streams;
use command::kernel_input::{FOR_VERIFYING, KernelArgs, note_assumed, note_rules};
use command::output_file::OutputFile;
use command::output_path::PacketOutputArg;
use command::stdout::{SCHEMA, print_answer, streamed_output, written};

/// Run the gateway's program on the packets of a capture
#[derive(clap::Args)]
#[command(after_help = "\
Examples:
  beebox-gateway run examples/gateway/office.rules --pcap examples/sample.pcap
  beebox-gateway run examples/gateway/office.rules --pcap examples/sample.pcap -w kept.pcap
  beebox-gateway run examples/gateway/office.rules --pcap examples/sample.pcap --per-packet -j")]
pub(super) struct Args {
    /// The rules, as text or compiled; `-` is standard input
    #[arg(value_name = "RULES|STATE")]
    rules: PathBuf,

    /// The capture; `-` is standard input
    #[arg(long, value_name = "IN")]
    pcap: PathBuf,

    #[command(flatten)]
    output: PacketOutputArg,

    /// List each packet with its verdict and the number of its rule, 0 for none; JSON is one
    /// line for each packet (JSON Lines)
    #[arg(long)]
    per_packet: bool,

    /// The program: at XDP or at tc
    #[arg(long, value_enum, default_value = "xdp")]
    hook: HookName,

    /// Rules and talkers that are listed
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,

    #[command(flatten)]
    format: FormatArgs,

    #[command(flatten)]
    kernel: KernelArgs,
}

/// Hook of the data plane.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum HookName {
    /// XDP
    Xdp,
    /// tc
    Tc,
}

impl From<HookName> for Hook {
    fn from(name: HookName) -> Hook {
        match name {
            HookName::Xdp => Hook::Xdp,
            HookName::Tc => Hook::Tc,
        }
    }
}

/// Counts of packets by their fate.
#[derive(Default)]
struct Summary {
    /// By name of the verdict.
    verdicts: Vec<(&'static str, Hits)>,
    talkers: HashMap<Address, Hits>,
}

/// Lines of packets, which are printed as they come.
struct PacketLines<W: Write> {
    out: TerminalWriter<W>,
    format: AnswerFormat,
    written: io::Result<()>,
}

/// Lines on standard output.
fn packet_lines(format: AnswerFormat) -> PacketLines<impl Write> {
    let mut out = streamed_output(format);
    let written = match format {
        AnswerFormat::Text => out.write_all(b"  packet  verdict   rule\n"),
        AnswerFormat::Json => Ok(()),
    };
    PacketLines {
        out,
        format,
        written,
    }
}

impl<W: Write> PacketLines<W> {
    /// Prints the line of a packet, unless one before it could not be printed.
    fn add(&mut self, packet: u64, verdict: &str, rule: u32) {
        if self.written.is_err() {
            return;
        }
        let out = &mut self.out;
        self.written = match self.format {
            AnswerFormat::Text => writeln!(out, "{packet:>8}  {verdict:<8}  {rule}"),
            AnswerFormat::Json => writeln!(
                out,
                "{{\"schema\":{SCHEMA},\"packet\":{packet},\"verdict\":\"{verdict}\",\"rule\":{rule}}}"
            ),
        };
    }

    /// Prints what waits.
    fn finish(self) -> Result<(), Failure> {
        written(self.written.and_then(|()| self.out.finish()))
    }
}

impl Summary {
    fn verdict(&mut self, name: &'static str, bytes: u64) {
        let at = self.verdicts.iter().position(|(known, _)| *known == name);
        let at = at.unwrap_or_else(|| {
            self.verdicts.push((name, Hits::default()));
            self.verdicts.len() - 1
        });
        add(&mut self.verdicts[at].1, bytes);
    }

    /// The senders of most packets.
    fn top(&self, count: usize) -> Vec<(Address, Hits)> {
        let mut all: Vec<_> = self.talkers.iter().map(|(a, hits)| (*a, *hits)).collect();
        all.sort_by_key(|(address, hits)| (std::cmp::Reverse(hits.packets), address.to_string()));
        all.truncate(count);
        all
    }
}

fn add(hits: &mut Hits, bytes: u64) {
    hits.packets += 1;
    hits.bytes += bytes;
}

/// The verdict of an action in output.
fn verdict_of(action: &Action) -> &'static str {
    match action {
        Action::Pass | Action::Count | Action::Sample(_) => "pass",
        Action::Drop => "drop",
        Action::Redirect(_) => "redirect",
    }
}

/// The verdict that a program returned, as output names it.
fn verdict_name(returned: &str) -> &'static str {
    match returned {
        "XDP_PASS" | "TC_ACT_OK" => "pass",
        "XDP_DROP" | "TC_ACT_SHOT" => "drop",
        "XDP_REDIRECT" | "TC_ACT_REDIRECT" => "redirect",
        _ => "other",
    }
}

pub(super) fn run(args: Args) -> Result<Answer, Failure> {
    let inputs = [args.rules.as_path(), args.pcap.as_path()];
    check_streams(inputs)?;
    let output = args.output.path(inputs)?;
    let rules = input::read(&args.rules)?;
    let mut kernel = args.kernel.read()?;
    if !args.kernel.is_given() {
        // The data plane is faster with them, and the kernel is Beebox itself.
        kernel = kernel.with_bit_operations();
    }
    note_assumed(&kernel, FOR_VERIFYING, "verified");
    note_rules(&kernel);
    let hook = Hook::from(args.hook);
    let (table, set) = (&rules.table, &rules.set);
    let options = LoadOptions::default();
    let plane = Plane::load(table, hook, Capacity::of(table), &kernel, true, &options);
    let plane = plane.map_err(Failure::new)?;
    let mut random = SplitMix::new(0);
    let mut summary = Summary::default();
    let mut fault = None;
    let format = args.format.format();
    {
        let mut program = (plane.program(hook, 0, &mut random))
            .ok_or_else(|| Failure::new("the gateway's object has no such program"))?;
        let path = &args.pcap;
        let mut input = capture_file::open(path, false)?;
        let mut file = match output {
            Some(out) => Some((
                output_format(&mut input, path, out.path())?,
                OutputFile::create(out.of_packets()?)?,
            )),
            None => None,
        };
        let mut lines = args.per_packet.then(|| packet_lines(format));
        let written = file.as_mut().map(|(format, file)| PacketOutput {
            format: *format,
            file: &mut file.writer,
        });
        let stopped = program.run_capture(input, written, &mut |run, frame| {
            let verdict = verdict_name(&run.verdict.name);
            summary.verdict(verdict, run.bytes as u64);
            let Some(lines) = &mut lines else {
                if let Header::Ip(packet) = Header::of(frame) {
                    let talker = summary.talkers.entry(packet.source).or_default();
                    add(talker, run.bytes as u64);
                }
                return;
            };
            match plane.last_rule(0) {
                Ok(rule) => {
                    let rule = rule.filter(|rule| *rule as usize <= set.rules.len());
                    lines.add(run.packet, verdict, rule.unwrap_or(0));
                }
                Err(error) => fault = Some(error),
            }
        });
        // Lines of packets before a fault come first.
        if let Some(lines) = lines.take() {
            lines.finish()?;
        }
        stopped.map_err(|stop| capture_file::stopped(path, args.output.given(), stop))?;
        if let Some((_, file)) = file {
            file.finish()?;
        }
    }
    if let Some(error) = fault {
        return Err(Failure::new(error));
    }
    if args.per_packet {
        return Ok(Answer::Yes);
    }
    let hits = plane.hits().map_err(Failure::new)?;
    let text = match format {
        AnswerFormat::Json => json(set, &summary, &hits, args.top),
        AnswerFormat::Text => table_text(set, &summary, &hits, args.top),
    };
    print_answer(format, &text)?;
    Ok(Answer::Yes)
}

/// Rules with hits, most first, then by number.
pub(super) fn by_hits(hits: &[Hits]) -> Vec<(u32, Hits)> {
    let mut rules: Vec<(u32, Hits)> = (0..).zip(hits.iter().copied()).collect();
    rules.retain(|(_, hits)| hits.packets > 0);
    rules.sort_by_key(|(rule, hits)| (std::cmp::Reverse(hits.packets), *rule));
    rules
}

fn table_text(set: &RuleSet, summary: &Summary, hits: &[Hits], top: usize) -> String {
    let mut text = String::from("verdict      packets         bytes\n");
    for (verdict, hits) in &summary.verdicts {
        let style = match *verdict {
            "pass" => ACCEPTED,
            "drop" => REFUSED,
            _ => Default::default(),
        };
        text += &format!(
            "{style}{verdict:<9}{style:#} {:>10} {:>13}\n",
            hits.packets, hits.bytes
        );
    }
    text += "\n   packets         bytes  rule\n";
    for (rule, hits) in by_hits(hits).iter().take(top) {
        let rule = set.rule_text(*rule);
        text += &format!("{:>10} {:>13}  {rule}\n", hits.packets, hits.bytes);
    }
    let unused = (1..=set.rules.len()).filter(|rule| hits[*rule].packets == 0);
    text += &format!(
        "{} of {} hit no packet\n",
        unused.count(),
        count(set.rules.len(), "rule")
    );
    text += "\n   packets         bytes  source\n";
    for (address, hits) in summary.top(top) {
        text += &format!("{:>10} {:>13}  {address}\n", hits.packets, hits.bytes);
    }
    text
}

fn json(set: &RuleSet, summary: &Summary, hits: &[Hits], top: usize) -> String {
    let verdicts: Vec<_> = summary
        .verdicts
        .iter()
        .map(|(verdict, hits)| {
            serde_json::json!({
                "verdict": verdict, "packets": hits.packets, "bytes": hits.bytes,
            })
        })
        .collect();
    let last = set.rules.len() as u32;
    let rules: Vec<_> = by_hits(hits)
        .iter()
        .map(|(rule, hits)| {
            let mut entry = serde_json::json!({
                "rule": if *rule > last { 0 } else { *rule },
                "verdict": verdict_of(set.action(*rule)),
                "packets": hits.packets,
                "bytes": hits.bytes,
            });
            if *rule > last {
                let why = if *rule == last + 1 {
                    "other"
                } else {
                    "malformed"
                };
                entry["why"] = why.into();
            }
            entry
        })
        .collect();
    let talkers: Vec<_> = summary
        .top(top)
        .into_iter()
        .map(|(address, hits)| {
            serde_json::json!({
                "source_address": address.to_string(), "packets": hits.packets, "bytes": hits.bytes,
            })
        })
        .collect();
    let answer = serde_json::json!({
        "verdicts": verdicts, "rules": rules, "talkers": talkers,
    });
    format!("{answer}\n")
}
