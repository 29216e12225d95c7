//! Source lines of the programs of an object, by line_info.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use program::Program;

/// A place in a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// The file as the compiler named it.
    pub file: String,
    /// The file, if it is there.
    pub path: Option<PathBuf>,
    /// The line, from 1.
    pub line: u32,
    /// The column, from 1; 0 if it is not known.
    pub column: u32,
    /// The text of the line.
    pub text: String,
}

/// The lines of all programs.
#[derive(Default)]
pub(in crate::internal::run) struct Sources {
    files: Vec<SourceFile>,
    /// By program and slot: a number that is the line's; 0 for none.
    numbers: Vec<Vec<u64>>,
    columns: Vec<Vec<u32>>,
}

/// A source file.
struct SourceFile {
    name: String,
    path: Option<PathBuf>,
    /// Texts of lines that have code.
    lines: BTreeMap<u32, String>,
}

impl Sources {
    pub(super) fn new<'p>(programs: impl Iterator<Item = &'p Program>, folder: &Path) -> Sources {
        let mut sources = Sources::default();
        for program in programs {
            let mut columns = Vec::new();
            let numbers = program.source_lines().into_iter().map(|known| {
                let Some((line, types)) = known.zip(program.btf()) else {
                    columns.push(0);
                    return 0;
                };
                columns.push(line.column);
                let name = types.string(line.file).to_string();
                let name = name.trim_start_matches("./");
                let file = sources.file(name, folder);
                let lines = &mut sources.files[file].lines;
                lines.entry(line.line).or_insert_with(|| {
                    let text = types.string(line.text).to_string();
                    text.trim_end().to_owned()
                });
                (file as u64 + 1) << 32 | u64::from(line.line)
            });
            let numbers = numbers.collect();
            sources.numbers.push(numbers);
            sources.columns.push(columns);
        }
        sources
    }

    /// The number of the file of a name.
    fn file(&mut self, name: &str, folder: &Path) -> usize {
        if let Some(known) = self.files.iter().position(|file| file.name == name) {
            return known;
        }
        let base = Path::new(name).file_name().unwrap_or_default();
        let places = [PathBuf::from(name), folder.join(name), folder.join(base)];
        let path = places.into_iter().find(|place| place.is_file());
        self.files.push(SourceFile {
            name: name.to_owned(),
            path: path.and_then(|path| path.canonicalize().ok()),
            lines: BTreeMap::new(),
        });
        self.files.len() - 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The number of the line of a slot; 0 for none.
    pub(super) fn line_number(&self, program: u32, slot: u32) -> u64 {
        let numbers = self.numbers.get(program as usize);
        let number = numbers.and_then(|numbers| numbers.get(slot as usize));
        number.copied().unwrap_or(0)
    }

    /// The source place of a slot.
    pub(super) fn place(&self, program: u32, slot: u32) -> Option<SourcePlace> {
        let number = self.line_number(program, slot);
        let file = self.files.get(((number >> 32) as usize).checked_sub(1)?)?;
        let line = number as u32;
        let columns = self.columns.get(program as usize);
        let column = columns.and_then(|columns| columns.get(slot as usize));
        Some(SourcePlace {
            file: file.name.clone(),
            path: file.path.clone(),
            line,
            column: column.copied().unwrap_or(0),
            text: file.lines.get(&line).cloned().unwrap_or_default(),
        })
    }

    /// Names of the files, and where they are.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, Option<&Path>)> {
        let files = self.files.iter();
        files.map(|file| (&*file.name, file.path.as_deref()))
    }

    /// The files that a name may mean: that of its last parts, or the only one without a name.
    fn named(&self, name: Option<&str>) -> Vec<usize> {
        let is_it = |file: &SourceFile| match name {
            None => true,
            Some(name) => {
                let (given, known) = (Path::new(name), Path::new(&file.name));
                let is_path = file.path.as_deref() == given.canonicalize().ok().as_deref();
                given.ends_with(known) || known.ends_with(given) || (is_path && given.is_file())
            }
        };
        let files = self.files.iter().enumerate();
        let found = files.filter(|(_, file)| is_it(file));
        found.map(|(number, _)| number).collect()
    }

    /// The text of a file: of the file itself, else of the lines that have code.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        let file = &self.files[*self.named(Some(name)).first()?];
        let whole = file
            .path
            .as_ref()
            .and_then(|path| std::fs::read_to_string(path).ok());
        whole.or_else(|| {
            let last = *file.lines.keys().next_back()?;
            let lines = (1..=last).map(|line| file.lines.get(&line).map_or("", String::as_str));
            Some(lines.flat_map(|line| [line, "\n"]).collect())
        })
    }

    /// The text of a line of a file; empty if it is not known.
    pub(super) fn line_text(&self, name: &str, line: u32) -> String {
        let text = self.text(name).unwrap_or_default();
        let text = text.lines().nth((line as usize).saturating_sub(1));
        text.unwrap_or_default().to_owned()
    }

    /// Lines of a file that have code.
    pub(super) fn lines_with_code(&self, name: &str) -> Vec<u32> {
        let files = self.named(Some(name)).into_iter();
        let lines = files.flat_map(|file| self.files[file].lines.keys().copied());
        lines.collect()
    }

    /// The slots at which a line begins, or the next line of the file that has code, and that line.
    ///
    /// # Errors
    /// In words, for files that are not known and lines that no code is behind.
    pub(super) fn starts(
        &self,
        name: Option<&str>,
        line: u32,
    ) -> Result<(u32, Vec<(u32, u32)>), String> {
        let files = self.named(name);
        if files.is_empty() {
            let known: Vec<&str> = self.files.iter().map(|file| &*file.name).collect();
            return Err(match (known.is_empty(), name) {
                (true, _) => "the object has no source lines (clang -g)".to_owned(),
                (false, name) => format!(
                    "no program has lines of {}; they are of {}",
                    name.unwrap_or("a file"),
                    known.join(", ")
                ),
            });
        }
        let behind = files.iter().filter_map(|file| {
            let (line, _) = self.files[*file].lines.range(line..).next()?;
            Some((*line, *file))
        });
        let (found, file) = behind
            .min()
            .ok_or_else(|| format!("no code is at line {line} or behind it"))?;
        let number = (file as u64 + 1) << 32 | u64::from(found);
        let mut places = Vec::new();
        for (program, numbers) in self.numbers.iter().enumerate() {
            let mut before = 0;
            for (slot, at) in numbers.iter().enumerate() {
                if *at == number && before != number {
                    places.push((program as u32, slot as u32));
                }
                // Instructions without a line go on with that of the one before them.
                if *at != 0 {
                    before = *at;
                }
            }
        }
        Ok((found, places))
    }
}
