//! Declaration tags by which the kernel's selftests say how a program is loaded.
//!
//! Tags of a function are `comment:NAME=VALUE`, or `comment:LINE:NAME=VALUE` since Linux
//! 7.1. `test_prog_flags` names a load flag, or with `!` takes one away; `test_btf_path`
//! and `test_btf_func_path` name a file with BTF for CO-RE relocations; `test_retval` says
//! what a run returns.

use btf::{Btf, Kind, Shape};
use spec::programs::LoadFlags;

/// Names of load flags (`BPF_F_*`, include/uapi/linux/bpf.h) with their bits.
const FLAGS: &[(&str, u32)] = &[
    ("BPF_F_STRICT_ALIGNMENT", 1 << 0),
    ("BPF_F_ANY_ALIGNMENT", 1 << 1),
    ("BPF_F_TEST_RND_HI32", 1 << 2),
    ("BPF_F_TEST_STATE_FREQ", 1 << 3),
    ("BPF_F_SLEEPABLE", 1 << 4),
    ("BPF_F_XDP_HAS_FRAGS", 1 << 5),
    ("BPF_F_TEST_REG_INVARIANTS", 1 << 7),
];

/// Tags of one function.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TestTags {
    /// Flags in the order of the tags, and whether each is set or taken away.
    flags: Vec<(u32, bool)>,
    /// File with BTF for CO-RE relocations.
    pub(super) btf: Option<String>,
    /// Expected return value of a run.
    pub(super) retval: Option<u32>,
    /// The verifier is to refuse the program.
    pub(super) is_refused: bool,
}

impl TestTags {
    /// The tags of a function.
    pub(super) fn of(types: &Btf<'_>, function: &str) -> TestTags {
        let mut tags = TestTags::default();
        let Some(function) = types.find(Kind::Func, function) else {
            return tags;
        };
        for ty in types.of_kind(Kind::DeclTag) {
            if let Shape::DeclTag(tag) = ty.shape()
                && tag.target == function.id()
                && tag.component == -1
            {
                tags.add(&ty.name().to_string_lossy());
            }
        }
        tags
    }

    fn add(&mut self, tag: &str) {
        let Some(body) = tag.strip_prefix("comment:") else {
            return;
        };
        let body = match body.split_once(':') {
            Some((line, rest)) if line.bytes().all(|byte| byte.is_ascii_digit()) => rest,
            _ => body,
        };
        match body.split_once('=') {
            Some(("test_prog_flags", value)) => {
                let (name, is_set) = match value.strip_prefix('!') {
                    Some(name) => (name, false),
                    None => (value, true),
                };
                let known = FLAGS.iter().find(|(flag, _)| *flag == name);
                let bits = known.map_or_else(|| number(name), |(_, bits)| *bits);
                self.flags.push((bits, is_set));
            }
            Some(("test_btf_path" | "test_btf_func_path", file)) => {
                self.btf = Some(file.to_owned());
            }
            Some(("test_retval", value)) => self.retval = retval(value),
            None if body == "test_expect_failure" => self.is_refused = true,
            _ => {}
        }
    }

    /// These flags, changed as the tags say.
    pub(super) fn flags(&self, flags: LoadFlags) -> LoadFlags {
        let change = |flags: LoadFlags, &(bits, is_set): &(u32, bool)| match is_set {
            true => flags.with(LoadFlags(bits)),
            false => LoadFlags(flags.0 & !bits),
        };
        self.flags.iter().fold(flags, change)
    }
}

/// The low 32 bits of a return value, decimal or hexadecimal.
fn retval(text: &str) -> Option<u32> {
    if text == "_INT_MIN" {
        return Some(i32::MIN as u32);
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok()?,
        None => digits.parse().ok()?,
    };
    Some((sign * number) as u32)
}

fn number(text: &str) -> u32 {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap_or(0),
        None => text.parse().unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tags(all: &[&str]) -> TestTags {
        let mut tags = TestTags::default();
        all.iter().for_each(|tag| tags.add(tag));
        tags
    }

    #[test]
    fn flags_are_set_and_taken_away_in_order() {
        let tags = tags(&[
            "comment:test_prog_flags=BPF_F_STRICT_ALIGNMENT",
            "comment:12:test_prog_flags=0x80",
            "comment:test_prog_flags=!BPF_F_STRICT_ALIGNMENT",
            "comment:test_description=test_prog_flags=8",
            "exception_callback:handler",
        ]);
        assert_eq!(tags.flags(LoadFlags(1 << 4)), LoadFlags(1 << 4 | 0x80));
    }

    #[test]
    fn return_values_are_read_in_their_forms() {
        for (text, value) in [
            ("7", 7),
            ("-22", -22i32 as u32),
            ("0xbadcafe", 0xbad_cafe),
            ("_INT_MIN", 1 << 31),
        ] {
            let tags = tags(&[&format!("comment:3:test_retval={text}")]);
            assert_eq!(tags.retval, Some(value), "{text}");
        }
        assert_eq!(tags(&["comment:test_retval=x"]).retval, None);
    }

    #[test]
    fn a_file_with_btf_is_named_with_or_without_a_line() {
        let file = Some("types.bpf.o".to_owned());
        assert_eq!(tags(&["comment:test_btf_path=types.bpf.o"]).btf, file);
        assert_eq!(
            tags(&["comment:7:test_btf_func_path=types.bpf.o"]).btf,
            file
        );
        assert_eq!(tags(&["comment:test_btf=types.bpf.o"]).btf, None);
    }
}
