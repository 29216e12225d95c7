//! Functions of a host as kfuncs and helpers: prototypes, and the module whose BTF has them.
//!
//! A prototype is written in the kernel's way: memory with a size is a pointer and a number
//! whose name ends in `__sz`, a constant string a pointer whose name ends in `__str`. So the
//! verifier checks calls of host functions as those of Linux's kfuncs, with the same messages.
//! A function with a helper number can be called as a helper too, and is verified as one.

mod btf;
mod helper;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

use ::btf::{Btf, Encoding, Kind};

use crate::Kernel;
use crate::kernel::{KernelField, Module};
use crate::registry::{Kfunc, KfuncFlags, ProgramTypes, kfunc_signature};

use self::btf::Writer;

/// Name of the module whose BTF has the prototypes.
pub const MODULE: &str = "host";

/// Most functions of a host.
pub const MOST_FUNCTIONS: usize = 64;

/// Numbers that helpers of a host can have: above those of Linux.
pub const HELPER_NUMBERS: Range<u32> = 0x1_0000..0x7000_0000;

/// Most registers that arguments take.
const MOST_WORDS: usize = 5;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum NumberType {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
}

impl NumberType {
    /// Its type in C.
    pub const fn name(self) -> &'static str {
        match self {
            NumberType::Bool => "_Bool",
            NumberType::U8 => "unsigned char",
            NumberType::U16 => "unsigned short",
            NumberType::U32 => "unsigned int",
            NumberType::U64 => "unsigned long long",
            NumberType::I8 => "signed char",
            NumberType::I16 => "short",
            NumberType::I32 => "int",
            NumberType::I64 => "long long",
        }
    }

    /// Its bytes.
    pub const fn size(self) -> u32 {
        match self {
            NumberType::Bool | NumberType::U8 | NumberType::I8 => 1,
            NumberType::U16 | NumberType::I16 => 2,
            NumberType::U32 | NumberType::I32 => 4,
            NumberType::U64 | NumberType::I64 => 8,
        }
    }

    const fn encoding(self) -> Encoding {
        match self {
            NumberType::Bool => Encoding::BOOL,
            NumberType::I8 | NumberType::I16 | NumberType::I32 | NumberType::I64 => {
                Encoding::SIGNED
            }
            NumberType::U8 | NumberType::U16 | NumberType::U32 | NumberType::U64 => Encoding::NONE,
        }
    }
}

/// A member of a structure: a number, or an array of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name.
    pub name: String,
    /// Type of the number.
    pub scalar: NumberType,
    /// Elements of an array; `None` for a number.
    pub count: Option<u32>,
}

/// Pointee of an argument: a number or a structure of numbers without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pointee {
    /// A number.
    Scalar(NumberType),
    /// A structure.
    Structure {
        /// Name.
        name: String,
        /// Members, one behind the other.
        fields: Vec<Field>,
    },
}

/// An argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// A number.
    Scalar(NumberType),
    /// Memory, and its size as the next argument.
    Bytes {
        /// The function may write it.
        is_written: bool,
    },
    /// A constant string.
    Text,
    /// Memory of one type.
    Object {
        /// Its type.
        pointee: Pointee,
        /// The function may write it.
        is_written: bool,
    },
}

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// Name.
    pub name: String,
    /// Its type.
    pub argument: Argument,
}

/// The prototype of a function of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prototype {
    /// Name.
    pub name: String,
    /// Parameters.
    pub parameters: Vec<Parameter>,
    /// Type of the result.
    pub returns: Option<NumberType>,
    /// Flags: those of the call (`SLEEPABLE`, `TRUSTED_ARGS` …).
    pub flags: KfuncFlags,
    /// Program types that may call it.
    pub programs: ProgramTypes,
    /// Number by which programs call it as a helper, one of [`HELPER_NUMBERS`].
    pub helper: Option<u32>,
}

/// Reason why a kernel cannot have functions of a host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadFunctions {
    /// The kernel has no BTF.
    NoTypes,
    /// More than [`MOST_FUNCTIONS`] functions.
    Count(usize),
    /// The arguments of a function take more than five registers.
    Arguments {
        /// Name of the function.
        name: String,
        /// Registers that they take.
        words: usize,
    },
    /// A function has a flag that needs what functions of a host do not have: references,
    /// pointers as results, iterators, arenas.
    Flags {
        /// Name of the function.
        name: String,
    },
    /// Two functions, or a function and one of the kernel, have the same name.
    Name(String),
    /// Two structures of the same name have other members.
    Structure(String),
    /// Names are not those of C.
    NotAName(String),
    /// The helper number of a function is not one of [`HELPER_NUMBERS`], or another function
    /// has it.
    HelperNumber {
        /// Name of the function.
        name: String,
        /// The number.
        number: u32,
    },
}

impl fmt::Display for BadFunctions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadFunctions::NoTypes => {
                f.write_str("host functions: the description of the kernel has no BTF")
            }
            BadFunctions::Count(count) => {
                write!(
                    f,
                    "host functions: {count}, at most {MOST_FUNCTIONS} are known"
                )
            }
            BadFunctions::Arguments { name, words } => write!(
                f,
                "host function {name}: its arguments take {words} registers, at most {MOST_WORDS} \
                 are passed; memory with a size takes two"
            ),
            BadFunctions::Flags { name } => write!(
                f,
                "host function {name}: only SLEEPABLE, DESTRUCTIVE, TRUSTED_ARGS and RCU_PROTECTED \
                 are flags of functions of a host"
            ),
            BadFunctions::Name(name) => {
                write!(f, "host function {name}: another function has this name")
            }
            BadFunctions::Structure(name) => write!(
                f,
                "host functions: structures named {name} have different members"
            ),
            BadFunctions::NotAName(name) => {
                write!(f, "host functions: {name:?} is no name in C")
            }
            BadFunctions::HelperNumber { name, number } => write!(
                f,
                "host function {name}: helper number {number} is that of another function or \
                 outside {} to {}",
                HELPER_NUMBERS.start,
                HELPER_NUMBERS.end - 1
            ),
        }
    }
}

impl std::error::Error for BadFunctions {}

impl Prototype {
    /// Registers that the arguments take.
    pub fn words(&self) -> usize {
        let words = self
            .parameters
            .iter()
            .map(|parameter| match parameter.argument {
                Argument::Bytes { .. } => 2,
                Argument::Scalar(_) | Argument::Text | Argument::Object { .. } => 1,
            });
        words.sum()
    }

    fn check_prototype(&self) -> Result<(), BadFunctions> {
        const FLAGS: u32 = KfuncFlags::SLEEPABLE.0
            | KfuncFlags::DESTRUCTIVE.0
            | KfuncFlags::TRUSTED_ARGS.0
            | KfuncFlags::RCU_PROTECTED.0;
        let name = self.name.clone();
        let words = self.words();
        if words > MOST_WORDS {
            return Err(BadFunctions::Arguments { name, words });
        }
        if self.flags.0 & !FLAGS != 0 {
            return Err(BadFunctions::Flags { name });
        }
        let names = self.parameters.iter().map(|parameter| &parameter.name);
        match names.chain([&self.name]).find(|name| !is_name(name)) {
            Some(name) => Err(BadFunctions::NotAName(name.clone())),
            None => Ok(()),
        }
    }
}

fn is_name(text: &str) -> bool {
    let is_first = |byte: u8| byte == b'_' || byte.is_ascii_alphabetic();
    let mut bytes = text.bytes();
    bytes.next().is_some_and(is_first) && bytes.all(|byte| is_first(byte) || byte.is_ascii_digit())
}

/// The C header with declarations of functions for programs, helpers as constant pointers; it
/// needs no other.
pub fn header(functions: &[Prototype]) -> String {
    let mut text = String::from(
        "/* Functions of the host as kernel functions. */\n\
         #pragma once\n\
         \n\
         #ifndef __ksym\n\
         #define __ksym __attribute__((section(\".ksyms\")))\n\
         #endif\n\
         #ifndef __weak\n\
         #define __weak __attribute__((weak))\n\
         #endif\n",
    );
    let mut structures = BTreeMap::new();
    for parameter in functions.iter().flat_map(|function| &function.parameters) {
        if let Argument::Object { pointee, .. } = &parameter.argument
            && let Pointee::Structure { name, fields } = pointee
        {
            structures.insert(name, fields);
        }
    }
    for (name, fields) in structures {
        let _ = write!(text, "\nstruct {name} {{\n");
        for field in fields {
            let count = field
                .count
                .map_or(String::new(), |count| format!("[{count}]"));
            let _ = writeln!(text, "\t{} {}{count};", field.scalar.name(), field.name);
        }
        text.push_str("};\n");
    }
    for function in functions {
        let _ = match function.helper {
            Some(number) => write!(text, "\nstatic {} = (void *){number};\n", Pointer(function)),
            None => write!(text, "\nextern {function} __weak __ksym;\n"),
        };
    }
    text
}

/// A constant pointer to a function, as programs declare helpers.
struct Pointer<'p>(&'p Prototype);

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.0.returns.map_or("void", NumberType::name);
        write!(f, "{result} (*const {})(", self.0.name)?;
        self.0.write_parameters(f)
    }
}

impl fmt::Display for Prototype {
    /// The declaration in C, without attributes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = self.returns.map_or("void", NumberType::name);
        write!(f, "{result} {}(", self.name)?;
        self.write_parameters(f)
    }
}

impl Prototype {
    fn write_parameters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, parameter) in self.parameters.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            write!(f, "{comma}{parameter}")?;
        }
        if self.parameters.is_empty() {
            f.write_str("void")?;
        }
        f.write_str(")")
    }
}

impl Prototype {
    /// The signatures that the verifier uses for calls of the function: as a kfunc
    /// ([`kfunc_signature`]), and as a helper if it is one.
    pub fn signatures(&self) -> impl Iterator<Item = String> {
        let helper = helper::of(self).map(|helper| helper.proto.signature());
        self.kfunc_signature().into_iter().chain(helper)
    }

    fn kfunc_signature(&self) -> Option<String> {
        let base = Btf::parse(::btf::Builder::new().finish()).ok()?;
        let (blob, ids) = Writer::new(&base).write(std::slice::from_ref(self)).ok()?;
        let btf = Btf::parse_module(blob, Arc::new(base)).ok()?;
        kfunc_signature(&btf, ids.first()?.0, self.flags)
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        let constant = |is_written: bool| if is_written { "" } else { "const " };
        match &self.argument {
            Argument::Scalar(scalar) => write!(f, "{} {name}", scalar.name()),
            Argument::Text => write!(f, "const char *{name}__str"),
            Argument::Bytes { is_written } => {
                let constant = constant(*is_written);
                write!(f, "{constant}void *{name}, unsigned int {name}__sz")
            }
            Argument::Object {
                pointee,
                is_written,
            } => {
                let constant = constant(*is_written);
                match pointee {
                    Pointee::Scalar(scalar) => write!(f, "{constant}{} *{name}", scalar.name()),
                    Pointee::Structure { name: ty, .. } => {
                        write!(f, "{constant}struct {ty} *{name}")
                    }
                }
            }
        }
    }
}

impl Kernel {
    /// Adds functions of a host as those of a module behind the others. Programs refer to
    /// them as to kfuncs of Linux.
    ///
    /// # Errors
    /// If a prototype cannot be one of a kfunc.
    #[doc(hidden)]
    pub fn with_host_functions(self, functions: &[Prototype]) -> Result<Kernel, BadFunctions> {
        let base = self.btf().cloned().ok_or(BadFunctions::NoTypes)?;
        if functions.len() > MOST_FUNCTIONS {
            return Err(BadFunctions::Count(functions.len()));
        }
        let mut names = BTreeSet::new();
        let mut numbers = BTreeSet::new();
        for function in functions {
            function.check_prototype()?;
            if let Some(number) = function.helper
                && !(HELPER_NUMBERS.contains(&number) && numbers.insert(number))
            {
                let name = function.name.clone();
                return Err(BadFunctions::HelperNumber { name, number });
            }
            let is_of_kernel = base.find(Kind::Func, &function.name).is_some();
            if is_of_kernel || !names.insert(&function.name) {
                return Err(BadFunctions::Name(function.name.clone()));
            }
        }
        let (blob, ids) = Writer::new(&base).write(functions)?;
        let btf = Btf::parse_module(blob, base).expect("types as they were written");
        let kfuncs = functions.iter().zip(ids).map(|(function, id)| Kfunc {
            name: function.name.as_str().into(),
            btf_id: id.0,
            special: None,
            flags: function.flags,
            program_types: function.programs,
            exceptions: Vec::new(),
        });
        let mut modules = self.modules().to_vec();
        modules.retain(|module| module.name != MODULE);
        modules.push(Module {
            name: MODULE.to_owned(),
            btf: Arc::new(btf),
            kfuncs: Some(kfuncs.collect()),
        });
        let source = self.source(KernelField::Modules).clone();
        let mut kernel = self.with_modules(modules, source);
        if !numbers.is_empty() {
            kernel = kernel.with_host_helpers(functions);
        }
        kernel.host = functions.into();
        Ok(kernel)
    }

    /// Adds the helpers of a host to the registry.
    fn with_host_helpers(self, functions: &[Prototype]) -> Kernel {
        let Some(registry) = self.registry().cloned() else {
            return self;
        };
        let helpers = functions.iter().filter_map(helper::of).collect();
        let registry = registry.with_host_helpers(helpers);
        let source = self.source(KernelField::Registry).clone();
        self.with_registry(Box::new(move || registry), source)
    }
}
