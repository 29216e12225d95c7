//! Reader of expectations.

use std::fmt;

use super::{ArchSet, ArgCondition, CallSet, Compare, Expectation, Expected};
use crate::arch::Arch;
use crate::calls;
use crate::constants;
use crate::errno;

/// An error in a list of expectations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpectationError {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
    /// Description of the error.
    pub what: String,
}

impl fmt::Display for ExpectationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "line {}, column {}: {}",
            self.line, self.column, self.what
        )
    }
}

impl std::error::Error for ExpectationError {}

/// Reads a list of expectations.
pub fn read_expectations(text: &str) -> Result<Vec<Expectation>, ExpectationError> {
    let mut list = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let content = line.split('#').next().unwrap_or_default();
        if !content.trim().is_empty() {
            list.push(
                Reader {
                    line: at + 1,
                    text: content,
                    at: 0,
                }
                .expectation()?,
            );
        }
    }
    Ok(list)
}

struct Reader<'a> {
    line: usize,
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn fault(&self, at: usize, what: impl Into<String>) -> ExpectationError {
        ExpectationError {
            line: self.line,
            column: self.text[..at].chars().count() + 1,
            what: what.into(),
        }
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
    }

    /// Consumes a token if it is next.
    fn take(&mut self, token: &str) -> bool {
        self.skip_space();
        let found = self.text[self.at..].starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    fn expect(&mut self, token: &str) -> Result<(), ExpectationError> {
        if self.take(token) {
            return Ok(());
        }
        Err(self.fault(self.at, format!("expected {token:?}")))
    }

    /// The next word: letters, digits, `_` and `*`.
    fn word(&mut self, what: &str) -> Result<(usize, &'a str), ExpectationError> {
        self.skip_space();
        let rest = &self.text[self.at..];
        let is_part = |c: char| {
            c.is_alphanumeric() || matches!(c, '_' | '*' | '-') && !rest.starts_with("->")
        };
        let mut end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        // The arrow may follow without a space.
        if rest[..end].ends_with('-') && rest[end..].starts_with('>') {
            end -= 1;
        }
        if end == 0 {
            return Err(self.fault(self.at, format!("expected {what}")));
        }
        let start = self.at;
        self.at += end;
        Ok((start, &rest[..end]))
    }

    /// A number, or names of constants of the architectures, combined by `|`.
    fn value(&mut self, archs: &[ArchSet]) -> Result<u64, ExpectationError> {
        let mut total = 0;
        loop {
            let (at, word) = self.word("a number or the name of a constant")?;
            let is_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
            total |= match is_name {
                true => constant(archs, word),
                false => parse_number(word).ok_or_else(|| format!("{word:?} is no 64-bit number")),
            }
            .map_err(|what| self.fault(at, what))?;
            if !self.take("|") {
                return Ok(total);
            }
        }
    }

    fn expectation(mut self) -> Result<Expectation, ExpectationError> {
        let mut archs = Vec::new();
        loop {
            let (at, name) = self.word("an architecture")?;
            archs.push(match name {
                "any" | "*" => ArchSet::Any,
                "other" => ArchSet::Other,
                _ => ArchSet::Named(
                    Arch::from_name(name)
                        .ok_or_else(|| self.fault(at, format!("unknown architecture {name:?}")))?,
                ),
            });
            if !self.take(",") {
                break;
            }
        }
        let calls = self.calls(&archs)?;
        let mut conditions = Vec::new();
        if self.take("(") && !self.take(")") {
            loop {
                conditions.extend(self.condition(&archs)?);
                if !self.take(",") {
                    break;
                }
            }
            self.expect(")")?;
        }
        self.expect("->")?;
        let action = self.action()?;
        self.skip_space();
        if self.at < self.text.len() {
            return Err(self.fault(self.at, "expected the end of the line"));
        }
        Ok(Expectation {
            line: self.line,
            text: self.text.trim().to_owned(),
            archs,
            calls,
            conditions,
            action,
        })
    }

    fn calls(&mut self, archs: &[ArchSet]) -> Result<CallSet, ExpectationError> {
        let (at, name) = self.word("a call")?;
        if name == "*" {
            return Ok(CallSet::Every);
        }
        if name == "unnamed" {
            return Ok(CallSet::Unnamed);
        }
        if let Some(number) = parse_number(name) {
            let number = u32::try_from(number)
                .map_err(|_| self.fault(at, "a system call number has 32 bits"))?;
            return Ok(CallSet::Number(number));
        }
        for arch in archs {
            let ArchSet::Named(arch) = *arch else {
                return Err(self.fault(at, "calls have names on named architectures only"));
            };
            if calls::number(arch, name).is_none() {
                let hint = calls::closest(arch, name);
                let hint = hint.map_or(String::new(), |name| format!(" (is it {name}?)"));
                return Err(self.fault(at, format!("{arch} has no call named {name:?}{hint}")));
            }
        }
        Ok(CallSet::Named(name.to_owned()))
    }

    /// `arg0 & CLONE_NEWUSER != 0`; `arg1 = *` is no condition.
    fn condition(&mut self, archs: &[ArchSet]) -> Result<Option<ArgCondition>, ExpectationError> {
        let (at, name) = self.word("an argument, arg0 to arg5")?;
        let arg = name
            .strip_prefix("arg")
            .and_then(|index| index.parse().ok());
        let arg = arg.filter(|&index: &u8| index < 6);
        let arg = arg.ok_or_else(|| self.fault(at, "expected an argument, arg0 to arg5"))?;
        let mask = if self.take("&") {
            self.value(archs)?
        } else {
            u64::MAX
        };
        let compare = [
            ("==", Compare::Eq),
            ("!=", Compare::Ne),
            ("<=", Compare::Le),
            (">=", Compare::Ge),
            ("=", Compare::Eq),
            ("<", Compare::Lt),
            (">", Compare::Gt),
        ];
        self.skip_space();
        let found = compare.into_iter().find(|(token, _)| self.take(token));
        let (_, compare) =
            found.ok_or_else(|| self.fault(self.at, "expected =, !=, <, <=, > or >="))?;
        if self.take("*") {
            return Ok(None);
        }
        Ok(Some(ArgCondition {
            arg,
            mask,
            compare,
            value: self.value(archs)?,
        }))
    }

    fn action(&mut self) -> Result<Expected, ExpectationError> {
        let (mut at, mut name) = self.word("an action")?;
        let negated = name == "not";
        if negated {
            (at, name) = self.word("an action")?;
        }
        let known = [
            "ALLOW",
            "LOG",
            "TRACE",
            "USER_NOTIF",
            "ERRNO",
            "TRAP",
            "KILL_THREAD",
            "KILL_PROCESS",
            "KILL",
        ];
        if !known.contains(&name) {
            let known = known.join(", ");
            return Err(self.fault(at, format!("{name:?} is no action; there are {known}")));
        }
        let mut data = None;
        if self.take("(") {
            let (at, word) = self.word("data")?;
            let number = parse_number(word).and_then(|number| u16::try_from(number).ok());
            let number = number.or_else(|| errno::number(word));
            data = Some(number.ok_or_else(|| {
                self.fault(
                    at,
                    format!("{word:?} is neither an error's name nor a 16-bit number"),
                )
            })?);
            // `ERRNO(1 EPERM)` is how the actions are printed.
            if !self.take(")") {
                let (at, again) = self.word(")")?;
                if errno::number(again) != data {
                    return Err(self.fault(at, format!("{again} is not error {word}")));
                }
                self.expect(")")?;
            }
        }
        Ok(Expected {
            negated,
            name: name.to_owned(),
            data,
        })
    }
}

/// The value of a constant, which must be the same on all architectures of the line.
fn constant(archs: &[ArchSet], name: &str) -> Result<u64, String> {
    let mut found: Option<(Arch, u64)> = None;
    for arch in archs {
        let ArchSet::Named(arch) = *arch else {
            return Err("constants have values on named architectures only".to_owned());
        };
        let value = constants::value(arch, name).map_err(|unknown| match unknown.closest {
            Some(closest) => format!("{unknown} (is it {closest}?)"),
            None => unknown.to_string(),
        })?;
        match found {
            Some((first, other)) if other != value => {
                return Err(format!(
                    "{name} is {other:#x} on {first} and {value:#x} on {arch}: \
                     write a line for each"
                ));
            }
            _ => found = Some((arch, value)),
        }
    }
    found
        .map(|(_, value)| value)
        .ok_or_else(|| "expected an architecture, as in x86_64 openat -> ALLOW".to_owned())
}

fn parse_number(word: &str) -> Option<u64> {
    let digits = word.replace('_', "");
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => match digits.strip_prefix('-') {
            Some(rest) => rest.parse().ok().map(u64::wrapping_neg),
            None => digits.parse().ok(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::Action;

    #[test]
    fn faults_have_line_and_column() {
        let fault = |text| read_expectations(text).unwrap_err().to_string();
        assert_eq!(
            fault("# list\nx86_64 opneat -> ALLOW"),
            "line 2, column 8: x86_64 has no call named \"opneat\" (is it openat?)"
        );
        assert_eq!(
            fault("x86_64 read = ALLOW"),
            "line 1, column 13: expected \"->\""
        );
        assert_eq!(
            fault("x86_64 read(arg7=1) -> ALLOW"),
            "line 1, column 13: expected an argument, arg0 to arg5"
        );
        assert!(
            fault("x86_64 read -> PERMIT")
                .starts_with("line 1, column 16: \"PERMIT\" is no action")
        );
        assert!(fault("x86_64 read -> ERRNO(EWHAT)").contains("EWHAT"));
        assert!(fault("any read -> ALLOW").contains("named architectures only"));
    }

    #[test]
    fn constants_have_the_values_of_their_architecture() {
        let value = |text: &str| {
            let list = read_expectations(text).map_err(|error| error.to_string())?;
            let condition = list[0].conditions[0];
            Ok::<_, String>((condition.mask, condition.value))
        };
        let text = "x86_64, i386 clone(arg0 & CLONE_NEWUSER|CLONE_NEWNS != 0) -> ALLOW";
        assert_eq!(value(text), Ok((0x1002_0000, 0)));
        let text = "x86_64 socket(arg0 = AF_INET) -> ALLOW";
        assert_eq!(value(text), Ok((u64::MAX, 2)));
        let text = "mipsel64 socket(arg1=SOCK_STREAM|0x80)->ALLOW";
        assert_eq!(value(text), Ok((u64::MAX, 0x82)));
        let fault = |text| value(text).unwrap_err();
        assert_eq!(
            fault("x86_64 socket(arg0 = AF_INETT) -> ALLOW"),
            "line 1, column 22: no constant named \"AF_INETT\" is known (is it AF_INET?)"
        );
        let text = "x86_64, ppc64le open(arg1 & O_DIRECT = 0) -> ALLOW";
        assert!(fault(text).ends_with(
            "O_DIRECT is 0x4000 on x86_64 and 0x20000 on ppc64le: write a line for each"
        ));
        assert!(fault("any 1(arg0 = AF_INET) -> ALLOW").contains("named architectures only"));
    }

    #[test]
    fn expectations_are_read() {
        let text =
            "x86_64,i386 socket(arg0=16, arg1 & 0x40 != 0, arg2=*)->ERRNO(1 EPERM) # no netlink\n";
        let list = read_expectations(text).unwrap();
        let [only] = &list[..] else {
            panic!("one line")
        };
        assert_eq!(
            only.archs,
            [ArchSet::Named(Arch::X86_64), ArchSet::Named(Arch::I386)]
        );
        assert_eq!(only.calls, CallSet::Named("socket".to_owned()));
        assert_eq!(only.conditions.len(), 2);
        assert_eq!(only.conditions[1].mask, 0x40);
        assert_eq!(only.action.data, Some(1));
        assert!(only.action.accepts(Action::Errno(1)));
        assert!(!only.action.accepts(Action::Errno(2)));
    }
}
