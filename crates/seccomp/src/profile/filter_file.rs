//! Recognition of container profiles among files of filters.

use std::path::Path;

use serde_json::Value;

/// Contents of a file that a filter is read from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilterFile {
    /// A container profile in JSON or YAML.
    Profile,
    /// A JSON array, which no filter and no profile is.
    JsonArray,
    /// A program in one of its text forms or in binary.
    Program,
}

impl FilterFile {
    /// Recognises a file by its first bytes, and YAML by the suffix of its name too. Names and
    /// bytes may be those of any file.
    pub fn detect(path: &Path, bytes: &[u8]) -> FilterFile {
        let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        let is_json = first == Some(&b'{') && !bytes.contains(&0) && !looks_like_c(bytes);
        if is_json || is_yaml(path, bytes) {
            return FilterFile::Profile;
        }
        match first == Some(&b'[') && serde_json::from_slice::<Vec<Value>>(bytes).is_ok() {
            true => FilterFile::JsonArray,
            false => FilterFile::Program,
        }
    }
}

/// True for a file with the suffix of YAML, or that begins as profiles in YAML do.
fn is_yaml(path: &Path, bytes: &[u8]) -> bool {
    const STARTS: [&[u8]; 4] = [b"---", b"apiVersion:", b"kind:", b"defaultAction:"];
    let suffix = path.extension().and_then(|suffix| suffix.to_str());
    let is_named = matches!(suffix, Some("yaml" | "yml"));
    is_named || STARTS.iter().any(|start| bytes.starts_with(start))
}

/// A C array also begins with a brace, but continues with a number.
fn looks_like_c(bytes: &[u8]) -> bool {
    let mut rest = bytes.iter().filter(|byte| !byte.is_ascii_whitespace());
    rest.nth(1)
        .is_some_and(|byte| byte.is_ascii_digit() || *byte == b'{')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_told_from_programs() {
        for (name, text, expected) in [
            ("p.json", " {\"defaultAction\": 1}", FilterFile::Profile),
            ("p.yml", "anything", FilterFile::Profile),
            ("p", "apiVersion: v1", FilterFile::Profile),
            ("p.json", "[{}, {}]", FilterFile::JsonArray),
            ("p.asm", "[1 not JSON", FilterFile::Program),
            ("p.c", "{ { 0x28, 0, 0, 12 }, }", FilterFile::Program),
            ("p.c", "{ 0x28, 0, 0, 12 }", FilterFile::Program),
            ("p.bpf", "{\0", FilterFile::Program),
            ("p.asm", "ret #0", FilterFile::Program),
            ("-", "", FilterFile::Program),
        ] {
            let found = FilterFile::detect(Path::new(name), text.as_bytes());
            assert_eq!(found, expected, "{name}: {text:?}");
        }
    }
}
