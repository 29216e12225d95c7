//! The places of breakpoints: lines, functions, calls, maps and verdicts of an object.

use std::sync::Arc;

use isa::ebpf::{Callee, Insn};

use super::super::prepared::Prepared;
use super::super::verdict_names;
use super::breakpoint::{BadBreakpoint, BreakKind, BreakOptions, Breakpoint, Breakpoints};
use super::source::Sources;
use super::state::FunctionNames;
use super::view::View;

/// Programs and slots.
pub(super) type Places = Vec<(u32, u32)>;

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

impl View<'_, '_, '_> {
    /// Sets a breakpoint.
    pub(super) fn set_breakpoint<'b>(
        &self,
        breakpoints: &'b mut Breakpoints,
        kind: BreakKind,
        options: BreakOptions,
    ) -> Result<&'b Breakpoint, BadBreakpoint> {
        self.resolved(|resolver| breakpoints.add(kind, options, resolver))
    }

    /// The kind of breakpoint that a word means.
    pub(super) fn break_kind(&self, word: &str) -> Result<BreakKind, String> {
        self.resolved(|resolver| resolver.kind_of(word))
    }

    fn resolved<T>(&self, with: impl FnOnce(Resolver<'_>) -> T) -> T {
        let scene = self.scene;
        let maps = || {
            let mut names: Vec<String> = scene.maps.iter().map(|map| map.name.clone()).collect();
            names.dedup();
            names
        };
        let inlined = |name: &str| {
            let mut places = Vec::new();
            for (number, prepared) in (0..).zip(scene.programs) {
                for subprog in prepared.program.subprogs() {
                    let facts = scene.facts(number, subprog.start);
                    let starts = facts.map_or_else(Vec::new, |facts| facts.inlined_starts(name));
                    places.extend(starts.into_iter().map(|slot| (number, slot)));
                }
            }
            places
        };
        with(Resolver {
            programs: scene.programs,
            sources: &scene.sources,
            functions: &scene.functions,
            main: scene.main,
            maps: &maps,
            inlined: &inlined,
        })
    }
}

/// The name of a helper without its prefix.
fn plain(name: &str) -> &str {
    name.strip_prefix("bpf_").unwrap_or(name)
}

/// The verdict of a number.
pub(super) fn number_of(name: &str) -> Option<u32> {
    name.parse::<i64>().ok().map(|number| number as u32)
}

/// True if a verdict is meant by a name, which may lack its prefix.
pub(super) fn is_verdict(verdict: &str, name: &str) -> bool {
    verdict == name || verdict.ends_with(&format!("_{}", name.to_uppercase()))
}

impl Resolver<'_> {
    /// The line and the slots of a breakpoint.
    pub(super) fn places(&self, kind: &BreakKind) -> Result<(Option<u32>, Places), String> {
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
            BreakKind::Verdict(Some(name)) => {
                let known = self.verdicts();
                let is_it = |known: &&str| is_verdict(known, name);
                match number_of(name).is_some() || known.iter().any(is_it) {
                    true => Ok((None, Vec::new())),
                    false if known.is_empty() => Err(format!(
                        "verdicts of this program have no names: {name} is no number"
                    )),
                    false => Err(format!(
                        "no verdict is called {name}; there are {}, and numbers",
                        known.join(", ")
                    )),
                }
            }
            BreakKind::Verdict(None) | BreakKind::Packet(_) | BreakKind::Watch(_) => {
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
        if self.verdicts().contains(&word) {
            return Ok(BreakKind::Verdict(Some(word.to_owned())));
        }
        Err(format!(
            "{word} is no line, function, helper that is called, map or verdict; functions are {}",
            self.function_names().join(", ")
        ))
    }

    /// Names of the verdicts of the program.
    fn verdicts(&self) -> Vec<&'static str> {
        let main = self.programs.get(self.main as usize);
        main.map_or_else(Vec::new, |main| verdict_names(main.program.kind()))
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
