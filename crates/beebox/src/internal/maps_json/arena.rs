//! Pages of an arena as JSON: the address in user space and the bytes up to the last one that is
//! not zero.

use ::kernel::maps::Arena;
use report::value::{Ordered, all_bytes_from_json, bytes_to_json};
use serde_json::Value;
use spec::Errno;

/// Form of the entries of an arena.
pub(super) const FORM: &str =
    r#"{"MAP": [{"address": "0x7f0000000000", "value": "01 02"}]}, as in dumps of maps"#;

/// The pages of an arena that hold something.
pub(super) fn pages(arena: &Arena) -> impl Iterator<Item = Ordered> {
    arena.pages().filter_map(|(address, bytes)| {
        let last = bytes.iter().rposition(|byte| *byte != 0)?;
        Some(Ordered::Object(vec![
            (
                "address".to_owned(),
                Ordered::Scalar(format!("{address:#x}").into()),
            ),
            ("value".to_owned(), bytes_to_json(&bytes[..=last])),
        ]))
    })
}

/// Writes the bytes of an entry to the address that it names, as user space does.
pub(super) fn put(arena: Option<&Arena>, entry: &Value) -> Result<(), String> {
    let arena = arena.ok_or("it is no arena")?;
    let address = match entry.get("address") {
        Some(Value::String(text)) => {
            let digits = text.strip_prefix("0x");
            digits.and_then(|digits| u64::from_str_radix(digits, 16).ok())
        }
        Some(number) => number.as_u64(),
        None => return Err("it has no address".to_owned()),
    };
    let address = address.ok_or("address: no number, as 7 or \"0x7\"")?;
    let list = entry.get("value").ok_or("it has no value")?;
    let bytes = all_bytes_from_json(list).map_err(|error| format!("value: {error}"))?;
    arena.write_as_user(address, &bytes).map_err(|errno| {
        let (start, end) = (arena.start(), arena.end());
        match errno {
            Errno::EFAULT => format!(
                "{} bytes at {address:#x} are not all in the arena, {start:#x} to {end:#x}, or \
                 on pages that only programs allocate",
                bytes.len()
            ),
            errno => format!("the arena does not take it: {errno}"),
        }
    })
}
