//! Debug information of `clang -g`: functions, their variables and types.
//!
//! Sections of an object are relocated first: an address gets the number of its section in its upper
//! half, so that a function is found by its place in the object. All is read at once; locations stay
//! expressions, which are evaluated at an instruction.

mod form;
mod lines;
mod location;
mod read;
mod types;

use std::collections::HashMap;
use std::ops::Range;

use gimli::Encoding;

pub use lines::LineTable;
pub(crate) use location::UNWRITTEN;
pub use location::{Found, FoundPiece, FrameState, PieceAt};
pub(crate) use location::{FramePiece, InFrame};
use types::Types;
pub use types::{Describe, ValueBytes};

/// The debug information of an object.
#[derive(Debug, Default)]
pub struct Debug {
    functions: Vec<Function>,
    types: Types,
    /// Names of the sections of the object, by number.
    sections: Vec<String>,
    /// The largest alignment that a type or variable may have, if it is more than that of numbers.
    pub(crate) most_align: u64,
}

/// A function.
#[derive(Debug)]
pub(crate) struct Function {
    name: String,
    /// Addresses, with the number of the section in their upper half.
    addresses: Range<u64>,
    pub(crate) variables: Vec<Variable>,
    inlined: Vec<Inlined>,
    encoding: Encoding,
    /// Base types of expressions by offset in the unit.
    base_types: HashMap<usize, gimli::ValueType>,
}

/// A function that is inlined.
#[derive(Debug)]
struct Inlined {
    name: String,
    ranges: Vec<Range<u64>>,
    depth: isize,
    /// The line of the call.
    call_line: Option<u32>,
}

/// A variable or parameter.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The function that it is inlined from, if it is.
    pub(crate) within: Option<String>,
    /// The type, by its offset.
    pub(crate) kind: Option<usize>,
    /// The line that declares it.
    pub(crate) line: Option<u32>,
    /// True for a parameter.
    pub(crate) is_parameter: bool,
    /// Where it is in scope.
    scope: Vec<Range<u64>>,
    locations: Locations,
}

#[derive(Debug)]
enum Locations {
    /// None: it was optimized out.
    None,
    /// One everywhere.
    One(Vec<u8>),
    /// One for each range of instructions.
    Ranges(Vec<(Range<u64>, Vec<u8>)>),
    /// A constant.
    Constant(Vec<u8>),
}

impl Debug {
    /// The debug information of an ELF file; `None` if it has none that can be read.
    pub fn read(file: &[u8]) -> Option<Debug> {
        read::read(file)
    }

    /// The function of a name: of several the one in a section.
    pub(crate) fn function(&self, name: &str, section: &str) -> Option<&Function> {
        let named = || {
            self.functions
                .iter()
                .filter(|function| function.name == name)
        };
        let in_section = |function: &&Function| {
            let number = (function.addresses.start >> 32) as usize;
            self.sections
                .get(number)
                .is_some_and(|known| known == section)
        };
        let only = || (named().count() == 1).then(|| named().next()).flatten();
        named().find(in_section).or_else(only)
    }

    /// The type of a variable in C.
    pub(crate) fn type_name(&self, variable: &Variable) -> String {
        self.types.name(variable.kind)
    }

    /// Bytes of a variable.
    pub(crate) fn size(&self, variable: &Variable) -> Option<usize> {
        self.types.size(variable.kind?)
    }

    /// True for a pointer.
    pub(crate) fn is_pointer(&self, variable: &Variable) -> bool {
        self.types.is_pointer(variable.kind)
    }

    /// The value of a variable, of its bytes.
    pub(crate) fn show(
        &self,
        variable: &Variable,
        value: &ValueBytes,
        describe: &Describe<'_>,
    ) -> String {
        self.types.show(variable.kind, value, describe)
    }

    /// The alignment of a variable without parts.
    pub(crate) fn scalar_align(&self, variable: &Variable) -> Option<usize> {
        self.types.scalar_align(variable.kind)
    }
}

impl Function {
    /// The address of a slot.
    fn address(&self, slot: u32) -> u64 {
        self.addresses.start + 8 * u64::from(slot)
    }

    /// The functions that a slot is inlined from, the outermost first, and the lines of their calls.
    pub(crate) fn inlined_at(&self, slot: u32) -> impl Iterator<Item = (&str, Option<u32>)> {
        let address = self.address(slot);
        let inlined = self.inlined.iter();
        let mut found: Vec<&Inlined> = inlined.filter(|it| contain(&it.ranges, address)).collect();
        found.sort_by_key(|inlined| inlined.depth);
        let found = found.into_iter();
        found.map(|inlined| (&*inlined.name, inlined.call_line))
    }

    /// True if a variable has no place anywhere.
    pub(crate) fn is_gone(variable: &Variable) -> bool {
        match &variable.locations {
            Locations::None => true,
            Locations::Ranges(ranges) => ranges.is_empty(),
            Locations::One(_) | Locations::Constant(_) => false,
        }
    }

    /// True if a variable is in a section of the object: it is among the global variables.
    pub(crate) fn is_static(variable: &Variable) -> bool {
        let addresses = [gimli::DW_OP_addr.0, gimli::DW_OP_addrx.0];
        match &variable.locations {
            Locations::One(expression) => {
                let first = expression.first();
                first.is_some_and(|first| addresses.contains(first))
            }
            Locations::None | Locations::Ranges(_) | Locations::Constant(_) => false,
        }
    }

    /// The slots at which a variable is in scope, first and last ones.
    pub(crate) fn scope_slots(&self, variable: &Variable) -> Vec<(u32, u32)> {
        let start = self.address(0);
        let slot = |address: u64| (address.saturating_sub(start) / 8) as u32;
        let scope = variable.scope.iter().filter(|range| !range.is_empty());
        scope
            .map(|range| (slot(range.start), slot(range.end - 1)))
            .collect()
    }

    /// True if a variable is in scope at a slot.
    pub(crate) fn is_in_scope(&self, variable: &Variable, slot: u32) -> bool {
        contain(&variable.scope, self.address(slot))
    }
}

fn contain(ranges: &[Range<u64>], address: u64) -> bool {
    ranges.iter().any(|range| range.contains(&address))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGE: &[u8] = include_bytes!("../../../examples/why/edge.bpf.o");

    #[test]
    fn functions_have_their_variables_and_types() {
        let debug = Debug::read(EDGE).unwrap();
        let function = debug.function("edge", "xdp").unwrap();
        let named = |name: &str| {
            function
                .variables
                .iter()
                .find(|variable| variable.name == name)
        };
        let refusal = named("refusal").unwrap();
        assert_eq!(debug.type_name(refusal), "struct refusal");
        assert_eq!(debug.size(refusal), Some(8));
        let value = ValueBytes::known(vec![192, 0, 2, 1, 22, 0, 0xb4, 5]);
        let shown = debug.show(refusal, &value, &|_| None);
        assert_eq!(
            shown,
            "{ .from = [192, 0, 2, 1], .port = 22, .segment_size = 1460 }"
        );
        assert!(debug.is_pointer(named("tcp").unwrap()));
        let first = named("first").unwrap();
        assert_eq!(first.within.as_deref(), Some("count"));
        assert!(debug.function("announced", ".text").is_some());
        assert!(
            debug.function("announced", "xdp").is_some(),
            "the only one of its name"
        );
        assert!(debug.function("nothing", "xdp").is_none());
    }

    #[test]
    fn damaged_debug_information_is_read_as_far_as_it_goes() {
        let mut random = 1_u64;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        for _ in 0..2000 {
            let mut file = EDGE.to_vec();
            for _ in 0..1 + next(4) {
                let at = 64 + next(file.len() - 64);
                file[at] = next(256) as u8;
            }
            let Some(debug) = Debug::read(&file) else {
                continue;
            };
            for function in &debug.functions {
                for variable in &function.variables {
                    let state = FrameState {
                        registers: &[8; 11],
                        entry: &[9; 11],
                        frame_base: Some(32),
                        read: &|_, _| true,
                        unwritten: &|_, _| None,
                    };
                    let found = debug.find(function, variable, next(100) as u32, &state);
                    if let Found::Bytes { value, .. } = found {
                        debug.show(variable, &value, &|_| None);
                    }
                    debug.type_name(variable);
                }
            }
        }
    }
}
