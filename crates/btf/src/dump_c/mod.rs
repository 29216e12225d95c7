//! Types as C that a compiler takes, as libbpf's `btf_dump` writes it and
//! `bpftool btf dump format c` prints it, byte for byte.
//!
//! Two passes for each type asked for: [`order`] finds which definitions it needs
//! before it, in which order; [`emit`] writes them, with forward declarations
//! where types refer to each other, and [`declare`] writes the declarations in
//! them inside out. What was written once is not written again.
//!
//! Anonymous structures are written wherever they are used, so a small blob can
//! ask for a very long text: a budget in proportion to the blob ends that.

mod declare;
mod emit;
mod file;
mod names;
mod order;
mod padding;
mod sort;

pub use file::{COptions, dump_c};

use std::fmt;

use crate::layout::Alignments;
use crate::{Btf, Shape, TypeId};
use names::Names;

/// Why types can't be written as C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DumpError {
    /// There is no such type.
    NoType {
        /// The number asked for.
        id: TypeId,
    },
    /// A type contains itself.
    Cycle {
        /// Which.
        id: TypeId,
    },
    /// Types are nested too deep.
    TooDeep {
        /// The type where it was given up.
        id: TypeId,
    },
    /// The text would be out of all proportion to the types.
    TooLong,
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NoType { id } => write!(f, "there is no type {id}"),
            DumpError::Cycle { id } => write!(f, "type {id} contains itself"),
            DumpError::TooDeep { id } => write!(f, "type {id} is nested too deep"),
            DumpError::TooLong => write!(f, "the text is out of all proportion to the types"),
        }
    }
}

impl std::error::Error for DumpError {}

/// The deepest nesting that is followed.
const MAX_NESTING: usize = 2048;

/// Types being written as C.
pub struct CDump<'b> {
    btf: &'b Btf<'b>,
    out: Vec<u8>,
    states: Vec<State>,
    names: Names<'b>,
    alignments: Alignments<'b>,
    /// Definitions that are due, in order.
    queue: Vec<TypeId>,
    /// The types of the declarations being written, from the outermost to the
    /// innermost.
    stack: Vec<TypeId>,
    nesting: usize,
    /// Steps that may still be taken.
    budget: u64,
}

/// How far a type is.
#[derive(Clone, Copy, Default)]
struct State {
    order: Progress,
    emit: Progress,
    /// Has a forward declaration been written?
    is_declared: bool,
    /// Does another type refer to it?
    is_referred_to: bool,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Progress {
    #[default]
    No,
    Begun,
    Done,
}

impl<'b> CDump<'b> {
    /// Nothing written yet.
    pub fn new(btf: &'b Btf<'b>) -> CDump<'b> {
        let mut states = vec![State::default(); btf.len()];
        mark_referred(btf, &mut states);
        states[0].order = Progress::Done;
        states[0].emit = Progress::Done;
        CDump {
            btf,
            out: Vec::new(),
            states,
            names: Names::new(btf),
            alignments: Alignments::new(btf),
            queue: Vec::new(),
            stack: Vec::new(),
            nesting: 0,
            budget: (1 << 18) + 64 * btf.as_bytes().len() as u64,
        }
    }

    /// Writes a type and all that it needs and that is not there yet.
    pub fn add(&mut self, id: TypeId) -> Result<(), DumpError> {
        if self.btf.get(id).is_none() {
            return Err(DumpError::NoType { id });
        }
        self.queue.clear();
        self.order(id, false)?;
        for at in 0..self.queue.len() {
            self.emit(self.queue[at], TypeId::VOID)?;
        }
        Ok(())
    }

    /// Writes the declaration of `name` as something of this type, without
    /// anything that the type needs.
    pub fn declare(&mut self, id: TypeId, name: &str) -> Result<(), DumpError> {
        if self.btf.get(id).is_none() {
            return Err(DumpError::NoType { id });
        }
        self.declaration(id, name.as_bytes(), 0)
    }

    /// The text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    fn state(&mut self, id: TypeId) -> &mut State {
        &mut self.states[id.index()]
    }

    /// One step more, one level deeper.
    fn enter(&mut self, id: TypeId) -> Result<(), DumpError> {
        self.spend()?;
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(DumpError::TooDeep { id });
        }
        Ok(())
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }

    fn spend(&mut self) -> Result<(), DumpError> {
        self.budget = self.budget.checked_sub(1).ok_or(DumpError::TooLong)?;
        Ok(())
    }

    fn put(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    /// A new line, so far in.
    fn new_line(&mut self, level: usize) {
        self.out.push(b'\n');
        self.indent(level);
    }

    /// libbpf has no more than thirteen tabs.
    fn indent(&mut self, level: usize) {
        self.out.extend(std::iter::repeat_n(b'\t', level.min(13)));
    }
}

/// Marks what some type refers to: an anonymous enumeration that nobody refers to
/// is a definition of its own.
fn mark_referred(btf: &Btf<'_>, states: &mut [State]) {
    let mut mark = |id: TypeId| {
        if let Some(state) = states.get_mut(id.index()) {
            state.is_referred_to = true;
        }
    };
    for ty in btf.types() {
        match ty.shape() {
            Shape::Ptr(to)
            | Shape::Typedef(to)
            | Shape::Volatile(to)
            | Shape::Const(to)
            | Shape::Restrict(to)
            | Shape::TypeTag(to) => mark(to),
            Shape::Func(func) => mark(func.proto),
            Shape::Var(var) => mark(var.ty),
            Shape::DeclTag(tag) => mark(tag.target),
            Shape::Array(array) => {
                mark(array.index);
                mark(array.element);
            }
            Shape::Struct(composite) | Shape::Union(composite) => {
                composite.members().for_each(|member| mark(member.ty));
            }
            // What is returned is not looked at.
            Shape::Proto(proto) => proto.params().for_each(|param| mark(param.ty)),
            Shape::Datasec(section) => section.vars().for_each(|placed| mark(placed.var)),
            Shape::Void | Shape::Int(_) | Shape::Enum(_) | Shape::Fwd(_) | Shape::Float(_) => {}
        }
    }
}
