//! Functions of the program that helpers and kfuncs call.

use isa::ebpf::Reg;

/// A function of the program, by who calls it (`set_callee_state_fn`).
#[doc(alias = "set_callee_state_fn")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallbackKind {
    /// `bpf_for_each_map_elem` calls it for each element (`set_map_elem_callback_state`).
    #[doc(alias = "set_map_elem_callback_state")]
    MapElement,
    /// `bpf_loop` calls it for each iteration (`set_loop_callback_state`).
    #[doc(alias = "set_loop_callback_state")]
    Loop,
    /// A timer calls it (`set_timer_callback_state`).
    #[doc(alias = "set_timer_callback_state")]
    Timer,
    /// `bpf_find_vma` calls it for the area that it finds (`set_find_vma_callback_state`).
    #[doc(alias = "set_find_vma_callback_state")]
    FindVma,
    /// `bpf_user_ringbuf_drain` calls it for each sample (`set_user_ringbuf_callback_state`).
    #[doc(alias = "set_user_ringbuf_callback_state")]
    UserRingbuf,
    /// `bpf_rbtree_add` calls it to compare (`set_rbtree_add_callback_state`,
    /// `is_rbtree_lock_required_kfunc`).
    #[doc(alias = "set_rbtree_add_callback_state")]
    #[doc(alias = "is_rbtree_lock_required_kfunc")]
    RbtreeAdd,
    /// A work queue calls it (`is_bpf_wq_set_callback_kfunc`, `is_bpf_wq_set_callback_impl_kfunc`).
    #[doc(alias = "is_bpf_wq_set_callback_kfunc")]
    #[doc(alias = "is_bpf_wq_set_callback_impl_kfunc")]
    Workqueue,
    /// A task calls it (`set_task_work_schedule_callback_state`, `is_task_work_add_kfunc`).
    #[doc(alias = "set_task_work_schedule_callback_state")]
    #[doc(alias = "is_task_work_add_kfunc")]
    TaskWork,
}

/// What goes by the kind of a function that is called back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackRules {
    /// The register in which the call gets it.
    pub register: Reg,
    /// The register of the call whose value is given to the function, and the register in which it gets it;
    /// `None` if it gets objects of the kernel only.
    pub given: Option<(Reg, Reg)>,
    /// It is called after the call returned (`is_async_callback_calling_function`), not before
    /// (`is_sync_callback_calling_function`).
    #[doc(alias = "is_async_callback_calling_function")]
    #[doc(alias = "is_sync_callback_calling_function")]
    pub is_async: bool,
    /// It may sleep (`is_async_cb_sleepable`).
    #[doc(alias = "is_async_cb_sleepable")]
    pub may_sleep: bool,
    /// Numbers that it may return, from the least to the greatest.
    pub returns: (i32, i32),
}

impl CallbackKind {
    /// Its rules.
    pub const fn rules(self) -> CallbackRules {
        const ANY: (i32, i32) = (i32::MIN, i32::MAX);
        let (register, given, is_async, may_sleep, returns) = match self {
            CallbackKind::MapElement => (Reg::R2, Some((Reg::R3, Reg::R4)), false, false, (0, 1)),
            CallbackKind::Loop => (Reg::R2, Some((Reg::R3, Reg::R2)), false, false, (0, 1)),
            CallbackKind::Timer => (Reg::R2, None, true, false, (0, 0)),
            CallbackKind::FindVma => (Reg::R3, Some((Reg::R4, Reg::R3)), false, false, (0, 1)),
            CallbackKind::UserRingbuf => (Reg::R2, Some((Reg::R3, Reg::R2)), false, false, (0, 1)),
            CallbackKind::RbtreeAdd => (Reg::R3, None, false, false, (0, 1)),
            CallbackKind::Workqueue => (Reg::R2, None, true, true, (0, 0)),
            CallbackKind::TaskWork => (Reg::R4, None, true, true, ANY),
        };
        CallbackRules {
            register,
            given,
            is_async,
            may_sleep,
            returns,
        }
    }

    /// True if it is called after the call returned.
    pub const fn is_async(self) -> bool {
        self.rules().is_async
    }
}
