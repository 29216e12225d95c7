//! The plain interpreter's `capture` semantics against libpcap's own interpreter.

use beebox_testkit::engines::compare_engines;
use beebox_testkit::generate::Dialect;
use classic::{Program, Rules, Semantics, check};
use isa::classic::SockFilter;
use packet::Packet;
use spec::SplitMix;
use std::env;
use sys::libpcap::Libpcap;

#[test]
fn capture_semantics_are_those_of_libpcap() {
    let libpcap = match Libpcap::load() {
        Ok(libpcap) => libpcap,
        Err(absent) => {
            let is = |name, value| env::var(name).is_ok_and(|found| found == value);
            let required = is("CI", "true") && is("BEEBOX_ORACLE", "required");
            assert!(!required, "libpcap must be asked: {absent:?}");
            eprintln!("SKIPPED capture semantics: no libpcap: {absent:?}");
            return;
        }
    };
    let programs = env::var("BEEBOX_ORACLE_PROGRAMS").ok();
    let programs = programs.and_then(|n| n.parse().ok()).unwrap_or(50_000);
    let ours = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let checked = check(program, Rules::Capture).expect("generated programs are valid");
        let prepared = Program::prepare(&checked, Semantics::Capture);
        let run = |packet| prepared.run(packet, &mut SplitMix::new(0));
        values.extend(packets.iter().map(|packet| run(packet).expect("no loops")));
    };
    let theirs = |program: &[SockFilter], packets: &[Packet<'_>], values: &mut Vec<u32>| {
        let interpreter = libpcap.interpreter(program.to_vec());
        let interpreter = interpreter.expect("libpcap takes what the checker takes");
        let run = |packet: &Packet<'_>| interpreter.run(packet.data(), packet.wire_len());
        values.extend(packets.iter().map(run));
    };
    let (pairs, difference) = compare_engines(0..programs, Dialect::Socket, ours, theirs);
    eprintln!("libpcap {}: {pairs} pairs", libpcap.version());
    assert!(difference.is_none(), "{difference:?}");
}
