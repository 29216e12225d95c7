//! Where the value of a register comes from, as a name: a field of the packet, a member of the
//! context or of a value of a map, the result of a function, and simple arithmetic on them.

use std::rc::Rc;

use isa::ebpf::AluOp;
use packet::HeaderField;

/// Most characters of a name; longer ones say too little.
const LONGEST: usize = 60;

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) name: Rc<str>,
    /// The field of the packet that the value is, in the order of bytes of the network.
    pub(crate) field: Option<HeaderField>,
    /// True for what is a pointer, or 0 for none.
    pub(crate) is_pointer: bool,
}

impl Origin {
    pub(crate) fn named(name: impl Into<Rc<str>>) -> Origin {
        Origin {
            name: name.into(),
            field: None,
            is_pointer: false,
        }
    }

    /// The origin after arithmetic with a constant; `None` for what has no short name.
    pub(crate) fn after(&self, op: AluOp, constant: i64) -> Option<Origin> {
        let name = &self.name;
        let is_undone = op == AluOp::Rsh && constant == 32;
        if let (true, Some(inner)) = (is_undone, name.strip_suffix(" << 32)")) {
            return Some(Origin::named(inner.strip_prefix('(').unwrap_or(inner)));
        }
        let named = match op {
            AluOp::Add if constant < 0 => format!("({name} - {})", constant.unsigned_abs()),
            AluOp::Add => format!("({name} + {constant})"),
            AluOp::Sub => format!("({name} - {constant})"),
            AluOp::Mul => format!("({name} * {constant})"),
            AluOp::Div => format!("({name} / {constant})"),
            AluOp::Mod => format!("({name} % {constant})"),
            AluOp::And if constant == 0xffff_ffff || constant == -1 => name.to_string(),
            AluOp::And => format!("({name} & {constant:#x})"),
            AluOp::Or => format!("({name} | {constant:#x})"),
            AluOp::Xor => format!("({name} ^ {constant:#x})"),
            AluOp::Lsh => format!("({name} << {constant})"),
            AluOp::Rsh | AluOp::Arsh => format!("({name} >> {constant})"),
            AluOp::SDiv | AluOp::SMod | AluOp::Mov => return None,
        };
        (named.len() <= LONGEST).then(|| Origin::named(named))
    }

    /// The origin after arithmetic with another value.
    pub(crate) fn with(&self, op: AluOp, other: &Origin) -> Option<Origin> {
        let sign = match op {
            AluOp::Add => "+",
            AluOp::Sub => "-",
            AluOp::Mul => "*",
            AluOp::And => "&",
            AluOp::Or => "|",
            AluOp::Xor => "^",
            AluOp::Div
            | AluOp::SDiv
            | AluOp::Mod
            | AluOp::SMod
            | AluOp::Lsh
            | AluOp::Rsh
            | AluOp::Arsh
            | AluOp::Mov => return None,
        };
        let named = format!("({} {sign} {})", self.name, other.name);
        (named.len() <= LONGEST).then(|| Origin::named(named))
    }
}
