//! kconfig externs: `extern int CONFIG_HZ __kconfig;`.
//!
//! Their values are in the map `.kconfig`. Its layout is decided when the object is
//! opened; the values are set when it is linked, from the lines of a configuration such
//! as `/proc/config.gz`. Lines without an extern are ignored; the first line of a name
//! counts. Names that start with `LINUX_` are virtual: libbpf computes them.
//!
//! One pass over the text.

use std::collections::HashMap;

use btf::{Btf, Encoding, Shape, TypeId};
use program::Image;

use super::fault::signed;
use super::{ExternFault, ExternKind, Externs};
use crate::error::Error;
use spec::Kernel;
use spec::helpers::{self, HelperId};
use spec::since::Release;

/// Type and place of a kconfig extern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigValue {
    /// Kind of value.
    pub kind: ConfigKind,
    /// Size in bytes.
    pub size: u32,
    /// Alignment in bytes.
    pub align: u32,
    /// Offset in bytes in the map.
    pub offset: u32,
}

/// Kind of value of a kconfig extern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigKind {
    /// `y`, `n` or a number below 2.
    Bool,
    /// `y`, `m`, `n`.
    Tristate,
    /// `y`, `m`, `n` as a letter, or a number.
    Char {
        /// True if the number may be negative.
        signed: bool,
    },
    /// A number.
    Int {
        /// True if it may be negative.
        signed: bool,
    },
    /// String with a final NUL.
    Text,
}

impl ConfigValue {
    /// Type of a variable of this BTF type, without a place.
    pub(super) fn of(btf: &Btf<'_>, ty: TypeId) -> Result<ConfigValue, ExternFault> {
        let size = btf.size_of(ty).filter(|&size| size != 0);
        let size = size.ok_or(ExternFault::ConfigNoSize)?;
        let align = btf.align_of(ty).filter(|&align| align != 0);
        let align = align.ok_or(ExternFault::ConfigNoSize)?;
        let kind = kind_of(btf, ty).ok_or(ExternFault::ConfigType)?;
        let offset = 0;
        Ok(ConfigValue {
            kind,
            size,
            align,
            offset,
        })
    }
}

fn kind_of(btf: &Btf<'_>, ty: TypeId) -> Option<ConfigKind> {
    let ty = btf.at(btf.skip_modifiers(ty)?);
    match ty.shape() {
        Shape::Int(int) if int.encoding.is_bool() => (int.size == 1).then_some(ConfigKind::Bool),
        Shape::Int(int) => {
            let signed = int.encoding.is_signed();
            match int.size {
                1 => Some(ConfigKind::Char { signed }),
                2 | 4 | 8 => Some(ConfigKind::Int { signed }),
                _ => None,
            }
        }
        Shape::Enum(of) if of.wide || of.size == 4 => {
            (ty.name() == "libbpf_tristate").then_some(ConfigKind::Tristate)
        }
        Shape::Array(array) if array.count != 0 => {
            let element = btf.at(btf.skip_modifiers(array.element)?);
            match element.shape() {
                Shape::Int(int) if int.size == 1 && int.encoding.0 & Encoding::BOOL.0 == 0 => {
                    Some(ConfigKind::Text)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

/// Builder of the values of kconfig externs.
pub(super) struct Values<'e> {
    externs: &'e Externs,
    /// True for each extern with a value.
    pub(super) set: Vec<bool>,
    /// Contents of the map.
    pub(super) image: Image<'static>,
}

impl<'e> Values<'e> {
    pub(super) fn new(externs: &'e Externs, size: u32) -> Values<'e> {
        Values {
            externs,
            set: vec![false; externs.all.len()],
            image: Image::zeros(size),
        }
    }

    /// Sets the values that the loader defines.
    pub(super) fn define(&mut self, defined: &HashMap<String, u64>) -> Result<(), Error> {
        for (name, value) in defined {
            if let Some((id, _)) = self.externs.named(name) {
                let index = id.0 as usize;
                let set = match self.value(index).map(|value| value.kind) {
                    // y and m of a tristate are 1 and 2.
                    Some(ConfigKind::Tristate) if *value <= 2 => {
                        self.set_letter(index, [b'n', b'y', b'm'][*value as usize])
                    }
                    Some(_) => self.set_number(index, *value, true),
                    None => Ok(()),
                };
                set.map_err(|fault| Error::new(fault).about(name))?;
            }
        }
        Ok(())
    }

    /// Sets all values known of the kernel. `given` is a configuration that takes
    /// precedence over the kernel's own, which is read only if values are missing.
    pub(super) fn fill(&mut self, kernel: &Kernel, given: Option<&str>) -> Result<(), Error> {
        let mut wants_text = false;
        for (index, known) in self.externs.all.iter().enumerate() {
            let ExternKind::Config(_) = known.kind else {
                continue;
            };
            if self.set[index] {
                continue;
            }
            if known.name.starts_with("CONFIG_") {
                wants_text = true;
                continue;
            }
            let value = virtual_value(&known.name, known.weak, kernel);
            let set = value.and_then(|value| self.set_number(index, value, true));
            set.map_err(|fault| Error::new(fault).about(&known.name))?;
        }
        if let (true, Some(text)) = (wants_text, given) {
            self.read(text)?;
            wants_text = self.is_incomplete();
        }
        if wants_text {
            self.read(kernel.config().ok_or(ExternFault::NoConfig)?.text())?;
        }
        Ok(())
    }

    fn is_incomplete(&self) -> bool {
        let mut all = self.externs.all.iter().zip(&self.set);
        all.any(|(known, &set)| matches!(known.kind, ExternKind::Config(_)) && !set)
    }

    fn read(&mut self, text: &str) -> Result<(), Error> {
        for line in text.split('\n').filter(|line| line.starts_with("CONFIG_")) {
            let incomplete = || Error::new(ExternFault::ConfigLine(line.to_owned()));
            let (name, value) = line.split_once('=').ok_or_else(incomplete)?;
            if value.is_empty() {
                return Err(incomplete());
            }
            let index = self.externs.named(name).map(|(id, _)| id.0 as usize);
            if let Some(index) = index.filter(|&index| !self.set[index]) {
                let set = self.set_text(index, value);
                set.map_err(|fault| Error::new(fault).about(name))?;
            }
        }
        Ok(())
    }

    fn set_text(&mut self, index: usize, value: &str) -> Result<(), ExternFault> {
        let first = value.as_bytes()[0];
        match first {
            b'y' | b'n' | b'm' => self.set_letter(index, first),
            b'"' => self.set_string(index, value),
            _ => {
                let number = parse_number(value);
                let number = number.ok_or_else(|| ExternFault::ConfigNumber(value.to_owned()))?;
                self.set_number(index, number, false)
            }
        }
    }

    fn set_letter(&mut self, index: usize, letter: u8) -> Result<(), ExternFault> {
        let mismatch = |needs| ExternFault::ConfigMismatch {
            value: char::from(letter).to_string(),
            needs,
        };
        let Some(value) = self.value(index) else {
            return Ok(());
        };
        let number = match value.kind {
            ConfigKind::Bool if letter == b'm' => {
                return Err(mismatch("an enum libbpf_tristate or a char"));
            }
            ConfigKind::Bool => u64::from(letter == b'y'),
            ConfigKind::Tristate => match letter {
                b'y' => 1,
                b'm' => 2,
                _ => 0,
            },
            ConfigKind::Char { .. } => letter.into(),
            ConfigKind::Int { .. } | ConfigKind::Text => {
                return Err(mismatch("a bool, an enum libbpf_tristate or a char"));
            }
        };
        self.store(index, value, number);
        Ok(())
    }

    fn set_string(&mut self, index: usize, value: &str) -> Result<(), ExternFault> {
        let mismatch = |needs| ExternFault::ConfigMismatch {
            value: value.to_owned(),
            needs,
        };
        let Some(place) = self.value(index) else {
            return Ok(());
        };
        if place.kind != ConfigKind::Text {
            return Err(mismatch("an array of char"));
        }
        let text = value
            .strip_prefix('"')
            .and_then(|rest| rest.strip_suffix('"'));
        let text = text.ok_or_else(|| mismatch("a closing quote"))?;
        // A string that is too long is cut; a NUL always ends it.
        let len = text.len().min(place.size as usize - 1);
        self.image.write(place.offset, &text.as_bytes()[..len]);
        self.set[index] = true;
        Ok(())
    }

    /// `made_up` values may be booleans too.
    fn set_number(&mut self, index: usize, number: u64, made_up: bool) -> Result<(), ExternFault> {
        let Some(value) = self.value(index) else {
            return Ok(());
        };
        let mismatch = |needs| ExternFault::ConfigMismatch {
            value: signed(number),
            needs,
        };
        let signed = match value.kind {
            ConfigKind::Int { signed } | ConfigKind::Char { signed } => signed,
            ConfigKind::Bool if made_up && number <= 1 => false,
            _ => return Err(mismatch("a char or an integer")),
        };
        let bits = value.size * 8;
        let fits = match bits {
            64.. => true,
            _ if signed => number.wrapping_add(1 << (bits - 1)) < 1 << bits,
            _ => number >> bits == 0,
        };
        if !fits {
            return Err(ExternFault::ConfigRange {
                value: number,
                size: value.size,
            });
        }
        self.store(index, value, number);
        Ok(())
    }

    fn value(&self, index: usize) -> Option<ConfigValue> {
        match self.externs.all.get(index)?.kind {
            ExternKind::Config(value) => Some(value),
            _ => None,
        }
    }

    fn store(&mut self, index: usize, value: ConfigValue, number: u64) {
        let len = value.size.min(8) as usize;
        self.image.write(value.offset, &number.to_le_bytes()[..len]);
        self.set[index] = true;
    }
}

/// Value of a virtual kconfig extern.
fn virtual_value(name: &str, weak: bool, kernel: &Kernel) -> Result<u64, ExternFault> {
    match name {
        "LINUX_KERNEL_VERSION" => match kernel.version_code() {
            0 => Err(ExternFault::NoVersion),
            version => Ok(version.into()),
        },
        "LINUX_HAS_BPF_COOKIE" => {
            Ok((kernel.features().cookies && has_cookie_helper(kernel)).into())
        }
        "LINUX_HAS_SYSCALL_WRAPPER" => Ok(kernel.features().syscall_wrapper.into()),
        _ if name.starts_with("LINUX_") && weak => Ok(0),
        _ => Err(ExternFault::UnknownVirtual),
    }
}

/// True unless the kernel is of a release without `bpf_get_attach_cookie`, with which libbpf tries
/// whether there are cookies.
fn has_cookie_helper(kernel: &Kernel) -> bool {
    let helper = helpers::helper(HelperId::GetAttachCookie.number());
    let release = kernel.version().map(Release::from);
    release.is_none_or(|release| helper.is_some_and(|helper| helper.since.release <= release))
}

/// Number of a whole text, as C's `strtoull` with base 0 parses it.
fn parse_number(text: &str) -> Option<u64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let lower = digits.to_ascii_lowercase();
    let (digits, base) = match lower.strip_prefix("0x") {
        Some(rest) => (rest, 16),
        None if lower.len() > 1 && lower.starts_with('0') => (&lower[1..], 8),
        None => (&lower[..], 10),
    };
    if digits.starts_with('+') {
        return None;
    }
    let number = u64::from_str_radix(digits, base).ok()?;
    Some(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}
