//! What fuzzing found, as text, JSON and files.

use std::error::Error;
use std::fmt::{self, Write};
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{CaptureForm, FuzzFind, FuzzReport, capture_as};

/// Why finds are not written.
#[derive(Debug)]
pub enum FindsError {
    /// There is a file in place of the directory.
    NoDirectory,
    /// A file cannot be made.
    File(PathBuf, io::Error),
    /// The directory has as many finds of this name as are numbered.
    Full(String),
}

impl fmt::Display for FindsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FindsError::NoDirectory => f.write_str("this is a file, and finds are several"),
            FindsError::File(path, error) => write!(f, "{}: {error}", path.display()),
            FindsError::Full(name) => write!(f, "it has {MOST_FINDS_OF_NAME} finds called {name}"),
        }
    }
}

impl Error for FindsError {}

/// Most finds of one name in a directory.
const MOST_FINDS_OF_NAME: u32 = 10_000;

impl FuzzReport {
    /// For people: the program, and the files that each find was written to.
    pub fn text(&self, program: &str, files: &[Vec<PathBuf>]) -> String {
        let mut text = String::new();
        for (find, files) in self.finds.iter().zip(files) {
            let _ = writeln!(text, "found: {}: {}", find.property, find.what);
            if files.is_empty() {
                for line in find.test.lines().filter(|line| !line.starts_with('#')) {
                    let _ = match line {
                        "" => writeln!(text),
                        line => writeln!(text, "  {line}"),
                    };
                }
            } else {
                let names: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
                let _ = writeln!(text, "  {}", names.join(", "));
            }
            if !find.test_fails {
                let _ = writeln!(text, "  no statement of a test says what is wrong");
            }
        }
        if !self.kept_maps.is_empty() {
            let maps = self.kept_maps.join(", ");
            let _ = writeln!(text, "note: not set back between inputs: {maps}");
        }
        let seconds = self.time.as_secs_f64();
        let each = self.runs as f64 / seconds.max(1e-9);
        let (hit, all) = self.covered;
        let found = match self.finds.len() {
            0 => "nothing found".to_owned(),
            finds => format!("{finds} found"),
        };
        let _ = writeln!(
            text,
            "{program}: {found}, {} inputs kept, {hit} of {all} counters, {} runs in {seconds:.2} s, \
             {each:.0} a second",
            self.corpus.len(),
            self.runs
        );
        text
    }

    /// As data.
    pub fn json(&self, program: &str, files: &[Vec<PathBuf>]) -> Value {
        let finds = self.finds.iter().zip(files);
        let finds = finds.map(|(find, files)| {
            let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
            json!({
                "property": find.property,
                "what": find.what,
                "input": find.input.json(),
                "step": find.step,
                "runs": find.runs,
                "seconds": find.time.as_secs_f64(),
                "test_text": find.test,
                "test_fails": find.test_fails,
                "files": files,
            })
        });
        json!({
            "prog": program,
            "finds": finds.collect::<Vec<_>>(),
            "runs": self.runs,
            "seconds": self.time.as_secs_f64(),
            "kept": self.corpus.len(),
            "counters_hit": self.covered.0,
            "counters": self.covered.1,
            "kept_maps": self.kept_maps,
        })
    }
}

/// Makes the directory of finds, so that it is known before the runs that it can be written.
///
/// # Errors
/// If it cannot be made, or no file in it.
pub fn make_find_directory(directory: &Path) -> Result<(), FindsError> {
    if directory.exists() && !directory.is_dir() {
        return Err(FindsError::NoDirectory);
    }
    let failed = |error| FindsError::File(directory.to_owned(), error);
    fs::create_dir_all(directory).map_err(failed)?;
    let probe = directory.join(format!(".beebox-fuzz-{}", std::process::id()));
    let made = File::create(&probe).and_then(|_| fs::remove_file(&probe));
    made.map_err(failed)
}

/// The path of the object as tests in a directory name it.
pub fn object_path(object: &Path, directory: Option<&Path>) -> PathBuf {
    let Some(directory) = directory else {
        return object.to_owned();
    };
    let whole = |path: &Path| fs::canonicalize(path).ok();
    let (Some(object_whole), Some(directory)) = (whole(object), whole(directory)) else {
        return object.to_owned();
    };
    let (to, from): (Vec<_>, Vec<_>) = (
        object_whole.components().collect(),
        directory.components().collect(),
    );
    let common = to
        .iter()
        .zip(&from)
        .take_while(|(to, from)| to == from)
        .count();
    let up = from[common..].iter().map(|_| Path::new("..").as_os_str());
    let down = to[common..].iter().map(|part| part.as_os_str());
    up.chain(down).collect()
}

/// Writes a find into a directory: a test, and a capture if there are packets; its files. Files that
/// are there stay.
///
/// # Errors
/// If a file cannot be made.
pub fn write_find(
    directory: &Path,
    find: &FuzzFind,
    captures: Option<CaptureForm>,
) -> Result<Vec<PathBuf>, FindsError> {
    let has_packets = find.input.steps.iter().any(|step| !step.packet.is_empty());
    for number in 1..=MOST_FINDS_OF_NAME {
        let name = match number {
            1 => find.slug(),
            number => format!("{}-{number}", find.slug()),
        };
        let path = directory.join(format!("{name}.expect"));
        let capture = directory.join(format!("{name}.pcap"));
        if capture.exists() {
            continue;
        }
        match create(&path, find.test.as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            made => made.map_err(|error| FindsError::File(path.clone(), error))?,
        }
        let mut files = vec![path];
        if let Some(form) = captures.filter(|_| has_packets) {
            let made = create(&capture, &capture_as(&find.input, form));
            made.map_err(|error| FindsError::File(capture.clone(), error))?;
            files.push(capture);
        }
        return Ok(files);
    }
    Err(FindsError::Full(find.slug()))
}

/// Writes a file that is not there.
fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    File::create_new(path)?.write_all(bytes)
}
