//! The path of one packet through the filter.

use std::ffi::OsString;
use std::fmt::Write as _;

use beebox::JumpLimitExceeded;
use beebox::captures::FilterSource;
use beebox::internal::captures::{Event, PacketPath};
use sys::interruptible::Interruption;

use super::inputs;
use super::programs::Chosen;
use crate::answer::{Answer, Failure};
use crate::stdout::{json, print_folded, write_json};

/// Shows the path of packet `number`, counted through all captures.
pub(super) fn explain(
    paths: &[OsString],
    programs: &Chosen,
    number: u64,
    as_json: bool,
) -> Result<Answer, Failure> {
    let mut seen = 0;
    for mut named in inputs::open_all(paths, &Interruption::default())? {
        let before = seen;
        loop {
            let event = named.input.next_event();
            let event = event.map_err(|error| inputs::unreadable(&named.name, &error))?;
            match event {
                None => break,
                Some(Event::Block(_)) => continue,
                Some(Event::Packet(record)) => {
                    seen += 1;
                    if seen < number {
                        continue;
                    }
                    // Other tools number the packets of each file from 1.
                    let in_file = number - before;
                    let mut place = format!("{}: packet {in_file}", named.name);
                    if before > 0 {
                        let _ = write!(place, " ({number} of all captures)");
                    }
                    let filter = programs
                        .for_interface(record.interface())
                        .map_err(|refusal| programs.refused(&refusal, &place))?;
                    let path = PacketPath::of(filter, &record);
                    match as_json {
                        true => write_json(&json(&path.record(&named.name, in_file, &record)))?,
                        false => print_folded(&path.text(&place, &record))?,
                    }
                    return match path.verdict {
                        Some(0) => Ok(Answer::No),
                        Some(_) => Ok(Answer::Yes),
                        None => Err(Failure::new(JumpLimitExceeded).within(place)),
                    };
                }
            }
        }
    }
    Err(Failure::new(format_args!(
        "there is no packet {number}: the captures have {seen}"
    )))
}
