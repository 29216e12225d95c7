//! Search for netlink attributes in a packet, for Linux's ancillary loads. An attribute is
//! a header of length and type in host order, then the value, padded to four bytes.

/// Bytes of a netlink attribute's header: length, then type, in host order.
const ATTRIBUTE_HEADER: u32 = 4;
/// The bits of an attribute's type that are not flags.
const ATTRIBUTE_TYPE_MASK: u16 = 0x3fff;

/// Offset of the first netlink attribute of type `kind` at or after `from`;
/// 0 when there is none.
pub fn netlink_attribute(data: &[u8], from: u32, kind: u32) -> u32 {
    match attribute_header(data, from) {
        Some(_) => find_attribute(data, from, data.len() as u32, kind),
        None => 0,
    }
}

/// Offset of the first attribute of type `kind` inside the attribute at `at`;
/// 0 when there is none.
pub fn netlink_nested_attribute(data: &[u8], at: u32, kind: u32) -> u32 {
    match attribute_header(data, at) {
        Some((len, _)) if at as usize + usize::from(len) <= data.len() => find_attribute(
            data,
            at.saturating_add(ATTRIBUTE_HEADER),
            at.saturating_add(u32::from(len)),
            kind,
        ),
        _ => 0,
    }
}

/// Walks the attributes in `from..end`, each padded to four bytes.
fn find_attribute(data: &[u8], from: u32, end: u32, kind: u32) -> u32 {
    let mut at = from;
    while let Some((len, this)) = attribute_header(data, at) {
        let remaining = end.saturating_sub(at);
        if remaining < ATTRIBUTE_HEADER
            || u32::from(len) < ATTRIBUTE_HEADER
            || u32::from(len) > remaining
        {
            break;
        }
        if u32::from(this & ATTRIBUTE_TYPE_MASK) == kind {
            return at;
        }
        at = at.saturating_add(u32::from(len).next_multiple_of(4));
    }
    0
}

/// Length and type of the attribute at `at`, if its header lies inside.
fn attribute_header(data: &[u8], at: u32) -> Option<(u16, u16)> {
    let start = at as usize;
    let header = data.get(start..start.checked_add(ATTRIBUTE_HEADER as usize)?)?;
    Some((
        u16::from_le_bytes([header[0], header[1]]),
        u16::from_le_bytes([header[2], header[3]]),
    ))
}
