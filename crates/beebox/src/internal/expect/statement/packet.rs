//! Packets of statements: words, a packet of a capture, or bytes.

use std::path::Path;

use capture::Event;

use super::read::number;
use crate::internal::bytes::ByteSource;
use crate::internal::captures::Input;

/// A packet: words, a packet of a capture, or bytes.
pub(super) fn packet_source(
    text: &str,
    (line, directory): (&str, &Path),
) -> Result<ByteSource, String> {
    if packet::is_packet_text(text) {
        let start = text.as_ptr() as usize - line.as_ptr() as usize;
        let before = line[..start].chars().count();
        return match packet::compose(text) {
            Ok(bytes) => Ok(ByteSource::Bytes(bytes)),
            Err(mut error) => {
                error.column += before;
                Err(error.to_string())
            }
        };
    }
    let Some(of) = text.strip_prefix("packet ") else {
        return source(text, directory);
    };
    let form = "packet N of FILE is expected, with N from 1";
    let (packet, path) = of.split_once(" of ").ok_or(form)?;
    let packet = number::<u64>(packet.trim()).filter(|packet| *packet > 0);
    let packet = packet.ok_or(form)?;
    let path = directory.join(path.trim());
    captured(&path, packet).map(ByteSource::Bytes)
}

/// The bytes of a packet of a capture.
fn captured(path: &Path, number: u64) -> Result<Vec<u8>, String> {
    let name = crate::internal::name_of(path);
    let mut input = Input::open_path(path).map_err(|error| format!("{name}: {error}"))?;
    let mut packets = 0;
    while let Some(event) = input
        .next_event()
        .map_err(|error| format!("{name}: {error}"))?
    {
        if let Event::Packet(record) = event {
            packets += 1;
            if packets == number {
                return Ok(record.data().to_vec());
            }
        }
    }
    Err(format!("{name} has no packet {number}; it has {packets}"))
}

/// What a program runs on, and the number of runs on it, `xN` behind it.
pub(in crate::internal::expect) fn repeated(text: &str) -> Result<(&str, u32), String> {
    let Some((packet, times)) = text.rsplit_once(char::is_whitespace) else {
        return Ok((text, 1));
    };
    let Some(digits) = times.strip_prefix('x') else {
        return Ok((text, 1));
    };
    let times = number(digits).filter(|times| *times > 0);
    let times = times.ok_or_else(|| format!("{digits:?} is no number of runs from 1 on"))?;
    Ok((packet.trim_end(), times))
}

/// A packet; paths are relative to the file's directory.
pub(super) fn source(text: &str, directory: &Path) -> Result<ByteSource, String> {
    let path = directory.join(text.strip_prefix("file:").unwrap_or(text));
    match text.starts_with("file:") || path.is_file() {
        true => Ok(ByteSource::File(path)),
        false if text == "-" => {
            Err("a packet is hexadecimal digits, zero:N or a file, not standard input".to_owned())
        }
        false => ByteSource::parse(text).map_err(|error| error.to_string()),
    }
}
