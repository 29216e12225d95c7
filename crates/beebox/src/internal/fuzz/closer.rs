//! Properties that are about more than the verdict: what is left in packets, maps and records.

use ::kernel::maps::Written;
use ::kernel::programs::verdict;

use super::executor::{Executor, Expects, Known, Violation, given};
use super::input::{FuzzInput, InputStep};
use super::property::{FuzzRun, Holds, Property};
use crate::internal::expect::ExpectationKind;
use crate::internal::run::RunRecord;

impl Executor<'_, '_> {
    /// Checks properties that are about more than the verdict.
    pub(super) fn look_closer(
        &mut self,
        known: usize,
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<Violation> {
        let retval = self.known[known].retval;
        let records = self.side.records();
        let context = step.context_of(self.side.program.kind());
        let wrong = |property: usize, what: String, expects: Expects| {
            Some(Violation {
                property,
                step: place,
                what,
                expects,
            })
        };
        for property in 0..self.properties.len() {
            if self.skipped[property] {
                continue;
            }
            match &self.properties[property].0 {
                Holds::Never { .. } | Holds::Always { .. } | Holds::Ends => {}
                Holds::Expect(expectation) => {
                    let what = match expectation.kind() {
                        ExpectationKind::Instructions | ExpectationKind::Value => None,
                        ExpectationKind::Maps => expectation
                            .maps_differ(self.object, self.side.loaded)
                            .ok()?,
                        ExpectationKind::Output => {
                            let run = self.side.program.output(retval);
                            expectation.differs(&step.packet, context, run)
                        }
                    };
                    if let Some(what) = what {
                        let lines = vec![expectation.text().to_owned()];
                        return wrong(property, what, Expects::Lines(lines));
                    }
                }
                Holds::Check(_, check) => {
                    let data_out = self.side.program.output(retval).data_out;
                    let checked = check(&FuzzRun {
                        packet: &step.packet,
                        context,
                        time: step.time,
                        retval,
                        verdict: &self.known[known].verdict.name,
                        data_out: &data_out,
                        loaded: self.side.loaded,
                    });
                    if let Err(what) = checked {
                        return wrong(property, what, Expects::Nothing);
                    }
                }
                Holds::Idempotent => {
                    let again = self.run_again(known, place, (input, step));
                    if let Some((what, expects)) = again {
                        return wrong(property, what, expects);
                    }
                }
                Holds::Same => {
                    let differs = self.differs(known, &records, place, (input, step));
                    if let Some((what, expects)) = differs {
                        return wrong(property, what, expects);
                    }
                }
            }
        }
        None
    }

    /// Runs the program on what the last run left; what differs.
    fn run_again(
        &mut self,
        known: usize,
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<(String, Expects)> {
        let Known {
            retval, verdict, ..
        } = &self.known[known];
        // What is dropped does not come again.
        verdict.kept?;
        let first = self.side.program.output(*retval).data_out;
        let step = InputStep {
            packet: first,
            ..step.clone()
        };
        let given = given(
            input,
            place,
            (&step, self.side.program.kind()),
            self.is_seeded,
        );
        let result = self.side.program.run_input(given, &mut self.guard);
        self.side.loaded.drain_counters(|_, _| {});
        self.side.records();
        let second = result.ok()?;
        let left = self.side.program.output(second);
        let lines = vec![
            format!("verdict {}", verdict.name),
            "data unchanged".to_owned(),
        ];
        let what = match second == *retval {
            true if left.data_out == step.packet => return None,
            true => "a second run changes the packet again".to_owned(),
            false => format!(
                "a second run gives {}, the first {}",
                left.verdict.name, verdict.name
            ),
        };
        Some((what, Expects::Again(step.packet, lines)))
    }

    /// Runs the other object on the same; what differs, and what it gave.
    fn differs(
        &mut self,
        known: usize,
        records: &[RunRecord],
        place: usize,
        (input, step): (&FuzzInput, &InputStep),
    ) -> Option<(String, Expects)> {
        let old = self.old.as_mut()?;
        let given = given(input, place, (step, old.program.kind()), self.is_seeded);
        let result = old.program.run_input(given, &mut self.guard);
        old.loaded.drain_counters(|_, _| {});
        let old_records = old.records();
        let Known {
            retval,
            verdict: new,
            ..
        } = &self.known[known];
        let line = |text: String| Expects::Lines(vec![text]);
        let expected = match result {
            Ok(expected) => expected,
            Err(error) if error.is_stop() => {
                return Some((format!("the other object stops: {error}"), Expects::Nothing));
            }
            Err(_) => return None,
        };
        let before = verdict(old.program.kind(), expected);
        if expected != *retval {
            let what = format!("got {}, the other object gives {}", new.name, before.name);
            return Some((what, line(format!("retval {}", expected as i32))));
        }
        let (one, other) = (self.side.program.captured()?, old.program.captured()?);
        let (to, old_to) = (one.redirect(*retval), other.redirect(expected));
        if to != old_to {
            let target = old_to.map(crate::internal::run::redirect_json);
            let target = target.map_or("none".to_owned(), |target| {
                serde_json::Value::Object(target).to_string()
            });
            let what = "it redirects the packet elsewhere than the other object".to_owned();
            return Some((what, line(format!("redirect {target}"))));
        }
        if before.kept.is_some() {
            let (left, expected) = (one.data_out(), other.data_out());
            if left != expected {
                let what = "it leaves another packet than the other object".to_owned();
                return Some((what, line(format!("data {}", super::hex(&expected)))));
            }
        }
        if records != old_records {
            let what = "it writes other records than the other object".to_owned();
            return Some((what, Expects::Nothing));
        }
        if self.side.program.printed() != old.program.printed() {
            let what = "it prints other text than the other object".to_owned();
            return Some((what, Expects::Nothing));
        }
        None
    }

    /// A map of both objects that holds something else in each.
    pub(super) fn maps_differ(&self, step: usize) -> Option<Violation> {
        let old = self.old.as_ref()?;
        let is_same = |property: &Property| matches!(property.0, Holds::Same);
        let property = self.properties.iter().position(is_same)?;
        if self.skipped[property] {
            return None;
        }
        for map in self.side.loaded.maps() {
            let name = &map.def.name;
            let Some(before) = old.loaded.maps().find(|known| known.def.name == *name) else {
                continue;
            };
            let sizes = |map: &crate::internal::run::ObjectMap| {
                (
                    map.def.params.key_size,
                    map.def.params.value_size,
                    map.map.kind(),
                )
            };
            let (Some(written), Some(old_written), true) = (
                self.side.loaded.written(map),
                old.loaded.written(before),
                sizes(map) == sizes(before),
            ) else {
                continue;
            };
            let value = |map: &crate::internal::run::ObjectMap, key: &[u8]| {
                let mut value = vec![0; map.map.value_len()];
                map.map.lookup(key, &mut value, 0).ok().map(|()| value)
            };
            let keys = written.iter().chain(&old_written);
            for (key, _) in keys {
                let now: Written = (key.clone(), value(map, key));
                let expected: Written = (key.clone(), value(before, key));
                if now != expected {
                    return Some(Violation {
                        property,
                        step,
                        what: format!(
                            "map {name} holds something else than that of the other object"
                        ),
                        expects: Expects::Element {
                            map: name.clone(),
                            key: expected.0,
                            value: expected.1,
                        },
                    });
                }
            }
        }
        None
    }
}
