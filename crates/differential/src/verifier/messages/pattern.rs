//! Patterns of expected messages: text in which parts between `{{` and `}}` are POSIX extended
//! regular expressions.
//!
//! The whole is one expression, so that an alternative inside the braces divides all of it, as in
//! the kernel's test loader. A match is the first and, of those that start there, the longest; no
//! character class but one that is written out has the end of a line, before which `$` matches. Sets of
//! positions are computed node by node: the cost of a match is at most the length of the pattern times the
//! square of that of a line.

use std::collections::BTreeSet;
use std::ops::Range;

/// A pattern.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern(Body);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Text(String),
    Expression(Vec<Sequence>),
}

type Sequence = Vec<Node>;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Node {
    Byte(u8),
    /// Any byte but the end of a line.
    Any,
    /// One of these ranges, or none of them.
    Class(bool, Vec<(u8, u8)>),
    LineStart,
    LineEnd,
    Group(Vec<Sequence>),
    /// At least so many, and at most one or any number.
    Repeat(Box<Node>, usize, bool),
}

impl Pattern {
    /// Reads a pattern.
    ///
    /// # Errors
    /// If an expression is not closed, or has a repetition by number.
    pub(super) fn parse(text: &str) -> Result<Pattern, String> {
        if !text.contains("{{") {
            return Ok(Pattern(Body::Text(text.to_owned())));
        }
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some((literal, expression)) = rest.split_once("{{") {
            let closed = expression.split_once("}}");
            let (expression, after) = closed.ok_or_else(|| format!("{text}: {{{{ without }}}}"))?;
            tokens.extend(literal.bytes().map(|byte| (byte, false)));
            tokens.extend(expression.bytes().map(|byte| (byte, true)));
            rest = after;
        }
        tokens.extend(rest.bytes().map(|byte| (byte, false)));
        let mut parser = Parser { tokens: &tokens };
        let alternatives = parser.alternatives();
        match parser.tokens {
            [] => Ok(Pattern(Body::Expression(alternatives?))),
            _ => Err(format!("{text}: unbalanced parentheses")),
        }
    }

    /// The first and longest match that starts at a position or behind it.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        match &self.0 {
            Body::Text(wanted) => {
                let start = from + text.get(from..)?.find(wanted)?;
                Some(start..start + wanted.len())
            }
            Body::Expression(alternatives) => (from..=text.len()).find_map(|start| {
                let end = ends(alternatives, text.as_bytes(), start).last().copied()?;
                Some(start..end)
            }),
        }
    }
}

/// Reads bytes, each with whether it is part of an expression.
struct Parser<'t> {
    tokens: &'t [(u8, bool)],
}

impl Parser<'_> {
    /// Takes the next byte of an expression if it is this one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.tokens.first() == Some(&(byte, true));
        self.tokens = &self.tokens[usize::from(is_next)..];
        is_next
    }

    fn next(&mut self) -> Result<(u8, bool), String> {
        let (first, rest) = self
            .tokens
            .split_first()
            .ok_or("an expression ends early")?;
        self.tokens = rest;
        Ok(*first)
    }

    fn alternatives(&mut self) -> Result<Vec<Sequence>, String> {
        let mut alternatives = vec![Sequence::new()];
        while !self.tokens.is_empty() && self.tokens[0] != (b')', true) {
            match self.take(b'|') {
                true => alternatives.push(Sequence::new()),
                false => {
                    let node = self.repeated()?;
                    alternatives.last_mut().ok_or("no alternative")?.push(node);
                }
            }
        }
        Ok(alternatives)
    }

    fn repeated(&mut self) -> Result<Node, String> {
        let mut node = self.single()?;
        loop {
            let (least, is_many) = match () {
                () if self.take(b'*') => (0, true),
                () if self.take(b'+') => (1, true),
                () if self.take(b'?') => (0, false),
                () => return Ok(node),
            };
            node = Node::Repeat(Box::new(node), least, is_many);
        }
    }

    fn single(&mut self) -> Result<Node, String> {
        Ok(match self.next()? {
            (b'.', true) => Node::Any,
            (b'^', true) => Node::LineStart,
            (b'$', true) => Node::LineEnd,
            (b'[', true) => self.class()?,
            (b'\\', true) => Node::Byte(self.next()?.0),
            (b'(', true) => {
                let alternatives = self.alternatives()?;
                match self.take(b')') {
                    true => Node::Group(alternatives),
                    false => return Err("an expression ends in parentheses".to_owned()),
                }
            }
            (b'{', true) => return Err("a repetition by number".to_owned()),
            (byte, _) => Node::Byte(byte),
        })
    }

    fn class(&mut self) -> Result<Node, String> {
        let is_negated = self.take(b'^');
        let mut ranges = Vec::new();
        loop {
            let (first, _) = self.next()?;
            if first == b']' && !ranges.is_empty() {
                return Ok(Node::Class(is_negated, ranges));
            }
            let last = match self.tokens {
                [(b'-', _), (last, _), ..] if *last != b']' => {
                    self.tokens = &self.tokens[2..];
                    *last
                }
                _ => first,
            };
            ranges.push((first, last));
        }
    }
}

/// Positions at which a match of one of some sequences ends.
fn ends(alternatives: &[Sequence], text: &[u8], start: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::new();
    for sequence in alternatives {
        let mut at = BTreeSet::from([start]);
        for node in sequence {
            at = at.iter().flat_map(|&at| node.ends(text, at)).collect();
            if at.is_empty() {
                break;
            }
        }
        all.append(&mut at);
    }
    all
}

impl Node {
    fn ends(&self, text: &[u8], at: usize) -> BTreeSet<usize> {
        let next = text.get(at).copied();
        let is_in =
            |ranges: &[(u8, u8)], byte| ranges.iter().any(|&(a, z)| (a..=z).contains(&byte));
        let end = match self {
            Node::Byte(byte) => (next == Some(*byte)).then_some(at + 1),
            Node::Any => next.is_some_and(|byte| byte != b'\n').then_some(at + 1),
            Node::Class(is_negated, ranges) => {
                let matches = |byte| match is_negated {
                    true => byte != b'\n' && !is_in(ranges, byte),
                    false => is_in(ranges, byte),
                };
                next.is_some_and(matches).then_some(at + 1)
            }
            Node::LineStart => (at == 0 || text[at - 1] == b'\n').then_some(at),
            Node::LineEnd => next.is_none_or(|byte| byte == b'\n').then_some(at),
            Node::Group(alternatives) => return ends(alternatives, text, at),
            Node::Repeat(node, least, is_many) => {
                let mut all = BTreeSet::new();
                if *least == 0 {
                    all.insert(at);
                }
                let mut new = node.ends(text, at);
                while !new.is_empty() {
                    let before = new.clone();
                    all.append(&mut new);
                    if !is_many {
                        break;
                    }
                    let further = before.iter().flat_map(|&at| node.ends(text, at));
                    new = further.filter(|end| !all.contains(end)).collect();
                }
                return all;
            }
        };
        end.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(pattern: &str, text: &str) -> Option<Range<usize>> {
        Pattern::parse(pattern).unwrap().find(text, 0)
    }

    #[test]
    fn the_first_and_longest_match_is_found() {
        assert_eq!(found("a.c", "abc a.c"), Some(4..7));
        assert_eq!(found("R{{[0-9]+}}=", "R=R12="), Some(2..6));
        assert_eq!(found("x{{.*}}y", "xa\nxbyy\ny"), Some(3..7));
        assert_eq!(found("R1{{(_w)?}}=", "R1_w=1"), Some(0..5));
        assert_eq!(found("{{(a|ab)}}c", "abc"), Some(0..3));
        assert_eq!(found("off {{min|max}} of", "off max"), None);
        assert_eq!(found("off {{min|max}} of", "max of"), Some(0..6));
        assert_eq!(found("1{{$}}", "12\n1\n"), Some(3..4));
        assert_eq!(found("({{[^)]*}})", "f(a\nb) g(c)"), Some(8..11));
        assert_eq!(found("{{[0-9]+\\+[0-9]$}}", "off 8+4"), Some(4..7));
    }

    #[test]
    fn what_is_no_pattern_is_an_error() {
        for pattern in ["{{a", "{{a)}}", "{{(a}}", "{{a{2}}}", "{{[a}}"] {
            assert!(Pattern::parse(pattern).is_err(), "{pattern}");
        }
    }
}
