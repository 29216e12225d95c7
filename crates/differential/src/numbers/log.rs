//! Reads values out of the kernel's log.

use verifier::domain::{Scalar, Tnum};

/// A register as the log shows it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) reg: usize,
    /// Identity without the difference; 0 if none.
    pub(super) id: u32,
    /// The value, if it is a scalar.
    pub(super) value: Option<Scalar>,
}

pub(super) type State = Vec<Entry>;

/// One line of a log.
pub(super) enum Line {
    /// An instruction, with the changed registers if the line has them.
    Insn {
        index: usize,
        state: Option<State>,
    },
    /// Registers changed by the last instruction, or the first state.
    State(State),
    /// The state in which the branch of that instruction is explored.
    Branch {
        from: usize,
        state: State,
    },
    Other,
}

pub(super) fn parse_line(line: &str) -> Line {
    if let Some(rest) = line.strip_prefix("from ") {
        let from = rest.split(' ').next().and_then(|from| from.parse().ok());
        return match (from, rest.split_once(':')) {
            (Some(from), Some((_, state))) if state.contains('=') => Line::Branch {
                from,
                state: parse_state(state),
            },
            _ => Line::Other,
        };
    }
    let Some((index, rest)) = line.split_once(": ") else {
        return Line::Other;
    };
    let Ok(index) = index.parse() else {
        return Line::Other;
    };
    if rest.starts_with('(') {
        let state = rest.split_once("; ").map(|(_, state)| parse_state(state));
        return Line::Insn { index, state };
    }
    Line::State(parse_state(rest))
}

fn parse_state(text: &str) -> State {
    text.split(' ')
        .zip(text.split(' ').skip(1).map(Some).chain([None]))
        .filter_map(|(word, next)| {
            let (reg, value) = word.strip_prefix('R')?.split_once('=')?;
            let reg: usize = reg.parse().ok().filter(|reg| *reg < 10)?;
            // The tnum has a space in it.
            let whole = match next.filter(|_| value.contains("var_off=(")) {
                Some(next) => format!("{value} {next}"),
                None => value.to_owned(),
            };
            Some(Entry {
                reg,
                id: parse_id(&whole),
                value: parse_value(&whole),
            })
        })
        .collect()
}

fn parse_id(text: &str) -> u32 {
    let Some((_, id)) = text.split_once("id=") else {
        return 0;
    };
    let digits = id.find(|c: char| !c.is_ascii_digit()).unwrap_or(id.len());
    id[..digits].parse().unwrap_or(0)
}

/// The value of a scalar as the log shows it, such as
/// `scalar(smin=0,umax=255,var_off=(0x0; 0xff))`; `None` of anything else. What is not
/// shown is unbounded, so the text is the whole value.
pub fn parse_value(text: &str) -> Option<Scalar> {
    let text = text.strip_prefix('P').unwrap_or(text);
    let Some(fields) = text.strip_prefix("scalar(") else {
        return parse_number(text).map(|value| Scalar::constant(value as u64));
    };
    let mut value = Scalar::UNKNOWN;
    let (fields, bits) = match fields.split_once("var_off=(") {
        Some((fields, bits)) => (fields, Some(bits)),
        None => (fields, None),
    };
    if let Some(bits) = bits {
        let (known, mask) = bits.trim_end_matches(')').split_once("; ")?;
        value.var_off = Tnum {
            value: parse_number(known)? as u64,
            mask: parse_number(mask)? as u64,
        };
    }
    for field in fields.trim_end_matches(')').split(',') {
        let Some((names, number)) = field.rsplit_once('=') else {
            continue;
        };
        for name in names.split('=') {
            let number = match name {
                "id" => continue,
                _ => parse_number(number)?,
            };
            match name {
                "smin" => value.smin = number as i64,
                "smax" => value.smax = number as i64,
                "umin" => value.umin = number as u64,
                "umax" => value.umax = number as u64,
                "smin32" => value.s32_min = number as i32,
                "smax32" => value.s32_max = number as i32,
                "umin32" => value.u32_min = number as u32,
                "umax32" => value.u32_max = number as u32,
                _ => return None,
            }
        }
    }
    Some(value)
}

fn parse_number(text: &str) -> Option<i128> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(i128::from),
        None => text.parse().ok(),
    }
}
