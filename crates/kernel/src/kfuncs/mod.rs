//! Kernel functions (kfuncs) of Linux, and the bit operations, by the number that their calls
//! have in resolved code ([`KernelFunction::number`]).
//!
//! Prototypes and flags are those of the kernel's BTF and registry, which the verifier checks
//! calls by; [`state`] says for every kfunc of Linux 6.18 what a call does here.

mod absence;
mod arena;
mod bits;
mod casts;
mod conntrack;
mod cpumasks;
mod dynptrs;
mod exceptions;
mod iterators;
mod lists;
mod locks;
mod maps;
mod objects;
mod sections;
mod state;
mod streams;
mod strings;
mod trees;
mod workqueues;
mod xdp;

use spec::bits::BitOp;
use spec::kfuncs::{CallState, KernelFunction};
use vm::{Call, Helper, ModelPort, direct_call};

pub use state::state;

/// Name of a kfunc: that of its function behind `bpf_`.
macro_rules! name {
    ($name:ident) => {
        concat!("bpf_", stringify!($name))
    };
}

/// Defines the lookups from the paths of the functions, which are named as the kfuncs without
/// `bpf_`; a wrong name does not compile.
macro_rules! table {
    (
        bits { $($op:ident,)* }
        native { $($module:ident::$name:ident,)* }
        checked { $($other:ident::$checked:ident,)* }
        absent { $($empty:ident::$absent:ident,)* }
        unreached { $($unreached:ident,)* }
    ) => {
        #[allow(non_upper_case_globals)]
        mod numbers {
            $(pub(super) const $op: i32 = spec::bits::BitOp::$op.number();)*
            $(pub(super) const $name: i32 = super::number(name!($name));)*
            $(pub(super) const $checked: i32 = super::number(name!($checked));)*
            $(pub(super) const $absent: i32 = super::number(name!($absent));)*
            $(pub(super) const $unreached: i32 = super::number(name!($unreached));)*
        }

        /// The function of that number, for the memory of an engine; `None` if it is not
        /// built.
        pub fn find<M: ModelPort>(number: i32) -> Option<Helper<M>> {
            Some(match number {
                $(numbers::$op => bits::operation::<M, { BitOp::$op as usize }>,)*
                $(numbers::$name => $module::$name,)*
                $(numbers::$checked => $other::$checked,)*
                $(numbers::$absent => $empty::$absent,)*
                $(numbers::$unreached => absence::unreached,)*
                _ => return None,
            })
        }

        /// The function of that number that code of verified programs calls; `None` if it is
        /// not built or follows pointers that the verifier does not check.
        pub fn find_call(number: i32) -> Option<Call> {
            Some(match number {
                $(numbers::$name => direct_call($module::$name),)*
                $(numbers::$unreached => direct_call(absence::unreached),)*
                _ => return None,
            })
        }

        /// Support state of a kfunc of Linux that is built; `None` if it is not.
        fn built(name: &str) -> Option<CallState> {
            let of = |module: &str| match module {
                "absence" | "conntrack" => CallState::Absent,
                _ => CallState::Runs,
            };
            $(if name == name!($name) {
                return Some(of(stringify!($module)));
            })*
            $(if name == name!($checked) {
                return Some(of(stringify!($other)));
            })*
            $(if name == name!($absent) {
                return Some(CallState::Absent);
            })*
            $(if name == name!($unreached) {
                return Some(CallState::Unreached);
            })*
            None
        }
    };
}

table! {
    bits { Ffs, Ctz, Clz, Fls, Popcnt, Bitrev, Rol, Ror, }
    native {
        sections::rcu_read_lock,
        sections::rcu_read_unlock,
        sections::preempt_disable,
        sections::preempt_enable,
        casts::rdonly_cast,
        casts::cast_to_kern_ctx,
        maps::map_sum_elem_count,
        arena::arena_alloc_pages,
        arena::arena_free_pages,
        arena::arena_reserve_pages,
        xdp::xdp_pull_data,
        conntrack::skb_ct_lookup,
        conntrack::xdp_ct_lookup,
        absence::task_from_pid,
        absence::task_from_vpid,
        absence::cgroup_from_id,
        absence::get_kmem_cache,
        absence::lookup_system_key,
        absence::lookup_user_key,
        absence::crypto_ctx_create,
        absence::xdp_get_xfrm_state,
        absence::copy_from_user_str,
    }
    checked {
        strings::strcmp,
        strings::strcasecmp,
        strings::strlen,
        strings::strnlen,
        strings::strchr,
        strings::strnchr,
        strings::strchrnul,
        strings::strrchr,
        strings::strspn,
        strings::strcspn,
        strings::strstr,
        strings::strnstr,
        iterators::iter_num_new,
        iterators::iter_num_next,
        iterators::iter_num_destroy,
        iterators::iter_bits_new,
        iterators::iter_bits_next,
        iterators::iter_bits_destroy,
        exceptions::throw,
        cpumasks::cpumask_create,
        cpumasks::cpumask_acquire,
        cpumasks::cpumask_release,
        cpumasks::cpumask_set_cpu,
        cpumasks::cpumask_clear_cpu,
        cpumasks::cpumask_test_and_set_cpu,
        cpumasks::cpumask_test_and_clear_cpu,
        cpumasks::cpumask_test_cpu,
        cpumasks::cpumask_setall,
        cpumasks::cpumask_clear,
        cpumasks::cpumask_copy,
        cpumasks::cpumask_populate,
        cpumasks::cpumask_and,
        cpumasks::cpumask_or,
        cpumasks::cpumask_xor,
        cpumasks::cpumask_equal,
        cpumasks::cpumask_intersects,
        cpumasks::cpumask_subset,
        cpumasks::cpumask_empty,
        cpumasks::cpumask_full,
        cpumasks::cpumask_weight,
        cpumasks::cpumask_first,
        cpumasks::cpumask_first_zero,
        cpumasks::cpumask_first_and,
        cpumasks::cpumask_any_distribute,
        cpumasks::cpumask_any_and_distribute,
        workqueues::wq_init,
        workqueues::wq_set_callback_impl,
        workqueues::wq_start,
        locks::local_irq_save,
        locks::local_irq_restore,
        locks::res_spin_lock,
        locks::res_spin_unlock,
        locks::res_spin_lock_irqsave,
        locks::res_spin_unlock_irqrestore,
        streams::stream_vprintk_impl,
        dynptrs::dynptr_from_skb,
        dynptrs::dynptr_from_skb_meta,
        dynptrs::dynptr_from_xdp,
        dynptrs::dynptr_adjust,
        dynptrs::dynptr_clone,
        dynptrs::dynptr_is_null,
        dynptrs::dynptr_is_rdonly,
        dynptrs::dynptr_size,
        dynptrs::dynptr_slice,
        dynptrs::dynptr_slice_rdwr,
        dynptrs::dynptr_copy,
        dynptrs::dynptr_memset,
        dynptrs::probe_read_kernel_dynptr,
        dynptrs::probe_read_kernel_str_dynptr,
        objects::obj_new_impl,
        objects::obj_drop_impl,
        objects::percpu_obj_new_impl,
        objects::percpu_obj_drop_impl,
        objects::refcount_acquire_impl,
        lists::list_push_front_impl,
        lists::list_push_back_impl,
        lists::list_pop_front,
        lists::list_pop_back,
        lists::list_front,
        lists::list_back,
        trees::rbtree_add_impl,
        trees::rbtree_remove,
        trees::rbtree_first,
        trees::rbtree_root,
        trees::rbtree_left,
        trees::rbtree_right,
    }
    absent {
        dynptrs::probe_read_user_dynptr,
        dynptrs::probe_read_user_str_dynptr,
        dynptrs::copy_from_user_dynptr,
        dynptrs::copy_from_user_str_dynptr,
        dynptrs::copy_from_user_task_dynptr,
        dynptrs::copy_from_user_task_str_dynptr,
        iterators::iter_dmabuf_new,
        iterators::iter_dmabuf_next,
        iterators::iter_dmabuf_destroy,
        iterators::iter_kmem_cache_new,
        iterators::iter_kmem_cache_next,
        iterators::iter_kmem_cache_destroy,
        iterators::iter_task_vma_new,
        iterators::iter_task_vma_next,
        iterators::iter_task_vma_destroy,
    }
    unreached {
        cgroup_acquire,
        cgroup_ancestor,
        cgroup_release,
        copy_from_user_task_str,
        crypto_ctx_acquire,
        crypto_ctx_release,
        ct_change_status,
        ct_change_timeout,
        ct_release,
        get_task_exe_file,
        key_put,
        path_d_path,
        put_file,
        send_signal_task,
        task_acquire,
        task_get_cgroup1,
        task_release,
        task_under_cgroup,
        xdp_xfrm_state_release,
    }
}

/// The kfunc of Linux with a number of resolved code, if programs that call it cannot be loaded
/// to run, and why.
pub fn why_not(number: i32) -> Option<(&'static str, &'static str)> {
    let function = KernelFunction::of_number(number)?;
    let KernelFunction::Linux(_) = function else {
        return None;
    };
    let name = function.name()?;
    match state(name) {
        Some(state) => Some((name, state.why_not()?)),
        None => Some((name, "it is not built")),
    }
}

/// The register that returns an `int`: its upper half is 0, also of a negative number.
fn int(result: u64) -> u64 {
    u64::from(result as u32)
}

/// The number of a kfunc of Linux; a wrong name does not compile.
const fn number(name: &str) -> i32 {
    match KernelFunction::of_linux(name) {
        Some(function) => function.number(),
        None => panic!("no kfunc has this name"),
    }
}
