//! Results of a benchmark, as data.
//!
//! A [`Report`] holds rows (one figure of one engine on one workload) and a
//! summary (the few figures that answer "is it fast enough?"). Every benchmark
//! makes one, [`crate::render`] writes it.

use serde::{Deserialize, Serialize};

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// Nanoseconds for each run of the program.
    #[serde(rename = "ns/run")]
    NsPerRun,
    /// Nanoseconds for each operation of a program.
    #[serde(rename = "ns/op")]
    NsPerOperation,
    /// Nanoseconds for each instruction that was executed.
    #[serde(rename = "ns/insn")]
    NsPerInsn,
    /// Microseconds for the whole.
    #[serde(rename = "µs")]
    Micros,
    /// Millions of runs in a second.
    #[serde(rename = "M runs/s")]
    MillionRunsPerSecond,
    /// Microseconds for each thousand instructions of a program.
    #[serde(rename = "µs/1000 insns")]
    MicrosPerThousandInsns,
    /// Ratio of the times of two engines.
    #[serde(rename = "×")]
    Ratio,
    /// Bytes of native code for each instruction.
    #[serde(rename = "bytes/insn")]
    BytesPerInsn,
    /// Seconds.
    #[serde(rename = "s")]
    Seconds,
    /// Megabytes (10⁶ bytes).
    #[serde(rename = "MB")]
    Megabytes,
}

impl Unit {
    /// Its symbol, in tables and in JSON.
    pub const fn symbol(self) -> &'static str {
        match self {
            Unit::NsPerRun => "ns/run",
            Unit::NsPerOperation => "ns/op",
            Unit::NsPerInsn => "ns/insn",
            Unit::Micros => "µs",
            Unit::MillionRunsPerSecond => "M runs/s",
            Unit::MicrosPerThousandInsns => "µs/1000 insns",
            Unit::Ratio => "×",
            Unit::BytesPerInsn => "bytes/insn",
            Unit::Seconds => "s",
            Unit::Megabytes => "MB",
        }
    }

    /// Its name, over a table.
    pub const fn title(self) -> &'static str {
        match self {
            Unit::NsPerRun => "Nanoseconds a run",
            Unit::NsPerOperation => "Nanoseconds an operation",
            Unit::NsPerInsn => "Nanoseconds an executed instruction",
            Unit::Micros => "Microseconds",
            Unit::MillionRunsPerSecond => "Million runs a second",
            Unit::MicrosPerThousandInsns => "Microseconds for 1,000 instructions",
            Unit::Ratio => "Ratios: what one engine needs over what another needs",
            Unit::BytesPerInsn => "Bytes of native code for an instruction",
            Unit::Seconds => "Seconds, the whole process",
            Unit::Megabytes => "Peak memory in megabytes",
        }
    }

    /// True if more is better.
    pub const fn is_rate(self) -> bool {
        matches!(self, Unit::MillionRunsPerSecond)
    }
}

/// A value and how far repeated measurements of it lie apart, as a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value.
    pub value: f64,
    /// The distance of the quartiles, as a part of the median.
    pub spread: f64,
}

impl Measured {
    /// The median of repeated measurements, of which there is at least one.
    pub fn median(mut values: Vec<f64>) -> Measured {
        values.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (values.len() - 1) as f64;
            let (below, above) = (place.floor() as usize, place.ceil() as usize);
            values[below] + (values[above] - values[below]) * place.fract()
        };
        let median = at(0.5);
        Measured {
            value: median,
            spread: (at(0.75) - at(0.25)) / median,
        }
    }
}

/// A value that was measured once has no spread yet.
impl From<f64> for Measured {
    fn from(value: f64) -> Measured {
        Measured { value, spread: 0.0 }
    }
}

/// One figure of one engine on one workload.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Workload.
    pub workload: String,
    /// Engine.
    pub engine: String,
    /// Measured value.
    pub value: f64,
    /// Unit of the value.
    pub unit: Unit,
    /// Spread of repeated measurements, relative to the value.
    pub spread: f64,
}

impl Row {
    /// The value with its spread.
    pub const fn measured(&self) -> Measured {
        Measured {
            value: self.value,
            spread: self.spread,
        }
    }
}

/// Target of a figure of the summary.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Target {
    /// This much or more.
    AtLeast(f64),
    /// This much or less.
    AtMost(f64),
}

impl Target {
    /// True if a value meets the target.
    pub fn is_met(self, value: f64) -> bool {
        match self {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        }
    }
}

/// One figure of the summary.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// By what name programs find it.
    pub name: String,
    /// Description.
    pub meaning: String,
    /// The figure.
    pub value: f64,
    /// Spread of repeated measurements, relative to the value.
    pub spread: f64,
    /// Target.
    pub target: Option<Target>,
}

/// Report of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Machine; set when the report is printed.
    pub machine: String,
    /// Engines to which the others are compared, the preferred one first.
    pub baselines: Vec<String>,
    /// In which order tables show engines; those that are not named follow.
    pub columns: Vec<String>,
    /// Every figure, in the order in which tables show them.
    pub rows: Vec<Row>,
    /// The figures that count.
    pub summary: Vec<Figure>,
    /// Notes: how workloads were made, what was omitted and why.
    pub notes: Vec<String>,
}

impl Report {
    /// Adds a row.
    pub fn add_row(
        &mut self,
        workload: impl Into<String>,
        engine: impl Into<String>,
        unit: Unit,
        measured: impl Into<Measured>,
    ) {
        let Measured { value, spread } = measured.into();
        self.rows.push(Row {
            workload: workload.into(),
            engine: engine.into(),
            value,
            unit,
            spread,
        });
    }

    /// Adds a figure to the summary.
    pub fn add_figure(
        &mut self,
        name: impl Into<String>,
        meaning: impl Into<String>,
        measured: impl Into<Measured>,
        target: Option<Target>,
    ) {
        let Measured { value, spread } = measured.into();
        self.summary.push(Figure {
            name: name.into(),
            meaning: meaning.into(),
            value,
            spread,
            target,
        });
    }

    /// The value of one row.
    pub fn value(&self, workload: &str, engine: &str, unit: Unit) -> Option<f64> {
        self.rows
            .iter()
            .find(|row| row.workload == workload && row.engine == engine && row.unit == unit)
            .map(|row| row.value)
    }

    /// Speed of `engine` relative to `other` on a workload.
    pub fn speed_up(&self, workload: &str, engine: &str, other: &str, unit: Unit) -> Option<f64> {
        let mine = self.value(workload, engine, unit)?;
        let theirs = self.value(workload, other, unit)?;
        Some(if unit.is_rate() {
            mine / theirs
        } else {
            theirs / mine
        })
    }

    /// The least of those speed-ups over several workloads; `None` unless each
    /// of them has both engines.
    pub fn least_speed_up<'w>(
        &self,
        workloads: impl IntoIterator<Item = &'w str>,
        engine: &str,
        other: &str,
        unit: Unit,
    ) -> Option<f64> {
        workloads
            .into_iter()
            .map(|workload| self.speed_up(workload, engine, other, unit))
            .collect::<Option<Vec<_>>>()?
            .into_iter()
            .reduce(f64::min)
    }

    /// One report from those of several processes that measured the same: each
    /// value is the median of theirs, and its spread the distance of the
    /// quartiles. `None` without any report.
    pub fn merge(reports: &[Report]) -> Option<Report> {
        let mut merged = reports.first()?.clone();
        for (at, row) in merged.rows.iter_mut().enumerate() {
            let values = reports.iter().filter_map(|report| report.rows.get(at));
            let measured = Measured::median(values.map(|row| row.value).collect());
            (row.value, row.spread) = (measured.value, measured.spread);
        }
        for (at, figure) in merged.summary.iter_mut().enumerate() {
            let values = reports.iter().filter_map(|report| report.summary.get(at));
            let measured = Measured::median(values.map(|figure| figure.value).collect());
            (figure.value, figure.spread) = (measured.value, measured.spread);
        }
        Some(merged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(interp: f64, libpcap: f64) -> Report {
        let mut report = Report::default();
        report.add_row("w", "interp", Unit::NsPerRun, interp);
        report.add_row("w", "libpcap", Unit::NsPerRun, libpcap);
        report.add_figure("ratio", "", libpcap / interp, Some(Target::AtLeast(2.0)));
        report
    }

    #[test]
    fn several_processes_give_their_median_and_the_distance_of_the_quartiles() {
        let merged = Report::merge(&[
            report(10.0, 20.0),
            report(11.0, 33.0),
            report(14.0, 14.0),
            report(12.0, 12.0),
            report(13.0, 26.0),
        ])
        .expect("there are reports");
        assert_eq!(merged.rows[0].value, 12.0);
        assert!((merged.rows[0].spread - 2.0 / 12.0).abs() < 1e-9);
        // The median of the ratios, not the ratio of the medians.
        assert_eq!(merged.summary[0].value, 2.0);
    }

    #[test]
    fn a_speed_up_is_above_one_where_the_engine_is_faster() {
        let mut report = report(10.0, 20.0);
        assert_eq!(
            report.speed_up("w", "interp", "libpcap", Unit::NsPerRun),
            Some(2.0)
        );
        report.add_row("r", "interp", Unit::MillionRunsPerSecond, 30.0);
        report.add_row("r", "libpcap", Unit::MillionRunsPerSecond, 10.0);
        let rate = report.speed_up("r", "interp", "libpcap", Unit::MillionRunsPerSecond);
        assert_eq!(rate, Some(3.0));
        let absent = report.least_speed_up(["w", "x"], "interp", "libpcap", Unit::NsPerRun);
        assert_eq!(absent, None);
    }
}
