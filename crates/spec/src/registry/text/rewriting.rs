//! Lines of what Linux makes of instructions: `call HELPER KIND INSTRUCTIONS`, `-` for a call
//! without a map; `packet-load ABSOLUTE INDIRECT INDIRECT-WITH-OFFSET`.

use std::fmt::{self, Write as _};

use super::words::Words;
use crate::maps::MapKind;
use crate::registry::{PacketLoads, Rewriting};

/// Reads what a call becomes.
pub(super) fn read_call(rewriting: &mut Rewriting, mut words: Words<'_>) -> Option<()> {
    let helper = words.next()?.parse().ok()?;
    let kind = match words.next()? {
        "-" => None,
        name => Some(*MapKind::ALL.iter().find(|kind| kind.name() == name)?),
    };
    let insns = words.next()?.parse().ok()?;
    rewriting.calls.insert((helper, kind), insns);
    Some(())
}

/// Reads what legacy packet loads become.
pub(super) fn read_packet_loads(mut words: Words<'_>) -> Option<PacketLoads> {
    let mut number = || words.next()?.parse().ok();
    Some(PacketLoads {
        absolute: number()?,
        indirect: number()?,
        indirect_offset: number()?,
    })
}

/// Writes all of it.
pub(super) fn write_rewriting(rewriting: &Rewriting, out: &mut String) -> fmt::Result {
    for ((helper, kind), insns) in &rewriting.calls {
        let kind = kind.map_or("-", MapKind::name);
        writeln!(out, "call {helper} {kind} {insns}")?;
    }
    let loads = rewriting.packet_loads;
    if loads == PacketLoads::default() {
        return Ok(());
    }
    let PacketLoads {
        absolute,
        indirect,
        indirect_offset,
    } = loads;
    writeln!(out, "packet-load {absolute} {indirect} {indirect_offset}")
}
