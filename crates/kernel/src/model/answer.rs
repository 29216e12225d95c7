//! Results of functions that a test gives, and the calls that programs made.

use btf::{Btf, Kind, Shape, TypeId};
use spec::kfuncs::KernelFunction;

use super::context::{function, parameters};
use super::names::nearest;

/// Registers of arguments.
const MOST_ARGUMENTS: usize = 5;

/// A result that calls of a function return.
#[derive(Clone, Debug)]
pub struct GivenResult {
    /// Name of the helper or kfunc.
    pub function: String,
    /// Which of its calls, from 1; all without it.
    pub at: Option<u64>,
    /// What it returns.
    pub result: u64,
    /// Bytes that it writes through arguments, by their number.
    pub fills: Vec<(usize, Vec<u8>)>,
}

/// A call that a program made of a function that is not modelled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// Name of the helper or kfunc.
    pub function: String,
    /// The registers of its arguments.
    pub arguments: [u64; 5],
    /// Text that arguments pointed to.
    pub texts: [Option<String>; 5],
}

/// The name of a helper or kfunc in resolved code.
pub(super) fn name_of(number: i32) -> Option<&'static str> {
    match KernelFunction::from_number(number) {
        Some(function) => function.name(),
        None => spec::helpers::helper(number).map(|helper| helper.name),
    }
}

/// Arguments and result of a helper or kfunc.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    /// Names and types of arguments in registers.
    parameters: Vec<(String, Option<TypeId>)>,
    /// Type of the result; `None` where it is unknown.
    pub(super) returns: Option<TypeId>,
}

impl Signature {
    /// That of a helper, from the type that the kernel declares for it (`btf_NAME`): without it five words.
    pub(super) fn of_helper(types: &Btf<'_>, name: &str) -> Signature {
        let prototype = format!("btf_{name}");
        let declared = types.find(Kind::Typedef, &prototype);
        let proto = declared.and_then(|declared| {
            let pointer = types.skip_modifiers(declared.id())?;
            match types.get(pointer)?.shape() {
                Shape::Ptr(to) => Some(to),
                _ => None,
            }
        });
        let unnamed = proto.and_then(|proto| parameters(types, proto, 0));
        let Some(unnamed) = unnamed else {
            let words = (1..=MOST_ARGUMENTS).map(|number| (format!("arg{number}"), None));
            return Signature {
                parameters: words.collect(),
                returns: None,
            };
        };
        // The function has names; compilers merge some with others, which have more parameters.
        let named = types.find(Kind::Func, name);
        let named = named.and_then(|found| function(types, found.id()));
        let names: Vec<String> = named
            .into_iter()
            .flat_map(|(parameters, _)| parameters)
            .map(|(name, _)| name)
            .filter(|name| !name.starts_with("__ur_"))
            .collect();
        let numbered = (1..).zip(&unnamed).map(|(number, (_, ty))| {
            let name = match names.len() == unnamed.len() {
                true => names[number - 1].clone(),
                false => format!("arg{number}"),
            };
            (name, Some(*ty))
        });
        Signature {
            parameters: numbered.collect(),
            returns: None,
        }
    }

    /// That of a kfunc.
    pub(super) fn of_kfunc(types: &Btf<'_>, function_id: TypeId) -> Option<Signature> {
        let (parameters, returns) = function(types, function_id)?;
        let parameters = parameters.into_iter().take(MOST_ARGUMENTS);
        Some(Signature {
            parameters: parameters.map(|(name, ty)| (name, Some(ty))).collect(),
            returns: Some(returns),
        })
    }

    /// The names of the arguments.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|(name, _)| name.as_str())
    }

    /// The number of an argument by its name, or by `arg1` to `arg5`.
    pub(super) fn place(&self, function: &str, argument: &str) -> Result<usize, String> {
        let by_name = self.names().position(|known| known == argument);
        let by_number = || {
            let number: usize = argument.strip_prefix("arg")?.parse().ok()?;
            number
                .checked_sub(1)
                .filter(|at| *at < self.parameters.len())
        };
        by_name.or_else(by_number).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            match &names[..] {
                [] => format!("{function} has no arguments, and so no {argument}"),
                names => {
                    let near = nearest(argument, names.iter().copied());
                    format!(
                        "{function} has no argument {argument}{near}; it has {}",
                        names.join(", ")
                    )
                }
            }
        })
    }

    /// The type of an argument.
    pub(super) fn type_of(&self, number: usize) -> Option<TypeId> {
        self.parameters.get(number)?.1
    }

    /// True if an argument is a pointer.
    pub(super) fn is_pointer(&self, types: &Btf<'_>, number: usize) -> bool {
        let ty = self
            .type_of(number)
            .and_then(|ty| types.get(types.skip_modifiers(ty)?));
        ty.is_some_and(|ty| matches!(ty.shape(), Shape::Ptr(_)))
    }

    /// True if the function returns nothing.
    pub(super) fn is_void(&self) -> bool {
        self.returns.is_some_and(TypeId::is_void)
    }
}
