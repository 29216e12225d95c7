//! The text of rules, which [`RuleSet::parse`] reads.

use std::fmt;

use super::{
    Action, Addresses, Ports, Protocols, Rule, RuleSet, TransportHeaders, comment_line,
    protocol_name,
};

impl fmt::Display for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "default {}", self.default)?;
        writeln!(f, "other {}", self.other)?;
        writeln!(f, "malformed {}", self.malformed)?;
        for rule in &self.rules {
            writeln!(f, "{rule}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Action::Pass => f.write_str("pass"),
            Action::Drop => f.write_str("drop"),
            Action::Redirect(interface) => write!(f, "redirect {interface}"),
            Action::Count => f.write_str("count"),
            Action::Sample(1) => f.write_str("sample"),
            Action::Sample(rate) => write!(f, "sample 1/{rate}"),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.action)?;
        if !self.protocols.is_any() {
            write!(f, " proto {}", self.protocols)?;
        }
        if !self.headers.is_any() {
            write!(f, " header {}", self.headers)?;
        }
        let has_types = self.protocols.have_types();
        if !self.source.is_any() || !self.source_ports.is_any() && !has_types {
            write!(f, " from {}", self.source)?;
        }
        if !self.source_ports.is_any() && !has_types {
            write!(f, " port {}", self.source_ports)?;
        }
        if !self.destination.is_any() || !self.destination_ports.is_any() && !has_types {
            write!(f, " to {}", self.destination)?;
        }
        if !self.destination_ports.is_any() && !has_types {
            write!(f, " port {}", self.destination_ports)?;
        }
        for (word, ports) in [
            ("type", &self.source_ports),
            ("code", &self.destination_ports),
        ] {
            if has_types && !ports.is_any() {
                write!(f, " {word} {ports}")?;
            }
        }
        match self.comment.is_empty() {
            true => Ok(()),
            false => write!(f, " # {}", comment_line(&self.comment)),
        }
    }
}

/// Writes `any`, or items with commas between them.
fn list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    is_negated: bool,
    items: impl Iterator<Item = T>,
) -> fmt::Result {
    if is_negated {
        f.write_str("not ")?;
    }
    let mut is_empty = true;
    for item in items {
        write!(f, "{}{item}", if is_empty { "" } else { "," })?;
        is_empty = false;
    }
    if is_empty {
        f.write_str("any")?;
    }
    Ok(())
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.list.iter().map(|number| match protocol_name(*number) {
            Some(name) => name.to_owned(),
            None => number.to_string(),
        });
        list(f, self.is_negated, names)
    }
}

impl fmt::Display for TransportHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, false, self.list.iter().map(|header| header.name()))
    }
}

impl fmt::Display for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        list(f, self.is_negated, self.prefixes.iter())
    }
}

impl fmt::Display for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranges = self.ranges.iter().map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first}-{last}"),
        });
        let unknown = self.has_unknown.then(|| "unknown".to_owned());
        list(f, self.is_negated, ranges.chain(unknown))
    }
}
