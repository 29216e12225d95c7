//! C declarations of types, byte for byte those of libbpf's `btf_dump` and `bpftool btf
//! dump format c`.
//!
//! Two passes for each type: [`order`] sorts the required definitions topologically;
//! [`emit`] writes them, with forward declarations for cycles, and [`declare`] writes
//! declarators. Each definition is written once.
//!
//! Anonymous structures are written at each use, so a small blob can expand to a very
//! long text: a budget proportional to the blob bounds it.

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

/// Error of writing types as C.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DumpError {
    /// There is no such type.
    NoType {
        /// Type id.
        id: TypeId,
    },
    /// A type contains itself.
    Cycle {
        /// Type id.
        id: TypeId,
    },
    /// Types are nested too deeply.
    TooDeep {
        /// Type id at which the limit was reached.
        id: TypeId,
    },
    /// The type has no size, or its members overlap.
    NoLayout {
        /// Type id.
        id: TypeId,
    },
    /// The text exceeds the budget.
    TooLong,
}

impl fmt::Display for DumpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DumpError::NoType { id } => write!(f, "type {id} is missing"),
            DumpError::Cycle { id } => write!(f, "type {id} contains itself"),
            DumpError::TooDeep { id } => {
                write!(f, "type {id} is nested in more than {MAX_NESTING} others")
            }
            DumpError::NoLayout { id } => {
                write!(f, "type {id} has no size, or its members overlap")
            }
            DumpError::TooLong => write!(
                f,
                "text of the types exceeds the limit of {STEPS_PER_BYTE} steps per byte of BTF"
            ),
        }
    }
}

impl std::error::Error for DumpError {}

/// Maximum depth of nesting.
const MAX_NESTING: usize = 2048;
/// Number of steps for each byte of the blob, beside [`STEPS`].
const STEPS_PER_BYTE: u64 = 16;
/// Number of steps that any blob may take.
const STEPS: u64 = 1 << 18;

/// Writer of types as C.
pub struct CDump<'b> {
    btf: &'b Btf<'b>,
    out: Vec<u8>,
    states: Vec<State>,
    names: Names<'b>,
    alignments: Alignments<'b>,
    /// Definitions to write, in order.
    queue: Vec<TypeId>,
    /// Types of the declarators being written, outermost first.
    stack: Vec<TypeId>,
    nesting: usize,
    /// True to write type tags, which compilers for BPF use.
    has_type_tags: bool,
    /// Remaining number of steps.
    budget: u64,
}

/// Progress of a type.
#[derive(Clone, Copy, Default)]
struct State {
    order: Progress,
    emit: Progress,
    /// True if a forward declaration was written.
    is_declared: bool,
    /// True if another type refers to it.
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
    /// Writer without text.
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
            has_type_tags: true,
            budget: STEPS + STEPS_PER_BYTE * btf.as_bytes().len() as u64,
        }
    }

    /// The same writer, without type tags: gcc warns of them.
    pub fn without_type_tags(self) -> CDump<'b> {
        CDump {
            has_type_tags: false,
            ..self
        }
    }

    /// Writes a type and its dependencies, except those already written.
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

    /// Writes the declaration of `name` with this type, without dependencies.
    pub fn declare(&mut self, id: TypeId, name: &str) -> Result<(), DumpError> {
        if self.btf.get(id).is_none() {
            return Err(DumpError::NoType { id });
        }
        self.declaration(id, name.as_bytes(), 0)
    }

    /// Text so far.
    pub fn as_bytes(&self) -> &[u8] {
        &self.out
    }

    fn state(&mut self, id: TypeId) -> &mut State {
        &mut self.states[id.index()]
    }

    /// Counts a step and a level of nesting.
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

    /// Writes a newline and indentation.
    fn new_line(&mut self, level: usize) {
        self.out.push(b'\n');
        self.indent(level);
    }

    /// libbpf's maximum is thirteen tabs.
    fn indent(&mut self, level: usize) {
        self.out.extend(std::iter::repeat_n(b'\t', level.min(13)));
    }
}

/// Marks the types that other types refer to: an unreferenced anonymous enumeration is a
/// definition.
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
            // Return types are not marked.
            Shape::Proto(proto) => proto.params().for_each(|param| mark(param.ty)),
            Shape::Datasec(section) => section.vars().for_each(|placed| mark(placed.var)),
            Shape::Void | Shape::Int(_) | Shape::Enum(_) | Shape::Fwd(_) | Shape::Float(_) => {}
        }
    }
}
