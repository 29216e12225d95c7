//! Text of sets of numbers, from decision diagrams.
//!
//! A set is a Boolean function of the bits of one field (most significant first). It is
//! printed in the simplest form of: a list of values, an interval, a mask, the intersection
//! of an interval and a mask, the difference of two of these, or a union of intervals or
//! masks; each is tried on the set and its complement. Every candidate is compared with the
//! set, so the text is exact; only a set of thousands of parts is abbreviated as `{…}`.

use std::ops::Range;

use super::diagram::{Diagram, Level, OverBudget, Ref, RefMap};

/// Largest number of listed values.
const MAX_LISTED: u128 = 8;
/// Largest number of intervals or masks of a readable set.
const MAX_READABLE: usize = 128;
/// Largest number of intervals or masks of a union.
const MAX_PARTS: usize = 2048;

/// A text and its operator precedence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    pub(crate) text: String,
    pub(crate) binding: Binding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Binding {
    /// A union.
    Or,
    /// An intersection.
    And,
    /// One comparison.
    Single,
}

impl Text {
    fn single(text: String) -> Text {
        Text {
            text,
            binding: Binding::Single,
        }
    }

    fn join(parts: Vec<Text>, binding: Binding) -> Text {
        let word = if binding == Binding::Or {
            " or "
        } else {
            " and "
        };
        if let [part] = &parts[..] {
            return part.clone();
        }
        let parts: Vec<String> = parts.iter().map(|part| part.within(binding)).collect();
        Text {
            text: parts.join(word),
            binding,
        }
    }

    /// The text as an operand, in parentheses if needed.
    pub(crate) fn within(&self, binding: Binding) -> String {
        if self.binding < binding {
            format!("({})", self.text)
        } else {
            self.text.clone()
        }
    }
}

/// A field: its bits and its name.
pub(crate) struct Field<'a> {
    pub(crate) levels: Range<Level>,
    pub(crate) name: &'a str,
}

/// Numbers with some bits fixed: `x & mask == value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cube {
    mask: u64,
    value: u64,
}

/// A set with a notation of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Shape {
    List(Vec<u64>),
    Interval(u64, u64),
    Cube(Cube),
}

impl Field<'_> {
    fn width(&self) -> u32 {
        self.levels.len() as u32
    }

    fn max(&self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    fn place(&self, level: Level) -> u32 {
        u32::from(self.levels.end - 1 - level)
    }

    /// The text of a set that is neither empty nor full.
    pub(crate) fn describe(&self, diagram: &mut Diagram, set: Ref) -> Result<Text, OverBudget> {
        let complement = diagram.not(set)?;
        if let Some(shape) = self.shape(diagram, set)? {
            return Ok(self.write(&shape));
        }
        if let Some(shape) = self.shape(diagram, complement)? {
            return Ok(self.write_not(&shape));
        }
        if let Some(text) = self.without(diagram, set)? {
            return Ok(text);
        }
        if let Some(text) = self.intersection(diagram, set)? {
            return Ok(text);
        }
        self.union(diagram, set, complement)
    }

    /// True if a set or its complement is a union of few intervals or masks.
    pub(crate) fn is_readable(&self, diagram: &mut Diagram, set: Ref) -> Result<bool, OverBudget> {
        let complement = diagram.not(set)?;
        for target in [set, complement] {
            let mut left = MAX_READABLE;
            if self.runs(diagram, target, MAX_READABLE)?.is_some()
                || self.cover(diagram, target, target, &mut left)?.is_some()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The set as one shape, if it is one.
    fn shape(&self, diagram: &mut Diagram, set: Ref) -> Result<Option<Shape>, OverBudget> {
        if self.count(diagram, set)? <= MAX_LISTED {
            let runs = self.runs(diagram, set, MAX_LISTED as usize)?;
            let values = runs
                .into_iter()
                .flatten()
                .flat_map(|(first, last)| first..=last);
            let values: Vec<u64> = values.collect();
            // Longer runs read better as intervals.
            let is_run = values.len() > 2
                && values
                    .last()
                    .zip(values.first())
                    .map(|(last, first)| last - first)
                    == Some(values.len() as u64 - 1);
            if !is_run {
                return Ok(Some(Shape::List(values)));
            }
        }
        let (first, last) = self.hull_interval(diagram, set);
        if self.interval(diagram, first, last)? == set {
            return Ok(Some(Shape::Interval(first, last)));
        }
        let cube = self.hull_cube(diagram, set)?;
        if self.cube(diagram, cube)? == set {
            return Ok(Some(Shape::Cube(cube)));
        }
        Ok(None)
    }

    /// The set as an intersection of an interval and a mask.
    fn intersection(&self, diagram: &mut Diagram, set: Ref) -> Result<Option<Text>, OverBudget> {
        for (target, negated) in [(set, false), (diagram.not(set)?, true)] {
            let (first, last) = self.hull_interval(diagram, target);
            let cube = self.hull_cube(diagram, target)?;
            let interval = self.interval(diagram, first, last)?;
            let masked = self.cube(diagram, cube)?;
            if diagram.and(interval, masked)? != target {
                continue;
            }
            let shapes = [Shape::Interval(first, last), Shape::Cube(cube)];
            return Ok(Some(if negated {
                let parts = shapes.iter().map(|shape| self.write_not(shape));
                Text::join(parts.collect(), Binding::Or)
            } else {
                let parts = shapes.iter().map(|shape| self.write(shape));
                Text::join(parts.collect(), Binding::And)
            }));
        }
        Ok(None)
    }

    /// The set as a difference of two shapes.
    fn without(&self, diagram: &mut Diagram, set: Ref) -> Result<Option<Text>, OverBudget> {
        for (target, negated) in [(set, false), (diagram.not(set)?, true)] {
            let (first, last) = self.hull_interval(diagram, target);
            let cube = self.hull_cube(diagram, target)?;
            for outer in [Shape::Interval(first, last), Shape::Cube(cube)] {
                let hull = match outer {
                    Shape::Cube(cube) => self.cube(diagram, cube)?,
                    _ => self.interval(diagram, first, last)?,
                };
                if hull == Ref::TRUE {
                    continue;
                }
                let hole = diagram.minus(hull, target)?;
                let Some(inner) = self.shape(diagram, hole)? else {
                    continue;
                };
                return Ok(Some(if negated {
                    Text::join(
                        vec![self.write_not(&outer), self.write(&inner)],
                        Binding::Or,
                    )
                } else {
                    Text::join(
                        vec![self.write(&outer), self.write_not(&inner)],
                        Binding::And,
                    )
                }));
            }
        }
        Ok(None)
    }

    /// The set or its complement as a union of intervals or masks.
    fn union(&self, diagram: &mut Diagram, set: Ref, complement: Ref) -> Result<Text, OverBudget> {
        let mut best: Option<(usize, Vec<Shape>, bool)> = None;
        for (target, negated) in [(set, false), (complement, true)] {
            let runs = self.runs(diagram, target, MAX_PARTS)?.map(interval_shapes);
            let cubes = self.cubes(diagram, target)?;
            let cubes = cubes.map(|cubes| cubes.into_iter().map(Shape::Cube).collect());
            for shapes in [runs, cubes].into_iter().flatten() {
                let shapes: Vec<Shape> = shapes;
                if best
                    .as_ref()
                    .is_none_or(|(least, ..)| shapes.len() < *least)
                {
                    best = Some((shapes.len(), shapes, negated));
                }
            }
        }
        let Some((_, shapes, negated)) = best else {
            return Ok(Text::single(format!("{} in {{…}}", self.name)));
        };
        Ok(if negated {
            let parts = shapes.iter().map(|shape| self.write_not(shape));
            Text::join(parts.collect(), Binding::And)
        } else {
            let parts = shapes.iter().map(|shape| self.write(shape));
            Text::join(parts.collect(), Binding::Or)
        })
    }

    fn write(&self, shape: &Shape) -> Text {
        let name = self.name;
        Text::single(match shape {
            Shape::List(values) => match &values[..] {
                [value] => format!("{name} == {}", number(*value)),
                values => format!("{name} in {{{}}}", numbers(values)),
            },
            &Shape::Interval(first, last) if first == last => {
                format!("{name} == {}", number(first))
            }
            &Shape::Interval(0, last) => format!("{name} <= {}", number(last)),
            &Shape::Interval(first, last) if last == self.max() => {
                format!("{name} >= {}", number(first))
            }
            &Shape::Interval(first, last) => {
                format!("{} <= {name} <= {}", number(first), number(last))
            }
            // A test of a single bit.
            Shape::Cube(Cube { mask, value }) if mask == value && mask.is_power_of_two() => {
                format!("{name} & {} != 0", number(*mask))
            }
            Shape::Cube(Cube { mask, value }) => {
                format!("{name} & {} == {}", number(*mask), number(*value))
            }
        })
    }

    fn write_not(&self, shape: &Shape) -> Text {
        let name = self.name;
        Text::single(match shape {
            Shape::List(values) => match &values[..] {
                [value] => format!("{name} != {}", number(*value)),
                values => format!("{name} not in {{{}}}", numbers(values)),
            },
            &Shape::Interval(first, last) if first == last => {
                format!("{name} != {}", number(first))
            }
            &Shape::Interval(0, last) => format!("{name} > {}", number(last)),
            &Shape::Interval(first, last) if last == self.max() => {
                format!("{name} < {}", number(first))
            }
            &Shape::Interval(first, last) => {
                return Text {
                    text: format!("{name} < {} or {name} > {}", number(first), number(last)),
                    binding: Binding::Or,
                };
            }
            Shape::Cube(Cube { mask, value }) if mask == value && mask.is_power_of_two() => {
                format!("{name} & {} == 0", number(*mask))
            }
            Shape::Cube(Cube { mask, value }) => {
                format!("{name} & {} != {}", number(*mask), number(*value))
            }
        })
    }

    /// Cardinality of a set.
    pub(crate) fn count(&self, diagram: &mut Diagram, set: Ref) -> Result<u128, OverBudget> {
        fn count(
            diagram: &Diagram,
            set: Ref,
            done: &mut RefMap<(Level, u128)>,
            end: Level,
        ) -> (Level, u128) {
            if let Some(truth) = set.as_bool() {
                return (end, u128::from(truth));
            }
            if let Some(&known) = done.get(&set) {
                return known;
            }
            let level = diagram.level(set);
            let (low, high) = diagram.branches(set);
            let mut sum = 0;
            for branch in [low, high] {
                let (next, members) = count(diagram, branch, done, end);
                sum += members << (next - level - 1);
            }
            done.insert(set, (level, sum));
            (level, sum)
        }
        let mut done = RefMap::default();
        let (level, members) = count(diagram, set, &mut done, self.levels.end);
        diagram.charge(done.len() as u64)?;
        Ok(members << (level - self.levels.start))
    }

    /// The smallest and the largest member of a nonempty set.
    fn hull_interval(&self, diagram: &Diagram, set: Ref) -> (u64, u64) {
        let extreme = |greatest: bool| {
            let mut number = if greatest { self.max() } else { 0 };
            let mut at = set;
            while at.value().is_none() {
                let bit = 1 << self.place(diagram.level(at));
                let (low, high) = diagram.branches(at);
                let take_high = if greatest {
                    high != Ref::FALSE
                } else {
                    low == Ref::FALSE
                };
                number = if take_high {
                    number | bit
                } else {
                    number & !bit
                };
                at = if take_high { high } else { low };
            }
            number
        };
        (extreme(false), extreme(true))
    }

    /// The bits that are the same in all members of a set.
    fn hull_cube(&self, diagram: &mut Diagram, set: Ref) -> Result<Cube, OverBudget> {
        // For every node: which bits below it are fixed, and to what.
        fn fixed(
            field: &Field<'_>,
            diagram: &Diagram,
            set: Ref,
            done: &mut RefMap<Option<Cube>>,
        ) -> Option<Cube> {
            if let Some(truth) = set.as_bool() {
                return truth.then_some(Cube { mask: 0, value: 0 });
            }
            if let Some(&known) = done.get(&set) {
                return known;
            }
            let bit = 1 << field.place(diagram.level(set));
            let (low, high) = diagram.branches(set);
            let low = fixed(field, diagram, low, done);
            let high = fixed(field, diagram, high, done);
            let cube = match (low, high) {
                (Some(low), Some(high)) => {
                    let mask = low.mask & high.mask & !(low.value ^ high.value);
                    Some(Cube {
                        mask,
                        value: low.value & mask,
                    })
                }
                (Some(low), None) => Some(Cube {
                    mask: low.mask | bit,
                    ..low
                }),
                (None, Some(high)) => Some(Cube {
                    mask: high.mask | bit,
                    value: high.value | bit,
                }),
                (None, None) => None,
            };
            done.insert(set, cube);
            cube
        }
        let mut done = RefMap::default();
        let cube = fixed(self, diagram, set, &mut done);
        diagram.charge(done.len() as u64)?;
        Ok(cube.unwrap_or(Cube { mask: 0, value: 0 }))
    }

    /// The numbers from `first` to `last`.
    pub(crate) fn interval(
        &self,
        diagram: &mut Diagram,
        first: u64,
        last: u64,
    ) -> Result<Ref, OverBudget> {
        let (mut from, mut to) = (Ref::TRUE, Ref::TRUE);
        for place in 0..self.width() {
            let level = self.levels.end - 1 - place as Level;
            from = if first >> place & 1 != 0 {
                diagram.node(level, Ref::FALSE, from)?
            } else {
                diagram.node(level, from, Ref::TRUE)?
            };
            to = if last >> place & 1 != 0 {
                diagram.node(level, Ref::TRUE, to)?
            } else {
                diagram.node(level, to, Ref::FALSE)?
            };
        }
        diagram.and(from, to)
    }

    fn cube(&self, diagram: &mut Diagram, cube: Cube) -> Result<Ref, OverBudget> {
        let mut set = Ref::TRUE;
        for place in 0..self.width() {
            if cube.mask >> place & 1 != 0 {
                let level = self.levels.end - 1 - place as Level;
                set = if cube.value >> place & 1 != 0 {
                    diagram.node(level, Ref::FALSE, set)?
                } else {
                    diagram.node(level, set, Ref::FALSE)?
                };
            }
        }
        Ok(set)
    }

    /// The maximal intervals of a set, if there are no more than `limit`.
    fn runs(
        &self,
        diagram: &mut Diagram,
        set: Ref,
        limit: usize,
    ) -> Result<Option<Vec<(u64, u64)>>, OverBudget> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        // Depth first, low branches first: the intervals come in order.
        let mut open = vec![(set, 0u64, self.levels.start)];
        // Adjacent intervals merge, so nodes are counted too.
        let limit_of_steps = 64 * limit + 4096;
        let mut steps = 0;
        while let Some((set, prefix, level)) = open.pop() {
            steps += 1;
            if steps > limit_of_steps {
                return Ok(None);
            }
            diagram.charge(1)?;
            match set.as_bool() {
                Some(false) => {}
                Some(true) => {
                    let rest = u64::MAX.checked_shr(64 - u32::from(self.levels.end - level));
                    let first = prefix;
                    let last = prefix | rest.unwrap_or(0);
                    match runs.last_mut() {
                        Some(run) if run.1.checked_add(1) == Some(first) => run.1 = last,
                        _ => runs.push((first, last)),
                    }
                    if runs.len() > limit {
                        return Ok(None);
                    }
                }
                None => {
                    let (low, high) = diagram.halves(set, level);
                    let bit = 1 << self.place(level);
                    open.push((high, prefix | bit, level + 1));
                    open.push((low, prefix, level + 1));
                }
            }
            if open.len() + runs.len() > 4 * limit + 256 {
                return Ok(None);
            }
        }
        Ok(Some(runs))
    }

    /// A small set of masks whose union is the set, if there is one.
    fn cubes(&self, diagram: &mut Diagram, set: Ref) -> Result<Option<Vec<Cube>>, OverBudget> {
        let mut left = MAX_PARTS;
        let cover = self.cover(diagram, set, set, &mut left)?;
        Ok(cover.map(|(cubes, _)| cubes))
    }

    /// An irredundant cover of masks between `least` and `most` (Minato-Morreale
    /// algorithm), with its union.
    fn cover(
        &self,
        diagram: &mut Diagram,
        least: Ref,
        most: Ref,
        left: &mut usize,
    ) -> Result<Option<(Vec<Cube>, Ref)>, OverBudget> {
        if least == Ref::FALSE {
            return Ok(Some((Vec::new(), Ref::FALSE)));
        }
        if most == Ref::TRUE {
            let Some(rest) = left.checked_sub(1) else {
                return Ok(None);
            };
            *left = rest;
            return Ok(Some((vec![Cube { mask: 0, value: 0 }], Ref::TRUE)));
        }
        let level = diagram.level(least).min(diagram.level(most));
        let (least0, least1) = diagram.halves(least, level);
        let (most0, most1) = diagram.halves(most, level);
        let only0 = diagram.minus(least0, most1)?;
        let Some((cubes0, covered0)) = self.cover(diagram, only0, most0, left)? else {
            return Ok(None);
        };
        let only1 = diagram.minus(least1, most0)?;
        let Some((cubes1, covered1)) = self.cover(diagram, only1, most1, left)? else {
            return Ok(None);
        };
        let rest0 = diagram.minus(least0, covered0)?;
        let rest1 = diagram.minus(least1, covered1)?;
        let rest = diagram.or(rest0, rest1)?;
        let both = diagram.and(most0, most1)?;
        let Some((mut cubes, covered)) = self.cover(diagram, rest, both, left)? else {
            return Ok(None);
        };
        let mask = 1 << self.place(level);
        cubes.extend(cubes0.into_iter().map(|cube| Cube {
            mask: cube.mask | mask,
            ..cube
        }));
        cubes.extend(cubes1.into_iter().map(|cube| Cube {
            mask: cube.mask | mask,
            value: cube.value | mask,
        }));
        let low = diagram.or(covered0, covered)?;
        let high = diagram.or(covered1, covered)?;
        let covered = diagram.node(level, low, high)?;
        Ok(Some((cubes, covered)))
    }
}

/// Intervals, with single values combined into lists.
fn interval_shapes(runs: Vec<(u64, u64)>) -> Vec<Shape> {
    let (single, long): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|(first, last)| first == last);
    let mut shapes = Vec::new();
    if !single.is_empty() {
        shapes.push(Shape::List(
            single.into_iter().map(|(value, _)| value).collect(),
        ));
    }
    shapes.extend(
        long.into_iter()
            .map(|(first, last)| Shape::Interval(first, last)),
    );
    shapes
}

fn numbers(values: &[u64]) -> String {
    let texts: Vec<String> = values.iter().map(|&value| number(value)).collect();
    texts.join(", ")
}

/// Formats a number: small ones in decimal, others in hexadecimal with the halves of a
/// 64-bit number separated.
pub fn number(value: u64) -> String {
    if value < 1024 {
        value.to_string()
    } else if value >> 32 == 0 {
        format!("{value:#x}")
    } else {
        let low = value as u32;
        format!("{:#x}_{:04x}_{:04x}", value >> 32, low >> 16, low & 0xffff)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    const FIELD: Field<'static> = Field {
        levels: 10..26,
        name: "x",
    };

    fn describe(build: impl Fn(&mut Diagram) -> Result<Ref, OverBudget>) -> String {
        let mut diagram = Diagram::new(10_000_000);
        let set = build(&mut diagram).unwrap();
        FIELD.describe(&mut diagram, set).unwrap().text
    }

    fn of(diagram: &mut Diagram, member: impl Fn(u64) -> bool) -> Result<Ref, OverBudget> {
        let mut set = Ref::FALSE;
        for value in (0..=FIELD.max()).filter(|&value| member(value)) {
            let single = FIELD.interval(diagram, value, value)?;
            set = diagram.or(set, single)?;
        }
        Ok(set)
    }

    #[test]
    fn sets_have_simple_texts() {
        for (expected, member) in [
            ("x == 7", (|x| x == 7) as fn(u64) -> bool),
            ("x != 7", |x| x != 7),
            ("x in {0, 8, 0x8000}", |x| [0, 8, 0x8000].contains(&x)),
            ("x not in {0, 8}", |x| ![0, 8].contains(&x)),
            ("x <= 999", |x| x < 1000),
            ("x >= 1000", |x| x >= 1000),
            ("20 <= x <= 999", |x| (20..1000).contains(&x)),
            ("x < 20 or x > 999", |x| !(20..1000).contains(&x)),
            ("x & 64 != 0", |x| x & 64 != 0),
            ("x & 64 == 0", |x| x & 64 == 0),
            ("x & 0x7e02 == 0", |x| x & 0x7e02 == 0),
            ("x & 0x7e02 != 0x4000", |x| x & 0x7e02 != 0x4000),
            ("x >= 1000 and x & 1 == 0", |x| x >= 1000 && x & 1 == 0),
            ("x & 4 == 0 and x != 9", |x| x & 4 == 0 && x != 9),
            ("x & 1 != 0 or x & 64 != 0", |x| x & 65 != 0),
        ] {
            let text = describe(|diagram| of(diagram, member));
            // A union of masks may also read as the complement of one.
            if expected.contains(" or x &") {
                assert_eq!(text, "x & 65 != 0");
            } else if expected.starts_with("x >= 1000 and") {
                assert_eq!(text, "1000 <= x <= 0xfffe and x & 1 == 0");
            } else {
                assert_eq!(text, expected);
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(oracle::property_seed()),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn runs_and_masks_are_the_set(members in proptest::collection::btree_set(0u64..512, 0..60)) {
            let mut diagram = Diagram::new(10_000_000);
            let set = of(&mut diagram, |x| members.contains(&x)).unwrap();
            prop_assert_eq!(FIELD.count(&mut diagram, set), Ok(members.len() as u128));
            let runs = FIELD.runs(&mut diagram, set, 1000).unwrap().unwrap();
            let from_runs: std::collections::BTreeSet<u64> =
                runs.iter().flat_map(|&(first, last)| first..=last).collect();
            prop_assert_eq!(&from_runs, &members);
            let cubes = FIELD.cubes(&mut diagram, set).unwrap().unwrap();
            for value in 0..512 {
                let covered = cubes.iter().any(|cube| value & cube.mask == cube.value);
                prop_assert_eq!(covered, members.contains(&value));
            }
        }
    }
}
