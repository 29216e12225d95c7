//! The door to bpf(2), where it is open to us.

use beebox_sys::Errno;
use beebox_sys::bpf::{Load, LogLevel, ProgramType, Refused, TestRun, load};
use isa::ebpf::{RawInsn, assemble, encode};

fn slots(text: &str) -> Vec<RawInsn> {
    encode(&assemble(text).expect(text)).expect(text)
}

/// Whether the door is shut to this process, which is said.
fn is_shut(refused: &Refused) -> bool {
    let shut = [Errno(libc::EPERM), Errno(libc::ENOSYS)].contains(&refused.errno);
    if shut {
        eprintln!("SKIPPED: bpf(2) answers {}", refused.errno);
    }
    shut
}

#[test]
fn a_program_is_loaded_run_and_read_back() {
    let text = "
        r2 = *(u32 *)(r1 + 0)
        r3 = *(u32 *)(r1 + 4)
        r4 = r2
        r4 += 14
        if r4 > r3 goto out
        r5 = *(u8 *)(r2 + 2)
        r5 += 1
        *(u8 *)(r2 + 2) = r5
        w0 = 7
        exit
    out:
        w0 = 0
        exit";
    let program = slots(text);
    let request = Load::new(ProgramType::Xdp, &program).with_log(LogLevel::Everything);
    let (program, log) = match load(&request) {
        Ok(loaded) => loaded,
        Err(refused) if is_shut(&refused) => return,
        Err(refused) => panic!("{refused}\n{}", refused.log),
    };
    assert!(log.contains("processed "), "{log}");

    let packet: Vec<u8> = (0..64).collect();
    let mut out = [0; 128];
    let run = TestRun {
        repeat: 3,
        ..TestRun::on(&packet)
    };
    let tested = program.test_run(&run, &mut out, &mut []).expect("a run");
    assert_eq!((tested.retval, tested.data_len), (7, 64));
    assert_eq!(out[..4], [0, 1, 5, 3]);
    let short = program.test_run(&TestRun::on(&packet[..10]), &mut out, &mut []);
    assert_eq!(short, Err(Errno(libc::EINVAL)));

    let info = program.info().expect("info");
    assert!(info.id > 0 && info.translated.len() >= 12, "{info:?}");
    let sum: u32 = info.function_lens.iter().sum();
    assert_eq!(sum as usize, info.native.len());
}

#[test]
fn a_refusal_comes_with_the_reason() {
    let program = slots("r0 = r5\nexit");
    let request = Load::new(ProgramType::SocketFilter, &program).with_log(LogLevel::Path);
    match load(&request) {
        Ok(_) => panic!("taken"),
        Err(refused) if is_shut(&refused) => (),
        Err(refused) => {
            assert_eq!(refused.errno, Errno(libc::EACCES));
            assert_eq!(refused.reason(), "R5 !read_ok");
            assert!(refused.to_string().ends_with("R5 !read_ok"), "{refused}");
        }
    }
}
