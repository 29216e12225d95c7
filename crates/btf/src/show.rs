//! Text of an object by its type, byte for byte as `bpf_snprintf_btf` of Linux prints it.
//!
//! A recursive walk over the type. Members that hold only zeros are left out unless
//! [`ShowFlags::ZERO`] is set: before a structure or array is printed, the walk visits it once
//! without printing and records whether a value at a greater depth would be shown. As in Linux
//! the object is read in windows of 32 bytes, so that a part of it that cannot be read fails
//! only the members in it, and pointers and arrays as elements of arrays have no distance.
//!
//! Cost: the size of the object times its depth of nesting.

mod name;
mod number;

use std::fmt;

use crate::{Array, Btf, Composite, Enum, Int, Kind, Member, Shape, Type, TypeId};

use number::printable;

/// Print options of objects (`BTF_F_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShowFlags(pub u64);

impl ShowFlags {
    /// Everything on one line.
    pub const COMPACT: ShowFlags = ShowFlags(1);
    /// No names of members and types.
    pub const NONAME: ShowFlags = ShowFlags(2);
    /// Pointers as they are; otherwise Linux hides them.
    pub const PTR_RAW: ShowFlags = ShowFlags(4);
    /// Members that are zero too.
    pub const ZERO: ShowFlags = ShowFlags(8);
    /// All flags.
    pub const ALL: ShowFlags = ShowFlags(15);

    fn has(self, flag: ShowFlags) -> bool {
        self.0 & flag.0 != 0
    }
}

/// Reason why the last part of an object is not printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShowError {
    /// The type, or that of a member, has no size or no values (`EINVAL`).
    Type,
    /// Memory at this address cannot be read (`EFAULT`, or `ERANGE` where the kernel has
    /// none).
    Memory(u64),
}

impl fmt::Display for ShowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ShowError::Type => f.write_str("a type has no size or no values"),
            ShowError::Memory(address) => write!(f, "memory at {address:#x} cannot be read"),
        }
    }
}

impl std::error::Error for ShowError {}

/// The memory of an object: reads bytes at an address, false if it cannot.
pub type ReadObject<'r> = dyn FnMut(u64, &mut [u8]) -> bool + 'r;

impl Btf<'_> {
    /// Text of the object of a type at an address, without a final NUL (`btf_type_snprintf_show`,
    /// `btf_type_show`). It is what was printed up to an error.
    ///
    /// # Errors
    /// If the last part that was read cannot be read or printed.
    #[doc(alias = "btf_type_snprintf_show")]
    #[doc(alias = "btf_type_show")]
    pub fn show(
        &self,
        id: TypeId,
        address: u64,
        flags: ShowFlags,
        read: &mut ReadObject<'_>,
    ) -> (Vec<u8>, Result<(), ShowError>) {
        let mut walk = Walk {
            types: self,
            flags,
            read,
            out: Vec::new(),
            depth: 0,
            shown_depth: 0,
            silent_from: None,
            member: None,
            is_element: false,
            is_char_array: false,
            text_has_ended: false,
            shown: None,
            window: Window::default(),
            result: Ok(()),
        };
        match self.get(id) {
            Some(ty) => walk.show(ty, id, address, 0),
            None => walk.result = Err(ShowError::Type),
        }
        (walk.out, walk.result)
    }
}

/// Most types in one another, as BTF that Linux accepts has (`MAX_RESOLVE_DEPTH`).
const MOST_DEPTH: u8 = 32;

/// Bytes that are read of an object at once, and those that the largest value has.
const WINDOW: usize = 32;
const LARGEST_VALUE: u32 = 16;

/// The part of the object that was read last (`btf_show_obj_is_safe`, `btf_show_obj_size_left`).
#[doc(alias = "btf_show_obj_is_safe")]
#[doc(alias = "btf_show_obj_size_left")]
#[derive(Default)]
struct Window {
    /// The whole object.
    start: u64,
    size: u32,
    /// Address of the bytes.
    at: u64,
    bytes: [u8; WINDOW],
}

/// The walk over one object.
struct Walk<'b, 'r, 'f> {
    types: &'b Btf<'b>,
    flags: ShowFlags,
    read: &'r mut ReadObject<'f>,
    out: Vec<u8>,
    /// Number of structures and arrays around the value.
    depth: u8,
    /// Greatest depth at which a value is shown, since the last visit began.
    shown_depth: u8,
    /// Depth in the aggregate that is visited without printing.
    silent_from: Option<u8>,
    /// The member of a structure that is shown (`btf_show_start_member`, `btf_show_end_member`).
    #[doc(alias = "btf_show_start_member")]
    #[doc(alias = "btf_show_end_member")]
    member: Option<Member>,
    /// An element of an array is shown, and none of an array in it was before: it has no names
    /// (`btf_show_start_array_member`, `btf_show_end_array_member`).
    #[doc(alias = "btf_show_start_array_member")]
    #[doc(alias = "btf_show_end_array_member")]
    is_element: bool,
    /// The innermost array that was begun has elements of one byte.
    is_char_array: bool,
    /// Such an array has had a zero.
    text_has_ended: bool,
    /// The type that is shown, with the id by which it was reached.
    shown: Option<(Kind, TypeId)>,
    window: Window,
    result: Result<(), ShowError>,
}

/// A value of up to 16 bytes, little endian; bytes behind the window are zero.
type Value = [u8; 16];

impl<'b> Walk<'b, '_, '_> {
    /// Shows a type that was reached by an id, at an address and a bit in its first byte
    /// (`btf_modifier_show`, `btf_df_show`).
    #[doc(alias = "btf_modifier_show")]
    #[doc(alias = "btf_df_show")]
    fn show(&mut self, ty: Type<'b>, id: TypeId, at: u64, bit: u32) {
        if self.depth >= MOST_DEPTH {
            self.result = Err(ShowError::Type);
            return;
        }
        match ty.shape() {
            Shape::Int(int) => self.int(ty, int, id, (at, bit)),
            Shape::Ptr(_) => self.pointer(ty, id, at),
            Shape::Array(array) => self.aggregate(|walk| walk.array(ty, array, id, at)),
            Shape::Struct(composite) | Shape::Union(composite) => {
                self.aggregate(|walk| walk.composite(ty, composite, id, at));
            }
            Shape::Enum(of) => self.enumeration(ty, of, id, at),
            Shape::Typedef(_)
            | Shape::Volatile(_)
            | Shape::Const(_)
            | Shape::Restrict(_)
            | Shape::TypeTag(_) => {
                let below = self
                    .types
                    .skip_modifiers(ty.id())
                    .filter(|id| !id.is_void());
                match below {
                    Some(below) => self.show(self.types.at(below), id, at, bit),
                    None => self.result = Err(ShowError::Type),
                }
            }
            Shape::Fwd(_)
            | Shape::Func(_)
            | Shape::Proto(_)
            | Shape::Float(_)
            | Shape::DeclTag(_) => {
                self.put(format!("<unsupported kind:{}>", ty.kind() as u32).as_bytes());
            }
            // Linux cannot print them.
            Shape::Void | Shape::Var(_) | Shape::Datasec(_) => {
                self.result = Err(ShowError::Type);
            }
        }
    }

    /// Shows a structure or array unless all that it holds is zero.
    fn aggregate(&mut self, show: impl Fn(&mut Self)) {
        if self.depth > 0 && !self.flags.has(ShowFlags::ZERO) {
            let member = self.member;
            if self.silent_from.is_none() {
                self.silent_from = Some(self.depth + 1);
                self.shown_depth = 0;
            }
            show(self);
            self.member = member;
            if self.silent_from != Some(self.depth + 1) {
                return;
            }
            self.silent_from = None;
            if self.shown_depth <= self.depth {
                return;
            }
        }
        show(self);
    }

    /// Shows an array (`btf_array_show`, `__btf_array_show`).
    #[doc(alias = "btf_array_show")]
    #[doc(alias = "__btf_array_show")]
    fn array(&mut self, ty: Type<'b>, array: Array, id: TypeId, at: u64) {
        let element = self.types.skip_modifiers(array.element);
        let element = element.map(|id| self.types.at(id));
        let (mut distance, mut is_char) = (0, false);
        match element.map(|element| element.shape()) {
            Some(Shape::Int(int)) => (distance, is_char) = (int.size, int.is_char()),
            Some(Shape::Struct(of) | Shape::Union(of)) => distance = of.size,
            Some(Shape::Enum(of)) => distance = of.size,
            Some(Shape::Float(size)) => distance = size,
            _ => {}
        }
        (self.is_char_array, self.text_has_ended) = (is_char, false);
        if self.begin_aggregate(ty, id, at).is_none() {
            return;
        }
        let elements = element.filter(|element| element.kind() != Kind::Void);
        for number in 0..elements.map_or(0, |_| u64::from(array.count)) {
            let Some(element) = elements else { break };
            (self.member, self.is_element) = (None, true);
            let at = at.wrapping_add(number * u64::from(distance));
            self.show(element, array.element, at, 0);
            (self.member, self.is_element) = (None, false);
            if self.text_has_ended {
                break;
            }
        }
        (self.is_char_array, self.text_has_ended) = (false, false);
        self.end_aggregate(b"]");
    }

    /// Shows a structure or union (`btf_struct_show`, `__btf_struct_show`).
    #[doc(alias = "btf_struct_show")]
    #[doc(alias = "__btf_struct_show")]
    fn composite(&mut self, ty: Type<'b>, composite: Composite<'b>, id: TypeId, at: u64) {
        if self.begin_aggregate(ty, id, at).is_none() {
            return;
        }
        for member in composite.members() {
            self.member = Some(member);
            let of = self.types.at(member.ty);
            let at = at.wrapping_add(u64::from(member.bit_offset / 8));
            let bit = member.bit_offset % 8;
            match member.bits {
                0 => self.show(of, member.ty, at, bit),
                bits => {
                    if let Some(value) = self.begin(of, member.ty, at) {
                        self.bits(value, bit, bits);
                    }
                    self.end();
                }
            }
            self.member = None;
        }
        self.end_aggregate(b"}");
    }

    /// Begins a structure or array: its name and bracket (`btf_show_start_aggr_type`,
    /// `btf_show_start_struct_type`, `btf_show_start_array_type`).
    #[doc(alias = "btf_show_start_aggr_type")]
    #[doc(alias = "btf_show_start_struct_type")]
    #[doc(alias = "btf_show_start_array_type")]
    fn begin_aggregate(&mut self, ty: Type<'b>, id: TypeId, at: u64) -> Option<()> {
        self.begin(ty, id, at)?;
        let text = [&self.indent()[..], &self.name(), self.line_end()].concat();
        self.put(&text);
        self.depth += 1;
        Some(())
    }

    /// Ends a structure or array with its bracket (`btf_show_end_aggr_type`,
    /// `btf_show_end_struct_type`, `btf_show_end_array_type`).
    #[doc(alias = "btf_show_end_aggr_type")]
    #[doc(alias = "btf_show_end_struct_type")]
    #[doc(alias = "btf_show_end_array_type")]
    fn end_aggregate(&mut self, suffix: &[u8]) {
        self.depth -= 1;
        let text = [
            &self.indent()[..],
            suffix,
            self.delimiter(),
            self.line_end(),
        ]
        .concat();
        self.put(&text);
        self.end();
    }

    /// Begins a value: its bytes, or the error if they cannot be read (`btf_show_start_type`,
    /// `btf_show_obj_safe`, `__btf_show_obj_safe`).
    #[doc(alias = "btf_show_start_type")]
    #[doc(alias = "btf_show_obj_safe")]
    #[doc(alias = "__btf_show_obj_safe")]
    fn begin(&mut self, ty: Type<'b>, id: TypeId, at: u64) -> Option<Value> {
        self.shown = Some((ty.kind(), id));
        let Some(size) = self.types.size_of(ty.id()) else {
            self.result = Err(ShowError::Type);
            return None;
        };
        let window = &mut self.window;
        let is_read = match self.depth {
            0 => {
                (window.start, window.size) = (at, size);
                false
            }
            _ => {
                let end = at.wrapping_add(size.min(LARGEST_VALUE).into());
                at >= window.at && end < window.at.wrapping_add(WINDOW as u64)
            }
        };
        if !is_read {
            let object_end = window.start.wrapping_add(window.size.into());
            let left = object_end.wrapping_sub(at).min(WINDOW as u64) as usize;
            if !(self.read)(at, &mut window.bytes[..left]) {
                self.result = Err(ShowError::Memory(at));
                return None;
            }
            self.result = Ok(());
            window.at = at;
        }
        let offset = (at - self.window.at) as usize;
        let mut value = [0; 16];
        for (to, from) in value.iter_mut().zip(&self.window.bytes[offset..]) {
            *to = *from;
        }
        Some(value)
    }

    /// Ends a value (`btf_show_end_type`).
    #[doc(alias = "btf_show_end_type")]
    fn end(&mut self) {
        self.shown = None;
    }

    /// Shows an integer (`btf_int_show`).
    #[doc(alias = "btf_int_show")]
    fn int(&mut self, ty: Type<'b>, int: Int, id: TypeId, (at, bit): (u64, u32)) {
        let Some(value) = self.begin(ty, id, at) else {
            return;
        };
        let bit = bit + int.offset;
        let is_signed = int.encoding.is_signed();
        match int.bits {
            8 | 16 | 32 | 64 if bit == 0 => {
                if self.is_char_array && int.bits == 8 && self.character(value[0]) {
                    self.end();
                    return;
                }
                let text = number::decimal(&value, int.bits, is_signed);
                self.value(&text, number::is_zero(&value, int.bits));
            }
            bits => self.bits(value, bit, bits),
        }
        self.end();
    }

    /// Shows a byte of an array as a character, if it is one that can be printed or the end
    /// of the text.
    fn character(&mut self, byte: u8) -> bool {
        if self.text_has_ended {
            return true;
        }
        if byte == 0 {
            self.text_has_ended = true;
            return true;
        }
        if printable(byte) {
            self.value(&[b'\'', byte, b'\''], false);
            return true;
        }
        false
    }

    /// Shows some bits of a value in hexadecimal digits (`btf_int_bits_show`, `btf_bitfield_show`).
    #[doc(alias = "btf_int_bits_show")]
    #[doc(alias = "btf_bitfield_show")]
    fn bits(&mut self, value: Value, bit: u32, bits: u32) {
        let number = number::bits(&value, bit, bits);
        self.value(&number::hexadecimal(number), number == 0);
    }

    /// Shows a pointer (`btf_ptr_show`).
    #[doc(alias = "btf_ptr_show")]
    fn pointer(&mut self, ty: Type<'b>, id: TypeId, at: u64) {
        if let Some(value) = self.begin(ty, id, at) {
            let pointer = u64::from_le_bytes(number::low(&value));
            self.value(format!("0x{pointer:016x}").as_bytes(), pointer == 0);
            self.end();
        }
    }

    /// Shows an enumeration (`btf_enum_show`, `btf_enum64_show`).
    #[doc(alias = "btf_enum_show")]
    #[doc(alias = "btf_enum64_show")]
    fn enumeration(&mut self, ty: Type<'b>, of: Enum<'b>, id: TypeId, at: u64) {
        let Some(value) = self.begin(ty, id, at) else {
            return;
        };
        let bits = if of.wide { 64 } else { 32 };
        let mask = u64::MAX >> (64 - bits);
        let number = u64::from_le_bytes(number::low(&value)) & mask;
        let mut values = of.values();
        match values.find(|known| known.value & mask == number) {
            // A name is shown although its value is 0.
            Some(known) => self.value(self.types.string(known.name).as_bytes(), false),
            None => {
                let text = number::decimal(&value, bits, of.signed);
                self.value(&text, number == 0);
            }
        }
        self.end();
    }

    /// Shows a value, unless it is zero and not asked for.
    fn value(&mut self, text: &[u8], is_zero: bool) {
        if is_zero && self.depth > 0 && !self.flags.has(ShowFlags::ZERO) {
            return;
        }
        let name = self.name();
        let all = [
            &self.indent()[..],
            &name,
            text,
            self.delimiter(),
            self.line_end(),
        ]
        .concat();
        self.put(&all);
        self.shown_depth = self.shown_depth.max(self.depth);
    }

    /// Appends text, unless the visit is silent (`btf_show`, `btf_snprintf_show`).
    #[doc(alias = "btf_show")]
    #[doc(alias = "btf_snprintf_show")]
    fn put(&mut self, text: &[u8]) {
        if self.silent_from.is_none() {
            self.out.extend_from_slice(text);
        }
    }

    /// The indentation of a line (`btf_show_indent`, `__btf_show_indent`).
    #[doc(alias = "btf_show_indent")]
    #[doc(alias = "__btf_show_indent")]
    fn indent(&self) -> Vec<u8> {
        match self.flags.has(ShowFlags::COMPACT) {
            true => Vec::new(),
            false => vec![b' '; self.depth.into()],
        }
    }

    /// The end of a line (`btf_show_newline`).
    #[doc(alias = "btf_show_newline")]
    fn line_end(&self) -> &'static [u8] {
        match self.flags.has(ShowFlags::COMPACT) {
            true => b"",
            false => b"\n",
        }
    }

    /// What stands between values (`btf_show_delim`).
    #[doc(alias = "btf_show_delim")]
    fn delimiter(&self) -> &'static [u8] {
        let is_union = matches!(self.shown, Some((Kind::Union, _)));
        match self.depth {
            0 => b"",
            _ if is_union && self.flags.has(ShowFlags::COMPACT) => b"|",
            _ => b",",
        }
    }
}

impl Int {
    /// True for integers that arrays print as characters.
    fn is_char(self) -> bool {
        self.size == 1 || self.encoding == crate::Encoding::CHAR
    }
}
