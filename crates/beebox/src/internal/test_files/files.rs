//! The files of tests: which there are, and their tests.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::internal::bytes::MOST_BYTES;
use crate::internal::expect::{ExpectError, ExpectFile};
use crate::internal::name_of;
use crate::internal::network::{self, NetworkFileError, System};

/// Why there are no tests.
#[derive(Debug)]
pub enum TestFilesError {
    /// A file or directory cannot be read.
    File(PathBuf, io::Error),
    /// A file is no expectation file.
    Expect(Box<ExpectError>),
    /// Files and directories have none.
    NoTests(Vec<PathBuf>),
    /// None has one of these texts in its name.
    NotChosen(Vec<String>),
    /// A file names no object.
    NoObject(PathBuf),
    /// The network of a file.
    Network {
        /// The file.
        file: PathBuf,
        /// That of the network.
        network: PathBuf,
        /// What is wrong with it.
        fault: NetworkFault,
    },
}

/// Why a file is no network.
#[derive(Debug)]
pub enum NetworkFault {
    /// It cannot be read.
    File(io::Error),
    /// It has another form.
    Form(NetworkFileError),
}

impl fmt::Display for NetworkFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkFault::File(error) => error.fmt(f),
            NetworkFault::Form(error) => error.fmt(f),
        }
    }
}

impl Error for NetworkFault {}

impl fmt::Display for TestFilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TestFilesError::File(path, error) => write!(f, "{}: {error}", name_of(path)),
            TestFilesError::Expect(error) => error.fmt(f),
            TestFilesError::NoTests(paths) => {
                let paths: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
                write!(f, "{}: there are no tests", paths.join(", "))
            }
            TestFilesError::NotChosen(only) => {
                write!(f, "{}: no test has this in its name", only.join(", "))
            }
            TestFilesError::NoObject(path) => write!(f, "{}: it names no object", path.display()),
            TestFilesError::Network {
                file,
                network,
                fault,
            } => {
                write!(f, "{}: {}: {fault}", file.display(), network.display())
            }
        }
    }
}

impl Error for TestFilesError {}

/// A file of tests.
pub struct TestFile {
    /// Its path.
    pub path: PathBuf,
    /// The object that they are of.
    pub object: PathBuf,
    /// The network that its programs see.
    pub system: Option<System>,
    /// Its tests share their maps.
    pub shares_maps: bool,
    /// Names and statements; those that are not chosen are left out, but where maps are shared.
    pub tests: Vec<NamedTest>,
}

/// A test.
pub struct NamedTest {
    /// Its name.
    pub name: String,
    /// Its statements.
    pub file: ExpectFile,
    /// It is one of the wanted ones.
    pub is_chosen: bool,
}

/// Which tests are wanted.
#[derive(Clone, Copy)]
pub struct WantedTests<'w> {
    /// Files and directories.
    pub paths: &'w [PathBuf],
    /// Texts, one of which is in the name or the file of a test; none for all tests.
    pub matching: &'w [String],
    /// The object of files that name none.
    pub object: Option<&'w Path>,
}

impl WantedTests<'_> {
    /// Reads the files.
    ///
    /// # Errors
    /// If one cannot be read, and if there are no tests.
    pub fn find(&self) -> Result<Vec<TestFile>, TestFilesError> {
        let mut files = Vec::new();
        for path in self.paths {
            match path.is_dir() {
                true => {
                    let mut found = Vec::new();
                    collect(path, &mut found)?;
                    found.sort();
                    for path in found {
                        files.extend(read(*self, &path, true)?);
                    }
                }
                false => files.extend(read(*self, path, false)?),
            }
        }
        if files.is_empty() {
            return Err(TestFilesError::NoTests(self.paths.to_vec()));
        }
        let is_chosen = |file: &TestFile| file.tests.iter().any(|test| test.is_chosen);
        if !files.iter().any(is_chosen) {
            return Err(TestFilesError::NotChosen(self.matching.to_vec()));
        }
        files.retain(is_chosen);
        Ok(files)
    }
}

/// Collects the files *.expect of a directory.
fn collect(directory: &Path, found: &mut Vec<PathBuf>) -> Result<(), TestFilesError> {
    let failed = |error| TestFilesError::File(directory.to_owned(), error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let path = entry.path();
        // Links to directories may lead back here.
        if entry.file_type().map_err(failed)?.is_dir() {
            collect(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "expect")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// True if a line of a file names an object.
fn names_object(path: &Path) -> Result<bool, TestFilesError> {
    let failed = |error| TestFilesError::File(path.to_owned(), error);
    let bytes = sys::input::read(path, MOST_BYTES).map_err(failed)?;
    let text = String::from_utf8_lossy(&bytes);
    Ok(text
        .lines()
        .any(|line| line.trim_start().starts_with("object ")))
}

/// Reads a file; `None` for one of a directory that names no object.
fn read(
    wanted: WantedTests<'_>,
    path: &Path,
    is_of_directory: bool,
) -> Result<Option<TestFile>, TestFilesError> {
    // Others may be expectations of other commands.
    if is_of_directory && wanted.object.is_none() && !names_object(path)? {
        return Ok(None);
    }
    let file = ExpectFile::try_open(path);
    let file = file.map_err(|error| TestFilesError::Expect(Box::new(error)))?;
    let given = file.object().map(Path::to_owned);
    let Some(object) = given.or_else(|| wanted.object.map(Path::to_owned)) else {
        return Err(TestFilesError::NoObject(path.to_owned()));
    };
    let chosen = |name: &str| {
        let place = path.display().to_string();
        let mut texts = wanted.matching.iter();
        wanted.matching.is_empty() || texts.any(|text| name.contains(text) || place.contains(text))
    };
    let shares_maps = file.shares_maps();
    let read_network = |network: &Path| {
        read_network(network).map_err(|fault| TestFilesError::Network {
            file: path.to_owned(),
            network: network.to_owned(),
            fault,
        })
    };
    let system = file.network().map(read_network).transpose()?;
    let mut tests: Vec<NamedTest> = file
        .tests()
        .into_iter()
        .map(|(name, file)| NamedTest {
            is_chosen: chosen(&name),
            name,
            file,
        })
        .collect();
    if tests.is_empty() {
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        let name = stem.to_string_lossy().into_owned();
        tests.push(NamedTest {
            is_chosen: chosen(&name),
            name,
            file,
        });
    }
    if !shares_maps {
        tests.retain(|test| test.is_chosen);
    }
    Ok(Some(TestFile {
        path: path.to_owned(),
        object,
        system,
        shares_maps,
        tests,
    }))
}

fn read_network(path: &Path) -> Result<System, NetworkFault> {
    let bytes = sys::input::read(path, MOST_BYTES).map_err(NetworkFault::File)?;
    network::read(&String::from_utf8_lossy(&bytes)).map_err(NetworkFault::Form)
}
