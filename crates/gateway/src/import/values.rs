//! Values that rules of both filters have.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::conditions::prefixes_of;
use crate::rules::Prefix;

/// An address of a family as a number.
pub(super) fn address(text: &str, is_v6: bool) -> Option<u128> {
    match (text.parse().ok()?, is_v6) {
        (IpAddr::V4(address), false) => Some(u32::from(address).into()),
        (IpAddr::V6(address), true) => Some(address.into()),
        _ => None,
    }
}

/// A prefix without the bits behind its length.
pub(super) fn prefix(address: u128, bits: u8, is_v6: bool) -> Option<Prefix> {
    let whole = match is_v6 {
        true => Prefix::V6(address, bits),
        false => Prefix::V4(address as u32, bits),
    };
    let is_valid = bits <= if is_v6 { 128 } else { 32 };
    is_valid.then(|| match (whole, whole.range().0) {
        (Prefix::V4(_, bits), first) => Prefix::V4(first as u32, bits),
        (Prefix::V6(_, bits), first) => Prefix::V6(first, bits),
    })
}

/// The length of a prefix by its length or its mask.
pub(super) fn prefix_length(text: &str, is_v6: bool) -> Option<u8> {
    if let Ok(bits) = text.parse::<u8>() {
        return Some(bits);
    }
    let (ones, count) = match is_v6 {
        true => {
            let mask = u128::from(text.parse::<Ipv6Addr>().ok()?);
            (mask.leading_ones(), mask.count_ones())
        }
        false => {
            let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
            (mask.leading_ones(), mask.count_ones())
        }
    };
    (ones == count).then_some(ones as u8)
}

/// Appends the prefixes of a range of addresses.
pub(super) fn range(
    first: &str,
    last: &str,
    is_v6: bool,
    prefixes: &mut Vec<Prefix>,
) -> Option<()> {
    let range = (address(first, is_v6)?, address(last, is_v6)?);
    prefixes_of(range, is_v6, prefixes);
    (range.0 <= range.1).then_some(())
}
