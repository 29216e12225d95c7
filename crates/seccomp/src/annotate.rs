//! Names for the numbers in a filter's instructions.
//!
//! A forward pass over the instructions (jumps only lead forward) computes what the
//! accumulator contains at each: a word of `struct seccomp_data`, or something else; and
//! for which architectures the instruction runs. Where paths meet, contents that differ
//! are unknown and sets of architectures are united. Complexity: linear.

use isa::classic::{Cond, Insn, Operand, Size};

use crate::action::Action;
use crate::arch::{Arch, ByteOrder};
use crate::calls;
use crate::word::Word;

/// Facts before an instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    /// The word in the accumulator, if it is one.
    word: Option<Word>,
    /// Bit `i` is set if the call may be of `Arch::ALL[i]`.
    archs: u32,
}

/// A comment for each instruction of a filter for a machine of a byte order; empty where
/// there is nothing to say: the word that a load loads, the name of the architecture or
/// call that a jump compares with, the action that a return returns.
pub fn annotate(program: &[Insn], order: ByteOrder) -> Vec<String> {
    let mut states: Vec<Option<State>> = vec![None; program.len()];
    if let Some(first) = states.first_mut() {
        *first = Some(State {
            word: None,
            archs: u32::MAX,
        });
    }
    let mut comments = Vec::with_capacity(program.len());
    for (at, &insn) in program.iter().enumerate() {
        let Some(state) = states[at] else {
            comments.push(String::new());
            continue;
        };
        comments.push(comment(insn, state, order));
        let mut arrive = |to: usize, state: State| {
            if let Some(place) = states.get_mut(to) {
                *place = Some(match *place {
                    None => state,
                    Some(other) => State {
                        word: state.word.filter(|_| state.word == other.word),
                        archs: state.archs | other.archs,
                    },
                });
            }
        };
        match insn {
            Insn::RetK(_) | Insn::RetA => {}
            Insn::Goto(distance) => arrive(at + 1 + distance as usize, state),
            Insn::Jump { cond, src, jt, jf } => {
                let (yes, no) = split(state, cond, src);
                arrive(at + 1 + usize::from(jt), yes);
                arrive(at + 1 + usize::from(jf), no);
            }
            insn => arrive(at + 1, after(insn, state, order)),
        }
    }
    comments
}

/// Facts after an instruction that does not jump.
fn after(insn: Insn, state: State, order: ByteOrder) -> State {
    let word = match insn {
        Insn::LoadAbs { size: Size::W, k } => Word::at(k, order),
        Insn::Store(_) | Insn::StoreX(_) | Insn::Tax => state.word,
        Insn::LoadXImm(_) | Insn::LoadXMem(_) | Insn::LoadXLen => state.word,
        _ => None,
    };
    State { word, ..state }
}

/// Facts where a jump's condition holds, and where it does not.
fn split(state: State, cond: Cond, src: Operand) -> (State, State) {
    let (Some(Word::ARCH), Cond::Eq, Operand::K(audit)) = (state.word, cond, src) else {
        return (state, state);
    };
    let equal = Arch::ALL
        .iter()
        .enumerate()
        .filter(|(_, arch)| arch.audit() == audit)
        .fold(0, |set, (at, _)| set | 1 << at);
    let with = |archs| State { archs, ..state };
    (with(state.archs & equal), with(state.archs & !equal))
}

fn comment(insn: Insn, state: State, order: ByteOrder) -> String {
    match insn {
        Insn::RetK(value) => Action::from_return(value).to_string(),
        Insn::LoadAbs { size: Size::W, k } => {
            Word::at(k, order).map_or(String::new(), |word| word.to_string())
        }
        Insn::Jump {
            src: Operand::K(k), ..
        } => match state.word {
            Some(Word::ARCH) => {
                let arch = Arch::ALL.iter().find(|arch| arch.audit() == k);
                arch.map_or(String::new(), Arch::to_string)
            }
            Some(Word::NR) => names(k, state.archs),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Architectures whose names for a number are listed before the rest is left out.
const MAX_NAMES: usize = 3;

/// The name of a call number: alone if all architectures that have it agree, else by
/// architecture.
fn names(number: u32, archs: u32) -> String {
    let possible = Arch::ALL.iter().enumerate();
    let possible = possible.filter(|(at, _)| archs & 1 << at != 0);
    let named: Vec<(Arch, &str)> = possible
        .filter_map(|(_, &arch)| Some((arch, calls::name(arch, number)?)))
        .collect();
    let Some(&(_, first)) = named.first() else {
        return String::new();
    };
    if named.iter().all(|&(_, name)| name == first) {
        return first.to_owned();
    }
    let shown = named.iter().take(MAX_NAMES);
    let mut shown: Vec<String> = shown.map(|(arch, name)| format!("{arch} {name}")).collect();
    if named.len() > MAX_NAMES {
        shown.push("…".to_owned());
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comments(source: &str, order: ByteOrder) -> Vec<String> {
        let program = classic::text::read(source.as_bytes(), None).expect("a program");
        let program: Vec<Insn> = program.iter().map(|&insn| Insn::decode(insn)).collect();
        annotate(&program, order)
    }

    #[test]
    fn numbers_get_the_names_of_the_architecture_that_was_tested() {
        let source = "ld [4]\njeq #0xc000003e, x86\njeq #0xc00000b7, arm, kill\n\
            x86: ld [0]\njeq #41, args, allow\narm: ld [0]\njeq #41, kill, allow\n\
            args: ld [16]\njeq #41, kill, allow\n\
            allow: ret #0x7fff0000\nkill: ret #0x80000000\n";
        let expected = [
            "arch",
            "x86_64",
            "aarch64",
            "nr",
            "socket",
            "nr",
            "pivot_root",
            "(u32)arg0",
            "",
            "ALLOW",
            "KILL_PROCESS",
        ];
        assert_eq!(comments(source, ByteOrder::Little), expected);
        assert_eq!(comments(source, ByteOrder::Big)[7], "(arg0 >> 32)");
    }

    #[test]
    fn without_a_test_of_the_architecture_names_are_listed_by_architecture() {
        let listed = &comments(
            "ld [0]\njeq #59, end, end\nend: ret #0\n",
            ByteOrder::Little,
        )[1];
        assert!(
            listed.starts_with("x86_64 execve, i386 oldolduname, "),
            "{listed}"
        );
        assert!(listed.ends_with('…'), "{listed}");
    }
}
