//! Captures as tables: streams of Arrow that other libraries read without a copy.
//!
//! `column.rs` has the columns, `condition.rs` what rows have to meet, `map_value.rs` the values of
//! maps, `source.rs` opens captures, `stream.rs` reads them, `rows.rs` makes batches.

mod column;
mod condition;
mod map_value;
mod rows;
mod source;
mod stream;

use std::sync::Arc;

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::ffi::FFI_ArrowSchema;
use beebox::internal::captures::{FilterSource, Interface, LEAST_PART};
use beebox::{Expression, Filter, FilterError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyDict, PyList, PyString, PyTuple};

use crate::codec::Codec;
use crate::errors::{Fault, raised};
use crate::program::Program;
use column::{COLUMNS, Needs, USUAL};
use condition::{Condition, Given};
use map_value::MapValue;
use source::Source;
use stream::{PartOf, Plan, Records, SharedFilter, Stream};

/// Rows of a batch.
const BATCH: usize = 1 << 16;

/// The packets of captures as a table: an Arrow stream (`__arrow_c_stream__`) that pyarrow, DuckDB,
/// Polars, DataFusion and others read, as often as they like; each reads the captures anew.
///
/// `source` is a path, an address that fsspec knows (`s3://…`), a file that is open for bytes, or a
/// list of these. `filter` keeps packets: an expression as tcpdump takes it, a `Filter`, or the
/// bytes of a compiled filter. `columns` are names of `CaptureTable.COLUMNS`, in this order; what none of them
/// needs is not computed. `matches` adds a column of bool for each name and filter. `program` runs
/// on each packet that is kept, for the columns `verdict`, `return_value` and `redirect`. `records`
/// makes a row of each record that the program writes, with the columns `map` and `record`: True
/// for bytes, or the name of their type. `map_values` adds a column for each name, map of the
/// program's instance and key (`{"drops": ("counts", 0)}`): the value after the program ran on the packet,
/// None if there is no such element. `conditions` are what rows meet: each the name of a column,
/// chosen or not, an operator (`"=="`, `"!="`, `"<"`, `"<="`, `">"`, `">="`, `"in"`, `"starts with"`,
/// `"is null"`, `"is not null"`) and a value; times are nanoseconds since 1970. `part` is one of
/// `capture_parts(source)`.
///
/// Raises FileError and CaptureError if a capture cannot be read (also while it is read, as the
/// error of the library that reads), FilterError for filters, NotFoundError for names.
#[pyclass(frozen, module = "beebox")]
pub(crate) struct CaptureTable {
    plan: Arc<Plan>,
    sources: Vec<Arc<Source>>,
    part: Option<PartOf>,
}

#[pymethods]
impl CaptureTable {
    #[new]
    #[pyo3(signature = (source, *, columns = None, filter = None, matches = None, program = None,
        records = None, map_values = None, conditions = None, batch_size = BATCH, part = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    fn new(
        py: Python<'_>,
        source: &Bound<'_, PyAny>,
        columns: Option<&Bound<'_, PyAny>>,
        filter: Option<&Bound<'_, PyAny>>,
        matches: Option<&Bound<'_, PyDict>>,
        program: Option<&Bound<'_, Program>>,
        records: Option<&Bound<'_, PyAny>>,
        map_values: Option<&Bound<'_, PyDict>>,
        conditions: Option<Vec<Given<'_>>>,
        batch_size: usize,
        part: Option<PartOf>,
    ) -> PyResult<CaptureTable> {
        let sources = match source.cast::<PyList>() {
            Ok(list) => list.iter().map(|it| Source::read(&it)).collect(),
            Err(_) => Source::read(source).map(|source| vec![source]),
        };
        let named = matches.into_iter().flatten();
        let named = named.map(|(name, filter)| Ok((name.extract()?, read_filter(&filter)?)));
        let matches: Vec<(String, SharedFilter)> = named.collect::<PyResult<_>>()?;
        let names: Vec<&str> = matches.iter().map(|(name, _)| &**name).collect();
        let conditions = conditions.iter().flatten();
        let conditions = conditions.map(|given| {
            let condition = Condition::read(given, &names)?;
            let has = (program.is_some(), records.is_some());
            check_needs(&given.0, condition.needs(), has)?;
            Ok(condition)
        });
        let conditions = conditions.collect::<PyResult<_>>()?;
        let records = records.map(|wanted| read_records(py, wanted, program));
        let map_values = map_values.map(|given| MapValue::read(given, program));
        let plan = Plan {
            columns: choose(
                columns.map(read_names).transpose()?,
                program.is_some(),
                records.is_some(),
            )?,
            filter: filter.map(read_filter).transpose()?,
            matches,
            conditions,
            program: program.map(|program| program.get().program.clone()),
            records: records.transpose()?.flatten(),
            map_values: map_values.transpose()?.unwrap_or_default(),
            batch_size: batch_size.max(1),
        };
        plan.check_names()?;
        let sources = sources?.into_iter().map(Arc::new).collect::<Vec<_>>();
        if let Some((start, size, len)) = part {
            if sources.len() != 1 {
                return Err(Fault::of_type("a part is one of a single capture").into());
            }
            if size < LEAST_PART || !start.is_multiple_of(size) || start >= len {
                let what = format!("part ({start}, {size}, {len}): none of capture_parts(source)");
                return Err(Fault::of_type(what).into());
            }
        }
        Ok(CaptureTable {
            plan: Arc::new(plan),
            sources,
            part,
        })
    }

    /// Names of all columns.
    #[classattr]
    #[pyo3(name = "COLUMNS")]
    fn all_columns(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        PyTuple::new(py, COLUMNS.iter().map(|(name, ..)| *name))
    }

    /// Names of the columns that the table has.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let schema = self.plan.schema();
        schema.fields().iter().map(|it| it.name().clone()).collect()
    }

    /// The rows as an Arrow stream.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Other types are left to the reader, as the protocol allows.
        let _ = requested_schema;
        stream_capsule(py, Stream::new(self.plan.clone(), &self.sources, self.part))
    }

    /// The schema of the rows.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.plan.schema());
        let schema = schema.map_err(|error| PyErr::from(Fault::new("other", error)))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Reads the captures for their counts alone: `packets`, `bytes`, `matched`, `matched_bytes`
    /// (of the packets that filter and conditions keep), and of the last one the offset of its first
    /// record (`first`) and the one behind its last (`next`). No program runs.
    fn count<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let plan = &*self.plan;
        let mut needs = plan.conditions.iter().map(Condition::needs);
        if needs.any(|needs| matches!(needs, Needs::Run | Needs::Records)) {
            let what = "a condition needs the program, which does not run for counts";
            return Err(Fault::of_type(what).into());
        }
        let counts = PyDict::new(py);
        let mut total = beebox::captures::PacketCounts::default();
        for source in &self.sources {
            let read = py.detach(|| stream::count(source, plan, self.part));
            let (found, (first, next)) = read.map_err(|error| unread(source, &error))?;
            total += found;
            counts.set_item("first", first)?;
            counts.set_item("next", next)?;
        }
        counts.set_item("packets", total.packets)?;
        counts.set_item("bytes", total.bytes)?;
        counts.set_item("matched", total.matched)?;
        counts.set_item("matched_bytes", total.matched_bytes)?;
        Ok(counts)
    }

    fn __repr__(&self) -> String {
        let names: Vec<_> = self.sources.iter().map(|source| source.name()).collect();
        format!(
            "<CaptureTable of {}: {}>",
            names.join(", "),
            self.columns().join(", ")
        )
    }
}

/// The parts of a capture, for `CaptureTable(source, part=…)`: each a start, the size of parts (of
/// `part_size` bytes at least) and the length of the capture. Tasks may read them in any order and again; together they have each
/// packet once. None is the whole of a capture that is compressed, or smaller than two parts.
///
/// Raises FileError and CaptureError if it cannot be read.
#[pyfunction]
#[pyo3(signature = (source, part_size = 1 << 30))]
pub(crate) fn capture_parts(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    part_size: u64,
) -> PyResult<Vec<Option<PartOf>>> {
    let source = Source::read(source)?;
    let size = part_size.max(LEAST_PART).next_multiple_of(4);
    let input = py.detach(|| source.open());
    let input = input.map_err(|error| unread(&source, &error))?;
    let len = input.seekable_len()?.unwrap_or(0);
    if len < 2 * size {
        return Ok(vec![None]);
    }
    // As long as each other, so that none is a rest.
    let size = len.div_ceil(len / size).next_multiple_of(4);
    let starts = (0..len).step_by(size as usize);
    Ok(starts.map(|start| Some((start, size, len))).collect())
}

/// The error for a capture that cannot be read.
fn unread(source: &Source, error: &impl ToString) -> PyErr {
    raised(Fault::new(
        "capture",
        stream::at_file(&source.name(), &error.to_string()),
    ))
}

/// Names of columns.
fn read_names(columns: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    columns.extract().map_err(|_| {
        let what = "columns: a list of names fits, such as [\"time\", \"source\"]";
        let kind = columns.get_type().name();
        let kind = kind.map_or_else(|_| "it".to_owned(), |kind| kind.to_string());
        Fault::of_type(format!("{what}, got {kind}")).into()
    })
}

/// A stream of Arrow in a capsule.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(batches));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// The columns of these names, or the usual ones.
fn choose(
    names: Option<Vec<String>>,
    has_program: bool,
    has_records: bool,
) -> PyResult<Vec<(&'static str, Needs, column::Value)>> {
    let usual = || {
        let program = ["verdict"].iter().filter(|_| has_program && !has_records);
        let records = ["map"].iter().filter(|_| has_records);
        let all = USUAL.iter().chain(program).chain(records);
        all.map(|name| (*name).to_owned()).collect()
    };
    let names: Vec<String> = names.unwrap_or_else(usual);
    let find = |name: &String| {
        let found = COLUMNS.iter().find(|(known, ..)| known == name).copied();
        found.ok_or_else(|| {
            let known: Vec<_> = COLUMNS.iter().map(|(name, ..)| *name).collect();
            Fault::absent(format!(
                "no column {name:?}; there are {}",
                known.join(", ")
            ))
        })
    };
    let chosen = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
    for (name, needs, _) in &chosen {
        check_needs(name, *needs, (has_program, has_records))?;
    }
    Ok(chosen)
}

/// Refuses a column whose argument is not given.
fn check_needs(name: &str, needs: Needs, (program, records): (bool, bool)) -> PyResult<()> {
    let missing = match needs {
        Needs::Run if !program => "program",
        Needs::Records if !records => "records",
        Needs::Run | Needs::Records | Needs::Record | Needs::Fields => return Ok(()),
    };
    let what = format!("the column {name} needs the argument {missing}");
    Err(Fault::of_type(what).into())
}

/// A filter object of Python.
struct Held(Py<crate::filter::Filter>);

impl FilterSource for Held {
    fn for_interface(&self, interface: &Interface) -> Result<&Filter, FilterError> {
        self.0.get().programs().for_interface(interface)
    }
}

/// A filter, an expression, or a compiled filter as bytes.
fn read_filter(argument: &Bound<'_, PyAny>) -> PyResult<SharedFilter> {
    let failed = |error: FilterError| PyErr::from(Fault::new("filter", error));
    if let Ok(text) = argument.cast::<PyString>() {
        let expression = Expression::new(text.to_str()?).map_err(failed)?;
        return Ok(Arc::new(expression));
    }
    if let Ok(filter) = argument.cast::<crate::filter::Filter>() {
        return Ok(Arc::new(Held(filter.clone().unbind())));
    }
    match argument.cast::<PyBytes>() {
        Ok(bytes) => Ok(Arc::new(Filter::parse(bytes.as_bytes()).map_err(failed)?)),
        Err(_) => {
            let kind = argument.get_type().name()?;
            let what = "a Filter, an expression (str) or a compiled filter (bytes) fits";
            let what = format!("{what}, got {kind}");
            Err(Fault::of_type(what).into())
        }
    }
}

/// The type of the program's records; `None` for `False`.
fn read_records(
    py: Python<'_>,
    wanted: &Bound<'_, PyAny>,
    program: Option<&Bound<'_, Program>>,
) -> PyResult<Option<Records>> {
    let Some(program) = program else {
        return Err(Fault::of_type("records are those of a program, and none is given").into());
    };
    if let Ok(is_wanted) = wanted.extract::<bool>() {
        return Ok(is_wanted.then_some(Records { codec: None }));
    }
    let name: String = wanted.extract()?;
    let codec: Codec = program.get().shared.types.named(py, &name)?;
    Ok(Some(Records { codec: Some(codec) }))
}
