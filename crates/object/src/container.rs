//! Files that are not objects, and objects embedded in other files.
//!
//! Recognises archives, executables with objects in their data (skeletons), compressed
//! files, LLVM bitcode and others by content; the error names the kind of file and the
//! offsets of embedded objects. [`objects_in`] returns these.
//!
//! One pass over the file, only if it is not an object.

use std::fmt;

use spec::Errno;

use crate::error::{Blame, FORMAT};

/// Start of a 64-bit little-endian ELF file.
const ELF: &[u8] = b"\x7fELF\x02\x01\x01";
const ARCHIVE: &[u8] = b"!<arch>\n";
/// Size of the header of an archive member in bytes.
const MEMBER: usize = 60;
/// Size of an ELF header in bytes.
const HEADER: usize = 64;

/// An object embedded in another file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Embedded {
    /// Name, if the containing file states one.
    pub name: Option<String>,
    /// Offset in bytes.
    pub offset: usize,
    /// Size in bytes.
    pub len: usize,
}

/// A file that is not an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerFault {
    /// Kind of file.
    pub kind: ContainerKind,
    /// Embedded objects.
    pub objects: Vec<Embedded>,
}

/// Kind of a file that is not an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContainerKind {
    /// Empty file.
    Empty,
    /// Compressed file, with the name of the compression.
    Compressed(&'static str),
    /// An archive of files.
    Archive,
    /// Thin archive, which refers to its files.
    ThinArchive,
    /// LLVM bitcode.
    Bitcode,
    /// Raw BTF, as in `/sys/kernel/btf`.
    Types,
    /// Executable, library, or object for another processor.
    Elf,
    /// Packet capture (pcap or pcapng).
    Capture,
    /// Text, possibly source code.
    Text,
    /// Unknown.
    Unknown,
}

impl ContainerKind {
    /// Kind of a file, by its first bytes.
    pub fn of(file: &[u8]) -> ContainerKind {
        const STARTS: &[(&[u8], ContainerKind)] = &[
            (b"\x7fELF", ContainerKind::Elf),
            (ARCHIVE, ContainerKind::Archive),
            (b"!<thin>\n", ContainerKind::ThinArchive),
            (b"BC\xc0\xde", ContainerKind::Bitcode),
            (b"\xde\xc0\x17\x0b", ContainerKind::Bitcode),
            (b"\x9f\xeb\x01\x00", ContainerKind::Types),
            (b"\x0a\x0d\x0d\x0a", ContainerKind::Capture),
            (b"\xd4\xc3\xb2\xa1", ContainerKind::Capture),
            (b"\xa1\xb2\xc3\xd4", ContainerKind::Capture),
            (b"\x4d\x3c\xb2\xa1", ContainerKind::Capture),
            (b"\xa1\xb2\x3c\x4d", ContainerKind::Capture),
            (b"\x1f\x8b", ContainerKind::Compressed("gzip")),
            (b"\xfd7zXZ\0", ContainerKind::Compressed("xz")),
            (b"\x28\xb5\x2f\xfd", ContainerKind::Compressed("zstd")),
            (b"BZh", ContainerKind::Compressed("bzip2")),
            (b"\x04\x22\x4d\x18", ContainerKind::Compressed("lz4")),
            (b"PK\x03\x04", ContainerKind::Compressed("zip")),
        ];
        let known = STARTS.iter().find(|(start, _)| file.starts_with(start));
        let start = &file[..file.len().min(512)];
        let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
        match known {
            Some((_, kind)) => *kind,
            None if file.is_empty() => ContainerKind::Empty,
            None if start.iter().all(is_text) => ContainerKind::Text,
            None => ContainerKind::Unknown,
        }
    }
}

impl ContainerFault {
    /// Fault of a file that is not an object.
    pub(crate) fn of(file: &[u8]) -> ContainerFault {
        ContainerFault {
            kind: ContainerKind::of(file),
            objects: objects_in(file),
        }
    }

    /// Party that can fix it.
    pub fn blame(&self) -> Blame {
        Blame::User
    }

    /// Error number of libbpf.
    pub fn errno(&self) -> Errno {
        FORMAT
    }
}

impl fmt::Display for ContainerFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ContainerKind::Empty => write!(f, "the file is empty")?,
            ContainerKind::Compressed(how) => {
                write!(f, "the file is compressed ({how}): decompress it first")?;
            }
            ContainerKind::Archive => write!(f, "this is an archive")?,
            ContainerKind::ThinArchive => {
                write!(
                    f,
                    "this is a thin archive, which refers to objects and contains none"
                )?;
            }
            ContainerKind::Bitcode => write!(
                f,
                "this is LLVM bitcode: compile without -flto and -emit-llvm, or with llc -march=bpf"
            )?,
            ContainerKind::Types => write!(f, "this is raw BTF")?,
            ContainerKind::Elf => {
                write!(
                    f,
                    "this is an ELF file, but not a relocatable 64-bit BPF object"
                )?;
            }
            ContainerKind::Capture => {
                write!(f, "this is a packet capture: beebox filter reads it")?;
            }
            ContainerKind::Text => {
                write!(
                    f,
                    "this is text: compile it with clang -g -O2 -target bpf -c"
                )?;
            }
            ContainerKind::Unknown => write!(f, "this file has no ELF magic number")?,
        }
        let mut separator = "; objects in it: ";
        for object in self.objects.iter().take(4) {
            f.write_str(separator)?;
            if let Some(name) = &object.name {
                write!(f, "{name} ")?;
            }
            write!(f, "at offset {:#x}, {} bytes", object.offset, object.len)?;
            separator = ", ";
        }
        match self.objects.len().checked_sub(4) {
            Some(more) if more > 0 => write!(f, " and {more} more"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for ContainerFault {}

/// Objects embedded in a file: members of an archive, or in the data of an executable.
pub fn objects_in(file: &[u8]) -> Vec<Embedded> {
    match file.starts_with(ARCHIVE) {
        true => members(file),
        false => scattered(file),
    }
}

/// Members of an archive that are objects.
fn members(file: &[u8]) -> Vec<Embedded> {
    let mut found = Vec::new();
    let mut long_names: &[u8] = &[];
    let mut at = ARCHIVE.len();
    while let Some(header) = file.get(at..at + MEMBER) {
        let number = |field: &[u8]| {
            std::str::from_utf8(field)
                .ok()?
                .trim()
                .parse::<usize>()
                .ok()
        };
        let Some(len) = number(&header[48..58]) else {
            break;
        };
        let start = at + MEMBER;
        let Some(contents) = start.checked_add(len).and_then(|end| file.get(start..end)) else {
            break;
        };
        let name = header[..16].trim_ascii_end();
        if name == b"//" {
            long_names = contents;
        } else if size_of_object(contents).is_some() {
            let long = name.strip_prefix(b"/").and_then(number);
            let name = match long {
                Some(at) => long_names.get(at..).unwrap_or_default(),
                None => name,
            };
            let end = name.iter().position(|&byte| matches!(byte, b'/' | b'\n'));
            let name = String::from_utf8_lossy(&name[..end.unwrap_or(name.len())]);
            let name = Some(name.into_owned());
            found.push(Embedded {
                name,
                offset: start,
                len,
            });
        }
        at = start + len + len % 2;
    }
    found
}

/// Objects at any offset of a file.
fn scattered(file: &[u8]) -> Vec<Embedded> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = file[at..].iter().position(|&byte| byte == ELF[0]) {
        at += next;
        match size_of_object(&file[at..]) {
            Some(len) => {
                found.push(Embedded {
                    name: None,
                    offset: at,
                    len,
                });
                at += len;
            }
            None => at += 1,
        }
    }
    found
}

/// Size in bytes of the object at the start of `bytes`; `None` if there is none, or if it
/// ends beyond them.
fn size_of_object(bytes: &[u8]) -> Option<usize> {
    let header = bytes
        .get(..HEADER)
        .filter(|header| header.starts_with(ELF))?;
    let half = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (relocatable, bpf) = (1, 247);
    if half(16) != relocatable || half(18) != bpf {
        return None;
    }
    // The section table is at the end of every object that current compilers write; bytes
    // after it are not part of the result.
    let table = u64::from_le_bytes(*header[40..48].first_chunk()?);
    let len = table.checked_add(u64::from(half(58)) * u64::from(half(60)))?;
    let len = usize::try_from(len).ok()?;
    (len > HEADER && len <= bytes.len()).then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Header of an object, with `tail` bytes up to the end of its section table.
    fn object(tail: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER + tail];
        bytes[..ELF.len()].copy_from_slice(ELF);
        bytes[16] = 1;
        bytes[18] = 247;
        bytes[40..48].copy_from_slice(&(HEADER as u64 + tail as u64 - 64).to_le_bytes());
        bytes[58] = 64;
        bytes[60] = 1;
        bytes
    }

    #[test]
    fn captures_are_detected_by_their_first_bytes() {
        let captures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/seeds/capture");
        for name in [
            "pcap-big",
            "pcap-little",
            "pcap-nano",
            "pcap-nano-big",
            "pcapng-big",
        ] {
            // Two bytes for the fuzzer precede it.
            let file = &fs::read(captures.join(name)).unwrap()[2..];
            assert_eq!(ContainerKind::of(file), ContainerKind::Capture, "{name}");
        }
        let said = ContainerFault::of(b"\x0a\x0d\x0d\x0a").to_string();
        assert!(said.ends_with("beebox filter reads it"), "{said}");
    }

    #[test]
    fn objects_in_the_data_of_a_program_are_found() {
        let mut file = b"\x7fELF\x02\x01\x01 no object \x7f".to_vec();
        let first = file.len();
        file.extend(object(64));
        file.extend(b"between");
        let second = file.len();
        file.extend(object(100));
        let found: Vec<_> = objects_in(&file)
            .iter()
            .map(|it| (it.offset, it.len))
            .collect();
        assert_eq!(found, [(first, 128), (second, 164)]);
        let said = ContainerFault::of(&file).to_string();
        assert!(said.contains("at offset"), "{said}");
    }

    #[test]
    fn an_archive_names_its_objects() {
        let mut file = ARCHIVE.to_vec();
        let mut add = |name: &str, contents: &[u8]| {
            file.extend(format!("{name:<16}{:<32}{:<10}`\n", "0", contents.len()).bytes());
            file.extend(contents);
            if contents.len() % 2 == 1 {
                file.push(b'\n');
            }
        };
        add("//", b"a_name_that_is_too_long.bpf.o/\nodd");
        add("readme.txt/", b"text");
        add("short.o/", &object(65));
        add("/0", &object(64));
        let names: Vec<_> = objects_in(&file)
            .into_iter()
            .map(|it| it.name.unwrap())
            .collect();
        assert_eq!(names, ["short.o", "a_name_that_is_too_long.bpf.o"]);
        assert_eq!(ContainerKind::of(&file), ContainerKind::Archive);
    }

    #[test]
    fn an_object_that_ends_beyond_the_file_is_not_found() {
        let whole = object(64);
        assert_eq!(objects_in(&whole[..whole.len() - 1]), []);
        assert_eq!(objects_in(b"!<arch>\nx"), []);
        assert_eq!(objects_in(b""), []);
    }
}
