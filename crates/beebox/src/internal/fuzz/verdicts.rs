//! Properties that a run answers by itself: its verdict, its instructions and its end.

use ::kernel::programs::verdict;
use packet::{Metadata, Packet};

use super::executor::{Executor, Expects, Known, Violation};
use super::input::InputStep;
use super::property::{Holds, Property};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::RunError;

impl Executor<'_, '_> {
    pub(super) fn holds_no_more(&self, property: usize) -> bool {
        self.skipped[property]
    }

    #[cold]
    pub(super) fn stopped(&self, step: usize, error: &RunError) -> Option<Violation> {
        let is_ends = |property: &Property| matches!(property.0, Holds::Ends);
        let property = self.properties.iter().position(is_ends)?;
        (!self.skipped[property]).then(|| Violation {
            property,
            step,
            what: error.to_string(),
            expects: Expects::Lines(vec!["instructions <= 1000000".to_owned()]),
        })
    }

    /// Remembers a value that programs return.
    #[cold]
    pub(super) fn learn(&mut self, retval: u32) -> usize {
        let known = verdict(self.side.program.kind(), retval);
        let mut suspects = Vec::new();
        for (place, property) in self.properties.iter().enumerate() {
            let is_suspect = match &property.0 {
                Holds::Never { verdict, .. } => *verdict == known.name,
                Holds::Always { verdict, .. } => *verdict != known.name,
                Holds::Expect(expectation) if expectation.kind() == ExpectationKind::Value => {
                    let run = self.side.program.output(retval);
                    expectation.differs(&[], None, run).is_some()
                }
                _ => false,
            };
            if is_suspect {
                suspects.push(place);
            }
        }
        // Programs may return any number.
        self.known.truncate(255);
        self.known.push(Known {
            retval,
            verdict: known,
            suspects,
        });
        self.known.len() - 1
    }

    pub(super) fn check_verdict(
        &mut self,
        known: usize,
        place: usize,
        step: &InputStep,
    ) -> Option<Violation> {
        let known = &self.known[known];
        for property in known.suspects.iter().copied() {
            if self.skipped[property] {
                continue;
            }
            if let Some(runner) = &mut self.runners[property] {
                let packet = Packet::whole(&step.packet, &Metadata::UNKNOWN);
                // A filter that does not end takes no packet.
                if runner.run(&packet).unwrap_or(0) == 0 {
                    continue;
                }
            }
            let line = match &self.properties[property].0 {
                Holds::Always { verdict, .. } => format!("verdict {verdict}"),
                Holds::Expect(expectation) => expectation.text().to_owned(),
                _ => format!("verdict not {}", known.verdict.name),
            };
            return Some(Violation {
                property,
                step: place,
                what: format!("got {} ({})", known.verdict.name, known.retval as i32),
                expects: Expects::Lines(vec![line]),
            });
        }
        None
    }

    pub(super) fn check_instructions(
        &self,
        known: usize,
        instructions: u64,
        step: usize,
    ) -> Option<Violation> {
        for (property, holds) in self.properties.iter().enumerate() {
            let Holds::Expect(expectation) = &holds.0 else {
                continue;
            };
            let Some((verdict, most)) = expectation.most_instructions() else {
                continue;
            };
            let is_of = verdict.is_none_or(|name| name == self.known[known].verdict.name);
            if instructions > most && is_of && !self.holds_no_more(property) {
                return Some(Violation {
                    property,
                    step,
                    what: format!("got {instructions} instructions"),
                    expects: Expects::Lines(vec![expectation.text().to_owned()]),
                });
            }
        }
        None
    }
}
