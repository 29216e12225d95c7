//! Breakpoints: at lines, functions, helpers, accesses of maps, verdicts, instructions, packets, and
//! writes.

use std::fmt;
use std::sync::Arc;

use isa::ebpf::{Callee, Insn};

use super::super::prepared::Prepared;
use super::source::Sources;
use super::state::FunctionNames;
use super::watch::Watch;

/// Where a run stops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BreakKind {
    /// A source line, of a file or of the only one.
    Line {
        /// The file, by the last parts of its name.
        file: Option<String>,
        /// The line.
        line: u32,
    },
    /// The begin of a function of the object, inlined ones too.
    Function(String),
    /// Calls of a helper or kfunc.
    Helper(String),
    /// Calls with a map, and accesses of its values.
    Map(String),
    /// A verdict by its name or number; any without one.
    Verdict(Option<String>),
    /// An instruction of a program; without one of the program of the session.
    Insn {
        /// The program.
        program: Option<String>,
        /// The slot.
        slot: u32,
    },
    /// The first instruction of the run on a packet.
    Packet(u64),
    /// A write.
    Watch(Watch),
}

/// A breakpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Its number, from 1.
    pub id: u32,
    /// Where.
    pub kind: BreakKind,
    /// Stops only where this expression is not 0.
    pub condition: Option<String>,
    /// Shows this text in place of a stop: expressions in braces are replaced by their values.
    pub message: Option<String>,
    /// Hits that are left out first.
    pub skipped: u64,
    /// Hits of forward runs.
    pub hits: u64,
    /// Programs and slots at which it is.
    pub places: Vec<(u32, u32)>,
    /// The line that it is at, which may be behind the one that was asked for.
    pub line: Option<u32>,
    /// What set it, so that a front end can replace all of one kind.
    pub owner: String,
}

/// Why a breakpoint cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBreakpoint(pub String);

impl fmt::Display for BadBreakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What is asked of a breakpoint that is set.
#[derive(Clone, Debug, Default)]
pub(super) struct BreakOptions {
    pub(super) condition: Option<String>,
    pub(super) message: Option<String>,
    pub(super) skipped: u64,
    pub(super) owner: String,
}

/// The breakpoints of a session.
#[derive(Debug, Default)]
pub struct Breakpoints {
    list: Vec<Breakpoint>,
    last: u32,
    /// By program, a mark for each slot at which one may be.
    marks: Vec<Vec<bool>>,
    /// There are some of maps, verdicts, packets and writes, which have no slots.
    pub(super) has_maps: bool,
    pub(super) has_verdicts: bool,
    pub(super) has_packets: bool,
    pub(super) has_watches: bool,
}

/// What breakpoints are resolved by.
#[derive(Clone, Copy)]
pub(super) struct Resolver<'r> {
    pub(super) programs: &'r [Prepared],
    pub(super) sources: &'r Sources,
    pub(super) functions: &'r Arc<FunctionNames>,
    /// Number of the program of the session.
    pub(super) main: u32,
    /// Names of the maps.
    pub(super) maps: &'r dyn Fn() -> Vec<String>,
    /// First slots of the places where a function is inlined, by program.
    pub(super) inlined: &'r dyn Fn(&str) -> Vec<(u32, u32)>,
}

impl Breakpoints {
    /// All of them, by number.
    pub fn list(&self) -> &[Breakpoint] {
        &self.list
    }

    /// Removes the breakpoint of a number; false if there is none.
    pub fn remove(&mut self, id: u32) -> bool {
        let before = self.list.len();
        self.list.retain(|breakpoint| breakpoint.id != id);
        self.mark();
        self.list.len() < before
    }

    /// Removes those of an owner.
    pub(super) fn remove_of(&mut self, owner: &str) {
        self.list.retain(|breakpoint| breakpoint.owner != owner);
        self.mark();
    }

    /// Adds a breakpoint.
    ///
    /// # Errors
    /// For places that the object does not have.
    pub(super) fn add(
        &mut self,
        kind: BreakKind,
        options: BreakOptions,
        resolver: Resolver<'_>,
    ) -> Result<&Breakpoint, BadBreakpoint> {
        let (line, places) = resolver.places(&kind).map_err(BadBreakpoint)?;
        self.last += 1;
        self.list.push(Breakpoint {
            id: self.last,
            kind,
            condition: options.condition,
            message: options.message,
            skipped: options.skipped,
            hits: 0,
            places,
            line,
            owner: options.owner,
        });
        self.mark();
        Ok(&self.list[self.list.len() - 1])
    }

    /// Counts a hit of a forward run; true if the run is to stop by it.
    pub(super) fn count(&mut self, id: u32) -> bool {
        let mut list = self.list.iter_mut();
        let found = list.find(|breakpoint| breakpoint.id == id);
        found.is_some_and(|breakpoint| {
            breakpoint.hits += 1;
            breakpoint.hits > breakpoint.skipped
        })
    }

    /// True if a breakpoint may be at a slot.
    #[inline]
    pub(super) fn is_marked(&self, program: u32, slot: usize) -> bool {
        let marks = self.marks.get(program as usize);
        marks.is_some_and(|marks| marks.get(slot).copied().unwrap_or(false))
    }

    fn mark(&mut self) {
        self.marks.clear();
        for (program, slot) in self.list.iter().flat_map(|breakpoint| &breakpoint.places) {
            let (program, slot) = (*program as usize, *slot as usize);
            if self.marks.len() <= program {
                self.marks.resize(program + 1, Vec::new());
            }
            if self.marks[program].len() <= slot {
                self.marks[program].resize(slot + 1, false);
            }
            self.marks[program][slot] = true;
        }
        let has = |is_it: fn(&BreakKind) -> bool| self.list.iter().any(|it| is_it(&it.kind));
        self.has_maps = has(|kind| matches!(kind, BreakKind::Map(_)));
        self.has_verdicts = has(|kind| matches!(kind, BreakKind::Verdict(_)));
        self.has_packets = has(|kind| matches!(kind, BreakKind::Packet(_)));
        self.has_watches = has(|kind| matches!(kind, BreakKind::Watch(_)));
    }

    /// True if there are some that instructions without a mark may meet.
    pub(super) fn has_dynamic(&self) -> bool {
        self.has_maps || self.has_verdicts || self.has_packets
    }
}

/// The name of a helper without its prefix.
fn plain(name: &str) -> &str {
    name.strip_prefix("bpf_").unwrap_or(name)
}

impl Resolver<'_> {
    /// The line and the slots of a breakpoint.
    fn places(&self, kind: &BreakKind) -> Result<(Option<u32>, Vec<(u32, u32)>), String> {
        match kind {
            BreakKind::Line { file, line } => {
                let (line, places) = self.sources.starts(file.as_deref(), *line)?;
                Ok((Some(line), places))
            }
            BreakKind::Function(name) => {
                let places = self.functions_named(name);
                match places.is_empty() {
                    true => Err(format!(
                        "no function is called {name}; there are {}",
                        self.function_names().join(", ")
                    )),
                    false => Ok((None, places)),
                }
            }
            BreakKind::Helper(name) => {
                let places = self.calls_of(name);
                match places.is_empty() {
                    true => {
                        let mut known: Vec<&str> =
                            self.functions.values().map(|it| &*it.0).collect();
                        known.sort_unstable();
                        known.dedup();
                        Err(format!(
                            "no program calls {name}; they call {}",
                            known.join(", ")
                        ))
                    }
                    false => Ok((None, places)),
                }
            }
            BreakKind::Map(name) => {
                let maps = (self.maps)();
                match maps.contains(name) {
                    true => Ok((None, Vec::new())),
                    false => Err(format!(
                        "no map is called {name}; there are {}",
                        maps.join(", ")
                    )),
                }
            }
            BreakKind::Insn { program, slot } => {
                let number = match program {
                    None => self.main,
                    Some(name) => {
                        let mut programs = self.programs.iter();
                        let found = programs.position(|it| it.program.name() == name);
                        found.ok_or_else(|| format!("no program is called {name}"))? as u32
                    }
                };
                let insns = self.programs.get(number as usize);
                let insns = insns.map_or(&[][..], |prepared| prepared.checked.insns());
                match insns.get(*slot as usize) {
                    None => Err(format!(
                        "the program has instructions 0 to {}",
                        insns.len().saturating_sub(1)
                    )),
                    Some(Insn::Imm64High) => Err(format!(
                        "{slot} is the second half of instruction {}",
                        slot - 1
                    )),
                    Some(_) => Ok((None, vec![(number, *slot)])),
                }
            }
            BreakKind::Verdict(_) | BreakKind::Packet(_) | BreakKind::Watch(_) => {
                Ok((None, Vec::new()))
            }
        }
    }

    /// The kind of breakpoint that a word means: a function, a helper, a map or a verdict, in this
    /// order, or one of them by its prefix (`function:`, `helper:`, `map:`, `verdict:`, `insn:`,
    /// `packet:`).
    pub(super) fn kind_of(&self, word: &str) -> Result<BreakKind, String> {
        let number = |text: &str| {
            let number = text.trim().parse().ok();
            number.ok_or_else(|| format!("{word}: {text:?} is no number"))
        };
        match word.split_once(':') {
            Some(("function", name)) => return Ok(BreakKind::Function(name.to_owned())),
            Some(("helper", name)) => return Ok(BreakKind::Helper(name.to_owned())),
            Some(("map", name)) => return Ok(BreakKind::Map(name.to_owned())),
            Some(("verdict", "")) => return Ok(BreakKind::Verdict(None)),
            Some(("verdict", name)) => return Ok(BreakKind::Verdict(Some(name.to_owned()))),
            Some(("packet", text)) => {
                return number(text).map(|packet| BreakKind::Packet(u64::from(packet)));
            }
            Some(("insn", text)) => {
                let (program, slot) = match text.rsplit_once(':') {
                    Some((program, slot)) => (Some(program.to_owned()), slot),
                    None => (None, text),
                };
                let slot = number(slot)?;
                return Ok(BreakKind::Insn { program, slot });
            }
            _ => {}
        }
        if let Some((file, line)) = word.rsplit_once(':')
            && let Ok(line) = line.parse()
        {
            let file = Some(file.to_owned());
            return Ok(BreakKind::Line { file, line });
        }
        if let Ok(line) = word.parse() {
            return Ok(BreakKind::Line { file: None, line });
        }
        if word == "verdict" {
            return Ok(BreakKind::Verdict(None));
        }
        if !self.functions_named(word).is_empty() {
            return Ok(BreakKind::Function(word.to_owned()));
        }
        if !self.calls_of(word).is_empty() {
            return Ok(BreakKind::Helper(word.to_owned()));
        }
        if (self.maps)().iter().any(|map| map == word) {
            return Ok(BreakKind::Map(word.to_owned()));
        }
        let main = self.programs.get(self.main as usize);
        let verdicts = main.map_or_else(Vec::new, |main| {
            super::super::verdict_names(main.program.kind())
        });
        if verdicts.contains(&word) {
            return Ok(BreakKind::Verdict(Some(word.to_owned())));
        }
        Err(format!(
            "{word} is no line, function, helper that is called, map or verdict; functions are {}",
            self.function_names().join(", ")
        ))
    }

    fn function_names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for prepared in self.programs {
            for subprog in prepared.program.subprogs() {
                if !names.contains(&subprog.name) {
                    names.push(subprog.name.clone());
                }
            }
        }
        names
    }

    fn functions_named(&self, name: &str) -> Vec<(u32, u32)> {
        let mut places = Vec::new();
        for (number, prepared) in (0..).zip(self.programs) {
            let subprogs = prepared.program.subprogs().iter();
            let named = subprogs.filter(|subprog| subprog.name == *name);
            places.extend(named.map(|subprog| (number, subprog.start)));
        }
        places.extend((self.inlined)(name));
        places
    }

    /// The calls of a helper or kfunc.
    fn calls_of(&self, name: &str) -> Vec<(u32, u32)> {
        let mut places = Vec::new();
        for (number, prepared) in (0..).zip(self.programs) {
            for (slot, insn) in (0..).zip(prepared.checked.insns()) {
                let Insn::Call(Callee::Helper(called)) = insn else {
                    continue;
                };
                let called = self.functions.get(called);
                if called.is_some_and(|(called, _)| plain(called) == plain(name)) {
                    places.push((number, slot));
                }
            }
        }
        places
    }
}
