//! Text that programs print, in the checked engine and in the running kernel: equal texts
//! and results.

use interp::checked::{Calls, CheckedContext, CheckedProgram, Entry, Limits, Memory};
use isa::ebpf::decode;
use packet::{Metadata, Packet};
use spec::SplitMix;
use spec::programs::ProgramType;
use sys::bpf::{ProgLoad, TestRun};
use sys::tracing::PrintkTrace;
use testkit::ebpf::Choices;
use testkit::verifier::assembled;
use vm::RunContext;

const WHAT: &str = "text that programs print in the running kernel";

/// Programs of the comparison.
const PROGRAMS: u32 = 500;

/// Result of a program in the checked engine, and the text of its one call.
fn ours(text: &str) -> (u32, Option<Vec<u8>>) {
    let mut memory = Memory::new();
    let mut printed = None;
    let mut printk = |text: &[u8]| printed = Some(text.to_vec());
    let (mut random, mut clock) = (SplitMix::new(0), || 0);
    let no_packet = Packet::whole(&[], &Metadata::UNKNOWN);
    let mut cx = RunContext {
        printk: Some(&mut printk),
        ..RunContext::new(&no_packet, &mut random, Some(&mut clock))
    };
    let mut calls = Calls::resolved(|number, arguments, memory| {
        let helper = kernel::helpers::find(number)?;
        Some(helper(arguments, memory, &mut cx))
    });
    let cx = CheckedContext {
        memory: &mut memory,
        calls: &mut calls,
        packet: None,
    };
    let program = CheckedProgram::new(decode(&assembled(text).unwrap()));
    let finish = program.run(cx, Entry::default(), &Limits::default());
    let result = finish.outcome.unwrap_or_else(|trap| panic!("{trap}")) as u32;
    drop(calls);
    (result, printed)
}

fn theirs(text: &str, trace: &PrintkTrace) -> Option<(u32, Option<Vec<u8>>)> {
    let slots = assembled(text).unwrap();
    let request = ProgLoad::new(ProgramType::SchedCls.number(), &slots);
    let (loaded, _) = oracle::found(WHAT, request.load().map_err(|refused| refused.errno))?;
    let result = loaded.test_run(&TestRun::on(&[0; 64]), &mut [0; 64], &mut []);
    Some((result.unwrap().retval, trace.take().unwrap()))
}

/// Stores bytes at an offset from the frame pointer, filled up with zeros to whole words.
fn store(offset: usize, bytes: &[u8]) -> String {
    let words = bytes.chunks(8).enumerate().map(|(at, word)| {
        let mut whole = [0; 8];
        whole[..word.len()].copy_from_slice(word);
        let number = u64::from_le_bytes(whole);
        let offset = offset - 8 * at;
        format!("r1 = {number:#x} ll\n*(u64 *)(r10 - {offset}) = r1\n")
    });
    words.collect()
}

/// Where strings, formats and arrays of numbers lie below the frame pointer.
const STRING: usize = 400;
const FORMAT: usize = 128;
const NUMBERS: usize = 512;

/// A program with one call of either helper.
fn program(choices: &mut Choices<'_>) -> String {
    let kinds = [
        "d", "i", "u", "x", "X", "ld", "lu", "llx", "lld", "c", "px", "s", "s", "pI4", "pI6", "q",
        "", "5",
    ];
    let is_array = choices.one_in(2);
    let mut format = String::new();
    let mut arguments = Vec::new();
    for _ in 0..choices.below(6) {
        let kind = choices.pick(&kinds);
        let width = match kind.starts_with('p') || kind == "c" {
            true => "",
            false => choices.pick(&["", "", "-7", "+9", "040", "300"]),
        };
        format += &format!("%{width}{kind} ");
        arguments.push(match kind {
            "s" | "pI4" | "pI6" if choices.percent(80) => None,
            "s" | "pI4" | "pI6" => Some(choices.pick(&[0, 1, u64::MAX])),
            _ => Some(choices.value()),
        });
    }
    format += choices.pick(&["", "end", "%%", "%", "\t"]);
    let mut bytes = format.into_bytes();
    bytes.truncate(119);
    if choices.one_in(20) {
        bytes.push(choices.pick(b"\x01\xff\x85\xa0"));
    }
    bytes.push(0);
    // Without the final zero, or with bytes behind it.
    let size = match choices.below(6) {
        0 => bytes.len() - 1,
        1 => bytes.len().next_multiple_of(8),
        _ => bytes.len(),
    };
    let len = choices.pick(&[0, 3, 20, 200, 250]);
    let mut string: Vec<u8> = (0..len).map(|_| 33 + choices.below(90) as u8).collect();
    string.resize(STRING - FORMAT, 0);
    let (string, format) = (store(STRING, &string), store(FORMAT, &bytes));
    let load = |register: usize, argument: &Option<u64>| match argument {
        Some(number) => format!("r{register} = {number:#x} ll\n"),
        None => format!("r{register} = r10\nr{register} += -{STRING}\n"),
    };
    let (setup, helper) = if is_array {
        let stores: String = (0..)
            .zip(&arguments)
            .map(|(at, argument)| {
                let offset = NUMBERS - 8 * at;
                format!("{}*(u64 *)(r10 - {offset}) = r1\n", load(1, argument))
            })
            .collect();
        let len = match choices.below(8) {
            0 => 8 * arguments.len() as u32 + choices.below(9),
            _ => 8 * arguments.len() as u32,
        };
        // What is read has to be written.
        let rest = store(NUMBERS - 8 * arguments.len(), &[0; 8 * 9]);
        let setup = format!("{rest}{stores}r3 = r10\nr3 += -{NUMBERS}\nr4 = {len}\n");
        (setup, 177)
    } else {
        arguments.resize(3, Some(7));
        let loads = (3..)
            .zip(&arguments)
            .map(|(register, argument)| load(register, argument));
        (loads.collect(), 6)
    };
    let size = size.max(1);
    format!("{string}{format}{setup}r1 = r10\nr1 += -{FORMAT}\nr2 = {size}\ncall {helper}\nexit")
}

#[oracle::test]
fn printed_text_is_that_of_linux() {
    let Some(trace) = oracle::found(WHAT, PrintkTrace::start()) else {
        return;
    };
    let mut choices = Choices::from_seed(6);
    let mut printed = 0;
    for _ in 0..PROGRAMS {
        let text = program(&mut choices);
        let Some(theirs) = theirs(&text, &trace) else {
            return;
        };
        printed += u32::from(theirs.1.is_some());
        let show = |(result, text): (u32, Option<Vec<u8>>)| {
            let text = text.map(|text| String::from_utf8_lossy(&text).into_owned());
            (result as i32, text)
        };
        assert_eq!(show(ours(&text)), show(theirs), "{text}");
    }
    assert!(printed > PROGRAMS / 4, "{printed}");
}
