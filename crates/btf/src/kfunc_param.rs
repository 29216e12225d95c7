//! Suffixes of the names of kfunc parameters, by which the kernel says what an argument
//! must be (Documentation/bpf/kfuncs.rst; `btf_param_match_suffix`).

/// A suffix of a parameter's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ParamSuffix {
    /// `__sz`: size of the memory before it (`is_kfunc_arg_mem_size`).
    #[doc(alias = "is_kfunc_arg_mem_size")]
    Size,
    /// `__szk`: constant size of the memory before it (`is_kfunc_arg_const_mem_size`).
    #[doc(alias = "is_kfunc_arg_const_mem_size")]
    ConstSize,
    /// `__k`: a known constant (`is_kfunc_arg_constant`).
    #[doc(alias = "is_kfunc_arg_constant")]
    Constant,
    /// `__ign`: not checked (`is_kfunc_arg_ignore`).
    #[doc(alias = "is_kfunc_arg_ignore")]
    Ignored,
    /// `__prog`: set by the verifier.
    Program,
    /// `__opt`: memory that may be null (`is_kfunc_arg_optional`).
    #[doc(alias = "is_kfunc_arg_optional")]
    Optional,
    /// `__nullable`: a pointer that may be null (`is_kfunc_arg_nullable`).
    #[doc(alias = "is_kfunc_arg_nullable")]
    Nullable,
    /// `__uninit`: memory that need not be initialised (`is_kfunc_arg_uninit`).
    #[doc(alias = "is_kfunc_arg_uninit")]
    Uninit,
    /// `__alloc`: an allocated object (`is_kfunc_arg_alloc_obj`).
    #[doc(alias = "is_kfunc_arg_alloc_obj")]
    Alloc,
    /// `__refcounted_kptr`: an allocated object with a reference count
    /// (`is_kfunc_arg_refcounted_kptr`).
    #[doc(alias = "is_kfunc_arg_refcounted_kptr")]
    RefcountedKptr,
    /// `__str`: a constant string (`is_kfunc_arg_const_str`).
    #[doc(alias = "is_kfunc_arg_const_str")]
    ConstString,
    /// `__map`: a map (`is_kfunc_arg_map`).
    #[doc(alias = "is_kfunc_arg_map")]
    Map,
    /// `__irq_flag`: saved IRQ flags (`is_kfunc_arg_irq_flag`).
    #[doc(alias = "is_kfunc_arg_irq_flag")]
    IrqFlag,
    /// `__iter`: an iterator.
    Iterator,
}

const SUFFIXES: &[(&[u8], ParamSuffix)] = &[
    (b"__sz", ParamSuffix::Size),
    (b"__szk", ParamSuffix::ConstSize),
    (b"__k", ParamSuffix::Constant),
    (b"__ign", ParamSuffix::Ignored),
    (b"__prog", ParamSuffix::Program),
    (b"__opt", ParamSuffix::Optional),
    (b"__nullable", ParamSuffix::Nullable),
    (b"__uninit", ParamSuffix::Uninit),
    (b"__alloc", ParamSuffix::Alloc),
    (b"__refcounted_kptr", ParamSuffix::RefcountedKptr),
    (b"__str", ParamSuffix::ConstString),
    (b"__map", ParamSuffix::Map),
    (b"__irq_flag", ParamSuffix::IrqFlag),
    (b"__iter", ParamSuffix::Iterator),
];

impl ParamSuffix {
    /// The suffix of a parameter's name (`btf_param_match_suffix`).
    #[doc(alias = "btf_param_match_suffix")]
    pub fn of(name: &[u8]) -> Option<ParamSuffix> {
        let found = SUFFIXES.iter().find(|(suffix, _)| name.ends_with(suffix));
        found.map(|(_, suffix)| *suffix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_suffix_is_recognised() {
        assert_eq!(ParamSuffix::of(b"mem__sz"), Some(ParamSuffix::Size));
        assert_eq!(ParamSuffix::of(b"mem__szk"), Some(ParamSuffix::ConstSize));
        assert_eq!(ParamSuffix::of(b"type__k"), Some(ParamSuffix::Constant));
        assert_eq!(ParamSuffix::of(b"task"), None);
        assert_eq!(ParamSuffix::of(b""), None);
    }
}
