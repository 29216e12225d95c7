//! The values of expressions: numbers have the types that C gives them.

use trace::dwarf::ValueBytes;
use trace::{TypeForm, enumerator};

use super::expression::{BinaryOp, Expr, UnaryOp};
use super::int_type::IntType;
use super::listing::REGISTERS;
use super::places::ValuePlace;
use super::value::{DebugValue, TreeNode};
use super::view::View;

impl<'r> View<'_, 'r, '_> {
    /// The value of an expression in a frame.
    ///
    /// # Errors
    /// In words, with what is not there.
    pub fn evaluate(&self, frame: usize, text: &str) -> Result<DebugValue<'r>, String> {
        match self.evaluate_node(frame, text)? {
            TreeNode::Value(value) => Ok(value),
            TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => Err(why),
            TreeNode::Text(text, place) => Err(match place {
                Some(_) => text,
                None => "it is no value".to_owned(),
            }),
            TreeNode::Map(_) => Err("a map is no value; name an entry as map[key]".to_owned()),
            TreeNode::Packet => Err("name bytes as $packet[0], or a field as ip.ttl".to_owned()),
            TreeNode::PerCpu(_) => Err("name a CPU as map[key][cpu]".to_owned()),
        }
    }

    /// What an expression is of: a value, a map, the packet.
    ///
    /// # Errors
    /// As [`View::evaluate`].
    pub fn evaluate_node(&self, frame: usize, text: &str) -> Result<TreeNode<'r>, String> {
        let expr = Expr::parse(text)?;
        if frame >= self.depth() {
            return Err(format!("there are frames 0 to {}", self.depth().max(1) - 1));
        }
        Evaluator { view: self, frame }.node(&expr)
    }

    /// The number that a condition is; fields of headers are numbers too.
    ///
    /// # Errors
    /// As [`View::evaluate`].
    pub(super) fn is_true(&self, frame: usize, text: &str) -> Result<bool, String> {
        let expr = Expr::parse(text)?;
        let evaluator = Evaluator { view: self, frame };
        Ok(evaluator.operand(evaluator.node(&expr)?)?.0 != 0)
    }
}

struct Evaluator<'e, 'v, 'r, 'm> {
    view: &'e View<'v, 'r, 'm>,
    frame: usize,
}

impl<'r> Evaluator<'_, '_, 'r, '_> {
    fn node(&self, expr: &Expr) -> Result<TreeNode<'r>, String> {
        Ok(match expr {
            Expr::Number(number, ty) => TreeNode::Value(DebugValue::number(*number, *ty)),
            Expr::Name(name) => self.named(name)?,
            Expr::Register(name) => self.register(name)?,
            Expr::Unary(op, of) => self.unary(*op, of)?,
            Expr::Binary(op, left, right) => {
                let left = self.node(left)?;
                // The other operand of a decided condition is not evaluated.
                if let BinaryOp::Or | BinaryOp::And = op
                    && (self.operand(left.clone())?.0 != 0) == (*op == BinaryOp::Or)
                {
                    let truth = i64::from(*op == BinaryOp::Or);
                    return Ok(TreeNode::Value(DebugValue::number(truth, IntType::INT)));
                }
                TreeNode::Value(self.apply(*op, left, self.node(right)?)?)
            }
            Expr::Index(of, index) => {
                let of = self.node(of)?;
                let (index, _) = self.operand(self.node(index)?)?;
                self.index(of, index)?
            }
            Expr::Member(of, name) => {
                if let Some(field) = self.field(expr) {
                    return Ok(field);
                }
                self.member(self.node(of)?, name)?
            }
        })
    }

    fn unary(&self, op: UnaryOp, of: &Expr) -> Result<TreeNode<'r>, String> {
        let node = match (op, of) {
            (UnaryOp::Target, Expr::Unary(UnaryOp::Address, of)) => return self.node(of),
            _ => self.node(of)?,
        };
        let number = |number: i64, ty: IntType| Ok(TreeNode::Value(DebugValue::number(number, ty)));
        match op {
            UnaryOp::Not => number(i64::from(self.operand(node)?.0 == 0), IntType::INT),
            UnaryOp::Complement => {
                let (operand, ty) = self.operand(node)?;
                number(!operand, ty)
            }
            UnaryOp::Minus => {
                let (operand, ty) = self.operand(node)?;
                number(operand.wrapping_neg(), ty)
            }
            UnaryOp::Plus => {
                let (operand, ty) = self.operand(node)?;
                number(operand, ty)
            }
            UnaryOp::Target => match node {
                TreeNode::Value(value) => Ok(TreeNode::Value(self.view.element(&value, 0)?)),
                TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => Err(why),
                _ => Err("it is no pointer".to_owned()),
            },
            UnaryOp::Address => {
                let address = match node {
                    TreeNode::Value(value) => self.view.address_of(&value.place)?,
                    TreeNode::Text(_, Some((address, _))) => address,
                    TreeNode::Map(map) => {
                        let pointer = self.view.moment.memory.map_pointer(map);
                        pointer.ok_or("it has no address")?
                    }
                    TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => return Err(why),
                    TreeNode::Packet => self.view.packet_start().ok_or("the run has no packet")?,
                    TreeNode::Text(_, None) | TreeNode::PerCpu(_) => {
                        return Err("it has no address".to_owned());
                    }
                };
                number(address as i64, IntType::UNSIGNED_LONG)
            }
        }
    }

    fn apply(
        &self,
        op: BinaryOp,
        left: TreeNode<'r>,
        right: TreeNode<'r>,
    ) -> Result<DebugValue<'r>, String> {
        let pointed = |node: &TreeNode<'r>| match node {
            TreeNode::Value(value) => match value.kind.map(|kind| kind.form()) {
                Some(TypeForm::Pointer(of)) => of.size().filter(|size| *size > 0),
                _ => None,
            },
            _ => None,
        };
        let is_sum = matches!(op, BinaryOp::Add | BinaryOp::Subtract);
        let scales = (pointed(&left), pointed(&right));
        let pointer = match (&left, &right, scales) {
            _ if !is_sum => None,
            (TreeNode::Value(value), _, (Some(each), None)) => Some((value.kind, each)),
            (_, TreeNode::Value(value), (None, Some(each))) => Some((value.kind, each)),
            _ => None,
        };
        let ((a, first), (b, second)) = (self.operand(left)?, self.operand(right)?);
        if let Some((kind, each)) = pointer {
            let each = each as i64;
            let (a, b) = match scales.0 {
                Some(_) => (a, b.wrapping_mul(each)),
                None => (a.wrapping_mul(each), b),
            };
            let sum = if op == BinaryOp::Add {
                a.wrapping_add(b)
            } else {
                a.wrapping_sub(b)
            };
            let number = DebugValue::number(sum, IntType::UNSIGNED_LONG);
            return Ok(DebugValue { kind, ..number });
        }
        if let (BinaryOp::Subtract, (Some(each), Some(_))) = (op, scales) {
            let distance = a.wrapping_sub(b) / each as i64;
            return Ok(DebugValue::number(distance, IntType::LONG));
        }
        let ty = match op {
            BinaryOp::ShiftLeft | BinaryOp::ShiftRight => first,
            _ => first.common(second),
        };
        let (a, b) = (ty.wrap(a), if ty == first { b } else { ty.wrap(b) });
        let less = |a: i64, b: i64| match ty.is_signed {
            true => a < b,
            false => (a as u64) < b as u64,
        };
        let truth = |truth: bool| Ok(DebugValue::number(i64::from(truth), IntType::INT));
        let zero = || "a division by zero".to_owned();
        let bits = if ty.is_wide { 63 } else { 31 };
        let number = match op {
            BinaryOp::Or => return truth(a != 0 || b != 0),
            BinaryOp::And => return truth(a != 0 && b != 0),
            BinaryOp::Equal => return truth(a == ty.wrap(b)),
            BinaryOp::NotEqual => return truth(a != ty.wrap(b)),
            BinaryOp::LessOrEqual => return truth(!less(ty.wrap(b), a)),
            BinaryOp::GreaterOrEqual => return truth(!less(a, ty.wrap(b))),
            BinaryOp::Less => return truth(less(a, ty.wrap(b))),
            BinaryOp::Greater => return truth(less(ty.wrap(b), a)),
            BinaryOp::BitOr => a | b,
            BinaryOp::BitXor => a ^ b,
            BinaryOp::BitAnd => a & b,
            BinaryOp::ShiftLeft => a.wrapping_shl(b as u32 & bits),
            BinaryOp::ShiftRight if ty.is_signed => a.wrapping_shr(b as u32 & bits),
            BinaryOp::ShiftRight => (a as u64).wrapping_shr(b as u32 & bits) as i64,
            BinaryOp::Add => a.wrapping_add(b),
            BinaryOp::Subtract => a.wrapping_sub(b),
            BinaryOp::Multiply => a.wrapping_mul(b),
            BinaryOp::Divide | BinaryOp::Remainder if ty.wrap(b) == 0 => return Err(zero()),
            BinaryOp::Divide if ty.is_signed => a.wrapping_div(ty.wrap(b)),
            BinaryOp::Divide => (a as u64 / ty.wrap(b) as u64) as i64,
            BinaryOp::Remainder if ty.is_signed => a.wrapping_rem(ty.wrap(b)),
            BinaryOp::Remainder => (a as u64 % ty.wrap(b) as u64) as i64,
        };
        Ok(DebugValue::number(number, ty))
    }

    /// A number with its type, after the promotions of C.
    fn operand(&self, node: TreeNode<'r>) -> Result<(i64, IntType), String> {
        match node {
            TreeNode::Value(value) => {
                let number = value.as_number();
                let number =
                    number.ok_or_else(|| format!("{} is no number", self.view.text(&value)))?;
                Ok((number, value.int_type()))
            }
            TreeNode::Absent(why) | TreeNode::NoEntry(_, why) => Err(why),
            TreeNode::Text(text, Some((address, len))) => {
                let bytes = self.view.memory(address, len).filter(|_| len <= 8);
                let bytes = bytes.ok_or_else(|| format!("{text} is no number"))?;
                // Fields of headers are in the order of bytes of the network.
                let number = bytes
                    .iter()
                    .fold(0, |number, byte| number << 8 | i64::from(*byte));
                Ok((number, IntType::of(len, false)))
            }
            TreeNode::Text(text, None) => Err(format!("{text} is no number")),
            TreeNode::Map(_) | TreeNode::Packet | TreeNode::PerCpu(_) => {
                Err("it is no number".to_owned())
            }
        }
    }

    fn member(&self, of: TreeNode<'r>, name: &str) -> Result<TreeNode<'r>, String> {
        let (value, absent) = match of {
            TreeNode::Value(value) => (value, None),
            TreeNode::NoEntry(value, why) => (value, Some(why)),
            TreeNode::Absent(why) => return Err(why),
            _ => return Err(format!("it has no member {name}")),
        };
        let holder = match value.kind.map(|kind| kind.form()) {
            Some(TypeForm::Pointer(_)) => self.view.target(&value).ok_or_else(|| {
                format!("{} points to nothing that is there", self.view.text(&value))
            })?,
            _ => value,
        };
        let member = self.view.member(&holder, name);
        let member = member.ok_or_else(|| match holder.kind {
            Some(kind) => format!("{} has no member {name}", kind.name()),
            None => format!("a number has no member {name}"),
        })?;
        Ok(match absent {
            Some(why) => TreeNode::NoEntry(member, why),
            None => TreeNode::Value(member),
        })
    }

    fn index(&self, node: TreeNode<'r>, index: i64) -> Result<TreeNode<'r>, String> {
        match node {
            TreeNode::Value(value) => self.view.element(&value, index).map(TreeNode::Value),
            TreeNode::NoEntry(value, why) => {
                let element = self.view.element(&value, index)?;
                Ok(TreeNode::NoEntry(element, why))
            }
            TreeNode::Absent(why) => Err(why),
            TreeNode::Map(map) => {
                let key = self.view.key_of_number(map, index)?;
                Ok(self.view.entry(map, &key))
            }
            TreeNode::PerCpu(values) => {
                let value = usize::try_from(index).ok().and_then(|cpu| values.get(cpu));
                let value = value.ok_or_else(|| format!("there is no CPU {index}"))?;
                Ok(TreeNode::Value(value.clone()))
            }
            TreeNode::Packet => {
                let [_, data, end] =
                    (self.view.moment.memory.packet_bounds()).ok_or("the run has no packet")?;
                let address = data.wrapping_add_signed(index);
                let bytes = self.view.memory(address, 1);
                let bytes = bytes.filter(|_| (data..end).contains(&address));
                let bytes = bytes.ok_or_else(|| format!("the packet has {} bytes", end - data))?;
                Ok(TreeNode::Value(DebugValue {
                    bytes: ValueBytes::known(bytes),
                    place: ValuePlace::Memory(address),
                    ..DebugValue::number(0, IntType::INT)
                }))
            }
            TreeNode::Text(..) => Err("it is no array".to_owned()),
        }
    }

    fn register(&self, name: &str) -> Result<TreeNode<'r>, String> {
        if name == "packet" {
            return Ok(TreeNode::Packet);
        }
        let frame = self.view.physical(self.frame);
        if name == "pc" {
            let slot = self.view.frame(frame).map_or(0, |(_, slot)| slot);
            let number = DebugValue::number(slot.into(), IntType::LONG);
            return Ok(TreeNode::Value(number));
        }
        let register = REGISTERS.iter().position(|known| *known == name);
        match register.zip(self.view.registers_of(frame)) {
            Some((register, registers)) => Ok(TreeNode::Value(DebugValue {
                place: ValuePlace::Register {
                    frame,
                    register: register as u8,
                },
                ..DebugValue::number(registers[register] as i64, IntType::LONG)
            })),
            None => Err(format!(
                "${name} is no register; there are $r0 to $r10, $pc and $packet"
            )),
        }
    }

    /// A field of the packet, if nothing of the program has its first word.
    fn field(&self, expr: &Expr) -> Option<TreeNode<'r>> {
        let path = expr.path()?;
        let (first, _) = path.split_once('.')?;
        let fields = self.view.packet_fields();
        let (field, text, address) = fields.iter().find(|(field, ..)| field.path() == path)?;
        let is_field = self.of_program(first).is_none();
        is_field.then(|| TreeNode::Text(text.clone(), Some((*address, field.len))))
    }

    /// A variable, a global one, a map or a constant.
    fn of_program(&self, name: &str) -> Option<TreeNode<'r>> {
        let variables = self.view.variables_of(self.frame);
        let mut named = variables.iter().filter(|variable| variable.name == name);
        // Of several in scope the innermost that has a value, which is the last one.
        let found = named.clone().rfind(|variable| variable.found.is_ok());
        if let Some(variable) = found.or_else(|| named.next_back()) {
            let physical = self.view.physical(self.frame);
            return Some(match self.view.row_of(variable, physical).node {
                TreeNode::Absent(why) => TreeNode::Absent(format!("{name}: {why}")),
                node => node,
            });
        }
        if let Some(row) = self.view.globals().into_iter().find(|row| row.name == name) {
            return Some(row.node);
        }
        if let Some(map) = self.view.map_named(name) {
            return Some(TreeNode::Map(map));
        }
        let value = self
            .view
            .types()
            .and_then(|types| enumerator(types, name))?;
        let is_int = i64::from(value as i32) == value;
        let ty = if is_int { IntType::INT } else { IntType::LONG };
        Some(TreeNode::Value(DebugValue::number(value, ty)))
    }

    fn named(&self, name: &str) -> Result<TreeNode<'r>, String> {
        match self.of_program(name) {
            Some(TreeNode::Absent(why)) => return Err(why),
            Some(node) => return Ok(node),
            None => {}
        }
        let variables = self.view.variables_of(self.frame);
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
