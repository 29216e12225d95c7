//! Expressions of C: variables, members, elements, pointers, numbers and operators; and of BPF:
//! `$r0` for registers, `$packet[12]`, entries of maps as `ports[22]`, fields of headers as `ip.ttl`.
//!
//! Precedence climbing over the characters; at most [`DEEPEST`] levels.

use trace::dwarf::ValueBytes;
use trace::{TypeForm, enumerator};

use super::value::{Node, Place, Value};
use super::view::{REGISTERS, View};

/// Most characters of an expression.
const LONGEST: usize = 4096;
/// Most levels of an expression.
const DEEPEST: usize = 64;

/// Binary operators by precedence, the loosest first.
const OPERATORS: [&[&str]; 10] = [
    &["||"],
    &["&&"],
    &["|"],
    &["^"],
    &["&"],
    &["==", "!="],
    &["<=", ">=", "<", ">"],
    &["<<", ">>"],
    &["+", "-"],
    &["*", "/", "%"],
];

impl<'v, 'r, 'm> View<'v, 'r, 'm> {
    /// The value of an expression in a frame.
    ///
    /// # Errors
    /// In words, with what is not there.
    pub fn evaluate(&self, frame: usize, text: &str) -> Result<Value<'r>, String> {
        match self.evaluate_node(frame, text)? {
            Node::Value(value) => Ok(value),
            Node::Absent(why) => Err(why),
            Node::Text(text, place) => Err(match place {
                Some(_) => text,
                None => "it is no value".to_owned(),
            }),
            Node::Map(_) => Err("a map is no value; name an entry as map[key]".to_owned()),
            Node::Packet => Err("name bytes as $packet[0], or a field as ip.ttl".to_owned()),
            Node::PerCpu(_) => Err("name a CPU as map[key][cpu]".to_owned()),
        }
    }

    /// What an expression is of: a value, a map, the packet.
    ///
    /// # Errors
    /// As [`View::evaluate`].
    pub fn evaluate_node(&self, frame: usize, text: &str) -> Result<Node<'r>, String> {
        if text.len() > LONGEST {
            return Err(format!("the expression is longer than {LONGEST} bytes"));
        }
        let mut parser = Parser {
            view: self,
            frame,
            text,
            at: 0,
            depth: 0,
        };
        let node = parser.operators(0)?;
        parser.skip_spaces();
        match parser.rest() {
            "" => Ok(node),
            rest => Err(format!("{rest:?} is not expected here")),
        }
    }
}

struct Parser<'p, 'v, 'r, 'm> {
    view: &'p View<'v, 'r, 'm>,
    frame: usize,
    text: &'p str,
    at: usize,
    depth: usize,
}

impl<'p, 'r> Parser<'p, '_, 'r, '_> {
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

    fn operators(&mut self, level: usize) -> Result<Node<'r>, String> {
        let Some(words) = OPERATORS.get(level) else {
            return self.unary();
        };
        self.depth += 1;
        if self.depth > DEEPEST * OPERATORS.len() {
            return Err("the expression is too deep".to_owned());
        }
        let mut left = self.operators(level + 1)?;
        while let Some(word) = self.operator(words) {
            let right = self.operators(level + 1)?;
            left = Node::Value(self.apply(word, left, right)?);
        }
        self.depth -= 1;
        Ok(left)
    }

    /// The next operator, if it is one of these.
    fn operator(&mut self, words: &[&'static str]) -> Option<&'static str> {
        self.skip_spaces();
        let rest = self.rest();
        let word = *words.iter().find(|word| rest.starts_with(**word))?;
        // Of a longer operator this one is the beginning.
        let next = rest[word.len()..].chars().next();
        let is_longer = matches!(
            (word, next),
            ("|", Some('|')) | ("&", Some('&')) | ("<", Some('<')) | (">", Some('>'))
        );
        (!is_longer).then(|| {
            self.at += word.len();
            word
        })
    }

    fn apply(
        &self,
        word: &'static str,
        left: Node<'r>,
        right: Node<'r>,
    ) -> Result<Value<'r>, String> {
        let is_unsigned = |node: &Node<'r>| match node {
            Node::Value(value) => {
                value.bytes.bytes.len() == 8 && value.kind.is_some_and(|kind| !kind.is_signed())
            }
            _ => false,
        };
        let is_unsigned = is_unsigned(&left) || is_unsigned(&right);
        let scale = match (&left, word) {
            (Node::Value(value), "+" | "-") => match value.kind.map(|kind| kind.form()) {
                Some(TypeForm::Pointer(of)) => of.size().filter(|size| *size > 0),
                _ => None,
            },
            _ => None,
        };
        let pointer = match (&left, scale) {
            (Node::Value(value), Some(_)) => value.kind,
            _ => None,
        };
        let (a, b) = (self.number(left)?, self.number(right)?);
        let b = b.wrapping_mul(scale.unwrap_or(1) as i64);
        let truth = |truth: bool| i64::from(truth);
        let zero = || "a division by zero".to_owned();
        let number = match word {
            "||" => truth(a != 0 || b != 0),
            "&&" => truth(a != 0 && b != 0),
            "|" => a | b,
            "^" => a ^ b,
            "&" => a & b,
            "==" => truth(a == b),
            "!=" => truth(a != b),
            "<=" if is_unsigned => truth(a as u64 <= b as u64),
            ">=" if is_unsigned => truth(a as u64 >= b as u64),
            "<" if is_unsigned => truth((a as u64) < b as u64),
            ">" if is_unsigned => truth(a as u64 > b as u64),
            "<=" => truth(a <= b),
            ">=" => truth(a >= b),
            "<" => truth(a < b),
            ">" => truth(a > b),
            "<<" => a.wrapping_shl(b as u32),
            ">>" if is_unsigned => (a as u64).wrapping_shr(b as u32) as i64,
            ">>" => a.wrapping_shr(b as u32),
            "+" => a.wrapping_add(b),
            "-" => a.wrapping_sub(b),
            "*" => a.wrapping_mul(b),
            "/" if is_unsigned => (a as u64).checked_div(b as u64).ok_or_else(zero)? as i64,
            "%" if is_unsigned => (a as u64).checked_rem(b as u64).ok_or_else(zero)? as i64,
            "/" if b == 0 => return Err(zero()),
            "/" => a.wrapping_div(b),
            _ if b == 0 => return Err(zero()),
            _ => a.wrapping_rem(b),
        };
        Ok(Value {
            kind: pointer,
            ..Value::number(number)
        })
    }

    fn number(&self, node: Node<'r>) -> Result<i64, String> {
        match node {
            Node::Value(value) => {
                let number = value.as_number();
                number.ok_or_else(|| format!("{} is no number", self.view.text(&value)))
            }
            Node::Absent(why) => Err(why),
            Node::Text(text, Some((address, len))) => {
                let bytes = self.view.memory(address, len).filter(|_| len <= 8);
                let bytes = bytes.ok_or_else(|| format!("{text} is no number"))?;
                // Fields of headers are in the order of bytes of the network.
                Ok(bytes
                    .iter()
                    .fold(0, |number, byte| number << 8 | i64::from(*byte)))
            }
            Node::Text(text, None) => Err(format!("{text} is no number")),
            Node::Map(_) | Node::Packet | Node::PerCpu(_) => Err("it is no number".to_owned()),
        }
    }

    fn unary(&mut self) -> Result<Node<'r>, String> {
        self.depth += 1;
        if self.depth > DEEPEST * OPERATORS.len() {
            return Err("the expression is too deep".to_owned());
        }
        self.skip_spaces();
        let is_and = self.rest().starts_with("&&");
        let node = if self.take("!") {
            let node = self.unary()?;
            Node::Value(Value::number(i64::from(self.number(node)? == 0)))
        } else if self.take("~") {
            let node = self.unary()?;
            Node::Value(Value::number(!self.number(node)?))
        } else if self.take("-") {
            let node = self.unary()?;
            Node::Value(Value::number(self.number(node)?.wrapping_neg()))
        } else if self.take("*") {
            match self.unary()? {
                Node::Value(value) => Node::Value(self.view.element(&value, 0)?),
                Node::Absent(why) => return Err(why),
                _ => return Err("it is no pointer".to_owned()),
            }
        } else if !is_and && self.take("&") {
            match self.unary()? {
                Node::Value(Value {
                    place: Place::Memory(address),
                    ..
                })
                | Node::Text(_, Some((address, _))) => Node::Value(Value::number(address as i64)),
                Node::Absent(why) => return Err(why),
                _ => return Err("it has no address".to_owned()),
            }
        } else {
            self.postfix()?
        };
        self.depth -= 1;
        Ok(node)
    }

    fn postfix(&mut self) -> Result<Node<'r>, String> {
        let mut node = self.primary()?;
        loop {
            if self.take("[") {
                let index = self.operators(0)?;
                let index = self.number(index)?;
                self.expect("]")?;
                node = self.index(node, index)?;
            } else if self.take("->") || self.take(".") {
                let name = self.name();
                let value = match node {
                    Node::Value(value) => value,
                    Node::Absent(why) => return Err(why),
                    _ => return Err(format!("it has no member {name}")),
                };
                let holder = match value.kind.map(|kind| kind.form()) {
                    Some(TypeForm::Pointer(_)) => self.view.target(&value).ok_or_else(|| {
                        format!("{} points to nothing that is there", self.view.text(&value))
                    })?,
                    _ => value,
                };
                let member = self.view.member(&holder, name);
                node = Node::Value(member.ok_or_else(|| match holder.kind {
                    Some(kind) => format!("{} has no member {name}", kind.name()),
                    None => format!("a number has no member {name}"),
                })?);
            } else {
                return Ok(node);
            }
        }
    }

    fn index(&self, node: Node<'r>, index: i64) -> Result<Node<'r>, String> {
        match node {
            Node::Value(value) => self.view.element(&value, index).map(Node::Value),
            Node::Absent(why) => Err(why),
            Node::Map(map) => {
                let key = self.view.key_of_number(map, index);
                let key = key.ok_or("keys of this map are no numbers; see the tree of maps")?;
                Ok(self.view.entry(map, &key))
            }
            Node::PerCpu(values) => {
                let value = usize::try_from(index).ok().and_then(|cpu| values.get(cpu));
                let value = value.ok_or_else(|| format!("there is no CPU {index}"))?;
                Ok(Node::Value(value.clone()))
            }
            Node::Packet => {
                let [_, data, end] =
                    (self.view.moment.memory.packet_bounds()).ok_or("the run has no packet")?;
                let address = data.wrapping_add_signed(index);
                let bytes = self.view.memory(address, 1);
                let bytes = bytes.filter(|_| (data..end).contains(&address));
                let bytes = bytes.ok_or_else(|| format!("the packet has {} bytes", end - data))?;
                Ok(Node::Value(Value {
                    kind: None,
                    bytes: ValueBytes::known(bytes),
                    place: Place::Memory(address),
                }))
            }
            Node::Text(..) => Err("it is no array".to_owned()),
        }
    }

    fn name(&mut self) -> &'p str {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|each: char| !each.is_alphanumeric() && each != '_');
        let name = &rest[..end.unwrap_or(rest.len())];
        self.at += name.len();
        name
    }

    fn primary(&mut self) -> Result<Node<'r>, String> {
        if self.take("(") {
            let node = self.operators(0)?;
            self.expect(")")?;
            return Ok(node);
        }
        if self.take("$") {
            let name = self.name();
            return self.register(name);
        }
        self.skip_spaces();
        let start = self.at;
        let name = self.name();
        match name.chars().next() {
            None if self.rest().is_empty() => Err("a value is expected at the end".to_owned()),
            None => Err(format!("a value is expected in front of {:?}", self.rest())),
            Some('0'..='9') => {
                let parsed = match name.strip_prefix("0x").or(name.strip_prefix("0X")) {
                    Some(digits) => u64::from_str_radix(digits, 16),
                    None => name.parse(),
                };
                let number = parsed.map_err(|_| format!("{name} is no number of 64 bits"))?;
                Ok(Node::Value(Value::number(number as i64)))
            }
            Some(_) => self.named(name, start),
        }
    }

    fn register(&self, name: &str) -> Result<Node<'r>, String> {
        if name == "packet" {
            return Ok(Node::Packet);
        }
        if name == "pc" {
            let slot = self.view.frame(self.frame).map_or(0, |(_, slot)| slot);
            return Ok(Node::Value(Value::number(slot.into())));
        }
        let register = REGISTERS.iter().position(|known| *known == name);
        let registers = self.view.registers_of(self.frame);
        match register.zip(registers) {
            Some((register, registers)) => Ok(Node::Value(Value {
                place: Place::Register {
                    frame: self.frame,
                    register: register as u8,
                },
                ..Value::number(registers[register] as i64)
            })),
            None => Err(format!(
                "${name} is no register; there are $r0 to $r10, $pc and $packet"
            )),
        }
    }

    /// A variable, a global one, a map, a constant, or a field of the packet.
    fn named(&mut self, name: &str, start: usize) -> Result<Node<'r>, String> {
        let variables = self.view.variables_of(self.frame);
        let mut named = variables.iter().filter(|variable| variable.name == name);
        // Of several in scope the innermost that has a value, which is the last one.
        let found = named.clone().rfind(|variable| variable.found.is_ok());
        if let Some(variable) = found.or_else(|| named.next_back()) {
            return Ok(match self.view.row_of(variable, self.frame).node {
                Node::Absent(why) => return Err(format!("{name}: {why}")),
                node => node,
            });
        }
        if let Some(row) = self.view.globals().into_iter().find(|row| row.name == name) {
            return Ok(row.node);
        }
        if let Some(map) = self.view.map_named(name) {
            return Ok(Node::Map(map));
        }
        if let Some(value) = self.view.types().and_then(|types| enumerator(types, name)) {
            return Ok(Node::Value(Value::number(value)));
        }
        let fields = self.view.packet_fields();
        let rest = &self.text[start..];
        let mut fields = fields.iter().filter(|(field, ..)| {
            let path = field.path();
            let behind = rest.strip_prefix(&*path);
            behind.is_some_and(|behind| {
                !behind.starts_with(|each: char| each.is_alphanumeric() || each == '_')
            })
        });
        if let Some((field, text, address)) = fields.next() {
            self.at = start + field.path().len();
            return Ok(Node::Text(text.clone(), Some((*address, field.len))));
        }
        let mut known: Vec<&str> = variables.iter().map(|variable| &*variable.name).collect();
        known.dedup();
        Err(match known.is_empty() {
            true => format!("nothing is called {name} here"),
            false => format!(
                "nothing is called {name} here; variables are {}",
                known.join(", ")
            ),
        })
    }
}
