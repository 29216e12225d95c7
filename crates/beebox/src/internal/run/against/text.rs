//! A comparison as text and as data.

use std::fmt::Write as _;

use report::count;
use report::why::CodeLine;
use serde_json::{Value, json};

use super::{Comparison, Differing, RunDifference};

/// Packets of a group that are named.
const MOST_NAMED_PACKETS: usize = 8;

impl Comparison {
    /// For people; `why` is the command that tells the run of the new object on a packet.
    pub fn text(&self, why: &dyn Fn(u64) -> String) -> String {
        let mut text = String::new();
        let all = count(self.packets as usize, "packet");
        let (differing, told) = (self.differing_packets, self.told());
        let listed = match told as u64 == differing {
            true => String::new(),
            false => format!(", of which {told} are listed"),
        };
        let _ = writeln!(text, "{all}, {differing} differ{listed}");
        for group in &self.groups {
            let packets = count(group.differing.len(), "packet");
            let _ = match (
                &group.source,
                group.old_next.is_some() || group.new_next.is_some(),
            ) {
                (Some(source), _) => {
                    writeln!(text, "\n{packets}, whose paths part at {}", place(source))
                }
                (None, true) => writeln!(text, "\n{packets}, whose paths part at the start"),
                (None, false) => writeln!(text, "\n{packets}, on the same lines"),
            };
            for (which, next) in [("old", &group.old_next), ("new", &group.new_next)] {
                if let Some(next) = next {
                    let _ = writeln!(text, "  {which} goes on at {}", place(next));
                }
            }
            for differing in group.differing.iter().take(MOST_NAMED_PACKETS) {
                let _ = writeln!(text, "  packet {}: {}", differing.packet, what(differing));
            }
            if group.differing.len() > MOST_NAMED_PACKETS {
                let _ = writeln!(
                    text,
                    "  … and {} more",
                    group.differing.len() - MOST_NAMED_PACKETS
                );
            }
            if let Some(first) = group.differing.first() {
                let _ = writeln!(text, "  why: {}", why(first.packet));
            }
        }
        if !self.map_names.is_empty() {
            let _ = writeln!(
                text,
                "\nmaps and variables that differ in the end: {}",
                self.map_names.join(", ")
            );
        }
        let [old, new] = [&self.old_only_names, &self.new_only_names];
        for (which, names) in [("old", old), ("new", new)] {
            if !names.is_empty() {
                let names = names.join(", ");
                let _ = writeln!(
                    text,
                    "\nmaps and variables of the {which} object alone: {names}"
                );
            }
        }
        text
    }

    /// As data.
    pub fn json(&self) -> Value {
        let groups = self.groups.iter().map(|group| {
            let differing = group.differing.iter().map(|differing| {
                let mut kinds = Vec::new();
                let mut maps = Vec::new();
                for difference in &differing.differences {
                    match difference {
                        RunDifference::Verdict => kinds.push("verdict"),
                        RunDifference::Bytes => kinds.push("bytes"),
                        RunDifference::Records => kinds.push("records"),
                        RunDifference::Printk => kinds.push("printk"),
                        RunDifference::Maps(names) => {
                            kinds.push("maps");
                            maps.clone_from(names);
                        }
                    }
                }
                json!({
                    "packet": differing.packet,
                    "old_verdict": differing.old_verdict,
                    "new_verdict": differing.new_verdict,
                    "difference_names": kinds,
                    "map_names": maps,
                })
            });
            json!({
                "source": group.source,
                "old_next": group.old_next,
                "new_next": group.new_next,
                "differing": differing.collect::<Vec<_>>(),
            })
        });
        json!({
            "packets": self.packets,
            "differing_packets": self.differing_packets,
            "groups": groups.collect::<Vec<_>>(),
            "map_names": self.map_names,
            "old_only_names": self.old_only_names,
            "new_only_names": self.new_only_names,
        })
    }
}

fn place(source: &CodeLine) -> String {
    let file = source.file.rsplit('/').next().unwrap_or(&source.file);
    format!("{file}:{}: {}", source.line, source.text)
}

/// What differs on a packet.
fn what(differing: &Differing) -> String {
    let parts = differing
        .differences
        .iter()
        .map(|difference| match difference {
            RunDifference::Verdict => {
                format!("{} → {}", differing.old_verdict, differing.new_verdict)
            }
            RunDifference::Bytes => "bytes".to_owned(),
            RunDifference::Records => "records".to_owned(),
            RunDifference::Printk => "printed text".to_owned(),
            RunDifference::Maps(names) => format!("map {}", names.join(", ")),
        });
    parts.collect::<Vec<_>>().join("; ")
}
