//! The action of filters for one call, and why: what each filter returns, and its run.

use std::fmt::Write;

use report::seccomp::action_text;
use serde_json::{Value, json};

use super::{
    Action, Arch, ByteOrder, FilterStack, NamedFilter, SeccompData, Word, calls, combine, decide,
    number_text,
};
use crate::SockFilter;
use crate::internal::{ClassicInsn, Next, Step};

/// A call that filters decide.
pub struct Decision<'d> {
    filters: &'d [NamedFilter],
    stack: &'d FilterStack,
    /// Its architecture, if that has a name.
    arch: Option<Arch>,
    call: SeccompData,
    returns: Vec<u32>,
}

impl<'d> Decision<'d> {
    /// Runs the filters of `stack`, whose names and instructions are `filters`.
    pub fn new(
        filters: &'d [NamedFilter],
        stack: &'d FilterStack,
        arch: Option<Arch>,
        call: SeccompData,
    ) -> Decision<'d> {
        let returns = stack.filters().iter();
        Decision {
            filters,
            stack,
            arch,
            call,
            returns: returns.map(|filter| filter.runner().run(&call)).collect(),
        }
    }

    /// The action.
    pub fn action(&self) -> Action {
        decide(self.returns.iter().copied())
    }

    /// The action and what each filter returns, for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", action_text(self.action()));
        if self.filters.len() > 1 {
            self.list_answers(&mut text);
        }
        text
    }

    /// As data.
    pub fn json(&self) -> Value {
        let action = self.action();
        let filters = self.filters.iter().zip(&self.returns);
        let filters = filters.map(|(program, &value)| {
            json!({
                "file": program.name,
                "return": value,
                "action": Action::from_return(value).to_string(),
            })
        });
        let nr = self.call.nr as u32;
        json!({
            "action": action.to_string(),
            "return": action.to_return(),
            "audit_arch": self.call.arch,
            "nr": nr,
            "syscall": self.arch.and_then(|arch| calls::name(arch, nr)),
            "args": self.call.args,
            "instruction_pointer": self.call.instruction_pointer,
            "filters": filters.collect::<Vec<_>>(),
        })
    }

    /// The return value of each filter, with the one that decides.
    fn list_answers(&self, text: &mut String) {
        let Decision {
            filters, returns, ..
        } = self;
        let total = returns.iter().copied().reduce(combine);
        let mut behind = (0..returns.len()).rev();
        let deciding = behind.find(|&at| Some(returns[at]) == total);
        let width = filters.iter().map(|filter| filter.name.len()).max();
        let width = width.unwrap_or(0);
        for (at, (filter, &value)) in filters.iter().zip(returns).enumerate() {
            let decides = match deciding == Some(at) {
                true => "  decides",
                false => "",
            };
            let action = Action::from_return(value);
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {:width$}  {action}{decides}", filter.name);
        }
    }

    /// The run of each filter, one instruction in a line.
    pub fn trace(&self) -> String {
        let mut text = String::new();
        for (program, filter) in self.filters.iter().zip(self.stack.filters()) {
            if self.filters.len() > 1 {
                let _ = writeln!(text, "{}:", program.name);
            }
            filter.trace(&self.call, &mut |step| {
                let comment = comment(program.insns[step.at], step, self.arch, filter.byte_order());
                let _ = writeln!(text, "{:<52} {comment}", program.line(step.at));
            });
        }
        text
    }
}

/// The effect of an instruction.
fn comment(insn: SockFilter, step: Step, arch: Option<Arch>, order: ByteOrder) -> String {
    let (a, x) = (number_text(step.a.into()), number_text(step.x.into()));
    match (ClassicInsn::decode(insn), step.next) {
        (ClassicInsn::Jump { .. } | ClassicInsn::Goto(_), Next::Insn(at)) => format!("→ {at:03}"),
        (_, Next::End(value)) => Action::from_return(value).to_string(),
        (ClassicInsn::LoadAbs { k, .. }, _) => match Word::at(k, order) {
            Some(Word::NR) => match arch.and_then(|arch| calls::name(arch, step.a)) {
                Some(name) => format!("A = {a}  nr ({name})"),
                None => format!("A = {a}  nr"),
            },
            Some(Word::ARCH) => match arch {
                Some(arch) => format!("A = {a}  arch ({arch})"),
                None => format!("A = {a}  arch"),
            },
            Some(word) => format!("A = {a}  {word}"),
            None => format!("A = {a}"),
        },
        (
            ClassicInsn::Tax
            | ClassicInsn::LoadXImm(_)
            | ClassicInsn::LoadXMem(_)
            | ClassicInsn::LoadXLen,
            _,
        ) => {
            format!("X = {x}")
        }
        (ClassicInsn::Store(k), _) => format!("M[{k}] = {a}"),
        (ClassicInsn::StoreX(k), _) => format!("M[{k}] = {x}"),
        _ => format!("A = {a}"),
    }
}
