//! Recorded answers of the kernel, for machines where it cannot be used.
//!
//! One line is one program, with its packets and what became of each:
//!
//! ```text
//! 2,48 0 0 1,22 0 0 0 | 0a0b=0xb 0a=0x0
//! 1,5 0 0 7 | errno 22 JumpOutOfRange
//! ```
//!
//! The program stands in bpf_asm's form, a packet in hexadecimal (`-` when it is
//! empty), its value behind it. A refused program shows errno and the rule. Lines
//! that start with `#` say where the answers come from.

use super::unix::OPTMEM_MAX;
use super::{Unavailable, kernel_release, unix};
use classic::kernel_limits::{check_conversion, check_socket_memory};
use classic::{Checked, PlainProgram, Refusal, Rules, Semantics, check};
use isa::classic::SockFilter;
use packet::{Metadata, Packet};
use spec::SplitMix;
use std::fmt;
use std::str::FromStr;

/// A program with the kernel's answers, as an AF_UNIX socket gives them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The program.
    pub program: Vec<SockFilter>,
    /// The kernel's answer.
    pub answer: Answer,
}

/// The kernel's answer to a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Each packet has this value.
    Values(Vec<(Vec<u8>, u32)>),
    /// The program is rejected.
    Refused {
        /// The error number.
        errno: i32,
        /// The rule that is broken, by the name that we give it.
        rule: String,
    },
}

/// Text of a file of cases, from programs of this many seeds.
pub fn record(seeds: u64) -> Result<String, Unavailable> {
    let release = kernel_release()?;
    let mut text = format!("# Answers of Linux {release}, AF_UNIX datagram sockets.\n");
    for case in unix::record_cases(0..seeds)? {
        text.push_str(&format!("{case}\n"));
    }
    Ok(text)
}

/// The cases of a file; the number of the line that is none.
pub fn parse(text: &str) -> Result<Vec<Case>, usize> {
    let lines = text.lines().enumerate();
    lines
        .filter(|(_, line)| !line.starts_with('#'))
        .map(|(number, line)| line.parse().map_err(|NotACase| number + 1))
        .collect()
}

impl Case {
    /// The program on these packets, with the answers that the model gives.
    pub fn answered_by_model(program: Vec<SockFilter>, packets: Vec<Vec<u8>>) -> Case {
        let answer = match accept(&program) {
            Ok(checked) => {
                let prepared = PlainProgram::prepare(&checked, Semantics::Kernel);
                let value = |packet: Vec<u8>| {
                    let value = run(&prepared, &packet);
                    (packet, value)
                };
                Answer::Values(packets.into_iter().map(value).collect())
            }
            Err(refusal) => Answer::Refused {
                errno: refusal.errno,
                rule: refusal.rule.name().to_owned(),
            },
        };
        Case { program, answer }
    }

    /// Compares the model with a case.
    pub fn holds(&self) -> bool {
        let packets = match &self.answer {
            Answer::Values(values) => values.iter().map(|(packet, _)| packet.clone()).collect(),
            Answer::Refused { .. } => vec![],
        };
        Case::answered_by_model(self.program.clone(), packets) == *self
    }
}

/// The model's verdict where memory is plenty.
pub(super) fn accept(program: &[SockFilter]) -> Result<Checked, Refusal> {
    let checked = check(program, Rules::Socket)?;
    check_socket_memory(check_conversion(&checked)?, OPTMEM_MAX, 0)?;
    Ok(checked)
}

/// The model's value for a packet on an AF_UNIX socket.
pub(super) fn run(program: &PlainProgram, packet: &[u8]) -> u32 {
    let packet = Packet::whole(packet, &Metadata::UNKNOWN);
    program
        .run(&packet, &mut SplitMix::new(0))
        .expect("programs for sockets only jump forward")
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.len())?;
        for SockFilter { code, jt, jf, k } in &self.program {
            write!(f, ",{code} {jt} {jf} {k}")?;
        }
        f.write_str(" |")?;
        match &self.answer {
            Answer::Values(values) => values.iter().try_for_each(|(packet, value)| {
                f.write_str(" ")?;
                if packet.is_empty() {
                    f.write_str("-")?;
                }
                for byte in packet {
                    write!(f, "{byte:02x}")?;
                }
                write!(f, "={value:#x}")
            }),
            Answer::Refused { errno, rule } => write!(f, " errno {errno} {rule}"),
        }
    }
}

/// A line that is no case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotACase;

impl FromStr for Case {
    type Err = NotACase;

    fn from_str(line: &str) -> Result<Case, NotACase> {
        parse_line(line).ok_or(NotACase)
    }
}

fn parse_line(line: &str) -> Option<Case> {
    let (program, answer) = line.split_once(" |")?;
    let mut insns = program.split(',');
    let len: usize = insns.next()?.parse().ok()?;
    let program: Vec<SockFilter> = insns.map(parse_insn).collect::<Option<_>>()?;
    if program.len() != len {
        return None;
    }
    let answer = match answer.strip_prefix(" errno ") {
        Some(refusal) => {
            let (errno, rule) = refusal.split_once(' ')?;
            Answer::Refused {
                errno: errno.parse().ok()?,
                rule: rule.to_owned(),
            }
        }
        None => Answer::Values(
            answer
                .split_whitespace()
                .map(|word| {
                    let (packet, value) = word.split_once("=0x")?;
                    Some((parse_hex(packet)?, u32::from_str_radix(value, 16).ok()?))
                })
                .collect::<Option<_>>()?,
        ),
    };
    Some(Case { program, answer })
}

fn parse_insn(text: &str) -> Option<SockFilter> {
    let mut fields = text.split(' ');
    let insn = SockFilter {
        code: fields.next()?.parse().ok()?,
        jt: fields.next()?.parse().ok()?,
        jf: fields.next()?.parse().ok()?,
        k: fields.next()?.parse().ok()?,
    };
    fields.next().is_none().then_some(insn)
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    if text == "-" {
        return Some(vec![]);
    }
    if !text.len().is_multiple_of(2) || !text.is_ascii() {
        return None;
    }
    let pairs = (0..text.len()).step_by(2);
    pairs
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok())
        .collect()
}
