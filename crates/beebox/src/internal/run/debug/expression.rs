//! Expressions of C: variables, members, elements, pointers, numbers and operators; and of BPF:
//! `$r0` for registers, `$packet[12]`, entries of maps as `ports[22]`, fields of headers as `ip.ttl`.
//!
//! Precedence climbing over the characters; at most [`DEEPEST`] levels. `evaluate.rs` has the values.

use super::int_type::IntType;

/// Most characters of an expression.
const LONGEST: usize = 4096;
/// Most levels of an expression.
const DEEPEST: usize = 64;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Expr {
    /// A number, and its type.
    Number(i64, IntType),
    /// A variable, a map, a constant, or the first word of a field of the packet.
    Name(String),
    /// What has a `$` in front: a register, `pc` or `packet`.
    Register(String),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinaryOp, Box<Expr>, Box<Expr>),
    Index(Box<Expr>, Box<Expr>),
    Member(Box<Expr>, String),
}

/// An operator in front of its operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnaryOp {
    Not,
    Complement,
    Minus,
    Plus,
    Target,
    Address,
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BinaryOp {
    Or,
    And,
    BitOr,
    BitXor,
    BitAnd,
    Equal,
    NotEqual,
    LessOrEqual,
    GreaterOrEqual,
    Less,
    Greater,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// Binary operators by precedence, the loosest first; of one level longer words first.
const OPERATORS: [&[(&str, BinaryOp)]; 10] = [
    &[("||", BinaryOp::Or)],
    &[("&&", BinaryOp::And)],
    &[("|", BinaryOp::BitOr)],
    &[("^", BinaryOp::BitXor)],
    &[("&", BinaryOp::BitAnd)],
    &[("==", BinaryOp::Equal), ("!=", BinaryOp::NotEqual)],
    &[
        ("<=", BinaryOp::LessOrEqual),
        (">=", BinaryOp::GreaterOrEqual),
        ("<", BinaryOp::Less),
        (">", BinaryOp::Greater),
    ],
    &[("<<", BinaryOp::ShiftLeft), (">>", BinaryOp::ShiftRight)],
    &[("+", BinaryOp::Add), ("-", BinaryOp::Subtract)],
    &[
        ("*", BinaryOp::Multiply),
        ("/", BinaryOp::Divide),
        ("%", BinaryOp::Remainder),
    ],
];

/// Unary operators.
const PREFIXES: [(&str, UnaryOp); 6] = [
    ("!", UnaryOp::Not),
    ("~", UnaryOp::Complement),
    ("-", UnaryOp::Minus),
    ("+", UnaryOp::Plus),
    ("*", UnaryOp::Target),
    ("&", UnaryOp::Address),
];

impl Expr {
    /// Reads an expression.
    ///
    /// # Errors
    /// In words, for text that is none.
    pub(super) fn parse(text: &str) -> Result<Expr, String> {
        if text.len() > LONGEST {
            return Err(format!("the expression is longer than {LONGEST} bytes"));
        }
        let mut parser = Parser {
            text,
            at: 0,
            depth: 0,
        };
        let expr = parser.operators(0)?;
        parser.skip_spaces();
        match parser.rest() {
            "" => Ok(expr),
            rest => Err(format!("{rest:?} is not expected here")),
        }
    }

    /// The names of members of members with dots between them, as fields of the packet have them.
    pub(super) fn path(&self) -> Option<String> {
        match self {
            Expr::Name(name) => Some(name.clone()),
            Expr::Member(of, name) => Some(format!("{}.{name}", of.path()?)),
            Expr::Number(..)
            | Expr::Register(_)
            | Expr::Unary(..)
            | Expr::Binary(..)
            | Expr::Index(..) => None,
        }
    }
}

struct Parser<'p> {
    text: &'p str,
    at: usize,
    depth: usize,
}

impl<'p> Parser<'p> {
    fn rest(&self) -> &'p str {
        &self.text[self.at..]
    }

    fn skip_spaces(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    fn take(&mut self, word: &str) -> bool {
        self.skip_spaces();
        let is_there = self.rest().starts_with(word);
        self.at += if is_there { word.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.take(word) {
            true => Ok(()),
            false => Err(format!("{word} is expected in front of {:?}", self.rest())),
        }
    }

    fn deeper(&mut self) -> Result<(), String> {
        self.depth += 1;
        match self.depth > DEEPEST * OPERATORS.len() {
            true => Err("the expression is too deep".to_owned()),
            false => Ok(()),
        }
    }

    fn operators(&mut self, level: usize) -> Result<Expr, String> {
        let Some(words) = OPERATORS.get(level) else {
            return self.unary();
        };
        self.deeper()?;
        let mut left = self.operators(level + 1)?;
        let mut count = 0;
        while let Some(op) = self.operator(words) {
            count += 1;
            if count > LONGEST / DEEPEST {
                return Err("the expression has too many operators".to_owned());
            }
            let right = self.operators(level + 1)?;
            left = Expr::Binary(op, Box::new(left), Box::new(right));
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The next operator, if it is one of these.
    fn operator(&mut self, words: &[(&str, BinaryOp)]) -> Option<BinaryOp> {
        self.skip_spaces();
        let rest = self.rest();
        let (word, op) = words.iter().find(|(word, _)| rest.starts_with(word))?;
        // Of a longer operator this one is the beginning.
        let next = rest[word.len()..].chars().next();
        let is_longer = matches!(
            (*word, next),
            ("|", Some('|')) | ("&", Some('&')) | ("<", Some('<')) | (">", Some('>'))
        );
        (!is_longer).then(|| {
            self.at += word.len();
            *op
        })
    }

    fn unary(&mut self) -> Result<Expr, String> {
        self.deeper()?;
        self.skip_spaces();
        let is_and = self.rest().starts_with("&&");
        let found = PREFIXES
            .iter()
            .find(|(word, _)| self.rest().starts_with(word));
        let expr = match found {
            Some((word, op)) if !is_and => {
                self.at += word.len();
                Expr::Unary(*op, Box::new(self.unary()?))
            }
            Some(_) | None => self.postfix()?,
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn postfix(&mut self) -> Result<Expr, String> {
        let mut expr = self.primary()?;
        for _ in 0..DEEPEST {
            if self.take("[") {
                let index = self.operators(0)?;
                self.expect("]")?;
                expr = Expr::Index(Box::new(expr), Box::new(index));
            } else if self.take("->") || self.take(".") {
                let name = self.name();
                if name.is_empty() {
                    return Err(format!(
                        "a member is expected in front of {:?}",
                        self.rest()
                    ));
                }
                expr = Expr::Member(Box::new(expr), name.to_owned());
            } else {
                return Ok(expr);
            }
        }
        Err("the expression is too deep".to_owned())
    }

    fn name(&mut self) -> &'p str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|each: char| !each.is_alphanumeric() && each != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    fn primary(&mut self) -> Result<Expr, String> {
        if self.take("(") {
            let expr = self.operators(0)?;
            self.expect(")")?;
            return Ok(expr);
        }
        if self.take("$") {
            return Ok(Expr::Register(self.name().to_owned()));
        }
        let name = self.name();
        match name.chars().next() {
            None if self.rest().is_empty() => Err("a value is expected at the end".to_owned()),
            None => Err(format!("a value is expected in front of {:?}", self.rest())),
            Some('0'..='9') => number(name),
            Some(_) => Ok(Expr::Name(name.to_owned())),
        }
    }
}

/// A number of C, with the type that it has there.
fn number(text: &str) -> Result<Expr, String> {
    let lower = text.to_ascii_lowercase();
    let hexadecimal = lower.strip_prefix("0x");
    let digits = hexadecimal.unwrap_or(&lower);
    let plain = digits.trim_end_matches(['u', 'l']);
    let suffix = &digits[plain.len()..];
    let radix = match (hexadecimal, plain.len()) {
        (Some(_), _) => 16,
        (None, 2..) if plain.starts_with('0') => 8,
        (None, _) => 10,
    };
    let number =
        u64::from_str_radix(plain, radix).map_err(|_| format!("{text} is no number of 64 bits"))?;
    let types = [
        IntType::INT,
        IntType::UNSIGNED,
        IntType::LONG,
        IntType::UNSIGNED_LONG,
    ];
    let fits = |ty: &IntType| {
        let is_of_suffix = (!suffix.contains('u') || !ty.is_signed)
            && (!suffix.contains('l') || ty.is_wide)
            && (ty.is_signed
                || radix != 10
                || suffix.contains('u')
                || *ty == IntType::UNSIGNED_LONG);
        is_of_suffix
            && ty.wrap(number as i64) as u64 == number
            && (!ty.is_signed || number >> 63 == 0)
    };
    let ty = types
        .into_iter()
        .find(fits)
        .unwrap_or(IntType::UNSIGNED_LONG);
    Ok(Expr::Number(number as i64, ty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_types_of_c() {
        for (text, value, ty) in [
            ("1", 1, IntType::INT),
            ("2147483648", 1 << 31, IntType::LONG),
            ("0x80000000", 1 << 31, IntType::UNSIGNED),
            ("1u", 1, IntType::UNSIGNED),
            ("1L", 1, IntType::LONG),
            ("0xffffffffffffffff", -1, IntType::UNSIGNED_LONG),
            ("017", 15, IntType::INT),
            ("1ull", 1, IntType::UNSIGNED_LONG),
        ] {
            assert_eq!(Expr::parse(text), Ok(Expr::Number(value, ty)), "{text}");
        }
        for text in [
            "08",
            "1x",
            "18446744073709551616",
            "",
            "(",
            "a.",
            "1 +",
            "a b",
            "a[1",
        ] {
            assert!(Expr::parse(text).is_err(), "{text}");
        }
        assert_eq!(Expr::parse("a.b.c").unwrap().path().unwrap(), "a.b.c");
    }
}
