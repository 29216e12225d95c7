//! An independent parser and evaluator of printed conditions.

use classic::SeccompData;

/// Evaluates a printed condition for a call.
pub(crate) fn holds(text: &str, call: &SeccompData) -> bool {
    match text {
        "always" => return true,
        "never" => return false,
        _ => {}
    }
    let mut parser = Parser::new(text, call);
    let truth = parser.or();
    assert_eq!(parser.at, parser.tokens.len(), "left over in {text:?}");
    truth
}

/// The value of a printed expression.
pub(crate) fn value(text: &str, call: &SeccompData) -> u64 {
    let mut parser = Parser::new(text, call);
    let value = parser.sum().0;
    assert_eq!(parser.at, parser.tokens.len(), "left over in {text:?}");
    value
}

struct Parser<'a> {
    tokens: Vec<String>,
    at: usize,
    call: &'a SeccompData,
}

/// A value; true if arithmetic on it has 32 bits.
type Number = (u64, bool);

impl<'a> Parser<'a> {
    fn new(text: &str, call: &'a SeccompData) -> Parser<'a> {
        let mut tokens = Vec::new();
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            if first == ' ' {
                rest = &rest[1..];
                continue;
            }
            let two = ["==", "!=", "<=", ">=", "<<", ">>"];
            let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let end = match word {
                Some(0) if two.iter().any(|token| rest.starts_with(token)) => 2,
                Some(0) => 1,
                Some(end) => end,
                None => rest.len(),
            };
            tokens.push(rest[..end].to_owned());
            rest = &rest[end..];
        }
        Parser {
            tokens,
            at: 0,
            call,
        }
    }

    fn peek(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", String::as_str)
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.peek(0) == token;
        self.at += usize::from(found);
        found
    }

    fn or(&mut self) -> bool {
        let mut truth = self.and();
        while self.take("or") {
            truth |= self.and();
        }
        truth
    }

    fn and(&mut self) -> bool {
        let mut truth = self.comparison();
        while self.take("and") {
            truth &= self.comparison();
        }
        truth
    }

    fn comparison(&mut self) -> bool {
        if self.take("not") {
            assert!(self.take("("));
            let truth = self.or();
            assert!(self.take(")"));
            return !truth;
        }
        // A parenthesis opens a condition or an expression: try the condition.
        if self.peek(0) == "(" && self.peek(1) != "u32" {
            let mut depth = 0;
            let mut end = self.at;
            loop {
                match self.tokens[end].as_str() {
                    "(" => depth += 1,
                    ")" => depth -= 1,
                    _ => {}
                }
                end += 1;
                if depth == 0 {
                    break;
                }
            }
            let next = self.tokens.get(end).map_or("", String::as_str);
            if matches!(next, "" | "or" | "and" | ")" | "?") {
                self.at += 1;
                let truth = self.or();
                assert!(self.take(")"));
                return truth;
            }
        }
        let left = self.sum().0;
        if self.take("not") {
            assert!(self.take("in"));
            return !self.list().contains(&left);
        }
        if self.take("in") {
            return self.list().contains(&left);
        }
        let op = self.tokens[self.at].clone();
        self.at += 1;
        let middle = self.sum().0;
        let truth = compare(&op, left, middle);
        if self.take("<=") {
            let right = self.sum().0;
            return truth && middle <= right;
        }
        truth
    }

    fn list(&mut self) -> Vec<u64> {
        assert!(self.take("{"));
        let mut list = Vec::new();
        while !self.take("}") {
            list.push(self.sum().0);
            self.take(",");
        }
        list
    }

    fn sum(&mut self) -> Number {
        let mut left = self.atom();
        loop {
            let op = self.peek(0).to_owned();
            if !["+", "-", "*", "/", "%", "|", "&", "^", "<<", ">>"].contains(&op.as_str()) {
                return left;
            }
            self.at += 1;
            let right = self.atom();
            let narrow = left.1 || right.1;
            let (a, b) = (left.0, right.0);
            let wide = match op.as_str() {
                "+" => a.wrapping_add(b),
                "-" => a.wrapping_sub(b),
                "*" => a.wrapping_mul(b),
                "/" => a.checked_div(b).unwrap_or(0),
                "%" => a.checked_rem(b).unwrap_or(0),
                "|" => a | b,
                "&" => a & b,
                "^" => a ^ b,
                "<<" => a << (b & 31),
                _ if narrow => a >> (b & 31),
                _ => a >> b,
            };
            left = if narrow {
                (wide & 0xffff_ffff, true)
            } else {
                (wide, false)
            };
        }
    }

    /// True if the parenthesis contains a conditional expression.
    fn is_choice(&self) -> bool {
        let mut depth = 0;
        for token in &self.tokens[self.at..] {
            match token.as_str() {
                "(" => depth += 1,
                ")" if depth == 1 => return false,
                ")" => depth -= 1,
                "?" if depth == 1 => return true,
                _ => {}
            }
        }
        false
    }

    fn atom(&mut self) -> Number {
        if self.take("-") {
            let (value, _) = self.atom();
            return (u64::from((value as u32).wrapping_neg()), true);
        }
        if self.take("min") {
            assert!(self.take("("));
            let first = self.sum();
            assert!(self.take(","));
            let second = self.sum();
            assert!(self.take(")"));
            return (first.0.min(second.0), true);
        }
        if self.peek(0) == "(" && self.is_choice() {
            self.at += 1;
            let truth = self.take("always") || self.or();
            assert!(self.take("?"));
            let first = self.sum();
            assert!(self.take(":"));
            let second = self.sum();
            assert!(self.take(")"));
            // Only computed words have choices, and these have 32 bits.
            return (if truth { first.0 } else { second.0 }, true);
        }
        if self.take("(") {
            if self.take("u32") {
                assert!(self.take(")"));
                return (self.atom().0 & 0xffff_ffff, true);
            }
            let value = self.sum();
            assert!(self.take(")"), "{:?} at {}", self.tokens, self.at);
            return value;
        }
        let token = self.tokens[self.at].clone();
        self.at += 1;
        if let Some(index) = token.strip_prefix("arg") {
            return (self.call.args[index.parse::<usize>().unwrap()], false);
        }
        match token.as_str() {
            "nr" => (u64::from(self.call.nr as u32), true),
            "arch" => (u64::from(self.call.arch), true),
            "ip" => (self.call.instruction_pointer, false),
            _ => {
                let digits = token.replace('_', "");
                let value = match digits.strip_prefix("0x") {
                    Some(hex) => u64::from_str_radix(hex, 16),
                    None => digits.parse(),
                };
                (
                    value.unwrap_or_else(|_| panic!("{token} in {:?}", self.tokens)),
                    false,
                )
            }
        }
    }
}

fn compare(op: &str, a: u64, b: u64) -> bool {
    match op {
        "==" => a == b,
        "!=" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        ">=" => a >= b,
        _ => panic!("no comparison: {op}"),
    }
}
