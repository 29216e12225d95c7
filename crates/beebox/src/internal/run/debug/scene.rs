//! What a run is on: programs, maps, lines, and the frames and keys that are followed instruction by
//! instruction.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use btf::Btf;
use interp::checked::{Memory, Moment};
use isa::ebpf::{Callee, Insn};
use packet::FirstHeader;
use spec::Kernel;
use spec::helpers::HelperId;
use spec::maps::MapKind;
use trace::dwarf::Debug;
use trace::{CallStack, FunctionFacts};

use super::super::attached::Watched;
use super::super::prepared::Prepared;
use super::super::recording::{RunMap, run_maps, value_on};
use super::known::Known;
use super::plan::{DebugStep, Position, StepFrom};
use super::source::Sources;
use super::state::{DebugState, Debugging, FunctionNames};
use super::view::View;

/// What a run is on, and its frames.
pub(in crate::internal::run) struct Scene<'r> {
    pub(super) programs: &'r [Prepared],
    pub(super) debug: Option<&'r Debug>,
    pub(super) kernel: &'r Kernel,
    pub(super) maps: Vec<RunMap<'r>>,
    /// By number of a map the first number that it has: an inner map may be one of the object's, too.
    firsts: Vec<u32>,
    cpu: u32,
    /// Number of the program of the session.
    pub(super) main: u32,
    /// The run is that of a timer's function.
    pub(super) is_timer: bool,
    pub(super) first: FirstHeader,
    pub(super) sources: Arc<Sources>,
    pub(super) functions: Arc<FunctionNames>,
    pub(super) known: Known,
    facts: RefCell<HashMap<(u32, u32), FunctionFacts<'r>>>,
    pub(super) stack: CallStack,
    /// Maps and keys of values that were looked up, by address.
    keys: HashMap<u64, (u32, Vec<u8>)>,
    /// The map and key of a lookup that has not returned.
    lookup: Option<(u32, Vec<u8>)>,
    /// Program, slot and depth of the last instruction, and of the one before it.
    lasts: [(u32, usize, usize); 2],
}

impl<'r> Scene<'r> {
    /// The scene of a run of a program; of the function of a timer.
    pub(in crate::internal::run) fn new(debugging: &Debugging<'r>, of: Watched<'r>) -> Scene<'r> {
        let Watched {
            shared,
            prepared: main,
            cpu,
            is_timer,
        } = of;
        let state: &DebugState = &debugging.state;
        let maps = run_maps(shared);
        let firsts = maps.iter().map(|map| {
            let is_it = |other: &RunMap<'_>| std::ptr::eq(other.map(), map.map());
            maps.iter().position(is_it).unwrap_or(0) as u32
        });
        let firsts = firsts.collect();
        Scene {
            programs: &shared.programs,
            debug: debugging.debug,
            kernel: debugging.kernel,
            maps,
            firsts,
            cpu,
            main: main.checked.number(),
            is_timer,
            first: match main.rules.has_link_header() {
                true => FirstHeader::Link,
                false => FirstHeader::Network,
            },
            sources: state.sources.clone(),
            functions: state.functions.clone(),
            known: state.known.clone(),
            facts: RefCell::default(),
            stack: CallStack::new(is_timer),
            keys: HashMap::new(),
            lookup: None,
            lasts: [NOWHERE; 2],
        }
    }

    /// The CPU of the run.
    pub(super) fn cpu(&self) -> u32 {
        self.cpu
    }

    /// The program of the session.
    pub(super) fn main(&self) -> &'r Prepared {
        &self.programs[self.main as usize]
    }

    /// Follows calls, and keys of values that are looked up.
    #[inline]
    pub(super) fn follow(&mut self, moment: &Moment<'_, '_>, number: u64) {
        if self.lookup.is_some() {
            self.note_lookup(moment);
        }
        self.stack.follow(moment, number);
        let place = (moment.program.number(), moment.at, moment.depth);
        self.lasts = [place, self.lasts[0]];
        if let Insn::Call(Callee::Helper(helper)) = &moment.program.insns()[moment.at]
            && LOOKUPS.contains(helper)
        {
            self.begin_lookup(moment);
        }
    }

    #[cold]
    fn begin_lookup(&mut self, moment: &Moment<'_, '_>) {
        let map = self.map_at(moment.registers[1], moment.memory);
        let size = |map: &u32| self.maps.get(*map as usize).map(RunMap::key_size);
        self.lookup = map.and_then(|map| {
            let mut key = vec![0; size(&map)?];
            let is_read = moment.memory.peek(moment.registers[2], &mut key);
            is_read.then_some((map, key))
        });
    }

    #[cold]
    fn note_lookup(&mut self, moment: &Moment<'_, '_>) {
        let value = moment.registers[0];
        if let Some(found) = self.lookup.take()
            && value != 0
        {
            self.keys.insert(value, found);
        }
    }

    /// The number of a map by that of the memory.
    pub(super) fn first_of(&self, map: u32) -> u32 {
        self.firsts.get(map as usize).copied().unwrap_or(map)
    }

    /// The map of a pointer.
    pub(super) fn map_at(&self, pointer: u64, memory: &Memory<'_>) -> Option<u32> {
        memory.map_at(pointer).map(|map| self.first_of(map))
    }

    /// True if an instruction goes on with the line of the one before it, without a way back.
    pub(super) fn goes_on(&self, moment: &Moment<'_, '_>) -> bool {
        let (program, slot, depth) = self.lasts[1];
        let line = self.line_number(moment);
        (program, depth) == (moment.program.number(), moment.depth)
            && slot < moment.at
            && line != 0
            && self.sources.line_number(program, slot as u32) == line
    }

    /// The number of the line of a moment; 0 for none.
    pub(super) fn line_number(&self, moment: &Moment<'_, '_>) -> u64 {
        let program = moment.program.number();
        self.sources.line_number(program, moment.at as u32)
    }

    /// The key of the value of a map that begins at an address, if it is known.
    pub(super) fn key_of(&self, map: u32, start: u64, memory: &Memory<'_>) -> Option<Vec<u8>> {
        let first = self.first_of(map);
        if let Some((of, key)) = self.keys.get(&start)
            && *of == first
        {
            return Some(key.clone());
        }
        (self.only_value(map, memory) == Some(start)).then(|| vec![0; 4])
    }

    /// The address of the value of an array of one, as sections of variables are.
    fn only_value(&self, map: u32, memory: &Memory<'_>) -> Option<u64> {
        let of = self.maps.get(map as usize)?;
        let is_only = of.map().kind() == MapKind::Array && of.def.params.max_entries == 1;
        memory.direct_value(map).filter(|_| is_only)
    }

    /// The address of the value of a key, if the run knows it.
    pub(super) fn address_of(&self, map: u32, key: &[u8], memory: &Memory<'_>) -> Option<u64> {
        let direct = || {
            memory
                .direct_value(map)
                .filter(|_| key.iter().all(|byte| *byte == 0))
        };
        let mut known = self.keys.iter();
        let found = known.find(|(_, (of, known))| (*of, &known[..]) == (map, key));
        found.map(|(address, _)| *address).or_else(direct)
    }

    /// The value of a key of a map.
    pub(super) fn lookup(&self, map: u32, key: &[u8]) -> Option<Vec<u8>> {
        value_on(self.maps.get(map as usize)?.map(), key, self.cpu)
    }

    pub(super) fn map_name(&self, map: u32) -> String {
        let map = self.maps.get(map as usize);
        map.map_or_else(|| "map".to_owned(), |map| map.name.clone())
    }

    pub(super) fn step_from(
        &self,
        step: DebugStep,
        moment: &Moment<'_, '_>,
        position: Position,
    ) -> StepFrom {
        StepFrom {
            step,
            position,
            depth: moment.depth,
            entered: self.stack.top().map_or(0, |frame| frame.entered),
            inlined: self.inlined(moment),
            line: self.line_number(moment),
        }
    }

    /// Number of functions that an instruction is inlined from.
    pub(super) fn inlined(&self, moment: &Moment<'_, '_>) -> usize {
        let slot = moment.at as u32;
        let facts = self.facts(moment.program.number(), slot);
        facts.map_or(0, |facts| facts.inlined_at(slot).len())
    }

    pub(super) fn view<'v, 'm>(
        &'v self,
        moment: &'v Moment<'v, 'm>,
        position: Position,
    ) -> View<'v, 'r, 'm> {
        View {
            scene: self,
            moment,
            position,
        }
    }

    pub(super) fn facts(&self, program: u32, slot: u32) -> Option<FunctionFacts<'r>> {
        let prepared = self.programs.get(program as usize)?;
        let subprog = prepared.program.subprog_at(slot);
        let start = subprog.map_or(0, |subprog| subprog.start);
        let mut facts = self.facts.borrow_mut();
        let known = facts
            .entry((program, start))
            .or_insert_with(|| FunctionFacts::new(self.debug, &prepared.program, subprog));
        Some(known.clone())
    }

    pub(super) fn types(&self) -> Option<&'r Btf<'static>> {
        let mut programs = self.programs.iter();
        let types = programs.find_map(|prepared| prepared.program.btf());
        types.map(|types| &**types)
    }
}

/// No place.
const NOWHERE: (u32, usize, usize) = (u32::MAX, usize::MAX, usize::MAX);

/// Helpers that return values of maps.
const LOOKUPS: [i32; 2] = [
    HelperId::MapLookupElem.number(),
    HelperId::MapLookupPercpuElem.number(),
];
