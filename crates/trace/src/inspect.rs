//! The variables of a frame at an instruction, with types and places: what a debugger shows.

use std::rc::Rc;

use interp::checked::Memory;
use isa::ebpf::Reg;
use program::{Program, Subprog};

use crate::dwarf::{Debug, Found, FoundPiece, FrameState, ValueBytes};
use crate::type_ref::VariableType;
use crate::variables::{DROPPED, Facts, UNREAD};

/// What is known of a function of a program.
#[derive(Clone)]
pub struct FunctionFacts<'p> {
    facts: Rc<Facts<'p>>,
    program: &'p Program,
}

/// A frame at an instruction.
#[derive(Clone, Copy)]
pub struct FrameAt<'f> {
    /// The slot: of a frame that called another one, that of the call.
    pub slot: u32,
    /// The registers there.
    pub registers: &'f [u64; Reg::COUNT],
    /// The registers when the function was entered.
    pub entry: &'f [u64; Reg::COUNT],
    /// True if a helper called the function.
    pub is_callback: bool,
}

/// A variable at an instruction.
#[derive(Clone, Debug)]
pub struct VariableAt<'p> {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: VariableType<'p>,
    /// The function that it is inlined from, if it is.
    pub within: Option<String>,
    /// True for a parameter.
    pub is_parameter: bool,
    /// The line that declares it.
    pub line: Option<u32>,
    /// Its value and place, or why it has none.
    pub found: Result<FoundVariable, &'static str>,
}

/// The value of a variable.
#[derive(Clone, Debug)]
pub struct FoundVariable {
    /// Its bytes.
    pub value: ValueBytes,
    /// The register that is all of it.
    pub register: Option<u8>,
    /// Its address, if all of it is in memory.
    pub address: Option<u64>,
    /// Its pieces, if it has several.
    pub pieces: Vec<FoundPiece>,
}

impl<'p> FunctionFacts<'p> {
    /// The facts of the function of a program at a slot.
    pub fn new(
        debug: Option<&'p Debug>,
        program: &'p Program,
        subprog: Option<&'p Subprog>,
    ) -> FunctionFacts<'p> {
        FunctionFacts {
            facts: Rc::new(Facts::new(debug, program, subprog)),
            program,
        }
    }

    /// The name of the function.
    pub fn name(&self) -> &str {
        &self.facts.name
    }

    /// Its first slot.
    pub fn start(&self) -> u32 {
        self.facts.start
    }

    /// True if the object has debug information of it.
    pub fn has_debug(&self) -> bool {
        self.facts.has_debug()
    }

    /// The functions that a slot is inlined from, the outermost first, and the lines of their calls.
    pub fn inlined_at(&self, slot: u32) -> Vec<(&'p str, Option<u32>)> {
        match self.facts.debug {
            Some((_, function)) => {
                let inlined = function.inlined_at(slot.saturating_sub(self.facts.start));
                inlined.collect()
            }
            None => Vec::new(),
        }
    }

    /// The first slots of the places where a function is inlined into this one.
    pub fn inlined_starts(&self, name: &str) -> Vec<u32> {
        let Some((debug, function)) = self.facts.debug else {
            return Vec::new();
        };
        let starts = debug.inlined_starts(function, name).into_iter();
        starts.map(|start| self.facts.start + start).collect()
    }

    /// The variables in scope, in the order of their declarations: of debug information, else the
    /// parameters of BTF.
    pub fn variables_at(&self, frame: FrameAt<'_>, memory: &Memory<'_>) -> Vec<VariableAt<'p>> {
        let Some((debug, function)) = self.facts.debug else {
            return self.parameters(frame);
        };
        let slot = frame.slot.saturating_sub(self.facts.start);
        let base = self.facts.frame;
        let base = base.map(|bytes| frame.entry[Reg::R10.index()].wrapping_sub(bytes));
        let state = FrameState {
            registers: frame.registers,
            entry: frame.entry,
            frame_base: base,
            read: &|address, into| memory.peek(address, into),
            unwritten: &|address, len| memory.unwritten(address, len),
        };
        let variables = function.variables.iter();
        let in_scope = variables.filter(|variable| function.is_in_scope(variable, slot));
        let found = in_scope.map(|variable| {
            let is_own_parameter = variable.is_parameter && variable.within.is_none();
            let found = match debug.find(function, variable, slot, &state) {
                Found::Bytes {
                    register: Some(register),
                    ..
                } if is_own_parameter && !self.facts.is_passed(register, frame.is_callback) => {
                    Err(UNREAD)
                }
                Found::Bytes {
                    value,
                    register,
                    address,
                    pieces,
                } => Ok(FoundVariable {
                    value,
                    register,
                    address,
                    pieces,
                }),
                Found::Missing(why) => Err(why),
            };
            VariableAt {
                name: variable.name.clone(),
                kind: debug.type_of(variable),
                within: variable.within.clone(),
                is_parameter: variable.is_parameter,
                line: variable.line,
                found,
            }
        });
        found.collect()
    }

    /// The parameters by BTF, with the values that the caller passed.
    fn parameters(&self, frame: FrameAt<'_>) -> Vec<VariableAt<'p>> {
        let Some(types) = self.program.btf() else {
            return Vec::new();
        };
        let has_all = self.facts.is_global || frame.is_callback;
        let parameters = self.facts.parameters.iter().zip(1..);
        let found = parameters.map(|((name, ty), register)| {
            let found = match frame.entry.get(usize::from(register)) {
                _ if !has_all => Err(DROPPED),
                _ if !self.facts.is_passed(register, frame.is_callback) => Err(UNREAD),
                None => Err("it is not in a register"),
                Some(number) => {
                    let size = types.size_of(*ty).unwrap_or(8).clamp(1, 8) as usize;
                    Ok(FoundVariable {
                        value: ValueBytes::known(number.to_le_bytes()[..size].to_vec()),
                        register: None,
                        address: None,
                        pieces: Vec::new(),
                    })
                }
            };
            VariableAt {
                name: name.clone(),
                kind: VariableType::Btf(types, *ty),
                within: None,
                is_parameter: true,
                line: None,
                found,
            }
        });
        found.collect()
    }
}
