//! Several engines on the same work, timed side by side.
//!
//! A [`Race`] first checks that all contenders give the same answer to every
//! item, and fails if they don't: a comparison of unequal work is worth nothing.
//! Then it takes many short samples, each one pass over the items, one contender
//! after the other and another one first each time, so that a disturbance of the
//! machine hits all alike. What counts is the fastest pass: whatever disturbs a
//! run makes it slower, never faster.
//!
//! The fastest pass still depends on where the linker and the loader put the
//! code and the data, so `fresh` repeats the whole in new processes.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// A contestant: a function from an item to an answer, or one that measures its own time.
pub trait Contender<T> {
    /// The answer to one item.
    fn answer(&mut self, item: &T) -> u32;

    /// Answers all items, `rounds` times; how long that took.
    fn pass(&mut self, items: &[T], rounds: u32) -> Duration;
}

impl<T, F: FnMut(&T) -> u32> Contender<T> for F {
    fn answer(&mut self, item: &T) -> u32 {
        self(item)
    }

    #[inline(never)]
    fn pass(&mut self, items: &[T], rounds: u32) -> Duration {
        let mut answer = |item| u64::from(self(black_box(item)));
        timed(|| match items {
            // With a loop around the loop too few registers are left for counters,
            // and a round of it can't be faster than one goes through memory: six
            // cycles, more than the shortest runs take.
            [item] => (0..rounds).fold(0, |sum, _| sum + answer(item)),
            _ => {
                let mut sum = 0;
                for _ in 0..rounds {
                    for item in items {
                        sum += answer(item);
                    }
                }
                sum
            }
        })
    }
}

/// For a contender that fails on an item; no program of a benchmark returns it,
/// so the race fails too.
pub const NO_ANSWER: u32 = 0xffff_fffe;

/// Two engines that do not do the same work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unequal {
    /// On which workload.
    pub workload: String,
    /// The item on which they differ.
    pub item: usize,
    /// The engine that is taken to be right, and its answer.
    pub expected: (&'static str, u32),
    /// The engine that differs, and its answer.
    pub found: (&'static str, u32),
}

impl fmt::Display for Unequal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (right, expected) = self.expected;
        let (wrong, found) = self.found;
        write!(
            f,
            "{}: on item {} {wrong} answers {found:#x} where {right} answers {expected:#x}; \
             nothing was timed",
            self.workload, self.item
        )
    }
}

impl std::error::Error for Unequal {}

/// Engines and the items that they race on.
pub struct Race<'a, T> {
    workload: String,
    items: &'a [T],
    contenders: Vec<(&'static str, Box<dyn Contender<T> + 'a>)>,
}

impl<'a, T> Race<'a, T> {
    /// A race without contenders yet.
    pub fn new(workload: impl Into<String>, items: &'a [T]) -> Race<'a, T> {
        Race {
            workload: workload.into(),
            items,
            contenders: Vec::new(),
        }
    }

    /// Adds a contender. The first one added is taken to be right.
    pub fn add(&mut self, engine: &'static str, run: impl FnMut(&T) -> u32 + 'a) {
        self.add_contender(engine, run);
    }

    /// Adds a contender that may keep its own time.
    pub fn add_contender(&mut self, engine: &'static str, contender: impl Contender<T> + 'a) {
        self.contenders.push((engine, Box::new(contender)));
    }

    /// Compares every answer, then times all contenders: nanoseconds an item.
    pub fn run(mut self, samples: u32) -> Result<Vec<(&'static str, f64)>, Unequal> {
        self.compare()?;
        let items = self.items;
        let mut names = Vec::new();
        let mut answers = Vec::new();
        let mut passes = Vec::new();
        for (name, mut contender) in self.contenders {
            let rounds = rounds_in_a_sample(|rounds| contender.pass(items, rounds));
            names.push(name);
            answers.push(f64::from(rounds) * items.len() as f64);
            passes.push(move || contender.pass(items, rounds));
        }
        let fastest = fastest_passes(&mut passes, samples);
        let nanoseconds = fastest
            .iter()
            .zip(answers)
            .map(|(time, answers)| time.as_nanos() as f64 / answers);
        Ok(names.into_iter().zip(nanoseconds).collect())
    }

    fn compare(&mut self) -> Result<(), Unequal> {
        let Some(((right, model), others)) = self.contenders.split_first_mut() else {
            return Ok(());
        };
        for (at, item) in self.items.iter().enumerate() {
            let expected = model.answer(item);
            for (engine, contender) in others.iter_mut() {
                let found = contender.answer(item);
                if found != expected {
                    return Err(Unequal {
                        workload: self.workload.clone(),
                        item: at,
                        expected: (right, expected),
                        found: (engine, found),
                    });
                }
            }
        }
        Ok(())
    }
}

/// Duration of a sample: long enough for the clock, short enough to fit between two
/// interrupts.
const SAMPLE: Duration = Duration::from_micros(300);

/// Time to compute a value, which is discarded.
#[inline(always)]
pub fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

/// Number of repetitions (at least 1) that fill a sample, by the fastest of a few passes,
/// so that interrupts do not count as work.
pub fn rounds_in_a_sample(mut pass: impl FnMut(u32) -> Duration) -> u32 {
    let mut rounds = 1;
    loop {
        let time = (0..3).map(|_| pass(rounds)).min().unwrap_or_default();
        if time >= SAMPLE / 4 {
            let fitting = f64::from(rounds) * SAMPLE.as_secs_f64() / time.as_secs_f64();
            return fitting.max(1.0) as u32;
        }
        rounds *= 2;
    }
}

/// The fastest of many samples of each, taken in turns.
pub fn fastest_passes<F: FnMut() -> Duration>(passes: &mut [F], samples: u32) -> Vec<Duration> {
    let mut fastest = vec![Duration::MAX; passes.len()];
    for sample in 0..samples as usize {
        for turn in 0..passes.len() {
            let at = (sample + turn) % passes.len();
            fastest[at] = fastest[at].min(passes[at]());
        }
    }
    fastest
}

/// The time that one of several pieces of work takes, in nanoseconds: the
/// fastest of many samples, taken in turns.
pub fn times(works: &mut [&mut dyn FnMut()], samples: u32) -> Vec<f64> {
    let mut rounds = Vec::new();
    let mut passes: Vec<_> = works
        .iter_mut()
        .map(|work| {
            let mut pass = move |rounds: u32| timed(|| (0..rounds).for_each(|_| work()));
            let fitting = rounds_in_a_sample(&mut pass);
            rounds.push(f64::from(fitting));
            move || pass(fitting)
        })
        .collect();
    let fastest = fastest_passes(&mut passes, samples);
    fastest
        .iter()
        .zip(rounds)
        .map(|(time, rounds)| time.as_nanos() as f64 / rounds)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_work_is_not_timed() {
        let items = [1, 2, 3];
        let mut race = Race::new("halves", &items);
        race.add("divides", |item: &u32| item / 2);
        race.add("shifts", |item: &u32| item >> 1);
        race.add("rounds up", |item: &u32| item.div_ceil(2));
        let unequal = Unequal {
            workload: "halves".into(),
            item: 0,
            expected: ("divides", 0),
            found: ("rounds up", 1),
        };
        assert_eq!(race.run(5), Err(unequal));
    }

    #[test]
    fn more_work_takes_longer() {
        let items: Vec<u64> = (0..100).collect();
        let digest = |rounds: u32| {
            move |item: &u64| {
                black_box((0..rounds).fold(*item, |a, _| black_box(a.wrapping_mul(31) ^ 7)));
                0
            }
        };
        let mut race = Race::new("digest", &items);
        race.add("short", digest(10));
        race.add("long", digest(1000));
        let times = race.run(5).expect("both answer 0");
        let [("short", short), ("long", long)] = times[..] else {
            panic!("{times:?}");
        };
        assert!(long > short * 10.0, "{short} {long}");
    }
}
