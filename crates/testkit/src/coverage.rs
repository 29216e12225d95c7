//! Coverage of a comparison: instructions, extensions, areas of loads, jump lengths, ends
//! of runs and rules of the checker, each with a count.
//!
//! Instructions count when they are executed, not when they are written, so the
//! counts come from traces of the plain interpreter.

use classic::run::{Next, Step};
use classic::{Refusal, Rule, Rules};
use isa::classic::{AD_OFFSET, Extension, Insn, LL_OFFSET, NET_OFFSET, OPCODES, SockFilter};
use std::collections::BTreeMap;

/// Counts of what was reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// Executed instructions by opcode.
    opcodes: BTreeMap<u16, u64>,
    /// Executed ancillary loads by code.
    extensions: BTreeMap<u32, u64>,
    /// Loads by area and whether they found their bytes.
    areas: BTreeMap<(Area, bool), u64>,
    /// Conditional jumps taken by their length, where it was true and false.
    taken: [BTreeMap<u8, u64>; 2],
    /// Unconditional jumps by the power of two of their length.
    gotos: BTreeMap<u32, u64>,
    /// Ends of runs by what ended them.
    ends: BTreeMap<End, u64>,
    /// Refused programs by rule.
    refused: BTreeMap<&'static str, u64>,
    /// Accepted programs.
    accepted: u64,
}

/// Area of a packet load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Area {
    Packet,
    Wrapped,
    Network,
    Link,
    Nowhere,
}

/// End of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Constant,
    Accumulator,
    FailedLoad,
    ZeroDivisor,
    NoDevice,
}

impl Coverage {
    /// Counts a refused program.
    pub fn refuse(&mut self, refusal: &Refusal) {
        *self.refused.entry(refusal.rule.name()).or_default() += 1;
    }

    /// Counts an accepted program.
    pub fn accept(&mut self) {
        self.accepted += 1;
    }

    /// Programs accepted and refused.
    pub fn verdicts(&self) -> (u64, u64) {
        (self.accepted, self.refused.values().sum())
    }

    /// Counts one run of a program, as a trace reported it.
    pub fn run(&mut self, program: &[SockFilter], rules: Rules, steps: &[Step]) {
        let mut x_before = 0;
        for step in steps {
            let insn = Insn::decode(program[step.at]);
            *self.opcodes.entry(program[step.at].code).or_default() += 1;
            self.insn(insn, rules, step, x_before);
            x_before = step.x;
        }
    }

    fn insn(&mut self, insn: Insn, rules: Rules, step: &Step, x: u32) {
        let ended = matches!(step.next, Next::End(_));
        let mut end = None;
        match insn {
            Insn::LoadAbs { k, .. } if rules != Rules::Seccomp => match Extension::from_offset(k) {
                Some(_) => {
                    *self.extensions.entry(k - AD_OFFSET).or_default() += 1;
                    end = Some(End::NoDevice);
                }
                None => {
                    self.load(k, false, !ended);
                    end = Some(End::FailedLoad);
                }
            },
            Insn::LoadInd { k, .. } => {
                let (offset, wrapped) = x.overflowing_add(k);
                self.load(offset, wrapped, !ended);
                end = Some(End::FailedLoad);
            }
            Insn::LoadXMsh(k) => {
                self.load(k, false, !ended);
                end = Some(End::FailedLoad);
            }
            Insn::Alu { .. } => end = Some(End::ZeroDivisor),
            Insn::RetK(_) => end = Some(End::Constant),
            Insn::RetA => end = Some(End::Accumulator),
            Insn::Goto(k) => *self.gotos.entry((k + 1).ilog2()).or_default() += 1,
            Insn::Jump { jt, jf, .. } if jt != jf => {
                if let Next::Insn(next) = step.next {
                    let skipped = next - step.at - 1;
                    let held = skipped == usize::from(jt);
                    *self.taken[usize::from(!held)]
                        .entry(skipped as u8)
                        .or_default() += 1;
                }
            }
            _ => {}
        }
        if let (true, Some(end)) = (ended, end) {
            *self.ends.entry(end).or_default() += 1;
        }
    }

    fn load(&mut self, offset: u32, wrapped: bool, found: bool) {
        let area = match offset {
            0..0x8000_0000 if wrapped => Area::Wrapped,
            0..0x8000_0000 => Area::Packet,
            NET_OFFSET.. => Area::Network,
            LL_OFFSET.. => Area::Link,
            _ => Area::Nowhere,
        };
        *self.areas.entry((area, found)).or_default() += 1;
    }

    /// Adds the counts of another comparison.
    pub fn add(&mut self, other: &Coverage) {
        add(&mut self.opcodes, &other.opcodes);
        add(&mut self.extensions, &other.extensions);
        add(&mut self.areas, &other.areas);
        add(&mut self.taken[0], &other.taken[0]);
        add(&mut self.taken[1], &other.taken[1]);
        add(&mut self.gotos, &other.gotos);
        add(&mut self.ends, &other.ends);
        add(&mut self.refused, &other.refused);
        self.accepted += other.accepted;
    }

    /// Opcodes of the table that were never executed.
    pub fn missing_opcodes(&self) -> Vec<u16> {
        let opcodes = OPCODES.iter().map(|&(code, _)| code);
        opcodes.filter(|c| !self.opcodes.contains_key(c)).collect()
    }

    /// Extensions that were never loaded.
    pub fn missing_extensions(&self) -> Vec<Extension> {
        let reached = |e: &Extension| self.extensions.contains_key(&(e.offset() - AD_OFFSET));
        let all = Extension::ALL.iter().copied();
        all.filter(|e| !reached(e)).collect()
    }

    /// Rules among these that no program broke.
    pub fn missing_rules(&self, rules: &[Rule]) -> Vec<Rule> {
        let all = rules.iter().copied();
        all.filter(|r| !self.refused.contains_key(r.name()))
            .collect()
    }

    /// Number of jump lengths (of 256) that were taken by true and by false branches.
    pub fn jump_lengths(&self) -> (usize, usize) {
        (self.taken[0].len(), self.taken[1].len())
    }

    /// The counts as tables in Markdown.
    pub fn markdown(&self) -> String {
        let mut text = String::new();
        let names: BTreeMap<u16, &str> = OPCODES.iter().copied().collect();
        let opcodes = self.opcodes.iter().map(|(code, n)| {
            let name = names.get(code).copied().unwrap_or("?");
            (format!("`{code:#04x}` {name}"), *n)
        });
        table(&mut text, "Instructions executed", opcodes);
        let extensions = self.extensions.iter().map(|(code, n)| {
            let name = Extension::from_offset(AD_OFFSET + code).map_or("?", Extension::name);
            (format!("`#{name}`"), *n)
        });
        table(&mut text, "Extensions loaded", extensions);
        let areas = self.areas.iter().map(|((area, found), n)| {
            let area = match area {
                Area::Packet => "from the start of the packet",
                Area::Wrapped => "an indirect offset that wrapped",
                Area::Network => "from the network header",
                Area::Link => "from the link-layer header",
                Area::Nowhere => "below every area",
            };
            let found = if *found { "found" } else { "not there" };
            (format!("{area}, {found}"), *n)
        });
        table(&mut text, "Packet loads", areas);
        let ends = self.ends.iter().map(|(end, n)| {
            let end = match end {
                End::Constant => "`ret` with a constant",
                End::Accumulator => "`ret a`",
                End::FailedLoad => "a load that failed",
                End::ZeroDivisor => "division by a zero X",
                End::NoDevice => "no device to ask",
            };
            (end.to_owned(), *n)
        });
        table(&mut text, "Ends of runs", ends);
        let gotos = self.gotos.iter().map(|(power, n)| {
            let (from, to) = ((1u32 << power) - 1, (2u32 << power) - 2);
            (format!("`ja` over {from} to {to}"), *n)
        });
        let lengths = self.jump_lengths();
        let conditional = [
            ("lengths of `jt` taken, of 256", lengths.0),
            ("lengths of `jf` taken, of 256", lengths.1),
        ];
        let conditional = conditional.map(|(what, n)| (what.to_owned(), n as u64));
        table(&mut text, "Jumps", conditional.into_iter().chain(gotos));
        let refused = self
            .refused
            .iter()
            .map(|(rule, n)| (format!("`{rule}`"), *n));
        table(&mut text, "Programs refused, by rule", refused);
        text
    }
}

fn add<K: Ord + Clone>(to: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
    for (key, count) in from {
        *to.entry(key.clone()).or_default() += count;
    }
}

fn table(text: &mut String, title: &str, rows: impl Iterator<Item = (String, u64)>) {
    text.push_str(&format!("\n| {title} | times |\n| --- | ---: |\n"));
    for (what, count) in rows {
        text.push_str(&format!("| {what} | {count} |\n"));
    }
}
