//! JSON for people: members and items on lines of their own, but numbers of a list on one line.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

/// Version of the JSON of all commands (docs/json.md), the first member of each document.
pub const SCHEMA: u32 = 1;

/// Writes a value with a line for each member.
///
/// # Errors
/// Those of the output, and of the value.
pub fn write_pretty(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let formatter = Pretty::default();
    value.serialize(&mut Serializer::with_formatter(out, formatter))?;
    Ok(())
}

/// A value with a line for each member, and the end of the last line.
pub fn pretty(value: &impl Serialize) -> String {
    let mut text = Vec::new();
    // Writing to memory cannot fail, and records have string keys only.
    if write_pretty(&mut text, value).is_ok() {
        text.push(b'\n');
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// What comes before the next item of a list, which is written when its kind is known.
#[derive(Default)]
enum Before {
    #[default]
    Nothing,
    First,
    Comma,
}

/// The formatter: that of serde_json's pretty JSON, with two spaces, but for items of lists that are
/// numbers, booleans or null.
#[derive(Default)]
struct Pretty {
    depth: usize,
    before: Before,
    /// True if the container that ends has an item or member on a line of its own.
    has_lines: bool,
}

impl Pretty {
    fn line<W: ?Sized + Write>(&self, out: &mut W) -> io::Result<()> {
        write!(out, "\n{:1$}", "", 2 * self.depth)
    }

    /// What is before an item that stays on the line of its list.
    fn inline<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        match std::mem::take(&mut self.before) {
            Before::Nothing | Before::First => Ok(()),
            Before::Comma => out.write_all(b", "),
        }
    }

    /// What is before an item on a line of its own.
    fn own_line<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        match std::mem::take(&mut self.before) {
            Before::Nothing => return Ok(()),
            Before::First => {}
            Before::Comma => out.write_all(b",")?,
        }
        self.has_lines = true;
        self.line(out)
    }

    fn begin<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.own_line(out)?;
        self.depth += 1;
        self.has_lines = false;
        out.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, out: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.has_lines {
            self.line(out)?;
        }
        // What ends here is on a line of its own, or the value of a member that is.
        self.has_lines = true;
        out.write_all(bracket)
    }
}

macro_rules! inline {
    ($($name:ident: $number:ty),*) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W, value: $number) -> io::Result<()> {
            self.inline(out)?;
            serde_json::ser::CompactFormatter.$name(out, value)
        })*
    };
}

impl Formatter for Pretty {
    inline! {
        write_bool: bool, write_i8: i8, write_i16: i16, write_i32: i32, write_i64: i64,
        write_i128: i128, write_u8: u8, write_u16: u16, write_u32: u32, write_u64: u64,
        write_u128: u128, write_f32: f32, write_f64: f64, write_number_str: &str
    }

    fn write_null<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.inline(out)?;
        out.write_all(b"null")
    }

    fn begin_string<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.own_line(out)?;
        out.write_all(b"\"")
    }

    fn begin_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"[")
    }

    fn begin_array_value<W: ?Sized + Write>(&mut self, _: &mut W, first: bool) -> io::Result<()> {
        self.before = match first {
            true => Before::First,
            false => Before::Comma,
        };
        Ok(())
    }

    fn end_array<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.begin(out, b"{")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        if !first {
            out.write_all(b",")?;
        }
        self.line(out)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_lines = true;
        Ok(())
    }

    fn end_object<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        self.end(out, b"}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_of_a_list_are_on_one_line() {
        let value = json!({
            "a": [1, 2.5, null, true],
            "b": [[1, 2], [3], []],
            "c": [{"d": [1], "e": {}}, 7, 8, "f"],
            "g": ["h", "i"],
        });
        let expected = r#"{
  "a": [1, 2.5, null, true],
  "b": [
    [1, 2],
    [3],
    []
  ],
  "c": [
    {
      "d": [1],
      "e": {}
    }, 7, 8,
    "f"
  ],
  "g": [
    "h",
    "i"
  ]
}
"#;
        assert_eq!(pretty(&value), expected);
        let again: serde_json::Value = serde_json::from_str(expected).unwrap();
        assert_eq!(again, value);
    }
}
