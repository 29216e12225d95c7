//! A grammar of programs about half of which a verifier accepts.
//!
//! A program is a text case. Statements know loosely what each register and stack slot
//! holds, and use it well most of the time: bounds checks, null checks, releases and
//! initialisation are left out now and then, and any register is used for anything
//! rarely. Programs have branches that join, loops of many shapes, spills of all widths,
//! variable stack offsets, linked scalars, accesses to packets, contexts and values of
//! most kinds of maps, references, locks, timers, callbacks, subprograms and, with BTF,
//! global functions.

mod allocated;
mod calls;
mod declarations;
mod dynptrs;
mod flow;
mod helpers;
mod memory;
mod numbers;
mod objects;
mod sections;
mod stack;
mod target;
mod walks;

use std::fmt::Write as _;

use btf::Btf;
use program::Program;
use program::case::Case;

use super::names;
use crate::ebpf::Choices;
use target::Target;

/// Contents of a register or a stack slot, as far as the grammar distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Number,
    /// A number within 0..=15.
    Small,
    Context,
    /// A pointer into the packet with so many bytes behind it proven to be there.
    Packet(u8),
    ValueOrNull,
    /// A map value of [`declarations::VALUE_SIZE`] bytes.
    Value,
    Stack,
    /// Any other pointer.
    Pointer,
}

impl Holds {
    const NUMBERS: &[Holds] = &[Holds::Number, Holds::Small];

    fn is_number(self) -> bool {
        matches!(self, Holds::Number | Holds::Small)
    }
}

/// A function behind the main one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Function {
    /// Takes the context and a number.
    Static,
    /// The same, verified on its own.
    Global,
    /// Takes 8 bytes of memory or null, verified on its own.
    Memory,
    /// Takes a pointer to 16 bytes of the caller's stack and a number.
    OnStack,
    /// Callback of bpf_loop.
    Round,
    /// Callback of bpf_for_each_map_elem, and of timers.
    Element,
    /// Order of two nodes of a tree.
    Less,
}

/// Sizes of accesses, with the type's spelling.
const SIZES: &[(u32, &str)] = &[(1, "u8"), (2, "u16"), (4, "u32"), (8, "u64")];
/// Slots of the stack that any statement reads and writes, slot n at r10 - 8n.
const SLOTS: usize = 12;
/// Below them, at r10 minus so many bytes, what only one statement writes: bounds and
/// counters of loops and objects that are held, by depth of statements, and memory that
/// functions get.
const BOUNDS: u32 = 96;
const COUNTERS: u32 = 112;
const HELD: u32 = 128;
const ARGUMENT: u32 = 176;
/// Two dynptrs, an iterator and saved flags, of even and of odd depth.
const OBJECTS: [u32; 2] = [192, 248];
/// Functions of a program at most, besides the main one.
const MOST_FUNCTIONS: usize = 6;

/// Makes the text of one program.
struct Grammar<'c, 'b> {
    choices: &'c mut Choices<'b>,
    target: Target,
    text: String,
    /// True if functions have BTF.
    is_typed: bool,
    /// True if callers without capabilities may load most of what is written.
    is_plain: bool,
    holds: [Holds; 10],
    /// Contents of stack slots; slot 0 is not used.
    slots: [Holds; SLOTS],
    labels: u32,
    functions: Vec<Function>,
    /// True while the main function is written; else the number of the one that is.
    is_main: bool,
    written: usize,
    depth: u32,
    in_loop: bool,
}

/// The program that the grammar makes of a seed for a kernel with these types, as a case, with the
/// name of its type.
pub fn generated_case(seed: u64, types: &Btf<'_>) -> (&'static str, String) {
    let mut choices = Choices::from_seed(seed);
    let target = Target::choose(&mut choices, names::has_trampolines(types));
    let text = case(&mut choices, target, false);
    (target.name, names::resolve(&text, types))
}

/// As [`generated_case`], a program that callers without capabilities may mostly load.
pub fn generated_plain_case(seed: u64, types: &Btf<'_>) -> (&'static str, String) {
    let mut choices = Choices::from_seed(seed);
    let target = Target::choose_for_all(&mut choices);
    let text = case(&mut choices, target, true);
    (target.name, names::resolve(&text, types))
}

/// The program that the grammar makes of a seed for a type that Beebox runs and a kernel with these
/// types, mostly with what runs.
///
/// # Errors
/// If the grammar writes what is no program.
pub fn generated_runnable(seed: u64, types: &Btf<'_>) -> Result<Program, String> {
    let mut choices = Choices::from_seed(seed);
    let target = Target::choose_runnable(&mut choices);
    let text = names::resolve(&case(&mut choices, target, false), types);
    let case = Case::parse(&text).map_err(|error| format!("seed {seed}: {error}\n{text}"))?;
    Ok(case.program)
}

/// The text of a case: a program of a type, without answers; a plain one mostly has only
/// what callers without capabilities may load.
fn case(choices: &mut Choices<'_>, target: Target, is_plain: bool) -> String {
    let is_typed = !is_plain && choices.percent(45);
    let mut grammar = Grammar {
        choices,
        target,
        text: declarations::declarations(target),
        is_typed,
        is_plain,
        holds: [Holds::Nothing; 10],
        slots: [Holds::Nothing; SLOTS],
        labels: 0,
        functions: Vec::new(),
        is_main: true,
        written: 0,
        depth: 0,
        in_loop: false,
    };
    grammar.main();
    let mut number = 0;
    while let Some(&function) = grammar.functions.get(number) {
        grammar.function(number, function);
        number += 1;
    }
    grammar.text
}

impl Grammar<'_, '_> {
    fn main(&mut self) {
        self.begin(declarations::MAIN);
        self.line("r6 = r1");
        self.holds[1] = Holds::Context;
        self.holds[6] = Holds::Context;
        self.line("r7 = 5");
        self.holds[7] = Holds::Small;
        let statements = 3 + self.choices.below(20);
        self.statements(statements);
        self.finish(self.target.returns);
    }

    /// The func_info of a function, and a state in which it knows nothing.
    fn begin(&mut self, id: u32) {
        if self.is_typed {
            let _ = writeln!(self.text, ".func_info {id}");
        }
        self.holds = [Holds::Nothing; 10];
        self.slots = [Holds::Nothing; SLOTS];
    }

    /// Returns a number that is mostly below `limit`.
    fn finish(&mut self, limit: u32) {
        match self.choices.below(12) {
            0 => {
                let from = self.register(Holds::NUMBERS);
                self.line(&format!("r0 = {from}"));
                if self.choices.percent(80) && limit < 16 {
                    self.line("r0 &= 1");
                }
            }
            1 if self.holds[0] == Holds::Number => {}
            _ => {
                let value = self.choices.below(limit.clamp(1, 3));
                self.line(&format!("r0 = {value}"));
            }
        }
        self.line("exit");
    }

    fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn label(&mut self) -> u32 {
        self.labels += 1;
        self.labels
    }

    fn statements(&mut self, count: u32) {
        for _ in 0..count {
            self.statement();
        }
    }

    fn statement(&mut self) {
        // In loops what registers hold has to be the same in every round.
        let limit = if self.in_loop { 62 } else { 146 };
        let statement = self.choices.below(limit);
        // Loops, functions, locks, timers, queues and variable offsets into the stack.
        let is_privileged = matches!(statement, 40..46 | 70..84 | 99..106 | 113..120 | 128..);
        if self.is_plain && is_privileged && !self.choices.one_in(60) {
            return self.map_access();
        }
        if self.target.is_run && !self.in_loop && self.choices.one_in(5) {
            return self.run_statement();
        }
        if !self.target.arguments.is_empty() && self.choices.one_in(6) {
            return self.walk();
        }
        match statement {
            0..12 => self.number(),
            12..28 => self.arithmetic(),
            28..40 => self.stack_access(),
            40..46 => self.variable_stack_access(),
            46..50 => self.proven_access(),
            50..54 => self.link(),
            54..62 => self.branch(),
            62..70 => self.branch(),
            70..76 => self.bounded_loop(),
            76..84 => self.packet_access(),
            84..92 => self.map_access(),
            92..95 => self.constant_access(),
            95..99 => self.helper(),
            99..103 => self.call(),
            103..106 => self.callback(),
            106..110 => self.ring_record(),
            110..113 => self.socket(),
            113..116 => self.locked(),
            116..118 => self.timer(),
            118..120 => self.queue(),
            120..122 => self.nested_map(),
            122 => self.tail_call(),
            123..126 => self.move_pointer(),
            126 => self.anything(),
            127 => self.legacy_load(),
            _ => self.kernel_object(),
        }
    }

    /// A statement about objects of the kernel or of the program.
    fn kernel_object(&mut self) {
        match self.choices.below(16) {
            0..4 => self.dynptr(),
            4..7 => self.iterator(),
            7..9 => self.allocated(),
            9 | 10 => self.taken(),
            11..13 => self.section(),
            13 => self.resilient(),
            // Runs have no structures of the kernel.
            _ if self.target.is_run => self.allocated(),
            _ => self.walk(),
        }
    }

    /// A call of a kernel function by its name, after which `r0` is used on purpose only.
    fn kfunc(&mut self, name: &str) {
        self.line(&format!("call kfunc({{kfunc {name}}})"));
        self.holds[..6].fill(Holds::Nothing);
    }

    /// A place on the stack for an object of some bytes.
    fn place(&self, at: u32) -> u32 {
        OBJECTS[self.depth as usize % 2] + 8 + at
    }

    /// Puts an address on the stack into a register.
    fn address(&mut self, register: u32, place: u32) {
        self.line(&format!("r{register} = r10"));
        self.line(&format!("r{register} += -{place}"));
    }

    /// One of these maps; in a plain program mostly one that any caller creates.
    fn map_of(&mut self, maps: &[u32]) -> u32 {
        let map = self.choices.pick(maps);
        match self.takes_map(map) {
            true => map,
            false => declarations::ARRAY,
        }
    }

    /// True if the program may use a map; in a plain one rarely if not every caller creates it.
    fn takes_map(&mut self, map: u32) -> bool {
        let is_privileged = declarations::PRIVILEGED.contains(&map);
        !self.is_plain || !is_privileged || self.choices.one_in(60)
    }

    /// A statement whose result a run decides: of maps, helpers, callbacks, tail calls, objects.
    fn run_statement(&mut self) {
        match self.choices.below(22) {
            16.. => self.kernel_object(),
            0..7 => self.helper(),
            7..9 => self.ring_record(),
            9 | 10 => self.queue(),
            11 => self.nested_map(),
            12 => self.tail_call(),
            13 => self.callback(),
            14 => self.locked(),
            _ => self.map_access(),
        }
    }

    /// A register that holds one of these; rarely any one. Where there is none, a number
    /// is made, or the register that mostly holds the context is taken.
    fn register(&mut self, wanted: &[Holds]) -> String {
        if self.choices.one_in(400) {
            return self.any_register();
        }
        let fitting: Vec<usize> = (0..10)
            .filter(|&r| wanted.contains(&self.holds[r]))
            .collect();
        if !fitting.is_empty() {
            return format!("r{}", self.choices.pick(&fitting));
        }
        if wanted.contains(&Holds::Small) || wanted.contains(&Holds::Number) {
            let to = 7 + self.choices.below(3) as usize;
            let value = self.choices.below(16);
            self.line(&format!("r{to} = {value}"));
            self.holds[to] = Holds::Small;
            return format!("r{to}");
        }
        "r6".to_owned()
    }

    /// The register with the context, if one holds it.
    fn context(&mut self) -> Option<String> {
        let is_there = self.holds.contains(&Holds::Context);
        is_there.then(|| self.register(&[Holds::Context]))
    }

    fn any_register(&mut self) -> String {
        format!("r{}", self.choices.below(11))
    }

    /// A register to write; the context in r6 is mostly kept.
    fn target_register(&mut self) -> usize {
        match self.choices.one_in(100) {
            true => 6,
            false => self.choices.pick(&[0, 1, 2, 3, 4, 5, 7, 8, 9]),
        }
    }

    /// Forgets what a call may change.
    fn clobber(&mut self) {
        self.holds[..6].fill(Holds::Nothing);
        self.holds[0] = Holds::Number;
    }

    /// Forgets what registers and slots hold, where it is this.
    fn forget(&mut self, what: impl Fn(Holds) -> bool) {
        for held in self.holds.iter_mut().chain(&mut self.slots) {
            if what(*held) {
                *held = Holds::Nothing;
            }
        }
    }

    /// Runs `body` for code that is jumped over on some path, and forgets what differs
    /// behind it.
    fn guarded(&mut self, body: impl FnOnce(&mut Self)) {
        let (holds, slots) = (self.holds, self.slots);
        body(self);
        self.join(holds, slots);
    }

    /// Forgets what differs from another path.
    fn join(&mut self, holds: [Holds; 10], slots: [Holds; SLOTS]) {
        fn join(here: &mut [Holds], there: &[Holds]) {
            for (here, there) in here.iter_mut().zip(there) {
                match (*here, *there) {
                    (a, b) if a == b => {}
                    (a, b) if a.is_number() && b.is_number() => *here = Holds::Number,
                    _ => *here = Holds::Nothing,
                }
            }
        }
        join(&mut self.holds, &holds);
        join(&mut self.slots, &slots);
    }
}
