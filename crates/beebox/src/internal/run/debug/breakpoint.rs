//! Breakpoints: at lines, functions, helpers, accesses of maps, verdicts, instructions, packets, and
//! writes.

use std::error::Error;
use std::fmt;

use super::expression::Expr;
use super::resolve::Resolver;
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
    /// Which of its hits stop.
    pub chosen: HitChoice,
    /// Hits from the begin of the session to where the run is, if they choose; otherwise those of forward
    /// runs.
    pub hits: u64,
    /// Programs and slots at which it is.
    pub places: Vec<(u32, u32)>,
    /// The line that it is at, which may be behind the one that was asked for.
    pub line: Option<u32>,
    /// What set it, so that a front end can replace all of one kind.
    pub owner: String,
}

/// Which hits of a breakpoint stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HitChoice {
    /// All.
    #[default]
    All,
    /// Those from one on.
    From(u64),
    /// Those up to one.
    UpTo(u64),
    /// One.
    Only(u64),
    /// Each of so many.
    Each(u64),
}

impl HitChoice {
    /// A choice as editors write it: `3` and `>=3`, `>3`, `==3` and `=3`, `<3`, `<=3`, `%3`.
    ///
    /// # Errors
    /// For other text, and for choices of no hit.
    pub(super) fn parse(text: &str) -> Result<HitChoice, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(HitChoice::All);
        }
        let end = text.find(|each: char| each.is_ascii_digit());
        let (word, digits) = text.split_at(end.unwrap_or(text.len()));
        let number: Option<u64> = digits.parse().ok();
        let chosen = number.and_then(|number| {
            Some(match word.trim_end() {
                "" | ">=" => HitChoice::From(number),
                ">" => HitChoice::From(number.checked_add(1)?),
                "==" | "=" if number > 0 => HitChoice::Only(number),
                "<=" if number > 0 => HitChoice::UpTo(number),
                "<" if number > 1 => HitChoice::UpTo(number - 1),
                "%" if number > 0 => HitChoice::Each(number),
                _ => return None,
            })
        });
        chosen.ok_or_else(|| {
            format!("hit condition {text}: one of 3, >=3, >3, ==3, <3, <=3 and %3 is expected")
        })
    }

    /// True if the hit of a number, from 1, stops.
    fn has(self, hit: u64) -> bool {
        match self {
            HitChoice::All => true,
            HitChoice::From(first) => hit >= first,
            HitChoice::UpTo(last) => hit <= last,
            HitChoice::Only(one) => hit == one,
            HitChoice::Each(each) => hit.is_multiple_of(each),
        }
    }
}

/// Why a breakpoint cannot be set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadBreakpoint(pub String);

impl fmt::Display for BadBreakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadBreakpoint {}

/// What is asked of a breakpoint that is set.
#[derive(Clone, Debug, Default)]
pub(super) struct BreakOptions {
    pub(super) condition: Option<String>,
    pub(super) message: Option<String>,
    pub(super) chosen: HitChoice,
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
    /// There are some whose hits choose, which are counted from the begin of the session.
    pub(super) has_counts: bool,
    /// Some of these were set where the past was not counted.
    pub(super) is_stale: bool,
    /// Breakpoints that were removed for others of their owner: equal ones keep numbers and hits.
    removed: Vec<Breakpoint>,
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
        let list = std::mem::take(&mut self.list);
        let (removed, kept) = list.into_iter().partition(|it| it.owner == owner);
        (self.removed, self.list) = (removed, kept);
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
        let texts = options
            .condition
            .iter()
            .map(|text| (text.as_str(), "condition "));
        let parts = options.message.iter().flat_map(|message| parts(message));
        let parts = parts.filter_map(|part| match part {
            MessagePart::Expression(text) => Some((text, "message: ")),
            MessagePart::Text(_) => None,
        });
        for (text, what) in texts.chain(parts) {
            Expr::parse(text).map_err(|why| BadBreakpoint(format!("{what}{text}: {why}")))?;
        }
        let same = self.removed.iter().position(|it| {
            (&it.kind, &it.condition, &it.message, it.chosen)
                == (&kind, &options.condition, &options.message, options.chosen)
        });
        let same = same.map(|same| self.removed.swap_remove(same));
        let (id, hits) = match &same {
            Some(same) => (same.id, same.hits),
            None => (self.last + 1, 0),
        };
        self.last = self.last.max(id);
        self.is_stale |= same.is_none() && options.chosen != HitChoice::All;
        self.list.push(Breakpoint {
            id,
            kind,
            condition: options.condition,
            message: options.message,
            chosen: options.chosen,
            hits,
            places,
            line,
            owner: options.owner,
        });
        self.mark();
        Ok(&self.list[self.list.len() - 1])
    }

    /// Begins to count hits anew, at the begin of the session.
    pub(super) fn begin_counts(&mut self) {
        let chosen = self
            .list
            .iter_mut()
            .filter(|it| it.chosen != HitChoice::All);
        chosen.for_each(|breakpoint| breakpoint.hits = 0);
        self.is_stale = false;
    }

    /// Counts a hit; true if the run is to stop by it.
    pub(super) fn count(&mut self, id: u32, is_forward: bool) -> bool {
        let mut list = self.list.iter_mut();
        let found = list.find(|breakpoint| breakpoint.id == id);
        found.is_some_and(|breakpoint| {
            breakpoint.hits += u64::from(is_forward || breakpoint.chosen != HitChoice::All);
            breakpoint.chosen.has(breakpoint.hits)
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
        self.has_counts = self.list.iter().any(|it| it.chosen != HitChoice::All);
    }

    /// True if there are some that instructions without a mark may meet.
    pub(super) fn has_dynamic(&self) -> bool {
        self.has_maps || self.has_verdicts || self.has_packets
    }
}

/// A part of a message.
pub(super) enum MessagePart<'m> {
    /// Text as it is.
    Text(&'m str),
    /// An expression, which is replaced by its value.
    Expression(&'m str),
}

/// The parts of a message: expressions are in braces.
pub(super) fn parts(message: &str) -> Vec<MessagePart<'_>> {
    let (mut parts, mut rest) = (Vec::new(), message);
    while let Some((before, behind)) = rest.split_once('{') {
        let Some((expression, behind)) = behind.split_once('}') else {
            break;
        };
        parts.push(MessagePart::Text(before));
        parts.push(MessagePart::Expression(expression));
        rest = behind;
    }
    parts.push(MessagePart::Text(rest));
    parts
}
