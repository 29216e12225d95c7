//! Coverage of generated programs: rows of the table with their operands, jump distances,
//! call depths, idioms and their near misses.
//!
//! Instructions count when executed, so the counts come from runs of the reference
//! evaluator.

use super::{Dialect, Notes, idioms, near_miss};
use isa::ebpf::table::ROWS;
use isa::ebpf::{Effect, Field, Insn, Row};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hash::Hash;

/// Counts of what was reached.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    /// The current run: how often each slot was executed, and how often it went
    /// on elsewhere than to the next.
    slots: Vec<(u32, u32)>,
    /// Call depth of the current run.
    deepest: usize,
    counts: Counts,
}

/// Coverage of all runs.
#[derive(Clone, Debug, Default)]
struct Counts {
    rows: Vec<RowCoverage>,
    /// Jumps taken, by direction and the power of two of their distance.
    jumps: BTreeMap<(bool, u32), u64>,
    /// Runs by how many frames they had at once.
    depths: BTreeMap<usize, u64>,
    /// Idioms generated: as they are, near misses.
    idioms: Vec<[u64; 2]>,
    near_misses: [u64; near_miss::KINDS],
}

/// Coverage of one row.
#[derive(Clone, Copy, Debug, Default)]
struct RowCoverage {
    executed: u64,
    /// Conditional jumps taken and not.
    taken: u64,
    passed: u64,
    /// Registers in each role; bit `n` is register `n`.
    dst: u16,
    src: u16,
    /// Bit `n` is class `n` of [`IMMEDIATES`].
    imm: u16,
    /// Bit `n` is class `n` of [`OFFSETS`].
    off: u16,
}

const IMMEDIATES: [&str; 8] = [
    "0", "1", "-1", "least", "greatest", "8 bits", "16 bits", "more",
];
const OFFSETS: [&str; 5] = ["0", "8 bits", "-8 bits", "16 bits", "-16 bits"];

fn immediate_class(imm: i32) -> u16 {
    1 << match imm {
        0 => 0,
        1 => 1,
        -1 => 2,
        i32::MIN => 3,
        i32::MAX => 4,
        -128..=127 => 5,
        -32768..=32767 => 6,
        _ => 7,
    }
}

fn offset_class(off: i16) -> u16 {
    1 << match off {
        0 => 0,
        1..=127 => 1,
        -128..=-1 => 2,
        128.. => 3,
        _ => 4,
    }
}

impl Coverage {
    /// Empty coverage.
    pub fn new() -> Coverage {
        Coverage {
            counts: Counts {
                rows: vec![RowCoverage::default(); ROWS.len()],
                idioms: vec![[0; 2]; idioms::ALL.len()],
                ..Counts::default()
            },
            ..Coverage::default()
        }
    }

    /// A run of a program of so many slots begins.
    pub(super) fn begin(&mut self, len: usize) {
        self.slots.clear();
        self.slots.resize(len, (0, 0));
        self.deepest = 1;
    }

    /// The slot was executed and the run went on there.
    #[inline]
    pub(super) fn step(&mut self, at: usize, next: Option<usize>) {
        if let Some((executed, elsewhere)) = self.slots.get_mut(at) {
            *executed += 1;
            *elsewhere += u32::from(next != Some(at + 1));
        }
    }

    /// The run has so many frames.
    pub(super) fn depth(&mut self, frames: usize) {
        self.deepest = self.deepest.max(frames);
    }

    /// Counts the run that ended.
    pub(super) fn end(&mut self, insns: &[Insn]) {
        *self.counts.depths.entry(self.deepest).or_default() += 1;
        for (&(executed, elsewhere), insn) in self.slots.iter().zip(insns) {
            if executed > 0 {
                self.counts.slot(*insn, executed, elsewhere);
            }
        }
    }

    /// Counts what a program was made of.
    pub fn made(&mut self, notes: &Notes) {
        for &(number, is_near_miss) in &notes.idioms {
            self.counts.idioms[usize::from(number)][usize::from(is_near_miss)] += 1;
        }
        for (count, more) in self.counts.near_misses.iter_mut().zip(notes.near_misses) {
            *count += u64::from(more);
        }
    }

    /// Adds the counts of others.
    pub fn add(&mut self, other: &Coverage) {
        let (to, from) = (&mut self.counts, &other.counts);
        for (to, from) in to.rows.iter_mut().zip(&from.rows) {
            to.executed += from.executed;
            to.taken += from.taken;
            to.passed += from.passed;
            to.dst |= from.dst;
            to.src |= from.src;
            to.imm |= from.imm;
            to.off |= from.off;
        }
        for (to, from) in to.idioms.iter_mut().zip(&from.idioms) {
            to[0] += from[0];
            to[1] += from[1];
        }
        for (to, from) in to.near_misses.iter_mut().zip(&from.near_misses) {
            *to += from;
        }
        for (key, count) in &from.jumps {
            *to.jumps.entry(*key).or_default() += count;
        }
        for (key, count) in &from.depths {
            *to.depths.entry(*key).or_default() += count;
        }
    }

    /// Signature of the coverage of a program.
    pub fn signature(&self) -> impl Hash + use<> {
        let rows = self.counts.rows.iter().enumerate();
        let rows = rows.filter(|(_, row)| row.executed > 0);
        let rows: Vec<usize> = rows.map(|(number, _)| number).collect();
        (rows, self.counts.depths.keys().last().copied())
    }

    /// Missing coverage: rows never executed, operands never used, branches with one
    /// direction only, idioms never generated. One line each.
    pub fn missing(&self, dialect: Dialect) -> Vec<String> {
        let mut missing = Vec::new();
        for (row, coverage) in ROWS.iter().zip(&self.counts.rows) {
            if dialect.has(row) {
                coverage.missing(row, &mut missing);
            }
        }
        for (idiom, count) in idioms::ALL.iter().zip(&self.counts.idioms) {
            for (how, count) in ["as it is", "near miss"].iter().zip(count) {
                if *count == 0 {
                    missing.push(format!("{} {how}", idiom.name));
                }
            }
        }
        for (kind, count) in self.counts.near_misses.iter().enumerate() {
            if *count == 0 {
                missing.push(format!("near miss {kind}"));
            }
        }
        missing
    }

    /// The counts as tables in Markdown.
    pub fn markdown(&self) -> String {
        let counts = &self.counts;
        let mut text = String::new();
        text.push_str(
            "\n| Instructions executed | times | registers as `dst` | as `src` | immediates | \
             offsets |\n| --- | ---: | ---: | ---: | --- | --- |\n",
        );
        for (row, coverage) in ROWS.iter().zip(&counts.rows) {
            if coverage.executed > 0 {
                let _ = writeln!(
                    text,
                    "| `{:?}` | {} | {} | {} | {} | {} |",
                    row.op,
                    coverage.executed,
                    count(row.dst, coverage.dst),
                    count(row.src, coverage.src),
                    names(&IMMEDIATES, coverage.imm),
                    names(&OFFSETS, coverage.off),
                );
            }
        }
        text.push_str("\n| Jumps taken | times |\n| --- | ---: |\n");
        for ((backward, power), times) in &counts.jumps {
            let way = if *backward { "back" } else { "forward" };
            let (from, to) = ((1u64 << power) - 1, (2u64 << power) - 2);
            let _ = writeln!(text, "| {way} over {from} to {to} slots | {times} |");
        }
        text.push_str("\n| Frames at once | runs |\n| ---: | ---: |\n");
        for (depth, runs) in &counts.depths {
            let _ = writeln!(text, "| {depth} | {runs} |");
        }
        text.push_str(
            "\n| Idioms generated | as they are | near misses |\n| --- | ---: | ---: |\n",
        );
        for (idiom, [plain, near_misses]) in idioms::ALL.iter().zip(&counts.idioms) {
            let name = idiom.name.replace('_', " ");
            let _ = writeln!(text, "| {name} | {plain} | {near_misses} |");
        }
        text
    }
}

impl Counts {
    fn slot(&mut self, insn: Insn, executed: u32, elsewhere: u32) {
        let Some((row, (raw, _))) = insn.row().zip(insn.encode()) else {
            return;
        };
        let coverage = &mut self.rows[row.op as usize];
        coverage.executed += u64::from(executed);
        coverage.dst |= 1 << raw.dst();
        coverage.src |= 1 << raw.src();
        match row.effect {
            Effect::Branch | Effect::Goto | Effect::GotoLong => {
                coverage.taken += u64::from(elsewhere);
                coverage.passed += u64::from(executed - elsewhere);
                let distance = match row.effect {
                    Effect::GotoLong => raw.imm,
                    _ => raw.off.into(),
                };
                if elsewhere > 0 {
                    let key = (distance < 0, (distance.unsigned_abs() + 1).ilog2());
                    *self.jumps.entry(key).or_default() += u64::from(elsewhere);
                }
            }
            Effect::Load | Effect::Store | Effect::Atomic => coverage.off |= offset_class(raw.off),
            _ => {}
        }
        if row.imm == Field::Any && row.effect != Effect::GotoLong {
            coverage.imm |= immediate_class(raw.imm);
        }
    }
}

impl RowCoverage {
    fn missing(&self, row: &Row, missing: &mut Vec<String>) {
        let mut lack = |what: String| missing.push(format!("{:?}: {what}", row.op));
        if self.executed == 0 {
            return lack("never executed".into());
        }
        if row.effect == Effect::Branch {
            // Nothing but running out of turns takes a `may_goto`.
            let both = self.passed > 0 && (self.taken > 0 || row.code == 0xe5);
            if !both {
                lack("one way only".into());
            }
        }
        let is_address = matches!(row.effect, Effect::Load | Effect::Store | Effect::Atomic);
        // A register that the operation itself reads holds no address.
        let implied = row.reads.resolve(12, 13).bits();
        let exempt = if is_address { implied } else { 0 };
        for (role, field, found) in [("dst", row.dst, self.dst), ("src", row.src, self.src)] {
            if field == Field::Any && !(found | exempt) & 0x3ff != 0 {
                lack(format!("as {role} only {found:#b}"));
            }
        }
        if is_address && self.off.count_ones() < OFFSETS.len() as u32 - 1 {
            lack(format!("offsets {}", names(&OFFSETS, self.off)));
        }
    }
}

/// Number of different registers in a field that accepts any.
fn count(field: Field, found: u16) -> String {
    match field {
        Field::Any => found.count_ones().to_string(),
        _ => String::new(),
    }
}

fn names(all: &[&str], found: u16) -> String {
    if found.count_ones() as usize == all.len() {
        return "all".to_owned();
    }
    let found = all.iter().enumerate().filter(|(n, _)| found & 1 << n != 0);
    let found: Vec<&str> = found.map(|(_, name)| *name).collect();
    found.join(", ")
}
