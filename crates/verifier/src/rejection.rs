//! The rejections: one row for each, with its error number, its class and the kernel's words.
//!
//! A check names a row and fills in its fields ([`refuse!`](crate::refuse)). The log writes the
//! words from the fields, and explanations read the fields. The words are Linux's
//! ([`RULES`](crate::RULES)), byte for byte. Behind `=>` stand those of kernels without a behaviour,
//! the newest first; where several are absent the last one counts.

mod alu;
mod call;
mod flow;
mod mem;
mod program;
mod signature;

use std::fmt;

use btf::AccessFault;
use btf::fields::FieldKind;
use isa::ebpf::{AluOp, Reg};
use spec::behaviour::Behaviours;
use spec::maps::MapKind;
use spec::programs::ProgramType;
use spec::registry::RetBase;
use spec::since::Release;

use crate::call::LeakCheck;
use crate::domain::Scalar;
use crate::log::{BitsText, TypeText};
use crate::release::Requirement;
use crate::state::{DynptrKind, Section};
use crate::verdict::RefusalKind;
use crate::{Errno, Stop};

pub(crate) use alu::Alu;
pub(crate) use call::Call;
pub(crate) use flow::Flow;
pub(crate) use mem::Mem;
pub(crate) use program::Program;
pub(crate) use signature::Signature;

/// Defines the rejections of one part of the verifier: name and fields, error number, class,
/// words and what they need beside the fields; behind `=>` a behaviour, and the words of kernels
/// that have it.
macro_rules! rejections {
    ($(#[$doc:meta])* $part:ident:
     $($row:ident $({ $($field:ident: $ty:ty),* })? $errno:ident $class:ident
       $words:literal $(, $arg:expr)* $(=> $since:ident $old:literal $(, $old_arg:expr)*)*;)*) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub(crate) enum $part {
            $(#[doc = concat!("`", $words, "`")] $row $({ $($field: $ty),* })?,)*
        }

        impl $part {
            pub(super) fn rule(&self) -> (crate::Errno, crate::RefusalKind) {
                match self {
                    $(Self::$row { .. } => {
                        (crate::Errno::$errno, crate::RefusalKind::$class)
                    })*
                }
            }

            pub(super) fn register(&self) -> Option<isa::ebpf::Reg> {
                use super::Field;
                match self {
                    $(Self::$row $({ $($field),* })? => None$($(.or($field.register()))*)?,)*
                }
            }
        }

        impl $part {
            /// Makes the fields read as a kernel names them.
            #[allow(unused_variables)]
            pub(super) fn adapt(&mut self, rules: spec::behaviour::Behaviours) {
                use super::Field;
                match self {
                    $(Self::$row $({ $($field),* })? => { $($($field.adapt(rules);)*)? })*
                }
            }

            /// Writes the words of a kernel.
            #[allow(unused_variables, unused_mut)]
            pub(super) fn write(
                &self,
                f: &mut std::fmt::Formatter<'_>,
                rules: spec::behaviour::Behaviours,
            ) -> std::fmt::Result {
                match self {
                    $(Self::$row $({ $($field),* })? => {
                        let mut earlier: Option<String> = None;
                        $(if !rules.has(spec::behaviour::Behaviour::$since) {
                            earlier = Some(format!($old $(, $old_arg)*));
                        })*
                        match earlier {
                            Some(words) => f.write_str(&words),
                            None => write!(f, $words $(, $arg)*),
                        }
                    })*
                }
            }
        }

        impl std::fmt::Display for $part {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.write(f, Default::default())
            }
        }
    };
}
use rejections;

/// Reason why the kernel refuses a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rejection {
    Alu(Alu),
    Call(Call),
    Flow(Flow),
    Mem(Mem),
    Program(Program),
    Signature(Signature),
}

/// Applies an expression to the rejection of whichever part it is.
macro_rules! each {
    ($rejection:expr, $one:ident => $result:expr) => {
        match $rejection {
            Rejection::Alu($one) => $result,
            Rejection::Call($one) => $result,
            Rejection::Flow($one) => $result,
            Rejection::Mem($one) => $result,
            Rejection::Program($one) => $result,
            Rejection::Signature($one) => $result,
        }
    };
}

impl Rejection {
    /// Error number and class.
    pub(crate) fn rule(&self) -> (Errno, RefusalKind) {
        each!(self, one => one.rule())
    }

    /// Makes the fields read as a kernel names them.
    pub(crate) fn adapt(&mut self, rules: Behaviours) {
        each!(self, one => one.adapt(rules))
    }

    /// The words of a kernel, without the line feed at their end; empty where it is silent.
    pub(crate) fn words(&self, rules: Behaviours) -> impl fmt::Display {
        struct Words<'a>(&'a Rejection, Behaviours);
        impl fmt::Display for Words<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                each!(self.0, one => one.write(f, self.1))
            }
        }
        Words(self, rules)
    }

    /// The first register that it is about.
    pub(crate) fn register(&self) -> Option<Reg> {
        each!(self, one => one.register())
    }
}

macro_rules! parts {
    ($($part:ident)*) => {
        $(impl From<$part> for Rejection {
            fn from(one: $part) -> Rejection {
                Rejection::$part(one)
            }
        })*
    };
}

parts! { Alu Call Flow Mem Program Signature }

/// Number of a register; of an encoding, it may be none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register(u8);

impl Register {
    /// The number.
    pub(crate) const fn number(self) -> u8 {
        self.0
    }
}

impl From<Reg> for Register {
    fn from(reg: Reg) -> Register {
        Register(reg.number())
    }
}

impl From<u8> for Register {
    fn from(number: u8) -> Register {
        Register(number)
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A field of a rejection.
trait Field {
    /// The register that it is.
    fn register(&self) -> Option<Reg> {
        None
    }

    /// Makes it read as a kernel names it.
    fn adapt(&mut self, _: Behaviours) {}
}

impl Field for Register {
    fn register(&self) -> Option<Reg> {
        Reg::new(self.0)
    }
}

/// Conversion of what a check has to a field.
pub(crate) trait Fill<T> {
    fn fill(self) -> T;
}

impl<T: fmt::Display> Fill<String> for T {
    fn fill(self) -> String {
        self.to_string()
    }
}

impl<T: Into<Register>> Fill<Register> for T {
    fn fill(self) -> Register {
        self.into()
    }
}

macro_rules! fields {
    ($($ty:ty),*; $($other:ty),*) => {
        $(impl<T: Into<$ty>> Fill<$ty> for T {
            fn fill(self) -> $ty {
                self.into()
            }
        })*
        $(impl Field for $ty {})*
        $(impl Field for $other {})*
    };
}

fields! {
    AccessFault, AluOp, DynptrKind, FieldKind, LeakCheck, MapKind, ProgramType, RetBase, Scalar, Section,
    Option<Section>, Release, Requirement, Option<u8>, bool, i32, u8, u64;
    String, i64, u32, usize
}

macro_rules! named {
    ($($ty:ty, $field:ident, $rules:ident => $adapt:expr;)*) => {
        $(impl<T: Into<$ty>> Fill<$ty> for T {
            fn fill(self) -> $ty {
                self.into()
            }
        }
        impl Field for $ty {
            fn adapt(&mut self, $rules: Behaviours) {
                let $field = self;
                $adapt;
            }
        })*
    };
}

named! {
    TypeText, text, rules => text.1 = rules;
    BitsText, text, rules => text.1 = rules;
    Vec<TypeText>, list, rules => list.iter_mut().for_each(|text| text.1 = rules);
}

macro_rules! numbers {
    ($($ty:ty),*) => {
        $(impl Fill<i64> for $ty {
            fn fill(self) -> i64 {
                self as i64
            }
        })*
    };
}

numbers! { u8, i16, u16, i32, u32, i64, usize }

/// A list of types, separated by commas.
fn join(types: &[TypeText]) -> String {
    let names = types.iter().map(TypeText::to_string);
    names.collect::<Vec<String>>().join(", ")
}

impl Stop {
    /// A refusal at an instruction; [`crate::refuse!`] is the usual way to make one.
    pub(crate) fn refusal(rejection: impl Into<Rejection>, insn: Option<u32>) -> Stop {
        Stop::Refused(Box::new(crate::Refusal::new(rejection.into(), insn)))
    }
}
