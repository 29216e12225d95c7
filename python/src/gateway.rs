//! Access rules of the gateway.

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::gateway::analysis::{self, BUDGET};
use ::gateway::import::{Assumptions, Imported, Variant, iptables_save, nft_json};
use ::gateway::{Capacity, Compiled, Field, Header, Hook, Packet, Plane, RuleSet};
use beebox::internal::run::{LoadOptions, SplitMix};
use beebox::internal::kernel::linux_6_18;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::bytes::{Payload, bytes_of};
use crate::capture::open;
use crate::errors::Fault;
use crate::json::to_python;

/// Access rules of the gateway: the first rule that matches a packet decides.
///
/// `Rules(text)` reads the text of a rule file, `Rules.open(path)` a file, `Rules.from_iptables` and
/// `Rules.from_nft` what `iptables-save` and `nft -j list ruleset` print.
///
/// Raises FormatError with line and column for a text that is no list of rules.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct Rules {
    set: RuleSet,
    compiled: Compiled,
    remarks: Vec<String>,
}

impl Rules {
    fn of(set: RuleSet, remarks: Vec<String>) -> Result<Rules, Fault> {
        // Interfaces are those of a machine that these rules do not run on.
        let index = |name: &str| Some(name.parse().unwrap_or(0));
        let compiled = Compiled::with_interfaces(&set, &index).map_err(Fault::of_format)?;
        Ok(Rules {
            set,
            compiled,
            remarks,
        })
    }

    fn imported(imported: Imported) -> Result<Rules, Fault> {
        let remarks = imported.remarks.iter();
        let remarks = remarks.map(|it| format!("{}: {}: {}", it.place, it.rule, it.reason));
        let remarks = remarks.collect();
        Rules::of(imported.set, remarks)
    }

    fn rule_json(&self, rule: u32) -> Value {
        json!({ "rule": rule, "action": self.set.action(rule).to_string(),
                "text": self.set.rule_text(rule) })
    }
}

#[pymethods]
impl Rules {
    #[new]
    fn new(py: Python<'_>, text: &str) -> PyResult<Rules> {
        let made = py.detach(|| {
            let set = RuleSet::parse(text).map_err(Fault::of_format)?;
            Rules::of(set, Vec::new())
        });
        Ok(made?)
    }

    /// The rules of a file.
    ///
    /// Raises FileError if it cannot be read, FormatError with line and column.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Rules> {
        let text = py.detach(|| std::fs::read_to_string(&path));
        let place = path.display();
        let text = text.map_err(|error| Fault::new("file", format_args!("{place}: {error}")))?;
        Rules::new(py, &text)
    }

    /// The rules of a chain of `iptables-save`; `nft` says that iptables-nft wrote it.
    ///
    /// Raises FormatError for text of another form, and if there is no such chain.
    #[staticmethod]
    #[pyo3(signature = (text, chain = None, *, nft = false))]
    fn from_iptables(
        py: Python<'_>,
        text: &str,
        chain: Option<&str>,
        nft: bool,
    ) -> PyResult<Rules> {
        let made = py.detach(|| {
            let stated = Variant::of_save(text);
            let variant = match nft {
                true => Variant::Nft,
                false => stated.unwrap_or(Variant::Legacy),
            };
            let imported = iptables_save(text, chain, variant, &Assumptions::default());
            Rules::imported(imported.map_err(Fault::of_format)?)
        });
        Ok(made?)
    }

    /// The rules of a base chain of `nft -j list ruleset`.
    ///
    /// Raises FormatError for text of another form, and if there is no such chain.
    #[staticmethod]
    #[pyo3(signature = (text, chain = None))]
    fn from_nft(py: Python<'_>, text: &str, chain: Option<&str>) -> PyResult<Rules> {
        let made = py.detach(|| {
            let imported = nft_json(text, chain, &Assumptions::default());
            Rules::imported(imported.map_err(Fault::of_format)?)
        });
        Ok(made?)
    }

    /// Rules of an import that are left out, or do less than before, with the reason.
    #[getter]
    fn remarks(&self) -> Vec<String> {
        self.remarks.clone()
    }

    /// Which rule decides about a packet, and why: a dict with the rules that match in each field.
    /// The packet is text, `"proto tcp from 10.0.0.1 port 4000 to 192.0.2.1 port 80"`, or a frame.
    ///
    /// Raises FormatError for text that is no packet.
    fn explain<'py>(&self, packet: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let (text, frame) = match packet.extract::<&str>() {
            Ok(text) => (Some(text), None),
            Err(_) => (None, Some(bytes_of(packet)?)),
        };
        let frame = frame.as_ref().map_or(&[][..], Payload::as_slice);
        let answer = packet.py().detach(|| {
            let header = match text {
                Some(text) => Header::Ip(text.parse::<Packet>().map_err(Fault::of_format)?),
                None => Header::of(frame),
            };
            Ok::<_, Fault>(self.explanation(&header))
        });
        to_python(packet.py(), &answer?)
    }

    /// What changes with other rules: a list of dicts with both rules and a packet for which their
    /// actions differ.
    ///
    /// Raises TooComplexError if it is not decided within the budget of comparisons.
    #[pyo3(signature = (new, *, budget = BUDGET))]
    fn diff<'py>(
        &self,
        py: Python<'py>,
        new: &Bound<'py, Rules>,
        budget: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let new = new.get();
        let (old_set, new_set) = ((&self.set, &self.compiled), (&new.set, &new.compiled));
        let found = py.detach(|| analysis::changes(old_set, new_set, budget));
        if found.is_undecided {
            let what = format!("not decided within the budget of {budget} comparisons");
            return Err(Fault::new("too_complex", what).into());
        }
        let general = [
            ("other", &self.set.other, &new.set.other),
            ("malformed", &self.set.malformed, &new.set.malformed),
        ];
        let general = general.iter().filter(|(_, old, new)| old != new);
        let general = general.map(|(what, old, new)| {
            json!({ "packet_class": what, "old_action": old.to_string(),
                    "new_action": new.to_string() })
        });
        let changes = found.changes.iter().map(|change| {
            json!({
                "old": self.rule_json(change.old),
                "new": new.rule_json(change.new),
                "packet_text": change.example.to_string(),
            })
        });
        let all: Vec<Value> = changes.chain(general).collect();
        to_python(py, &all)
    }

    /// Numbers of the rules that decide about no packet.
    ///
    /// Raises TooComplexError if it is not decided within the budget of comparisons.
    #[pyo3(signature = (*, budget = BUDGET))]
    fn unreachable(&self, py: Python<'_>, budget: u64) -> PyResult<Vec<u32>> {
        let found = py.detach(|| analysis::unreachable(&self.set, &self.compiled, budget));
        match found.undecided.is_empty() {
            true => Ok(found.rules),
            false => {
                let what = format!("not decided within the budget of {budget} comparisons");
                Err(Fault::new("too_complex", what).into())
            }
        }
    }

    /// Runs the data plane of the gateway with these rules on a capture: a dict with the packets by
    /// `verdicts`, and the `hits` of each rule (0 is the default).
    ///
    /// Raises FileError and CaptureError for captures that cannot be read.
    fn run<'py>(&self, py: Python<'py>, path: PathBuf) -> PyResult<Bound<'py, PyAny>> {
        let answer = py.detach(|| self.run_plane(&path));
        to_python(py, &answer?)
    }

    fn __len__(&self) -> usize {
        self.set.rules.len()
    }

    fn __str__(&self, py: Python<'_>) -> String {
        py.detach(|| self.set.to_string())
    }

    fn __repr__(&self) -> String {
        format!("<Rules: {} and a default>", self.set.rules.len())
    }
}

impl Rules {
    fn explanation(&self, header: &Header) -> Value {
        let rule = self.set.first_match(header).rule;
        let mut answer = self.rule_json(rule);
        if let Header::Ip(packet) = header {
            let matching = self.compiled.matching(packet);
            let fields = Field::ALL.into_iter().zip(&matching).map(|(field, rules)| {
                json!({ "field": field.name(), "text": packet.field_text(field),
                        "rule_numbers": rules })
            });
            answer["packet_text"] = packet.to_string().into();
            answer["fields"] = fields.collect();
        }
        answer
    }

    fn run_plane(&self, path: &std::path::Path) -> Result<Value, Fault> {
        let failed = |error| Fault::new("unsupported", error);
        let kernel = linux_6_18().with_bit_operations();
        let (table, options) = (self.compiled.table(), LoadOptions::default());
        let plane = Plane::load(
            table,
            Hook::Xdp,
            Capacity::of(table),
            &kernel,
            false,
            &options,
        );
        let plane = plane.map_err(|error| failed(error.to_string()))?;
        let mut random = SplitMix::new(0);
        let input = open(path)?;
        let absent = || failed("the gateway's object has no such program".to_owned());
        let mut program = plane
            .program(Hook::Xdp, 0, &mut random)
            .ok_or_else(absent)?;
        let mut verdicts = BTreeMap::<String, u64>::new();
        let ran = program.run_capture(input, None, &mut |run, _| {
            *verdicts.entry(run.verdict.name.to_string()).or_default() += 1;
        });
        ran.map_err(|error| Fault::new("capture", format_args!("{}: {error}", path.display())))?;
        let hits = plane.hits().map_err(|error| failed(error.to_string()))?;
        let hits: Vec<u64> = hits.iter().map(|hits| hits.packets).collect();
        let last = self.set.rules.len();
        let [other, malformed] = [last + 1, last + 2].map(|at| hits.get(at).copied());
        Ok(json!({ "verdicts": verdicts, "hits": hits[..=last],
                   "other": other, "malformed": malformed }))
    }
}
