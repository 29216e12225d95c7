//! Context layouts: the offsets and widths that a program may read and write, and the
//! register type of each read.
//!
//! A layout is a short list of [`FieldRule`]s, each for a run of offsets at equal
//! distance, sorted by first offset. A lookup is a binary search over the runs that
//! start at or before the offset.

use std::fmt;

use super::helper::KernelType;
use super::rewriting::{AccessForm, Rewritten};
use super::types::RegType;

/// Widths of access in bytes, as a set: bit 0 for 1 byte, 1 for 2, 2 for 4, 3 for 8.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Widths(pub u8);

impl Widths {
    /// The set of one width; empty for a width that no access has.
    pub const fn of(bytes: u32) -> Widths {
        Widths(match bytes {
            1 | 2 | 4 | 8 => bytes as u8,
            _ => 0,
        })
    }

    /// True if the width is in the set.
    pub const fn has(self, bytes: u32) -> bool {
        self.0 & Widths::of(bytes).0 != 0
    }
}

/// One run of offsets with the same rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldRule {
    /// First offset.
    pub first: u32,
    /// Last offset.
    pub last: u32,
    /// Distance between offsets of the run, at least 1.
    pub step: u32,
    /// Widths by which it may be read.
    pub reads: Widths,
    /// Widths by which it may be read with sign extension.
    pub signed_reads: Widths,
    /// Widths by which it may be written.
    pub writes: Widths,
    /// Register type of a read.
    pub value: RegType,
    /// Structure that the value points to.
    pub btf: Option<KernelType>,
    /// Size of the field in bytes; a narrower read returns a part of it.
    pub field_size: u32,
    /// Accesses of which Linux makes several instructions.
    pub rewritten: Vec<Rewritten>,
}

/// Rules of access to a context.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Layout {
    /// By offset; everything else is refused with "invalid bpf_context access
    /// off=%d size=%d".
    Fields(Vec<FieldRule>),
    /// As arguments of the attach target's BTF prototype, eight bytes each
    /// (`btf_ctx_access`).
    Btf,
    /// The layout of the program that this one replaces (freplace).
    OfTarget,
}

/// Result of an allowed access to the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtxAccess<'r> {
    /// Register type of a read.
    pub value: RegType,
    /// Structure that the value points to.
    pub btf: Option<&'r KernelType>,
    /// Bytes of the field (`ctx_field_size`).
    pub field_size: u32,
}

/// Reason why no field rule applies to an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CtxRefused {
    /// "invalid bpf_context access off=%d size=%d".
    Invalid,
    /// The context is typed by BTF ([`Layout::Btf`]).
    Btf,
    /// The layout is that of another program ([`Layout::OfTarget`]).
    OfTarget,
    /// The registry has no layout for such programs.
    Unknown,
}

impl fmt::Display for CtxRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CtxRefused::Invalid => "no field allows this access to the context",
            CtxRefused::Btf => "the types of the kernel lay the context out",
            CtxRefused::OfTarget => "the replaced program's type lays the context out",
            CtxRefused::Unknown => "the registry lacks the layout of this context",
        })
    }
}

impl std::error::Error for CtxRefused {}

/// An access to the context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CtxQuery {
    /// Bytes from the start of the context.
    pub offset: i32,
    /// Bytes read or written.
    pub size: u32,
    /// True for a write.
    pub write: bool,
    /// True for a load with sign extension.
    pub signed: bool,
}

impl Layout {
    /// Result of an access, or the reason why no rule applies.
    pub fn access(&self, query: CtxQuery) -> Result<CtxAccess<'_>, CtxRefused> {
        let rules = match self {
            Layout::Fields(rules) => rules,
            Layout::Btf => return Err(CtxRefused::Btf),
            Layout::OfTarget => return Err(CtxRefused::OfTarget),
        };
        let rule = rule_for(rules, query).ok_or(CtxRefused::Invalid)?;
        Ok(CtxAccess {
            value: rule.value,
            btf: rule.btf.as_ref(),
            field_size: rule.field_size,
        })
    }

    /// Number of instructions that Linux makes of an access; `None` for one that is not
    /// allowed, and of programs that are replaced.
    pub fn insns(
        &self,
        offset: i32,
        size: u32,
        form: AccessForm,
        beside_tstamp_type: bool,
    ) -> Option<u32> {
        match self {
            Layout::Fields(rules) => insns(rules, offset, size, form, beside_tstamp_type),
            Layout::Btf => Some(1),
            Layout::OfTarget => None,
        }
    }
}

/// The rule that allows an access to the fields of a context or of an object.
pub(super) fn rule_for(rules: &[FieldRule], query: CtxQuery) -> Option<&FieldRule> {
    let offset = u32::try_from(query.offset).ok()?;
    let started = rules.partition_point(|rule| rule.first <= offset);
    rules[..started].iter().rev().find(|rule| {
        let widths = match (query.write, query.signed) {
            (true, _) => rule.writes,
            (false, true) => rule.signed_reads,
            (false, false) => rule.reads,
        };
        offset <= rule.last
            && (offset - rule.first).is_multiple_of(rule.step)
            && widths.has(query.size)
    })
}

/// Number of instructions that Linux makes of an access to these fields.
pub(super) fn insns(
    rules: &[FieldRule],
    offset: i32,
    size: u32,
    form: AccessForm,
    beside_tstamp_type: bool,
) -> Option<u32> {
    let query = CtxQuery {
        offset,
        size,
        write: form.writes(),
        signed: form.is_signed(),
    };
    let rewritten = &rule_for(rules, query)?.rewritten;
    let find = |beside| {
        let mut all = rewritten.iter();
        all.find(|entry| {
            entry.form == form
                && u32::from(entry.bytes) == size
                && entry.beside_tstamp_type == beside
        })
    };
    let beside = beside_tstamp_type.then(|| find(true)).flatten();
    Some(
        beside
            .or_else(|| find(false))
            .map_or(1, |entry| entry.insns.into()),
    )
}
