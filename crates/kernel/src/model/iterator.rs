//! Iterators: the contexts of their calls, one after the other, as a read of Linux has them (`bpf_seq_read`).

use std::sync::Arc;

use btf::{Btf, TypeId};
use program::Program;

use super::context::ContextForm;
use super::value::{MemberPath, ModelValue};
use spec::Errno;

/// Iterators that are not called behind their last element.
const NO_LAST_CALL: [&str; 1] = ["dmabuf"];
/// Members of contexts that calls behind the last element have, too.
const KEPT: [&str; 1] = ["map"];

/// The context of an iterator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IteratorContext {
    /// Name of the member behind `meta`, which it goes over.
    element: String,
    has_last_call: bool,
}

impl IteratorContext {
    /// That of a program; `None` if it is no iterator.
    pub fn of(program: &Program, types: &Arc<Btf<'static>>) -> Option<IteratorContext> {
        let Ok(ContextForm::Iterator(id)) = ContextForm::of(program, types) else {
            return None;
        };
        let context = types.get(id)?;
        let name = context.name().to_string();
        let target = name.strip_prefix("bpf_iter__").unwrap_or(&name);
        Some(IteratorContext {
            element: element(types, id)?,
            has_last_call: !NO_LAST_CALL.contains(&target),
        })
    }
}

/// The name of the member behind `meta`.
fn element(types: &Btf<'_>, context: TypeId) -> Option<String> {
    let member = types.get(context)?.as_composite()?.member(1)?;
    // Pointers of contexts are in unions that make them 8 bytes.
    let named = |member: btf::Member| types.string(member.name).to_string();
    Some(match named(member).is_empty() {
        true => {
            let inner = types.skip_modifiers(member.ty)?;
            named(types.get(inner)?.as_composite()?.member(0)?)
        }
        false => named(member),
    })
}

/// Reads of an iterator up to its end, or to one that gives nothing.
#[derive(Debug)]
pub struct Iteration<'v> {
    of: &'v IteratorContext,
    elements: &'v [ModelValue],
    /// The next element; behind the last one it is the call without one.
    next: usize,
    /// Number that the next call sees.
    number: u64,
    /// The read has given text.
    has_text: bool,
    is_done: bool,
    error: Option<u32>,
}

impl<'v> Iteration<'v> {
    /// In front of the first element.
    pub fn new(of: &'v IteratorContext, elements: &'v [ModelValue]) -> Iteration<'v> {
        Iteration {
            of,
            elements,
            next: 0,
            number: 0,
            has_text: false,
            is_done: false,
            error: None,
        }
    }

    /// The context of the next call, if there is one.
    pub fn next_context(&self) -> Option<ModelValue> {
        let element = self.elements.get(self.next);
        if self.is_done || element.is_none() && !self.of.has_last_call {
            return None;
        }
        let seq = fields(Vec::new(), true);
        let meta = vec![
            ("seq".into(), seq),
            ("session_id".into(), ModelValue::Number(1)),
            ("seq_num".into(), ModelValue::Number(self.number.into())),
        ];
        let mut members = vec![(MemberPath::from("meta"), fields(meta, false))];
        match element {
            Some(ModelValue::Fields {
                ty: None,
                fields: given,
                ..
            }) => members.extend(given.iter().cloned()),
            Some(element) => members.push((self.of.element.as_str().into(), element.clone())),
            None => {
                let last = self.elements.last();
                if let Some(ModelValue::Fields { fields: given, .. }) = last {
                    let is_kept = |path: &MemberPath| KEPT.iter().any(|kept| path[..] == [*kept]);
                    members.extend(given.iter().filter(|(path, _)| is_kept(path)).cloned());
                }
            }
        }
        Some(fields(members, element.is_none()))
    }

    /// Notes what a call returned and whether it gave text; true if its text is lost.
    pub fn end_call(&mut self, retval: u32, has_text: bool) -> bool {
        if self.next >= self.elements.len() {
            self.is_done = true;
            return false;
        }
        if retval == 0 {
            self.has_text |= has_text;
            self.next += 1;
            // The call behind the last element sees the number of that.
            self.number += u64::from(self.next < self.elements.len());
            return false;
        }
        if !self.has_text {
            self.is_done = true;
            self.error = Some(Errno::EAGAIN.negated() as u32);
        }
        self.has_text = false;
        true
    }

    /// The error that ended the last read.
    pub fn error(&self) -> Option<u32> {
        self.error
    }
}

fn fields(fields: Vec<(MemberPath, ModelValue)>, others_are_zero: bool) -> ModelValue {
    ModelValue::Fields {
        ty: None,
        fields,
        others_are_zero,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(value: &ModelValue) -> u64 {
        let ModelValue::Fields { fields, .. } = value else {
            panic!("{value}");
        };
        let ModelValue::Fields { fields: meta, .. } = &fields[0].1 else {
            panic!("{value}");
        };
        match meta[2].1 {
            ModelValue::Number(number) => number as u64,
            _ => panic!("{value}"),
        }
    }

    #[test]
    fn calls_are_those_of_a_read() {
        let of = IteratorContext {
            element: "task".to_owned(),
            has_last_call: true,
        };
        let elements = [ModelValue::Number(1), ModelValue::Number(2)];
        let mut iteration = Iteration::new(&of, &elements);
        let mut seen = Vec::new();
        while let Some(context) = iteration.next_context() {
            seen.push(numbers(&context));
            iteration.end_call(0, true);
        }
        assert_eq!(seen, [0, 1, 1]);
        let mut again = Iteration::new(&of, &elements);
        assert!(!again.end_call(0, true), "the first is read");
        assert!(again.end_call(1, true), "a short read");
        assert_eq!(again.error(), None);
        assert!(again.end_call(1, false), "a read of nothing");
        assert_eq!(again.error(), Some(-11i32 as u32));
        assert_eq!(again.next_context(), None);
    }
}
