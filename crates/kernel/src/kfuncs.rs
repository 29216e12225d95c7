//! Kernel functions (kfuncs) of Linux, and the bit operations, by the number that their calls
//! have in resolved code ([`KernelFunction::number`]).
//!
//! Prototypes and flags are those of the kernel's BTF and registry, which the verifier checks
//! calls by; [`state()`] says for every kfunc of Linux 6.18 what a call does here.

mod absence;
mod allocations;
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
mod sections;
mod state;
mod streams;
mod strings;
#[cfg(test)]
mod tests;
mod trees;
mod workqueues;
mod xdp;

use spec::bits::BitOp;
use spec::kfuncs::{CallState, KernelFunction};
use vm::{Helper, Implementation, ModelPort, direct_call};

use crate::call::helper;

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
        native { $($module:ident::$name:ident: $declared:literal,)* }
        checked { $($other:ident::$checked:ident: $checks:literal,)* }
        absent { $($empty:ident::$absent:ident: $lacks:literal,)* }
        unreached { $($unreached:ident: $takes:literal,)* }
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
                $(numbers::$op => helper!(bits::operation::<M, { BitOp::$op as usize }>),)*
                $(numbers::$name => helper!($module::$name),)*
                $(numbers::$checked => helper!($other::$checked),)*
                $(numbers::$absent => helper!($empty::$absent),)*
                $(numbers::$unreached => helper!(absence::unreached),)*
                _ => return None,
            })
        }

        /// The function of that number that code of verified programs calls; `None` if it is
        /// not built or follows pointers that the verifier does not check.
        pub fn find_call(number: i32) -> Option<Implementation> {
            Some(match number {
                $(numbers::$name => Implementation {
                    call: direct_call(helper!($module::$name)),
                    declared: $declared,
                },)*
                $(numbers::$unreached => Implementation {
                    call: direct_call(helper!(absence::unreached)),
                    declared: $takes,
                },)*
                _ => return None,
            })
        }

        /// What the kfunc of that number declares; see [`Implementation::declared`]. Bit
        /// operations have the types of their module.
        pub fn declared(number: i32) -> Option<&'static str> {
            Some(match number {
                $(numbers::$name => $declared,)*
                $(numbers::$checked => $checks,)*
                $(numbers::$absent => $lacks,)*
                $(numbers::$unreached => $takes,)*
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
        sections::rcu_read_lock: "-> void",
        sections::rcu_read_unlock: "-> void",
        sections::preempt_disable: "-> void",
        sections::preempt_enable: "-> void",
        casts::rdonly_cast: "void*__ign int:4__k -> void*",
        casts::cast_to_kern_ctx: "void* -> void*",
        maps::map_sum_elem_count: "bpf_map* -> int:8 trusted_args",
        arena::arena_alloc_pages: "void*__map void*__ign int:4 int:4 int:8 -> void* trusted_args",
        arena::arena_free_pages: "void*__map void*__ign int:4 -> void trusted_args",
        arena::arena_reserve_pages: "void*__map void*__ign int:4 -> int:4 trusted_args",
        xdp::xdp_pull_data: "xdp_md:24* int:4 -> int:4",
        conntrack::skb_ct_lookup:
            "__sk_buff* bpf_sock_tuple:36* int:4__sz bpf_ct_opts:16* int:4__sz -> nf_conn* acquire ret_null",
        conntrack::xdp_ct_lookup:
            "xdp_md:24* bpf_sock_tuple:36* int:4__sz bpf_ct_opts:16* int:4__sz -> nf_conn* acquire ret_null",
        absence::task_from_pid: "int:4 -> task_struct* acquire ret_null",
        absence::task_from_vpid: "int:4 -> task_struct* acquire ret_null",
        absence::cgroup_from_id: "int:8 -> cgroup* acquire ret_null",
        absence::get_kmem_cache: "int:8 -> kmem_cache*",
        absence::lookup_system_key: "int:8 -> bpf_key* acquire ret_null",
        absence::lookup_user_key: "int:4 int:8 -> bpf_key* acquire ret_null",
        absence::crypto_ctx_create:
            "bpf_crypto_params:408* int:4__sz int:4* -> bpf_crypto_ctx* acquire ret_null",
        absence::xdp_get_xfrm_state:
            "xdp_md:24* bpf_xfrm_state_opts:36* int:4__sz -> xfrm_state* acquire ret_null",
        absence::copy_from_user_str: "void* int:4__sz void*__ign int:8 -> int:4",
    }
    checked {
        strings::strcmp: "int:1*__ign@ int:1*__ign@ -> int:4",
        strings::strcasecmp: "int:1*__ign@ int:1*__ign@ -> int:4",
        strings::strlen: "int:1*__ign@ -> int:4",
        strings::strnlen: "int:1*__ign@ int:8 -> int:4",
        strings::strchr: "int:1*__ign@ int:1 -> int:4",
        strings::strnchr: "int:1*__ign@ int:8 int:1 -> int:4",
        strings::strchrnul: "int:1*__ign@ int:1 -> int:4",
        strings::strrchr: "int:1*__ign@ int:4 -> int:4",
        strings::strspn: "int:1*__ign@ int:1*__ign@ -> int:4",
        strings::strcspn: "int:1*__ign@ int:1*__ign@ -> int:4",
        strings::strstr: "int:1*__ign@ int:1*__ign@ -> int:4",
        strings::strnstr: "int:1*__ign@ int:1*__ign@ int:8 -> int:4",
        iterators::iter_num_new: "bpf_iter_num:8* int:4 int:4 -> int:4",
        iterators::iter_num_next: "bpf_iter_num:8* -> int:4* ret_null",
        iterators::iter_num_destroy: "bpf_iter_num:8* -> void",
        iterators::iter_bits_new: "bpf_iter_bits:16* int:8*__ign@ int:4 -> int:4",
        iterators::iter_bits_next: "bpf_iter_bits:16* -> int:4* ret_null",
        iterators::iter_bits_destroy: "bpf_iter_bits:16* -> void",
        exceptions::throw: "int:8 -> void",
        cpumasks::cpumask_create: "-> bpf_cpumask:1032* acquire ret_null",
        cpumasks::cpumask_acquire: "bpf_cpumask:1032* -> bpf_cpumask:1032* acquire trusted_args",
        cpumasks::cpumask_release: "bpf_cpumask:1032* -> void release",
        cpumasks::cpumask_set_cpu: "int:4 bpf_cpumask:1032* -> void rcu",
        cpumasks::cpumask_clear_cpu: "int:4 bpf_cpumask:1032* -> void rcu",
        cpumasks::cpumask_test_and_set_cpu: "int:4 bpf_cpumask:1032* -> int:1 rcu",
        cpumasks::cpumask_test_and_clear_cpu: "int:4 bpf_cpumask:1032* -> int:1 rcu",
        cpumasks::cpumask_test_cpu: "int:4 cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_setall: "bpf_cpumask:1032* -> void rcu",
        cpumasks::cpumask_clear: "bpf_cpumask:1032* -> void rcu",
        cpumasks::cpumask_copy: "bpf_cpumask:1032* cpumask:1024* -> void rcu",
        cpumasks::cpumask_populate: "cpumask:1024* void* int:8__sz -> int:4 rcu",
        cpumasks::cpumask_and: "bpf_cpumask:1032* cpumask:1024* cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_or: "bpf_cpumask:1032* cpumask:1024* cpumask:1024* -> void rcu",
        cpumasks::cpumask_xor: "bpf_cpumask:1032* cpumask:1024* cpumask:1024* -> void rcu",
        cpumasks::cpumask_equal: "cpumask:1024* cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_intersects: "cpumask:1024* cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_subset: "cpumask:1024* cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_empty: "cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_full: "cpumask:1024* -> int:1 rcu",
        cpumasks::cpumask_weight: "cpumask:1024* -> int:4 rcu",
        cpumasks::cpumask_first: "cpumask:1024* -> int:4 rcu",
        cpumasks::cpumask_first_zero: "cpumask:1024* -> int:4 rcu",
        cpumasks::cpumask_first_and: "cpumask:1024* cpumask:1024* -> int:4 rcu",
        cpumasks::cpumask_any_distribute: "cpumask:1024* -> int:4 rcu",
        cpumasks::cpumask_any_and_distribute: "cpumask:1024* cpumask:1024* -> int:4 rcu",
        workqueues::wq_init: "bpf_wq:16* void*__map int:4 -> int:4",
        workqueues::wq_set_callback_impl: "bpf_wq:16* * int:4 void*__prog -> int:4",
        workqueues::wq_start: "bpf_wq:16* int:4 -> int:4",
        locks::local_irq_save: "int:8*__irq_flag -> void",
        locks::local_irq_restore: "int:8*__irq_flag -> void",
        locks::res_spin_lock: "bpf_res_spin_lock:4* -> int:4 ret_null",
        locks::res_spin_unlock: "bpf_res_spin_lock:4* -> void",
        locks::res_spin_lock_irqsave: "bpf_res_spin_lock:4* int:8*__irq_flag -> int:4 ret_null",
        locks::res_spin_unlock_irqrestore: "bpf_res_spin_lock:4* int:8*__irq_flag -> void",
        streams::stream_vprintk_impl:
            "int:4 int:1*__str void*@ int:4__sz void*__prog -> int:4 trusted_args",
        dynptrs::dynptr_from_skb: "__sk_buff* int:8 bpf_dynptr:16*__uninit -> int:4 trusted_args",
        dynptrs::dynptr_from_skb_meta:
            "__sk_buff* int:8 bpf_dynptr:16*__uninit -> int:4 trusted_args",
        dynptrs::dynptr_from_xdp: "xdp_md:24* int:8 bpf_dynptr:16*__uninit -> int:4",
        dynptrs::dynptr_adjust: "bpf_dynptr:16* int:4 int:4 -> int:4",
        dynptrs::dynptr_clone: "bpf_dynptr:16* bpf_dynptr:16*__uninit -> int:4",
        dynptrs::dynptr_is_null: "bpf_dynptr:16* -> int:1",
        dynptrs::dynptr_is_rdonly: "bpf_dynptr:16* -> int:1",
        dynptrs::dynptr_size: "bpf_dynptr:16* -> int:4",
        dynptrs::dynptr_slice: "bpf_dynptr:16* int:4 void*__opt int:4__szk -> void* ret_null",
        dynptrs::dynptr_slice_rdwr: "bpf_dynptr:16* int:4 void*__opt int:4__szk -> void* ret_null",
        dynptrs::dynptr_copy: "bpf_dynptr:16* int:4 bpf_dynptr:16* int:4 int:4 -> int:4",
        dynptrs::dynptr_memset: "bpf_dynptr:16* int:4 int:4 int:1 -> int:4",
        dynptrs::probe_read_kernel_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign@ -> int:4",
        dynptrs::probe_read_kernel_str_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign@ -> int:4",
        allocations::obj_new_impl: "int:8__k void*__ign -> void* acquire ret_null",
        allocations::obj_drop_impl: "void*__alloc void*__ign -> void release",
        allocations::percpu_obj_new_impl: "int:8__k void*__ign -> void* acquire ret_null",
        allocations::percpu_obj_drop_impl: "void*__alloc void*__ign -> void release",
        allocations::refcount_acquire_impl:
            "void*__refcounted_kptr void*__ign -> void* acquire ret_null rcu",
        lists::list_push_front_impl:
            "bpf_list_head:16* bpf_list_node:24* void*__ign int:8 -> int:4",
        lists::list_push_back_impl: "bpf_list_head:16* bpf_list_node:24* void*__ign int:8 -> int:4",
        lists::list_pop_front: "bpf_list_head:16* -> bpf_list_node:24* acquire ret_null",
        lists::list_pop_back: "bpf_list_head:16* -> bpf_list_node:24* acquire ret_null",
        lists::list_front: "bpf_list_head:16* -> bpf_list_node:24* ret_null",
        lists::list_back: "bpf_list_head:16* -> bpf_list_node:24* ret_null",
        trees::rbtree_add_impl: "bpf_rb_root:16* bpf_rb_node:32* * void*__ign int:8 -> int:4",
        trees::rbtree_remove: "bpf_rb_root:16* bpf_rb_node:32* -> bpf_rb_node:32* acquire ret_null",
        trees::rbtree_first: "bpf_rb_root:16* -> bpf_rb_node:32* ret_null",
        trees::rbtree_root: "bpf_rb_root:16* -> bpf_rb_node:32* ret_null",
        trees::rbtree_left: "bpf_rb_root:16* bpf_rb_node:32* -> bpf_rb_node:32* ret_null",
        trees::rbtree_right: "bpf_rb_root:16* bpf_rb_node:32* -> bpf_rb_node:32* ret_null",
    }
    absent {
        dynptrs::probe_read_user_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign -> int:4",
        dynptrs::probe_read_user_str_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign -> int:4",
        dynptrs::copy_from_user_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign -> int:4",
        dynptrs::copy_from_user_str_dynptr: "bpf_dynptr:16* int:4 int:4 void*__ign -> int:4",
        dynptrs::copy_from_user_task_dynptr:
            "bpf_dynptr:16* int:4 int:4 void*__ign task_struct* -> int:4 trusted_args",
        dynptrs::copy_from_user_task_str_dynptr:
            "bpf_dynptr:16* int:4 int:4 void*__ign task_struct* -> int:4 trusted_args",
        iterators::iter_dmabuf_new: "bpf_iter_dmabuf:8* -> int:4",
        iterators::iter_dmabuf_next: "bpf_iter_dmabuf:8* -> dma_buf* ret_null",
        iterators::iter_dmabuf_destroy: "bpf_iter_dmabuf:8* -> void",
        iterators::iter_kmem_cache_new: "bpf_iter_kmem_cache:8* -> int:4",
        iterators::iter_kmem_cache_next: "bpf_iter_kmem_cache:8* -> kmem_cache* ret_null",
        iterators::iter_kmem_cache_destroy: "bpf_iter_kmem_cache:8* -> void",
        iterators::iter_task_vma_new: "bpf_iter_task_vma:8* task_struct* int:8 -> int:4 rcu",
        iterators::iter_task_vma_next: "bpf_iter_task_vma:8* -> vm_area_struct* ret_null",
        iterators::iter_task_vma_destroy: "bpf_iter_task_vma:8* -> void",
    }
    unreached {
        cgroup_acquire: "cgroup* -> cgroup* acquire ret_null rcu",
        cgroup_ancestor: "cgroup* int:4 -> cgroup* acquire ret_null rcu",
        cgroup_release: "cgroup* -> void release",
        copy_from_user_task_str: "void* int:4__sz void*__ign task_struct* int:8 -> int:4",
        crypto_ctx_acquire: "bpf_crypto_ctx* -> bpf_crypto_ctx* acquire ret_null rcu",
        crypto_ctx_release: "bpf_crypto_ctx* -> void release",
        ct_change_status: "nf_conn* int:4 -> int:4 trusted_args",
        ct_change_timeout: "nf_conn* int:4 -> int:4 trusted_args",
        ct_release: "nf_conn* -> void release",
        get_task_exe_file: "task_struct* -> file* acquire ret_null trusted_args",
        key_put: "bpf_key* -> void release",
        path_d_path: "path* int:1* int:8__sz -> int:4 trusted_args",
        put_file: "file* -> void release",
        send_signal_task: "task_struct* int:4 int:4 int:8 -> int:4 trusted_args",
        task_acquire: "task_struct* -> task_struct* acquire ret_null rcu",
        task_get_cgroup1: "task_struct* int:4 -> cgroup* acquire ret_null rcu",
        task_release: "task_struct* -> void release",
        task_under_cgroup: "task_struct* cgroup* -> int:8 rcu",
        xdp_xfrm_state_release: "xfrm_state* -> void release",
    }
}

/// The kfunc of Linux with a number of resolved code, if programs that call it cannot be loaded
/// to run, and why.
pub fn why_not(number: i32) -> Option<(&'static str, &'static str)> {
    let function = KernelFunction::from_number(number)?;
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
