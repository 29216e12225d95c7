//! Calls of kernel functions. What the kernel refuses before it looks at arguments is
//! refused here; the arguments themselves are not judged yet.

use btf::{Shape, TypeId};

use crate::walk::{Outcome, Walk};
use crate::{Result, Stop, refuse};
use spec::registry::KfuncFlags;

/// Checks a call of a kernel function (the beginning of `check_kfunc_call`).
pub(super) fn check_kfunc_call(walk: &mut Walk<'_>, id: i32, module: i16) -> Result<Outcome> {
    if id == 0 {
        return Ok(Outcome::Next);
    }
    if module != 0 {
        return Err(Stop::unsupported("kfunc of a kernel module"));
    }
    let name = name_of(walk, id);
    let found = walk.env.registry.kfunc(id as u32);
    let found = found.filter(|kfunc| kfunc.program_types.has(walk.env.context.kind));
    let Some(kfunc) = found else {
        return Err(refuse!(
            walk,
            EACCES,
            Unavailable,
            "calling kernel function {name} is not allowed"
        ));
    };
    if &*kfunc.name == "__bpf_trap" {
        return Err(refuse!(
            walk,
            EFAULT,
            Unavailable,
            "unexpected __bpf_trap() due to uninitialized variable?"
        ));
    }
    if kfunc.flags.has(KfuncFlags::SLEEPABLE) && !walk.state.in_sleepable {
        return Err(refuse!(
            walk,
            EACCES,
            Section,
            "program must be sleepable to call sleepable kfunc {name}"
        ));
    }
    Err(Stop::unsupported(format!("kfunc {name}")))
}

fn name_of(walk: &Walk<'_>, id: i32) -> String {
    let of_btf = walk
        .env
        .vmlinux
        .and_then(|vmlinux| vmlinux.get(TypeId(id as u32)))
        .filter(|ty| matches!(ty.shape(), Shape::Func(_)));
    match (of_btf, walk.env.registry.kfunc(id as u32)) {
        (Some(ty), _) => ty.name().to_string_lossy().into_owned(),
        (None, Some(kfunc)) => kfunc.name.to_string(),
        (None, None) => format!("#{id}"),
    }
}

/// True if the kernel function may be called while a lock is held
/// (`kfunc_spin_allowed`).
pub(super) fn is_allowed_under_lock(walk: &Walk<'_>, id: i32, module: i16) -> bool {
    let allowed = [
        "bpf_list_push_front_impl",
        "bpf_list_push_back_impl",
        "bpf_list_pop_front",
        "bpf_list_pop_back",
        "bpf_list_front",
        "bpf_list_back",
        "bpf_rbtree_add_impl",
        "bpf_rbtree_remove",
        "bpf_rbtree_first",
        "bpf_rbtree_root",
        "bpf_rbtree_left",
        "bpf_rbtree_right",
        "bpf_refcount_acquire_impl",
        "bpf_iter_num_new",
        "bpf_iter_num_next",
        "bpf_iter_num_destroy",
        "bpf_res_spin_lock",
        "bpf_res_spin_unlock",
        "bpf_res_spin_lock_irqsave",
        "bpf_res_spin_unlock_irqrestore",
    ];
    module == 0
        && walk
            .env
            .registry
            .kfunc(id as u32)
            .is_some_and(|kfunc| allowed.contains(&&*kfunc.name))
}
