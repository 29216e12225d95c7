//! Where a variable is at an instruction, and its bytes.

use gimli::{EndianSlice, EvaluationResult, Expression, LittleEndian, Location, Operation, Value};

use super::{Debug, Function, Locations, ValueBytes, Variable};

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
    /// The address that locations in the frame count from, if it is known.
    pub frame_base: Option<u64>,
    /// Copies bytes at an address; false if they are not there.
    pub read: &'s dyn Fn(u64, &mut [u8]) -> bool,
    /// For each byte at an address true if the program wrote none there; `None` if that is not known or
    /// all are written.
    pub unwritten: &'s dyn Fn(u64, usize) -> Option<Vec<bool>>,
}

/// A variable at an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Its bytes, and where they are.
    Bytes {
        /// The bytes.
        value: ValueBytes,
        /// The register that is all of it.
        register: Option<u8>,
        /// The address that it is at, if all of it is in memory.
        address: Option<u64>,
        /// Its pieces, if it has several.
        pieces: Vec<FoundPiece>,
    },
    /// Why it cannot be shown.
    Missing(&'static str),
}

/// A piece of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundPiece {
    /// Its first byte in the variable.
    pub start: usize,
    /// Its bytes.
    pub len: usize,
    /// Where it is.
    pub at: PieceAt,
}

/// Where a piece of a variable is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PieceAt {
    /// In a register.
    Register(u8),
    /// At an address.
    Memory(u64),
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
                let value = ValueBytes::known(padded(bytes, size));
                return Found::Bytes {
                    value,
                    register: None,
                    address: None,
                    pieces: Vec::new(),
                };
            }
            Locations::One(_) if Function::is_static(variable) => {
                return Found::Missing("static: among the global variables");
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
        bytes_of(function, expression, size, state).unwrap_or_else(Found::Missing)
    }

    /// The pieces of a variable that is in the frame all the time; none of another one.
    pub(crate) fn pieces(&self, function: &Function, variable: &Variable) -> Vec<FramePiece> {
        let expression = match &variable.locations {
            Locations::One(expression) => expression,
            Locations::Ranges(ranges) => match &ranges[..] {
                [(range, expression)] if range.start == function.addresses.start => expression,
                _ => return Vec::new(),
            },
            Locations::None | Locations::Constant(_) => return Vec::new(),
        };
        let pieces = self.frame_pieces(function, variable, expression);
        pieces.unwrap_or_default()
    }

    /// The pieces of a variable by an expression; `None` if some are elsewhere.
    fn frame_pieces(
        &self,
        function: &Function,
        variable: &Variable,
        expression: &[u8],
    ) -> Option<Vec<FramePiece>> {
        let slice = EndianSlice::new(expression, LittleEndian);
        let mut operations = Expression(slice).operations(function.encoding);
        let (mut pieces, mut start, mut last) = (Vec::new(), 0, None);
        while let Ok(Some(operation)) = operations.next() {
            match (operation, last.take()) {
                (Operation::FrameOffset { offset }, None) => last = Some(offset),
                (
                    Operation::RegisterOffset {
                        register, offset, ..
                    },
                    None,
                ) if usize::from(register.0) == FRAME_POINTER => {
                    last = Some(offset);
                }
                (Operation::PlusConstant { value }, Some(offset)) => {
                    last = Some(offset.saturating_add_unsigned(value));
                }
                (Operation::Piece { size_in_bits, .. }, offset) => {
                    let len = size_in_bits / 8;
                    pieces.extend(offset.map(|offset| FramePiece { start, offset, len }));
                    start += len;
                }
                _ => return None,
            }
        }
        let len = self.size(variable)? as u64;
        pieces.extend(last.map(|offset| FramePiece {
            start: 0,
            offset,
            len,
        }));
        Some(pieces)
    }

    /// The variables of a function that have places in its frame, as offsets from what locations
    /// count from.
    pub(crate) fn in_frame(&self, function: &Function) -> Vec<InFrame> {
        let mut found = Vec::new();
        for variable in &function.variables {
            let (expressions, is_everywhere): (Vec<&[u8]>, bool) = match &variable.locations {
                Locations::None | Locations::Constant(_) => continue,
                Locations::One(expression) => (vec![expression], true),
                Locations::Ranges(ranges) => {
                    let expressions = ranges.iter().map(|(_, expression)| &expression[..]);
                    (expressions.collect(), false)
                }
            };
            for expression in expressions {
                let pieces = self.frame_pieces(function, variable, expression);
                let is_whole = is_everywhere && pieces.as_ref().is_some_and(|it| it.len() == 1);
                let places = match pieces {
                    Some(pieces) => pieces.iter().map(|it| (it.offset, it.len)).collect(),
                    // Of a value that is made of an address the place counts alone.
                    None => frame_offsets(function, expression),
                };
                found.extend(places.into_iter().map(|(offset, len)| InFrame {
                    offset,
                    size: len.max(1) as i64,
                    align: self.scalar_align(variable).filter(|_| is_whole),
                    is_fixed: is_everywhere,
                }));
            }
        }
        found
    }
}

/// Offsets in the frame that an expression has, of a byte each.
fn frame_offsets(function: &Function, expression: &[u8]) -> Vec<(i64, u64)> {
    let slice = EndianSlice::new(expression, LittleEndian);
    let mut operations = Expression(slice).operations(function.encoding);
    let mut offsets = Vec::new();
    while let Ok(Some(operation)) = operations.next() {
        match operation {
            Operation::FrameOffset { offset } => offsets.push((offset, 1)),
            Operation::RegisterOffset {
                register, offset, ..
            } if usize::from(register.0) == FRAME_POINTER => offsets.push((offset, 1)),
            _ => {}
        }
    }
    offsets
}

impl Function {
    /// True if a register is all of a variable at a slot.
    pub(crate) fn is_in_register(&self, variable: &Variable, register: u8, slot: u32) -> bool {
        let address = self.address(slot);
        let expression = match &variable.locations {
            Locations::None | Locations::Constant(_) => None,
            Locations::One(expression) => Some(expression),
            Locations::Ranges(ranges) => {
                let mut ranges = ranges.iter();
                let found = ranges.find(|(range, _)| range.contains(&address));
                found.map(|(_, expression)| expression)
            }
        };
        // DW_OP_reg0 and on.
        expression.is_some_and(|expression| expression[..] == [0x50 + register])
    }
}

/// A piece of a variable that is in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FramePiece {
    /// Its first byte in the variable, and in the frame.
    pub(crate) start: u64,
    pub(crate) offset: i64,
    /// Its bytes.
    pub(crate) len: u64,
}

/// A variable in the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InFrame {
    /// Offset of its first byte.
    pub(crate) offset: i64,
    /// Its bytes.
    pub(crate) size: i64,
    /// Its alignment, if it is always there and has no parts.
    pub(crate) align: Option<usize>,
    /// True if it is always there: others are in slots of registers, which are larger.
    pub(crate) is_fixed: bool,
}

fn padded(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut padded = bytes.to_vec();
    padded.resize(size, 0);
    padded
}

const DAMAGED: &str = "its location cannot be read";
const ELSEWHERE: &str = "its location is no register and no memory of the frame";
const GONE: &str = "its memory is not there";
const ABSENT: &str = "optimized out here";
/// Why a variable of the frame is not shown whose bytes nothing wrote.
pub(crate) const UNWRITTEN: &str = "nothing was written to it";
const UNPLACED: &str = "its place in the frame cannot be told from the instructions";

fn bytes_of(
    function: &Function,
    expression: &[u8],
    size: usize,
    state: &FrameState<'_>,
) -> Result<Found, &'static str> {
    let slice = EndianSlice::new(expression, LittleEndian);
    let mut evaluation = Expression(slice).evaluation(function.encoding);
    evaluation.set_max_iterations(MOST_OPERATIONS);
    let mut result = evaluation.evaluate().map_err(|_| DAMAGED)?;
    loop {
        let register = |number: u16| state.registers.get(usize::from(number)).copied();
        result = match result {
            EvaluationResult::Complete => break,
            // LLVM counts from the lowest address of the frame and calls that the frame pointer,
            // which is its highest one.
            EvaluationResult::RequiresRegister { register: from, .. }
                if usize::from(from.0) == FRAME_POINTER =>
            {
                let base = state.frame_base.ok_or(UNPLACED)?;
                evaluation.resume_with_register(Value::Generic(base))
            }
            EvaluationResult::RequiresRegister { register: from, .. } => {
                let value = register(from.0).ok_or(DAMAGED)?;
                evaluation.resume_with_register(Value::Generic(value))
            }
            EvaluationResult::RequiresFrameBase => {
                let base = state.frame_base.ok_or(UNPLACED)?;
                evaluation.resume_with_frame_base(base)
            }
            EvaluationResult::RequiresMemory { address, size, .. } => {
                let mut bytes = [0; 8];
                let read = bytes.get_mut(..usize::from(size)).ok_or(DAMAGED)?;
                if !(state.read)(address, read) {
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
    let mut bytes = vec![0; size];
    let mut known = vec![false; size];
    let (mut whole, mut place, mut places) = (None, None, Vec::new());
    let mut has_unwritten = false;
    let mut at_bit: usize = 0;
    for piece in pieces {
        let bits = piece.size_in_bits.unwrap_or(8 * size as u64) as usize;
        let (start, end) = (at_bit, at_bit.saturating_add(bits));
        at_bit = end;
        // A part of a byte stays unknown.
        let is_of_bytes =
            start % 8 == 0 && end % 8 == 0 && piece.bit_offset.is_none_or(|bits| bits == 0);
        let range = (start / 8).min(size)..(end / 8).min(size);
        if !is_of_bytes || range.is_empty() {
            continue;
        }
        let into = &mut bytes[range.clone()];
        let put = |into: &mut [u8], from: &[u8]| {
            let len = into.len().min(from.len());
            into[..len].copy_from_slice(&from[..len]);
        };
        match &piece.location {
            Location::Empty => continue,
            Location::Register { register } => {
                let number = usize::from(register.0);
                let value = state.registers.get(number).ok_or(DAMAGED)?;
                if pieces.len() == 1 {
                    whole = Some(register.0 as u8);
                }
                put(into, &value.to_le_bytes());
                let at = PieceAt::Register(register.0 as u8);
                let (start, len) = (range.start, range.len());
                places.push(FoundPiece { start, len, at });
            }
            Location::Address { address } => {
                if !(state.read)(*address, into) {
                    return Err(GONE);
                }
                place = (pieces.len() == 1).then_some(*address);
                let at = PieceAt::Memory(*address);
                let (start, len) = (range.start, range.len());
                places.push(FoundPiece { start, len, at });
                if let Some(unwritten) = (state.unwritten)(*address, len) {
                    has_unwritten = true;
                    let known_bytes = known[range].iter_mut().zip(into.iter_mut());
                    for ((known, byte), is_unwritten) in known_bytes.zip(unwritten) {
                        *known = !is_unwritten;
                        *byte = if is_unwritten { 0 } else { *byte };
                    }
                    continue;
                }
            }
            Location::Value { value } => {
                let value = value.to_u64(u64::MAX).map_err(|_| DAMAGED)?;
                put(into, &value.to_le_bytes());
            }
            Location::Bytes { value } => put(into, value.slice()),
            Location::ImplicitPointer { .. } => continue,
        }
        known[range].fill(true);
    }
    // Bytes that nothing wrote are not known, and have a place.
    if !known.contains(&true) && !has_unwritten {
        return Err(ABSENT);
    }
    if known.iter().all(|known| *known) {
        known.clear();
    }
    Ok(Found::Bytes {
        value: ValueBytes { bytes, known },
        register: whole,
        address: place,
        pieces: if places.len() > 1 { places } else { Vec::new() },
    })
}
