//! Remedies for files that can't be opened or written.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// The directory of the running kernel's BTF.
const KERNEL_TYPES: &str = "/sys/kernel/btf";

/// The most files of a directory that are compared with a missing name.
const MOST_FILES: usize = 10_000;

/// The most files that are named where one is missing.
const MOST_NAMED: usize = 4;

/// The remedy for an error of the system about a path; `None` if there is none.
pub(crate) fn hint(path: &Path, error: &io::Error) -> Option<String> {
    match error.kind() {
        ErrorKind::NotFound => instead(path),
        ErrorKind::PermissionDenied => Some("sudo, or another mode for the file".into()),
        ErrorKind::IsADirectory => Some("the name of a file in it".into()),
        ErrorKind::NotADirectory => Some("a path whose directories are directories".into()),
        _ => None,
    }
}

/// For a missing path: the name that was probably meant, or its first missing
/// directory.
fn instead(path: &Path) -> Option<String> {
    if path.starts_with(KERNEL_TYPES) {
        return Some("a kernel with CONFIG_DEBUG_INFO_BTF, or a BTF file".into());
    }
    let parent = path.parent()?;
    let directory = match parent.as_os_str().is_empty() {
        true => Path::new("."),
        false => parent,
    };
    if !directory.is_dir() {
        let above = path.ancestors().skip(1);
        let missing = above.take_while(|above| !above.as_os_str().is_empty() && !above.exists());
        let first = missing.last().unwrap_or(parent);
        return Some(format!(
            "another path: there is no directory {}",
            first.display()
        ));
    }
    let name = path.file_name()?.to_string_lossy();
    let beside = |name: &str| parent.join(name).display().to_string();
    match nearest(directory, &name) {
        Some(near) => Some(beside(&near)),
        None => Some(others(path, directory, beside)),
    }
}

/// For a missing file: how it is compiled if it is an object whose source is there, or the files of the
/// directory with its ending; without one all.
fn others(path: &Path, directory: &Path, beside: impl Fn(&str) -> String) -> String {
    let ending = path.extension().and_then(|ending| ending.to_str());
    let source = path.with_extension("c");
    if ending == Some("o") && source.is_file() {
        return format!(
            "clang -target bpf -O2 -g -c {} -o {}",
            source.display(),
            path.display()
        );
    }
    let files = fs::read_dir(directory).into_iter().flatten();
    let files = files.take(MOST_FILES).flatten();
    let alike = files.filter(|file| {
        let name = file.file_name();
        ending.is_none_or(|ending| Path::new(&name).extension() == Some(ending.as_ref()))
    });
    let names = alike.filter_map(|file| file.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    let kind = match ending {
        Some("o") => "objects".to_owned(),
        Some(ending) => format!("files *.{ending}"),
        None => "files".to_owned(),
    };
    let named = names.iter().take(MOST_NAMED).map(|name| beside(name));
    let named = named.collect::<Vec<_>>().join(", ");
    match names.len() {
        0 => {
            let directory = directory.display();
            let ending = if ending == Some("o") { " (*.o)" } else { "" };
            format!("another path: there are no {kind}{ending} in {directory}")
        }
        1..=MOST_NAMED => format!("another path: the {kind} there are {named}"),
        all => format!("another path: of the {all} {kind} there the first are {named}"),
    }
}

/// The file of a directory with the most similar name, if one is similar.
fn nearest(directory: &Path, name: &str) -> Option<String> {
    let files = fs::read_dir(directory).ok()?.take(MOST_FILES).flatten();
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    // `xdp.bpf.o` is there, but neither `xdp.o` nor `xdp`.
    let (stem, ending) = name.split_once('.').unwrap_or((name, "o"));
    // Endings that are equal make no names similar.
    let most = (stem.chars().count() / 3).min(3);
    let is_shortened = |other: &str| {
        let rest = other.strip_prefix(stem).filter(|_| !stem.is_empty());
        rest.is_some_and(|rest| rest.starts_with('.') && rest.ends_with(ending))
    };
    let changes = |other: &str| match is_shortened(other) {
        true => 0,
        false => strsim::levenshtein(name, other),
    };
    // Of names that are as near, an object's rather than its source's.
    let near = names.map(|other| (changes(&other), !other.ends_with(".o"), other));
    let is_object = name.ends_with(".o");
    near.filter(|(changes, is_other, _)| *changes <= most && !(is_object && *is_other))
        .min()
        .map(|(_, _, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_that_was_meant_is_found() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["counter.bpf.c", "counter.bpf.o", "filter.txt", "x"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let missing = io::Error::from(ErrorKind::NotFound);
        let hint = |name: &str| hint(&directory.path().join(name), &missing);
        let file = |name: &str| Some(directory.path().join(name).display().to_string());
        assert_eq!(hint("counter.o"), file("counter.bpf.o"));
        assert_eq!(hint("counter"), file("counter.bpf.o"));
        assert_eq!(hint("counter.bpf"), file("counter.bpf.o"));
        assert_eq!(hint("filtre.txt"), file("filter.txt"));
        let told = hint("something else").unwrap();
        let start = "another path: the files there are ";
        assert!(told.starts_with(start) && told.ends_with("/x"), "{told}");
        let told = hint("in.pcap").unwrap();
        assert!(told.contains("there are no files *.pcap in "), "{told}");
        let listed = format!(
            "another path: the objects there are {}",
            file("counter.bpf.o").unwrap()
        );
        assert_eq!(hint("something.else.o"), Some(listed));
        assert_eq!(hint("conten.bpf.o"), file("counter.bpf.o"));
        assert_ne!(hint("nosuch.bpf.o"), file("counter.bpf.o"));
        for name in ["a.o", "b.o", "c.o", "d.o", "later.c"] {
            fs::write(directory.path().join(name), "").unwrap();
        }
        let told = hint("something.else.o").unwrap();
        let start = "another path: of the 5 objects there the first are ";
        assert!(told.starts_with(start), "{told}");
        let told = hint("later.o").unwrap();
        assert!(told.starts_with("clang -target bpf -O2 -g -c "), "{told}");
        let bare = tempfile::tempdir().unwrap();
        let told = super::hint(&bare.path().join("x.o"), &missing).unwrap();
        assert!(told.contains("there are no objects (*.o) in "), "{told}");
        let place = directory.path().join("none").display().to_string();
        let told = hint("none/below/file").unwrap();
        assert!(
            told.ends_with(&format!("there is no directory {place}")),
            "{told}"
        );
        let told = super::hint(Path::new("no such place/below/file"), &missing).unwrap();
        assert!(
            told.ends_with("there is no directory no such place"),
            "{told}"
        );
    }
}
