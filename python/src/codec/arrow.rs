//! From bytes to Arrow: the type of a value, and an array of many.
//!
//! Numbers keep their width, enumerations are the names of their values, `char[N]` is text, other
//! bytes are binary, arrays are lists of a fixed size, structures have a field for each member.

use std::sync::Arc;

use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, Float32Array, Float64Array,
    PrimitiveArray, StringArray, StructArray,
};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::decode::number;
use super::{Codec, Enum, Struct};

impl Codec {
    /// The Arrow type of its values.
    pub(crate) fn arrow_type(&self) -> DataType {
        match self {
            Codec::Int { size, is_signed } => match (size, is_signed) {
                (1, true) => DataType::Int8,
                (2, true) => DataType::Int16,
                (4, true) => DataType::Int32,
                (_, true) => DataType::Int64,
                (1, false) => DataType::UInt8,
                (2, false) => DataType::UInt16,
                (4, false) => DataType::UInt32,
                (_, false) => DataType::UInt64,
            },
            Codec::Bool { .. } => DataType::Boolean,
            Codec::Enum(_) | Codec::Text { .. } => DataType::Utf8,
            Codec::Float { size: 4 } => DataType::Float32,
            Codec::Float { .. } => DataType::Float64,
            Codec::Bytes { .. } => DataType::Binary,
            Codec::Array { element, count, .. } => {
                DataType::FixedSizeList(item(element), *count as i32)
            }
            Codec::Struct(it) => DataType::Struct(it.arrow_fields()),
        }
    }

    /// The values at the start of each of the rows, which have [`Codec::size`] bytes or more.
    pub(crate) fn arrow_array(&self, rows: &[&[u8]]) -> ArrayRef {
        match self {
            Codec::Int { size, is_signed } => match (size, is_signed) {
                (1, true) => numbers::<Int8Type>(rows, |row| number(row, 1, true) as i8),
                (2, true) => numbers::<Int16Type>(rows, |row| number(row, 2, true) as i16),
                (4, true) => numbers::<Int32Type>(rows, |row| number(row, 4, true) as i32),
                (_, true) => numbers::<Int64Type>(rows, |row| number(row, *size, true) as i64),
                (1, false) => numbers::<UInt8Type>(rows, |row| row[0]),
                (2, false) => numbers::<UInt16Type>(rows, |row| number(row, 2, false) as u16),
                (4, false) => numbers::<UInt32Type>(rows, |row| number(row, 4, false) as u32),
                (_, false) => numbers::<UInt64Type>(rows, |row| number(row, *size, false) as u64),
            },
            Codec::Bool { size } => {
                let values = rows.iter().map(|row| Some(number(row, *size, false) != 0));
                Arc::new(values.collect::<BooleanArray>())
            }
            Codec::Enum(it) => {
                let names = rows.iter().map(|row| it.name_of(row));
                Arc::new(StringArray::from_iter_values(names))
            }
            Codec::Float { size: 4 } => {
                let value = |row: &&[u8]| f32::from_bits(number(row, 4, false) as u32);
                Arc::new(Float32Array::from_iter_values(rows.iter().map(value)))
            }
            Codec::Float { .. } => {
                let value = |row: &&[u8]| f64::from_bits(number(row, 8, false) as u64);
                Arc::new(Float64Array::from_iter_values(rows.iter().map(value)))
            }
            Codec::Text { size } => {
                let text = |row: &&[u8]| {
                    let bytes = row[..*size].split(|byte| *byte == 0).next();
                    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
                };
                Arc::new(StringArray::from_iter_values(rows.iter().map(text)))
            }
            Codec::Bytes { size } => {
                let bytes = rows.iter().map(|row| &row[..*size]);
                Arc::new(BinaryArray::from_iter_values(bytes))
            }
            Codec::Array {
                element,
                size,
                count,
            } => {
                let mut elements = Vec::with_capacity(rows.len() * count);
                for row in rows {
                    elements.extend((0..*count).map(|at| &row[at * size..]));
                }
                list(element, element.arrow_array(&elements), *count, rows.len())
            }
            Codec::Struct(it) => it.arrow_array(rows),
        }
    }
}

impl Enum {
    /// The name of a value, or its number if it has none.
    fn name_of(&self, row: &[u8]) -> String {
        let value = number(row, self.size, self.is_signed);
        let mut known = self.values.iter();
        let name = known.find(|(_, known)| *known == value);
        name.map_or_else(|| value.to_string(), |(name, _)| name.clone())
    }
}

impl Struct {
    fn arrow_fields(&self) -> Fields {
        let field = |(name, codec): (&String, &Codec)| Field::new(name, codec.arrow_type(), false);
        let members = self.members.iter();
        members.map(|it| field((&it.text, &it.codec))).collect()
    }

    fn arrow_array(&self, rows: &[&[u8]]) -> ArrayRef {
        let columns = self.members.iter().map(|member| {
            let inside: Vec<&[u8]> = rows.iter().map(|row| &row[member.offset..]).collect();
            if member.bits.is_none() {
                return member.codec.arrow_array(&inside);
            }
            let values: Vec<[u8; 8]> = inside.iter().map(|row| member.bit_field(row)).collect();
            let values: Vec<&[u8]> = values.iter().map(|bytes| &bytes[..]).collect();
            member.codec.arrow_array(&values)
        });
        let columns: Vec<ArrayRef> = columns.collect();
        if columns.is_empty() {
            return Arc::new(StructArray::new_empty_fields(rows.len(), None));
        }
        Arc::new(StructArray::new(self.arrow_fields(), columns, None))
    }
}

/// A list of a fixed size for each of the rows, by its elements.
pub(crate) fn list(element: &Codec, values: ArrayRef, count: usize, rows: usize) -> ArrayRef {
    let field = item(element);
    let made = FixedSizeListArray::try_new_with_length(field, count as i32, values, None, rows);
    Arc::new(made.expect("there are as many elements as the lists have"))
}

/// The field of a list's elements.
pub(crate) fn item(element: &Codec) -> FieldRef {
    Arc::new(Field::new("item", element.arrow_type(), false))
}

fn numbers<T: ArrowPrimitiveType>(rows: &[&[u8]], value: impl Fn(&[u8]) -> T::Native) -> ArrayRef {
    let values = rows.iter().map(|row| value(row));
    Arc::new(PrimitiveArray::<T>::from_iter_values(values))
}
