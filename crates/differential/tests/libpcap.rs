//! The plain interpreter's `capture` semantics against libpcap's own interpreter.

use classic::{PlainProgram, Rules, Semantics, check};
use isa::classic::SockFilter;
use packet::Packet;
use spec::SplitMix;
use sys::libpcap::Libpcap;
use testkit::engines::compare_engines;
use testkit::generate::Dialect;

#[oracle::test]
fn capture_semantics_are_those_of_libpcap() {
    let libpcap = Libpcap::load().map_err(|absent| format!("{absent:?}"));
    let Some(libpcap) = oracle::found("libpcap's interpreter", libpcap) else {
        return;
    };
    let ours = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let checked = check(program, Rules::Capture).expect("generated programs are valid");
        let prepared = PlainProgram::prepare(&checked, Semantics::Capture);
        let run = |packet| prepared.run(packet, &mut SplitMix::new(0));
        values.extend(packets.iter().map(|packet| run(packet).expect("no loops")));
    };
    let theirs = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let interpreter = libpcap.interpreter(program.to_vec());
        let interpreter = interpreter.expect("libpcap takes what the checker takes");
        let run = |packet: &Packet<'_>| interpreter.run(packet.data(), packet.wire_len());
        values.extend(packets.iter().map(run));
    };
    let (pairs, difference) = compare_engines(oracle::seeds(50_000), Dialect::Socket, ours, theirs);
    eprintln!("libpcap {}: {pairs} pairs", libpcap.version());
    assert!(difference.is_none(), "{difference:?}");
}
