//! Libraries of the system, where they are installed.

use std::path::Path;

use beebox_sys::dpdk::Dpdk;
use beebox_sys::libbpf::{Libbpf, SYSTEM};
use beebox_sys::libpcap::{CompileError, Libpcap};
use isa::classic::SockFilter;
use isa::ebpf::{RawInsn, assemble, encode};

fn slots(text: &str) -> Vec<RawInsn> {
    encode(&assemble(text).expect("a program")).expect("slots")
}

#[oracle::test]
fn programs_run_on_packets() {
    let Some(dpdk) = Dpdk::load() else {
        oracle::skip("binding of librte_bpf", "no librte_bpf");
        return;
    };
    let program = slots("r6 = r1\nr0 = *(u16 *)skb[1]\nexit\n");
    let mut program = dpdk.program(&program).expect("it takes packet loads");
    for (packet, answer) in [(&[1, 2, 3][..], 0x0203), (&[1, 2], 0)] {
        assert_eq!(program.interpret(packet), Some(answer));
        if program.is_compiled() {
            assert_eq!(program.run(packet), Some(answer));
        }
    }
    assert_eq!(program.interpret(&vec![0; 1 << 16]), None);
}

#[oracle::test]
fn the_systems_libbpf_parses_types() {
    let Ok(libbpf) = Libbpf::load(Path::new(SYSTEM)) else {
        oracle::skip("binding of libbpf", format!("no {SYSTEM}"));
        return;
    };
    // A header and an empty table of strings.
    let mut empty = vec![0x9f, 0xeb, 1, 0, 24, 0, 0, 0];
    for word in [0u32, 0, 0, 1] {
        empty.extend(word.to_le_bytes());
    }
    empty.push(0);
    assert_eq!(libbpf.parse_btf(&empty), Ok(1), "void alone");
    assert!(libbpf.parse_btf(&empty[..20]).is_err());
    assert!(libbpf.open(b"no object").is_err());
}

#[oracle::test]
fn runs_what_libpcap_finds_valid() {
    let Ok(libpcap) = Libpcap::load() else {
        oracle::skip("binding of libpcap", "no libpcap");
        return;
    };
    let load_byte = SockFilter::new(0x30, 0, 0, 1);
    let return_a = SockFilter::new(0x16, 0, 0, 0);
    let filter = libpcap.interpreter(vec![load_byte, return_a]).unwrap();
    assert_eq!(filter.run(&[5, 7], 2), 7);
    assert_eq!(filter.run(&[5], 2), 0, "beyond the captured bytes");
    assert!(
        libpcap.interpreter(vec![load_byte]).is_none(),
        "no return at the end"
    );
}

/// A header of today, little-endian, snapshot length 65,535.
fn header(link_type: u8) -> [u8; 24] {
    let mut header = [0; 24];
    header[..8].copy_from_slice(&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]);
    header[16..18].copy_from_slice(&[0xff, 0xff]);
    header[20] = link_type;
    header
}

fn libpcap() -> Option<Libpcap> {
    let libpcap = Libpcap::load();
    if libpcap.is_err() {
        oracle::skip("binding of libpcap", "no libpcap");
    }
    libpcap.ok()
}

#[oracle::test]
fn an_expression_compiles_for_the_link_type_of_the_header() {
    let Some(libpcap) = libpcap() else { return };
    let raw = libpcap.compile(&header(101), "ip", true).unwrap();
    assert_eq!(raw[0], SockFilter::new(0x30, 0, 0, 0), "the version nibble");
    let ethernet = libpcap.compile(&header(1), "ip", true).unwrap();
    assert_eq!(
        ethernet[0],
        SockFilter::new(0x28, 0, 0, 12),
        "the EtherType"
    );
    assert_eq!(
        ethernet[2],
        SockFilter::new(0x06, 0, 0, 65535),
        "keeps the snapshot length"
    );
}

#[oracle::test]
fn errors_contain_libpcaps_message() {
    let Some(libpcap) = libpcap() else { return };
    for expression in ["port", "ip and and", "vlan 5000"] {
        match libpcap.compile(&header(1), expression, true) {
            Err(CompileError::Expression(message)) => assert!(!message.is_empty()),
            other => panic!("{expression}: {other:?}"),
        }
    }
    assert_eq!(
        libpcap.compile(&header(1), "ip\0", true),
        Err(CompileError::Nul)
    );
    let mut archaic = header(1);
    archaic[4] = 1;
    assert!(matches!(
        libpcap.compile(&archaic, "ip", true),
        Err(CompileError::Header(_))
    ));
}

#[oracle::test]
fn calls_from_many_threads_do_not_disturb_one_another() {
    let Some(libpcap) = libpcap() else { return };
    let alone = libpcap.compile(&header(1), "tcp port 22", true).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..50 {
                    assert_eq!(
                        libpcap.compile(&header(1), "tcp port 22", true).unwrap(),
                        alone
                    );
                    libpcap.compile(&header(1), "tcp port", true).unwrap_err();
                }
            });
        }
    });
}
