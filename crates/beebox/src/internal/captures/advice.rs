//! What is worth knowing of a compiled filter, and of files that may hold one: ancillary values that
//! captures lack, the link type that its offsets are for, expressions in text.

use classic::text::{Problem, read};
use isa::classic::{AD_OFFSET, Cond, Extension, Insn, Operand, Size, SockFilter};

use super::LinkType;
use crate::{Filter, Semantics};

impl Filter {
    /// The first instruction that loads an ancillary value, which captures do not hold; `None` with
    /// the kernel's semantics.
    #[doc(hidden)]
    pub fn absent_ancillary(&self) -> Option<(usize, Extension)> {
        if self.semantics() == Semantics::Kernel {
            return None;
        }
        let mut program = self.checked().program().iter().enumerate();
        program.find_map(|(at, &insn)| Some((at, ancillary(insn)?)))
    }

    /// True when two runs on one packet may differ.
    #[doc(hidden)]
    pub fn draws_random_numbers(&self) -> bool {
        let mut program = self.checked().program().iter();
        self.semantics() == Semantics::Kernel
            && program.any(|&insn| ancillary(insn) == Some(Extension::Random))
    }

    /// Why the filter does not suit packets of these link types, whose offsets differ: words behind
    /// its name.
    #[doc(hidden)]
    pub fn link_type_fault(&self, seen: &[LinkType]) -> Option<String> {
        let names: Vec<String> = seen.iter().map(LinkType::to_string).collect();
        let names = names.join(", ");
        if seen.len() > 1 {
            return Some(format!(
                "ran on packets of several link types, but its offsets fit one: {names}"
            ));
        }
        let compiled_for = compiled_for(self.checked().program())?;
        let [only] = *seen else { return None };
        (only != compiled_for).then(|| {
            format!("was probably compiled for {compiled_for}, but the packets are {names}")
        })
    }
}

/// The link type that a filter was probably compiled for: the one whose header has the
/// EtherType where the filter compares one first.
fn compiled_for(program: &[SockFilter]) -> Option<LinkType> {
    const ETHERTYPES: [u32; 4] = [0x0800, 0x0806, 0x8100, 0x86dd];
    let (
        Insn::LoadAbs {
            size: Size::H,
            k: offset,
        },
        Insn::Jump {
            cond: Cond::Eq,
            src: Operand::K(value),
            ..
        },
    ) = (
        Insn::decode(*program.first()?),
        Insn::decode(*program.get(1)?),
    )
    else {
        return None;
    };
    if !ETHERTYPES.contains(&value) {
        return None;
    }
    match offset {
        0 => Some(LinkType::LINUX_SLL2),
        12 => Some(LinkType::ETHERNET),
        14 => Some(LinkType::LINUX_SLL),
        _ => None,
    }
}

/// The ancillary value that an instruction loads.
fn ancillary(insn: SockFilter) -> Option<Extension> {
    match Insn::decode(insn) {
        Insn::LoadAbs { k, .. } if k >= AD_OFFSET => Extension::from_offset(k),
        _ => None,
    }
}

/// True for the bytes of a capture, which is no filter.
pub fn is_capture(bytes: &[u8]) -> bool {
    let error = read(bytes, None).err();
    error.is_some_and(|error| {
        let capture = Problem::OtherFile {
            what: "a packet capture",
        };
        error.problem == capture
    })
}

/// The expression in a file, without comments; `None` if the file is not text.
pub fn expression_in(bytes: &[u8]) -> Option<String> {
    let text = str::from_utf8(bytes).ok()?;
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or(""));
    let expression = lines.collect::<Vec<_>>().join(" ");
    let is_text = !expression.contains(|c: char| c.is_control() && !c.is_whitespace());
    is_text.then(|| expression.trim().to_owned())
}
