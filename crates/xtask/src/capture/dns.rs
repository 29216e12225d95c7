//! A DNS server of a few names, over UDP and TCP (RFC 1035).

use std::io::{Read, Write};
use std::net::{Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;

use crate::Outcome;

const PORT: u16 = 53;
/// Largest response over UDP (EDNS is ignored).
const UDP_LIMIT: usize = 512;
const HEADER: usize = 12;

/// Answers queries until it is stopped from outside.
pub(crate) fn serve() -> Outcome {
    let everywhere = SocketAddr::from((Ipv6Addr::UNSPECIFIED, PORT));
    let udp = UdpSocket::bind(everywhere)?;
    let tcp = TcpListener::bind(everywhere)?;
    thread::spawn(move || {
        for stream in tcp.incoming().flatten() {
            // An aborted connection does not affect others.
            let _ = answer_stream(stream);
        }
    });
    let mut query = [0; UDP_LIMIT];
    loop {
        let (len, client) = udp.recv_from(&mut query)?;
        if let Some(answer) = answer(&query[..len], UDP_LIMIT) {
            udp.send_to(&answer, client)?;
        }
    }
}

/// Over TCP every message follows its length.
fn answer_stream(mut stream: TcpStream) -> Outcome {
    loop {
        let mut len = [0; 2];
        stream.read_exact(&mut len)?;
        let mut query = vec![0; u16::from_be_bytes(len).into()];
        stream.read_exact(&mut query)?;
        let Some(answer) = answer(&query, u16::MAX.into()) else {
            return Ok(());
        };
        let mut message = u16::try_from(answer.len())?.to_be_bytes().to_vec();
        message.extend(answer);
        stream.write_all(&message)?;
    }
}

/// The answer to a query with one question; `None` to what is no query.
fn answer(query: &[u8], limit: usize) -> Option<Vec<u8>> {
    let is_response = query.get(2)? & 0x80 != 0;
    if is_response || query.get(4..6)? != [0, 1] {
        return None;
    }
    let (name, after) = read_name(query, HEADER)?;
    let kind = u16::from_be_bytes([*query.get(after)?, *query.get(after + 1)?]);
    let question = query.get(HEADER..after + 4)?;
    let records = records(&name, kind);

    let message = |records: &[Vec<u8>], truncated: bool| {
        let no_such_name = records.is_empty() && !truncated && !is_known(&name);
        let mut message = query[..2].to_vec();
        message.push(0x84 | if truncated { 0x02 } else { 0 } | query[2] & 0x01);
        message.push(if no_such_name { 3 } else { 0 });
        message.extend([0, 1, 0, records.len() as u8, 0, 0, 0, 0]);
        message.extend(question);
        for data in records {
            // The name is the question's, by reference.
            message.extend([0xc0, HEADER as u8]);
            message.extend(kind.to_be_bytes());
            message.extend([0, 1, 0, 0, 1, 44]);
            message.extend((data.len() as u16).to_be_bytes());
            message.extend(data);
        }
        message
    };
    let whole = message(&records, false);
    Some(if whole.len() <= limit {
        whole
    } else {
        message(&[], true)
    })
}

/// Reads a name without compression; returns it and the offset after it.
fn read_name(message: &[u8], mut at: usize) -> Option<(String, usize)> {
    let mut labels = Vec::new();
    loop {
        match usize::from(*message.get(at)?) {
            0 => return Some((labels.join("."), at + 1)),
            len @ 1..=63 => {
                let label = message.get(at + 1..at + 1 + len)?;
                labels.push(String::from_utf8_lossy(label).to_ascii_lowercase());
                at += 1 + len;
            }
            _ => return None,
        }
    }
}

fn is_known(name: &str) -> bool {
    ["www.example.test", "long.example.test"].contains(&name)
}

/// The data of the records that the zone holds.
fn records(name: &str, kind: u16) -> Vec<Vec<u8>> {
    const A: u16 = 1;
    const TXT: u16 = 16;
    const AAAA: u16 = 28;
    match (name, kind) {
        ("www.example.test", A) => vec![vec![192, 0, 2, 2], vec![192, 0, 2, 80]],
        ("www.example.test", AAAA) => {
            vec![
                Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)
                    .octets()
                    .to_vec(),
            ]
        }
        ("long.example.test", TXT) => (0..4).map(|_| text(&"bees in a box ".repeat(14))).collect(),
        _ => Vec::new(),
    }
}

/// One character string of a TXT record.
fn text(text: &str) -> Vec<u8> {
    let mut data = vec![text.len() as u8];
    data.extend(text.bytes());
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut query = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            query.extend(text(label));
        }
        query.push(0);
        query.extend(kind.to_be_bytes());
        query.extend([0, 1]);
        query
    }

    #[test]
    fn an_address_is_answered_with_the_question() {
        let query = query("www.EXAMPLE.test", 1);
        let answer = answer(&query, UDP_LIMIT).unwrap();
        assert_eq!(answer[..4], [0xab, 0xcd, 0x85, 0]);
        assert_eq!(answer[4..8], [0, 1, 0, 2]);
        assert_eq!(answer[HEADER..query.len()], query[HEADER..]);
        assert!(answer.ends_with(&[192, 0, 2, 80]));
    }

    #[test]
    fn what_is_too_long_is_truncated_over_udp_only() {
        let query = query("long.example.test", 16);
        let udp = answer(&query, UDP_LIMIT).unwrap();
        assert_eq!((udp[2] & 0x02, udp.len()), (0x02, query.len()));
        let tcp = answer(&query, 65_535).unwrap();
        assert!(tcp[2] & 0x02 == 0 && tcp.len() > UDP_LIMIT);
    }

    #[test]
    fn absent_names_are_errors_and_garbage_is_ignored() {
        assert_eq!(answer(&query("absent.test", 1), 512).unwrap()[3], 3);
        let whole = query("www.example.test", 1);
        for len in 0..whole.len() {
            assert_eq!(answer(&whole[..len], 512), None);
        }
    }
}
