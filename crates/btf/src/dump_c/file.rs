//! A whole header file: what `bpftool` prints around the types, and the
//! declarations of the functions that a kernel offers to programs.

use super::sort::sorted;
use super::{CDump, DumpError};
use crate::{Btf, Name, Shape, Type, TypeId};

/// What to write.
#[derive(Clone, Debug)]
pub struct COptions {
    /// In an order that changes little from one kernel to the next, or as the
    /// types stand in the blob.
    pub sorted: bool,
    /// These types only, and what they need; all if there are none. Functions of
    /// the kernel come with all.
    pub roots: Vec<TypeId>,
}

impl Default for COptions {
    fn default() -> COptions {
        COptions {
            sorted: true,
            roots: Vec::new(),
        }
    }
}

const BEFORE: &str = "\
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute push (__attribute__((preserve_access_index)), apply_to = record)
#endif

#ifndef __ksym
#define __ksym __attribute__((section(\".ksyms\")))
#endif

#ifndef __weak
#define __weak __attribute__((weak))
#endif

#ifndef __bpf_fastcall
#if __has_attribute(bpf_fastcall)
#define __bpf_fastcall __attribute__((bpf_fastcall))
#else
#define __bpf_fastcall
#endif
#endif

";

const AFTER: &str = "\
#ifndef BPF_NO_PRESERVE_ACCESS_INDEX
#pragma clang attribute pop
#endif

#endif /* __VMLINUX_H__ */
";

/// A blob as a header file in C.
pub fn dump_c(btf: &Btf<'_>, options: &COptions) -> Result<Vec<u8>, DumpError> {
    let mut dump = CDump::new(btf);
    dump.put(BEFORE);
    if options.roots.is_empty() {
        let order = match options.sorted {
            true => sorted(btf),
            false => (0..btf.len() as u32).map(TypeId).collect(),
        };
        // bpftool leaves out what comes first, which is `void` only where the
        // types stand as in the blob.
        for &id in &order[1..] {
            dump.add(id)?;
        }
        dump.kernel_functions()?;
    } else {
        for &id in &options.roots {
            dump.add(id)?;
        }
    }
    dump.put(AFTER);
    Ok(dump.out)
}

impl CDump<'_> {
    /// Declarations of the functions that are tagged as open to programs.
    fn kernel_functions(&mut self) -> Result<(), DumpError> {
        self.put("\n/* BPF kfuncs */\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n");
        let btf = self.btf;
        let tagged = |wanted: &'static str| {
            btf.types().filter_map(move |ty| match ty.shape() {
                Shape::DeclTag(tag) if tag.component == -1 && ty.name() == wanted => {
                    function(btf.at(tag.target))
                }
                _ => None,
            })
        };
        let fast: Vec<(Name<'_>, TypeId, TypeId)> = tagged("bpf_fastcall").collect();
        let mut functions: Vec<(Name<'_>, TypeId, TypeId)> = tagged("bpf_kfunc").collect();
        functions.sort_by_key(|&(name, ..)| name);
        for function in &functions {
            self.put("extern ");
            if fast.contains(function) {
                self.put("__bpf_fastcall ");
            }
            let &(name, _, proto) = function;
            self.declaration(proto, name.as_bytes(), 0)?;
            self.put(" __weak __ksym;\n");
        }
        self.put("#endif\n\n");
        Ok(())
    }
}

/// Name, number and prototype of a function.
fn function(ty: Type<'_>) -> Option<(Name<'_>, TypeId, TypeId)> {
    match ty.shape() {
        Shape::Func(func) => Some((ty.name(), ty.id(), func.proto)),
        _ => None,
    }
}
