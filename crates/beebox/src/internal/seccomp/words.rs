//! Numbers, architectures, system calls and their arguments in words.

use std::error::Error;
use std::fmt;

use super::{Arch, calls, constants};

/// Why a word names nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParseCallError {
    /// It is no number, or one with too many bits.
    Number(String),
    /// There is no such architecture.
    Arch(String),
    /// The calls of this architecture have no names here.
    UnnamedCalls(String),
    /// The architecture has no such call.
    Call {
        /// The word.
        word: String,
        /// The architecture.
        arch: Arch,
        /// The call that was probably meant.
        closest: Option<&'static str>,
    },
    /// There is no such constant.
    Constant {
        /// What is wrong with it.
        what: String,
        /// The constant that was probably meant.
        closest: Option<&'static str>,
    },
}

impl fmt::Display for ParseCallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParseCallError::Number(what)
            | ParseCallError::Arch(what)
            | ParseCallError::UnnamedCalls(what)
            | ParseCallError::Constant { what, .. } => f.write_str(what),
            ParseCallError::Call { word, arch, .. } => {
                write!(f, "{word}: unknown system call of {arch}")
            }
        }
    }
}

impl Error for ParseCallError {}

/// A number as C writes it: decimal, hexadecimal, octal; negative ones in two's
/// complement.
pub fn parse_number(text: &str) -> Result<u64, String> {
    let digits = text.replace('_', "");
    let (negative, digits) = match digits.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, digits.as_str()),
    };
    let lower = digits.to_ascii_lowercase();
    let parsed = if let Some(hex) = lower.strip_prefix("0x") {
        u64::from_str_radix(hex, 16)
    } else if let Some(octal) = lower.strip_prefix("0o") {
        u64::from_str_radix(octal, 8)
    } else if lower.len() > 1 && lower.starts_with('0') {
        u64::from_str_radix(&lower[1..], 8)
    } else {
        lower.parse()
    };
    let number = parsed.map_err(|_| format!("{text:?} is not a 64-bit number"))?;
    Ok(if negative {
        number.wrapping_neg()
    } else {
        number
    })
}

/// An argument of a call: its place, and its value as given.
pub type Argument = (usize, String);

/// `N=VALUE`.
pub fn parse_argument(text: &str) -> Result<Argument, String> {
    let (index, value) = text
        .split_once('=')
        .ok_or_else(|| format!("{text:?} is not N=VALUE (for instance 0=16)"))?;
    let index = index.trim().trim_start_matches("arg");
    let index = index.parse().ok().filter(|&index: &usize| index < 6);
    let index = index.ok_or_else(|| "a call has arguments 0 to 5".to_owned())?;
    Ok((index, value.trim().to_owned()))
}

/// The value of an argument: a number, or names of constants of an architecture
/// combined by `|`.
pub fn argument_value(arch: Option<Arch>, text: &str) -> Result<u64, ParseCallError> {
    let mut total = 0;
    for part in text.split('|').map(str::trim) {
        let is_name = part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        total |= match (is_name, arch) {
            (false, _) => parse_number(part).map_err(ParseCallError::Number)?,
            (true, Some(arch)) => {
                constants::value(arch, part).map_err(|unknown| ParseCallError::Constant {
                    what: unknown.to_string(),
                    closest: unknown.closest,
                })?
            }
            (true, None) => {
                let what = format!("{part}: this architecture's constants are not known");
                let closest = None;
                return Err(ParseCallError::Constant { what, closest });
            }
        };
    }
    Ok(total)
}

/// An architecture by name, or by audit number; without one, this machine's.
pub fn parse_arch(text: Option<&str>) -> Result<(Option<Arch>, u32), ParseCallError> {
    let known = match text {
        None => Arch::native(),
        Some(text) => Arch::from_name(text),
    };
    if let Some(arch) = known {
        return Ok((Some(arch), arch.audit()));
    }
    if let Some(Ok(audit)) = text.map(parse_number) {
        let wide = |_| "an architecture's audit number has 32 bits".to_owned();
        let audit = u32::try_from(audit).map_err(wide);
        let audit = audit.map_err(ParseCallError::Number)?;
        let named = Arch::ALL.iter().copied().find(|arch| arch.audit() == audit);
        return Ok((named, audit));
    }
    let what = match text {
        Some(text) => format!("no architecture is called {text:?}"),
        None => "this machine's architecture has no names here".to_owned(),
    };
    Err(ParseCallError::Arch(what))
}

/// A system call by name or number. An x32 call may be given without its bit.
pub fn parse_syscall(arch: Option<Arch>, text: &str) -> Result<u32, ParseCallError> {
    if let Ok(number) = parse_number(text) {
        let signed = number as i64;
        let fits = u32::try_from(number).is_ok() || i32::try_from(signed).is_ok();
        if !fits {
            let what = format!("system call number {text} has more than 32 bits");
            return Err(ParseCallError::Number(what));
        }
        let bias = arch.map_or(0, Arch::bias);
        return Ok(number as u32 | bias);
    }
    let Some(arch) = arch else {
        let what = format!("system call {text:?}: this architecture's calls have no names here");
        return Err(ParseCallError::UnnamedCalls(what));
    };
    calls::number(arch, text).ok_or_else(|| ParseCallError::Call {
        word: text.to_owned(),
        arch,
        closest: calls::closest(arch, text),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_c_writes_them() {
        assert_eq!(parse_number("16"), Ok(16));
        assert_eq!(parse_number("0x1_0000_0000"), Ok(1 << 32));
        assert_eq!(parse_number("0755"), Ok(0o755));
        assert_eq!(parse_number("-1"), Ok(u64::MAX));
        assert!(parse_number("openat").is_err());
        assert!(parse_number("0x10000000000000000").is_err());
        assert_eq!(parse_argument("arg3=0x10"), Ok((3, "0x10".to_owned())));
        let value = |text| argument_value(Some(Arch::X86_64), text);
        assert_eq!(value("-1"), Ok(u64::MAX));
        assert_eq!(value("AF_INET"), Ok(2));
        assert_eq!(value("CLONE_NEWUSER | CLONE_NEWNS|0x11"), Ok(0x1002_0011));
        assert!(value("CLONE_NEWUSR").is_err());
        assert!(parse_argument("6=0").is_err());
    }
}
