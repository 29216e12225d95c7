//! Layouts of contexts by asking about every offset and width.

use spec::registry::{FieldRule, KernelType, Layout, RegBase, RegType, TypeFlags, Widths};

use super::query::{KernelQuery, Subject};
use super::rewriting;

/// Offsets asked about one by one; contexts that go on behind are asked about with a
/// stride of primes as well.
const OFFSETS: i16 = 320;
/// Maximum length of contexts without a structure: tracepoint records.
const LONGEST: i16 = 8192;

/// Offsets at the end of a context that goes on that are asked about one by one.
const TAIL: i16 = 80;
/// Of the offsets before them, one of so many is asked about: no multiple of a size.
const ASKED_STEP: usize = 167;

/// The kernel's answer for an offset.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OffsetAnswers {
    /// By width, what a read gives.
    reads: Vec<(u32, String)>,
    signed: Widths,
    writes: Widths,
}

/// Queries an offset.
pub fn ask_offset(kernel_query: &mut KernelQuery, subject: &Subject, offset: i16) -> OffsetAnswers {
    let mut answers = OffsetAnswers::default();
    for width in [1, 2, 4, 8] {
        if let Some(value) = kernel_query.ctx_read(subject, offset, width, false) {
            answers.reads.push((width, value));
        }
        // What may be read with its sign may be read without.
        let is_read = answers.reads.iter().any(|(read, _)| *read == width);
        if is_read
            && kernel_query
                .ctx_read(subject, offset, width, true)
                .is_some()
        {
            answers.signed.0 |= Widths::of(width).0;
        }
        if kernel_query.ctx_write(subject, offset, width) {
            answers.writes.0 |= Widths::of(width).0;
        }
    }
    answers
}

/// The expected answers from a layout.
pub fn expect_offset(layout: &Layout, offset: i16) -> Vec<FieldRule> {
    let Layout::Fields(rules) = layout else {
        return Vec::new();
    };
    let offset = offset as u32;
    let of_offset = rules.iter().filter(|rule| {
        rule.first <= offset
            && offset <= rule.last
            && (offset - rule.first).is_multiple_of(rule.step)
    });
    let alone = of_offset.map(|rule| FieldRule {
        first: offset,
        last: offset,
        step: 1,
        field_size: 0,
        ..rule.clone()
    });
    alone.collect()
}

/// The rules of one offset.
pub fn rules_of(offset: i16, answers: &OffsetAnswers) -> Vec<FieldRule> {
    let mut rules: Vec<FieldRule> = Vec::new();
    for (width, text) in &answers.reads {
        let Some((value, btf)) = value(text) else {
            continue;
        };
        match rules
            .iter_mut()
            .find(|rule| rule.value == value && rule.btf == btf)
        {
            Some(rule) => rule.reads.0 |= Widths::of(*width).0,
            None => rules.push(FieldRule {
                first: offset as u32,
                last: offset as u32,
                step: 1,
                reads: Widths::of(*width),
                signed_reads: Widths::default(),
                writes: Widths::default(),
                value,
                btf,
                field_size: 0,
                rewritten: Vec::new(),
            }),
        }
    }
    if answers.signed != Widths::default() || answers.writes != Widths::default() {
        let scalar = RegType::from(RegBase::Scalar);
        let at = rules.iter().position(|rule| rule.value == scalar);
        let at = at.unwrap_or_else(|| {
            rules.push(FieldRule {
                first: offset as u32,
                last: offset as u32,
                step: 1,
                reads: Widths::default(),
                signed_reads: Widths::default(),
                writes: Widths::default(),
                value: scalar,
                btf: None,
                field_size: 0,
                rewritten: Vec::new(),
            });
            rules.len() - 1
        });
        rules[at].signed_reads = answers.signed;
        rules[at].writes = answers.writes;
    }
    rules
}

/// Queries a whole context.
pub fn ask(kernel_query: &mut KernelQuery, subject: &Subject) -> Layout {
    let returns = kernel_query
        .return_range(subject)
        .map_or(0, |range| range.min);
    let mut rules = Vec::new();
    let mut end = OFFSETS;
    let mut offset = 0;
    while offset < end {
        let answers = ask_offset(kernel_query, subject, offset);
        let mut of_offset = rules_of(offset, &answers);
        if offset < OFFSETS && !of_offset.is_empty() {
            let rewritten =
                rewriting::of_offset(kernel_query, subject, &of_offset, offset, returns);
            of_offset[0].rewritten = rewritten;
        }
        let goes_on = offset + 1 == OFFSETS && !of_offset.is_empty();
        rules.extend(of_offset);
        offset += 1;
        if goes_on {
            let last = last_read(kernel_query, subject, LONGEST + 64);
            end = (last + 16).min(LONGEST + 64);
            let tail = (last - TAIL).max(offset);
            let repeated = repeats(kernel_query, subject, &rules, offset..tail);
            if !repeated.is_empty() {
                rules.extend(repeated);
                offset = tail;
            }
        }
    }
    set_field_sizes(&mut rules);
    let is_endless = rules.iter().any(|rule| rule.first > LONGEST as u32 + 32);
    let mut rules = runs(rules);
    if is_endless {
        // The kernel bounds such a context by 16 bits, which offsets of
        // instructions do not reach.
        let last_asked = (LONGEST + 64) as u32;
        for rule in &mut rules {
            if rule.last + rule.step >= last_asked {
                rule.last += (0xffff - rule.last) / rule.step * rule.step;
            }
        }
    }
    Layout::Fields(rules)
}

/// The last offset below `end` of which a byte may be read, in a context that goes on.
fn last_read(kernel_query: &mut KernelQuery, subject: &Subject, end: i16) -> i16 {
    let (mut read, mut refused) = (OFFSETS - 1, end);
    while read + 1 < refused {
        let middle = read + (refused - read) / 2;
        match kernel_query.ctx_read(subject, middle, 1, false) {
            Some(_) => read = middle,
            None => refused = middle,
        }
    }
    read
}

/// The rules of offsets in a context that repeats what its eight offsets before them have; empty if
/// one of so many offsets that are asked about has others.
fn repeats(
    kernel_query: &mut KernelQuery,
    subject: &Subject,
    rules: &[FieldRule],
    offsets: std::ops::Range<i16>,
) -> Vec<FieldRule> {
    let of = |offset: i16| {
        let like = OFFSETS - 8 + offset % 8;
        let like = rules.iter().filter(move |rule| rule.first == like as u32);
        like.map(move |rule| FieldRule {
            first: offset as u32,
            last: offset as u32,
            rewritten: Vec::new(),
            ..rule.clone()
        })
    };
    let mut asked = offsets.clone().step_by(ASKED_STEP);
    let is_like = |offset: i16| {
        let rules = rules_of(offset, &ask_offset(kernel_query, subject, offset));
        rules.into_iter().eq(of(offset))
    };
    match asked.all(is_like) {
        true => offsets.flat_map(of).collect(),
        false => Vec::new(),
    }
}

/// A field is the widest read that covers an offset.
fn set_field_sizes(rules: &mut [FieldRule]) {
    let widest = |rule: &FieldRule| 1u32 << (7 - rule.reads.0.max(1).leading_zeros());
    let fields: Vec<(u32, u32)> = rules
        .iter()
        .map(|rule| (rule.first, widest(rule)))
        .collect();
    for rule in rules {
        let covering = fields
            .iter()
            .filter(|(first, size)| *first <= rule.first && rule.first < first + size);
        rule.field_size = covering.map(|(_, size)| *size).max().unwrap_or(0);
        rule.field_size = rule.field_size.max(widest(rule));
    }
}

/// The rules of a structure, of which each is about one offset.
pub(super) fn finish(mut rules: Vec<FieldRule>) -> Vec<FieldRule> {
    set_field_sizes(&mut rules);
    runs(rules)
}

/// Joins rules that repeat at equal distance.
fn runs(rules: Vec<FieldRule>) -> Vec<FieldRule> {
    let is_alike = |one: &FieldRule, other: &FieldRule| {
        *one == FieldRule {
            first: one.first,
            last: one.last,
            step: one.step,
            ..other.clone()
        }
    };
    let mut joined: Vec<FieldRule> = Vec::new();
    for rule in rules {
        let open = joined.iter_mut().rev().find(|run| {
            is_alike(run, &rule)
                && match run.last == run.first {
                    true => rule.first - run.last <= 8,
                    false => rule.first == run.last + run.step,
                }
        });
        match open {
            Some(run) => {
                run.step = rule.first - run.last;
                run.last = rule.first;
            }
            None => joined.push(rule),
        }
    }
    joined.sort_by_key(|rule| rule.first);
    joined
}

/// The type that the verifier's words mean: `trusted_ptr_sk_buff()`,
/// `sock_or_null(id=1)`.
pub fn value(text: &str) -> Option<(RegType, Option<KernelType>)> {
    let name = text.split('(').next()?;
    // Before Linux 5.18 a number was an invalid pointer.
    let is_number = ["scalar", "inv"].iter().any(|word| text.starts_with(word));
    if is_number || text.starts_with(|start: char| start.is_ascii_digit()) {
        return Some((RegBase::Scalar.into(), None));
    }
    let mut flags = TypeFlags::NONE;
    let mut name = name;
    // In the order in which the kernel writes them.
    for (prefix, flag) in [
        ("rdonly_", TypeFlags::MEM_RDONLY),
        ("rdwr_", TypeFlags::NONE),
        ("user_", TypeFlags::MEM_USER),
        ("percpu_", TypeFlags::MEM_PERCPU),
        ("untrusted_", TypeFlags::PTR_UNTRUSTED),
        ("trusted_", TypeFlags::PTR_TRUSTED),
        ("rcu_", TypeFlags::MEM_RCU),
    ] {
        if let Some(rest) = name.strip_prefix(prefix) {
            flags = flags.with(flag);
            name = rest;
        }
    }
    if let Some(rest) = name.strip_prefix("ptr_") {
        let rest = match rest.strip_prefix("or_null_") {
            Some(rest) => {
                flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
                rest
            }
            None => rest,
        };
        let ty = KernelType {
            name: rest.into(),
            btf_id: 0,
        };
        return Some((RegType::new(RegBase::PtrToBtfId, flags), Some(ty)));
    }
    if let Some(rest) = name.strip_suffix("_or_null") {
        flags = flags.with(TypeFlags::PTR_MAYBE_NULL);
        name = rest;
    }
    let base = match name {
        "ctx" => RegBase::PtrToCtx,
        "pkt" => RegBase::PtrToPacket,
        "pkt_meta" => RegBase::PtrToPacketMeta,
        "pkt_end" => RegBase::PtrToPacketEnd,
        "flow_keys" => RegBase::PtrToFlowKeys,
        "sock" => RegBase::PtrToSocket,
        "sock_common" => RegBase::PtrToSockCommon,
        "tcp_sock" => RegBase::PtrToTcpSock,
        "tp_buffer" => RegBase::PtrToTpBuffer,
        "xdp_sock" => RegBase::PtrToXdpSock,
        "buf" => RegBase::PtrToBuf,
        "mem" => RegBase::PtrToMem,
        _ => return None,
    };
    Some((RegType::new(base, flags), None))
}
