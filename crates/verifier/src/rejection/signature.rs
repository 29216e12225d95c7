//! Rejections of the prototypes of functions that are verified on their own.

use super::rejections;

rejections! {
    /// Rejections of the prototypes of functions that are verified on their own.
    Signature:
    NotFunction { subprog: u32 } EFAULT Btf
        "BTF of func#{subprog} doesn't point to KIND_FUNC";
    NotPrototype { name: String } EFAULT Btf
        "Invalid type of function {name}()";
    TooManyArguments { name: String, count: usize, most: usize } EINVAL Btf
        "Global function {name}() with {count} > {most} args. Buggy compiler.";
    Return { name: String } EINVAL Btf
        "Global function {name}() return value not void or scalar. Only those are supported."
        => GlobalsReturnVoid "Global function {name}() doesn't return scalar. Only those are supported.";
    Static EINVAL Btf
        "";
    StaticTag { index: usize } EOPNOTSUPP Btf
        "arg#{index} type tag is not supported in static functions";
    UnsupportedTags { index: usize } EOPNOTSUPP Btf
        "arg#{index} has unsupported set of tags";
    TagOfNoPointer { index: usize } EINVAL Btf
        "arg#{index} has pointer tag, but is not a pointer type";
    InvalidTags { index: usize } EINVAL Btf
        "arg#{index} has invalid combination of tags";
    OnlyTag { index: usize, tag: String } EINVAL Btf
        "arg#{index} {tag} cannot be combined with any other tags";
    Argument { index: usize, kind: String, name: String } EINVAL Btf
        "Arg#{index} type {kind} in {name}() is not supported yet.";
    Unsized { index: usize, kind: String, name: String } EINVAL Btf
        "arg#{index} reference type('{kind} {name}') size cannot be determined: -22";
    Unnamed { index: usize } EINVAL Btf
        "arg#{index} type doesn't have a name";
    NotVoid { index: usize } EINVAL Btf
        "arg#{index} should be void pointer";
    NotContext { index: usize, context: String } EINVAL Btf
        "arg#{index} should be `struct {context} *`";
    NoMatch { index: usize, kind: String, name: String } ENOENT Btf
        "arg#{index} reference type('{kind} {name}') has no matches";
    Ambiguous { index: usize, kind: String, name: String } ESRCH Btf
        "arg#{index} reference type('{kind} {name}') is ambiguous";
}
