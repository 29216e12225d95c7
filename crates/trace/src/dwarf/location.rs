//! Where a variable is at an instruction, and its bytes.

use gimli::{EndianSlice, EvaluationResult, Expression, LittleEndian, Location, Value};

use super::{Debug, Function, Locations, Variable};

/// Most operations of an expression.
const MOST_OPERATIONS: u32 = 1000;

/// Most bytes of a variable.
const MOST_BYTES: usize = 4096;

/// Number of the frame pointer.
const FRAME_POINTER: usize = 10;

/// Registers and memory of a frame.
pub struct FrameState<'s> {
    /// The registers.
    pub registers: &'s [u64],
    /// The registers when the function was entered.
    pub entry: &'s [u64],
    /// Bytes of the stack that the function uses.
    pub stack: u64,
    /// Copies bytes at an address; false if they are not there.
    pub read: &'s dyn Fn(u64, &mut [u8]) -> bool,
}

/// A variable at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its bytes, and the register that is all of it.
    Bytes {
        /// The bytes.
        bytes: Vec<u8>,
        /// The register.
        register: Option<u8>,
    },
    /// Why it cannot be shown.
    Missing(&'static str),
}

impl Debug {
    /// A variable of a function at a slot.
    pub(crate) fn find(
        &self,
        function: &Function,
        variable: &Variable,
        slot: u32,
        state: &FrameState<'_>,
    ) -> Found {
        let size = self.size(variable).unwrap_or(0);
        if size == 0 {
            return Found::Missing("its type has no size");
        }
        if size > MOST_BYTES {
            return Found::Missing("it is too large to be shown");
        }
        let expression = match &variable.locations {
            Locations::None => return Found::Missing("optimized out"),
            Locations::Constant(bytes) => {
                let bytes = padded(bytes, size);
                return Found::Bytes {
                    bytes,
                    register: None,
                };
            }
            Locations::One(expression) => expression,
            Locations::Ranges(ranges) => {
                let address = function.address(slot);
                match ranges.iter().find(|(range, _)| range.contains(&address)) {
                    Some((_, expression)) => expression,
                    None => return Found::Missing("optimized out here"),
                }
            }
        };
        let found = bytes_of(function, expression, size, state);
        match found {
            Ok((bytes, register)) => Found::Bytes { bytes, register },
            Err(why) => Found::Missing(why),
        }
    }
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(size, 0);
    padded
}

impl FrameState<'_> {
    /// The address that an expression means. LLVM counts variables in the frame from its lowest
    /// address and adds that to the frame pointer, which is the end of the frame, so that they
    /// seem to lie behind it.
    fn moved(&self, address: u64) -> u64 {
        let end = self.registers.get(FRAME_POINTER).copied().unwrap_or(0);
        match address.checked_sub(end) {
            Some(offset) if offset < self.stack => address.wrapping_sub(self.stack),
            _ => address,
        }
    }
}

type Bytes = Result<(Vec<u8>, Option<u8>), &'static str>;

const DAMAGED: &str = "its location cannot be read";
const ELSEWHERE: &str = "its location is no register and no memory of the frame";
const GONE: &str = "its memory is not there";
const ABSENT: &str = "optimized out here";

fn bytes_of(function: &Function, expression: &[u8], size: usize, state: &FrameState<'_>) -> Bytes {
    let slice = EndianSlice::new(expression, LittleEndian);
    let mut evaluation = Expression(slice).evaluation(function.encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    let mut result = evaluation.evaluate().map_err(|_| DAMAGED)?;
    loop {
        let register = |number: u16| state.registers.get(usize::from(number)).copied();
        result = match result {
            EvaluationResult::Complete => break,
            EvaluationResult::RequiresRegister { register: from, .. } => {
                let value = register(from.0).ok_or(DAMAGED)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresFrameBase => {
                let end = register(FRAME_POINTER as u16).ok_or(DAMAGED)?;
                evaluation.resume_with_frame_base(end)
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut bytes = [0; 8];
                let read = bytes.get_mut(..usize::from(size)).ok_or(DAMAGED)?;
                if !(state.read)(state.moved(address), read) {
                    return Err(GONE);
                }
                evaluation.resume_with_memory(Value::Generic(u64::from_le_bytes(bytes)))
            }
            EvaluationResult::RequiresEntryValue(expression) => {
                let bytes = expression.0.slice();
                // Of a register: DW_OP_reg0 and on.
                let number = match bytes {
                    [operation @ 0x50..=0x5a] => usize::from(operation - 0x50),
                    _ => return Err(ELSEWHERE),
                };
                let value = state.entry.get(number).copied().ok_or(DAMAGED)?;
                evaluation.resume_with_entry_value(Value::Generic(value))
            }
            EvaluationResult::RequiresBaseType(offset) => {
                let known = function.base_types.get(&offset.0).copied();
                evaluation.resume_with_base_type(known.unwrap_or(gimli::ValueType::Generic))
            }
            EvaluationResult::RequiresTls(_)
            | EvaluationResult::RequiresCallFrameCfa
            | EvaluationResult::RequiresAtLocation(_)
            | EvaluationResult::RequiresParameterRef(_)
            | EvaluationResult::RequiresRelocatedAddress(_)
            | EvaluationResult::RequiresIndexedAddress { .. } => return Err(ELSEWHERE),
        }
        .map_err(|_| DAMAGED)?;
    }
    let pieces = evaluation.as_result();
    let mut bytes = Vec::with_capacity(size);
    let mut whole = None;
    for piece in pieces {
        let len = match piece.size_in_bits {
            Some(bits) if bits % 8 != 0 || piece.bit_offset.is_some_and(|bits| bits % 8 != 0) => {
                return Err("it is a part of a byte");
            }
            Some(bits) => (bits / 8) as usize,
            None => size,
        };
        let from = bytes.len();
        let room = len.min(size - from.min(size));
        match &piece.location {
            Location::Empty => return Err(ABSENT),
            Location::Register { register } => {
                let value = state
                    .registers
                    .get(usize::from(register.0))
                    .ok_or(DAMAGED)?;
                if pieces.len() == 1 {
                    whole = Some(register.0 as u8);
                }
                bytes.extend(&padded(&value.to_le_bytes(), room.max(8))[..room]);
            }
            Location::Address { address } => {
                bytes.resize(from + room, 0);
                if !(state.read)(state.moved(*address), &mut bytes[from..]) {
                    return Err(GONE);
                }
            }
            Location::Value { value } => {
                let value = value.to_u64(u64::MAX).map_err(|_| DAMAGED)?;
                let value = state.moved(value);
                bytes.extend(&padded(&value.to_le_bytes(), room.max(8))[..room]);
            }
            Location::Bytes { value } => bytes.extend(value.slice().iter().take(room)),
            Location::ImplicitPointer { .. } => return Err("it points to what has no place"),
        }
    }
    match bytes.len() == size {
        true => Ok((bytes, whole)),
        false => Err("a part of it is optimized out here"),
    }
}
