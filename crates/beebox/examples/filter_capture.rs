//! Counts the packets of a capture that match an expression of libpcap.

use std::error::Error;

use beebox::Expression;
use beebox::captures::Input;

/// Matching packets, and all packets.
pub(crate) fn count(path: &str, expression: &str) -> Result<(u64, u64), Box<dyn Error>> {
    // The system's libpcap compiles it, once for each link type of the capture.
    let expression = Expression::new(expression)?;
    let found = Input::open_path(path)?.count(&expression)?;
    Ok((found.matched, found.packets))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let (Some(path), Some(expression)) = (words.next(), words.next()) else {
        return Err("usage: filter_capture FILE.pcap EXPRESSION".into());
    };
    let (matched, packets) = count(&path, &expression)?;
    println!("{matched} of {packets} packets match");
    Ok(())
}
