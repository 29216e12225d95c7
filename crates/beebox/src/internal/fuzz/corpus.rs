//! Corpora on disk: a directory with an input in each file, as JSON, named by its contents; captures in
//! it are inputs too, one for each packet.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::hex;
use super::input::{FuzzInput, InputElement, InputStep};
use super::packets::{LEAST_BYTES, MOST_BYTES};
use crate::internal::captures::{Event, Input};
use crate::internal::raw::parse_hex;

/// Why a corpus cannot be read or written.
#[derive(Debug)]
pub struct CorpusError {
    /// The file or directory.
    pub path: PathBuf,
    /// What is wrong.
    pub what: String,
}

impl fmt::Display for CorpusError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.what)
    }
}

impl std::error::Error for CorpusError {}

/// Inputs that were read.
#[derive(Debug, Default)]
pub struct Corpus {
    /// The inputs.
    pub inputs: Vec<FuzzInput>,
    /// Files of a directory that are no inputs or cannot be read, and were left out.
    pub skipped: Vec<CorpusError>,
}

/// Bytes of the largest file of an input.
const LARGEST: u64 = 4 << 20;

/// Reads the inputs of a file or a directory: JSON that [`write_corpus`] wrote, and captures. Files of a
/// directory that cannot be read are left out.
///
/// # Errors
/// For a file that cannot be read, or is neither, and for a directory that cannot be read.
pub fn read_corpus(path: &Path) -> Result<Corpus, CorpusError> {
    let failed = |path: &Path, what: &dyn fmt::Display| CorpusError {
        path: path.to_owned(),
        what: what.to_string(),
    };
    let mut corpus = Corpus::default();
    if !path.is_dir() {
        corpus.inputs = read_file(path)?;
        return Ok(corpus);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path).map_err(|error| failed(path, &error))? {
        let file = entry.map_err(|error| failed(path, &error))?.path();
        let extension = file.extension().and_then(|it| it.to_str());
        if matches!(extension, Some("json" | "pcap" | "pcapng")) {
            files.push(file);
        }
    }
    files.sort();
    for file in files {
        match read_file(&file) {
            Ok(inputs) => corpus.inputs.extend(inputs),
            Err(error) => corpus.skipped.push(error),
        }
    }
    Ok(corpus)
}

fn read_file(path: &Path) -> Result<Vec<FuzzInput>, CorpusError> {
    let failed = |what: &dyn fmt::Display| CorpusError {
        path: path.to_owned(),
        what: what.to_string(),
    };
    if path
        .extension()
        .is_some_and(|extension| extension == "json")
    {
        let bytes = sys::input::read(path, LARGEST).map_err(|error| failed(&error))?;
        let value: Value = serde_json::from_slice(&bytes).map_err(|error| failed(&error))?;
        let input = from_json(&value);
        return Ok(vec![input.map_err(|what| failed(&what))?]);
    }
    let mut capture = Input::open_path(path).map_err(|error| CorpusError {
        path: path.to_owned(),
        what: error
            .to_string()
            .replace(&format!("{}: ", path.display()), ""),
    })?;
    let mut inputs = Vec::new();
    while let Some(event) = capture.next_event().map_err(|error| failed(&error))? {
        if let Event::Packet(record) = event {
            let data = record.data();
            let mut packet = data[..data.len().min(MOST_BYTES)].to_vec();
            packet.resize(packet.len().max(LEAST_BYTES), 0);
            inputs.push(FuzzInput::from_packet(packet));
        }
    }
    Ok(inputs)
}

/// Writes inputs into a directory, which is made if need be. Files that are there stay: their names are
/// those of the same inputs.
///
/// # Errors
/// If the directory or a file cannot be written.
pub fn write_corpus(directory: &Path, inputs: &[FuzzInput]) -> Result<usize, CorpusError> {
    let failed = |path: &Path, error: io::Error| CorpusError {
        path: path.to_owned(),
        what: error.to_string(),
    };
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    let mut written = 0;
    for input in inputs {
        let text = format!("{}\n", to_json(input));
        let path = directory.join(format!("{:016x}.json", fingerprint(text.as_bytes())));
        if path.exists() {
            continue;
        }
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
        written += 1;
    }
    Ok(written)
}

/// FNV-1a.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl FuzzInput {
    /// The input as JSON, bytes as hexadecimal digits.
    pub fn json(&self) -> Value {
        to_json(self)
    }
}

fn to_json(input: &FuzzInput) -> Value {
    let elements = input.elements.iter().map(|element| {
        json!({
            "map": element.map,
            "key_hex": hex(&element.key),
            "value_hex": hex(&element.value),
        })
    });
    let steps = input.steps.iter().map(|step| {
        let mut of = json!({ "packet_hex": hex(&step.packet), "time": step.time });
        if let Some(context) = &step.context {
            of["context_hex"] = json!(hex(context));
        }
        of
    });
    json!({
        "elements": elements.collect::<Vec<_>>(),
        "steps": steps.collect::<Vec<_>>(),
        "seed": input.seed,
    })
}

fn from_json(value: &Value) -> Result<FuzzInput, String> {
    const FORM: &str = "no input of beebox fuzz";
    let bytes = |value: &Value| match value.as_str() {
        Some("") => Ok(Vec::new()),
        Some(text) => parse_hex(text).map_err(|error| format!("{FORM}: {error}")),
        None => Err(format!("{FORM}: hexadecimal digits are expected")),
    };
    let list = |name: &str| {
        let list = value.get(name).and_then(Value::as_array);
        list.ok_or_else(|| format!("{FORM}: it has no list {name:?}"))
    };
    let elements = list("elements")?.iter().map(|element| {
        let map = element["map"].as_str();
        Ok(InputElement {
            map: map
                .ok_or_else(|| format!("{FORM}: an element has no map"))?
                .to_owned(),
            key: bytes(&element["key_hex"])?,
            value: bytes(&element["value_hex"])?,
        })
    });
    let steps = list("steps")?.iter().map(|step| {
        Ok(InputStep {
            packet: bytes(&step["packet_hex"])?,
            context: step.get("context_hex").map(bytes).transpose()?,
            time: step["time"].as_u64().unwrap_or(0),
        })
    });
    let input = FuzzInput {
        elements: elements.collect::<Result<_, String>>()?,
        steps: steps.collect::<Result<_, String>>()?,
        seed: value["seed"].as_u64().unwrap_or(0),
    };
    match input.steps.is_empty() {
        true => Err(format!("{FORM}: it has no steps")),
        false => Ok(input),
    }
}
