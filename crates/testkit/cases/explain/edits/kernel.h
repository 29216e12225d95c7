/*
 * What the programs here need of the kernel's headers beyond edits.h: structures, helpers by number
 * and kernel functions by name.
 */
#include "edits.h"

typedef _Bool bool;

#define __ksym __attribute__((section(".ksyms")))
#define __weak __attribute__((weak))
#define __kptr __attribute__((btf_type_tag("kptr")))
#define __kptr_untrusted __attribute__((btf_type_tag("kptr_untrusted")))
#define __percpu_kptr __attribute__((btf_type_tag("percpu_kptr")))
#define __contains(type, node) __attribute__((btf_decl_tag("contains:" #type ":" #node)))
#define __exception_cb(name) __attribute__((btf_decl_tag("exception_callback:" #name)))
#define __arg_nonnull __attribute__((btf_decl_tag("arg:nonnull")))
#define __arg_trusted __attribute__((btf_decl_tag("arg:trusted")))
#define __arg_nullable __attribute__((btf_decl_tag("arg:nullable")))
#define __arg_ctx __attribute__((btf_decl_tag("arg:ctx")))
#define type_id(type) __builtin_btf_type_id(*(type *)0, 0)
#define type_id_kernel(type) __builtin_btf_type_id(*(type *)0, 1)
#define container_of(pointer, type, member) \
	((type *)((void *)(pointer) - __builtin_offsetof(type, member)))
#define NULL ((void *)0)

/* Text of the refused or of the edited program only */
#ifdef EDIT
#define edit(...) __VA_ARGS__
#define refuse(...)
#else
#define edit(...)
#define refuse(...) __VA_ARGS__
#endif

/* An argument of a program whose context holds those of a function */
#define ARG(type, index) ((type)ctx[index])

enum { RINGBUF = 27, PERCPU_ARRAY = 6, LRU_HASH = 9, PROG_ARRAY = 3, USER_RINGBUF = 31, ARENA = 33 };
enum { BPF_F_MMAPABLE = 1 << 10 };

struct bpf_spin_lock { u32 val; };
struct bpf_res_spin_lock { u32 val; };
struct bpf_timer { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_wq { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_dynptr { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_list_head { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_list_node { u64 opaque[3]; } __attribute__((aligned(8)));
struct bpf_rb_root { u64 opaque[2]; } __attribute__((aligned(8)));
struct bpf_rb_node { u64 opaque[4]; } __attribute__((aligned(8)));
struct bpf_refcount { u32 opaque[1]; } __attribute__((aligned(4)));
struct bpf_iter_num { u64 opaque[1]; } __attribute__((aligned(8)));
struct bpf_iter_task { u64 opaque[3]; } __attribute__((aligned(8)));
struct bpf_iter_task_vma { u64 opaque[1]; } __attribute__((aligned(8)));
struct bpf_iter_css { u64 opaque[3]; } __attribute__((aligned(8)));
struct bpf_iter_bits { u64 opaque[2]; } __attribute__((aligned(8)));

/* Kernel functions are found by name and prototype, for which a declaration is not enough. */
struct cpumask { unsigned long bits[1]; } core;
struct bpf_cpumask { struct cpumask cpumask; } core;
struct cgroup_subsys_state { struct cgroup *cgroup; } core;
struct vm_area_struct { u64 vm_start; } core;
struct mm_struct { u64 start_code; } core;
struct path { struct dentry *dentry; } core;
struct file {
	struct path f_path;
	u32 f_flags;
} core;
struct css_set;
struct task_struct {
	s32 pid;
	s32 tgid;
	struct task_struct *real_parent;
	struct task_struct *last_wakee;
	struct css_set *cgroups;
	const struct cpumask *cpus_ptr;
	struct mm_struct *mm;
	char comm[16];
} core;
struct cgroup {
	struct cgroup *old_dom_cgrp;
} core;
struct css_set {
	struct cgroup *dfl_cgrp;
} core;
struct sk_buff {
	u32 len;
	struct sk_buff *next;
} core;
struct sock {
	u32 sk_rcvbuf;
} core;
struct linux_binprm {
	struct file *file;
} core;

static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static long (*const bpf_get_current_comm)(void *to, u32 size) = (void *)16;
static u64 (*const bpf_get_current_pid_tgid)(void) = (void *)14;
static long (*const tail_call)(void *ctx, void *map, u32 index) = (void *)12;
static long (*const skb_pull_data)(struct __sk_buff *ctx, u32 length) = (void *)39;
static long (*const xdp_adjust_head)(struct xdp_md *ctx, int delta) = (void *)44;
static void *(*const sk_lookup_tcp)(void *ctx, void *tuple, u32 size, u64 netns,
				    u64 flags) = (void *)84;
static void *(*const sk_lookup_udp)(void *ctx, void *tuple, u32 size, u64 netns,
				    u64 flags) = (void *)85;
static long (*const sk_release)(void *sk) = (void *)86;
static long (*const spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static long (*const spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*const skc_lookup_tcp)(void *ctx, void *tuple, u32 size, u64 netns,
				     u64 flags) = (void *)99;
static void *(*const sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static void *(*const ringbuf_reserve)(void *ringbuf, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static void (*const ringbuf_discard)(void *data, u64 flags) = (void *)133;
static long (*const ringbuf_output)(void *ringbuf, void *data, u64 size, u64 flags) = (void *)130;
static void *(*const per_cpu_ptr)(const void *variable, u32 cpu) = (void *)153;
static void *(*const this_cpu_ptr)(const void *variable) = (void *)154;
static long (*const copy_from_user)(void *to, u32 size, const void *from) = (void *)148;
static void *(*const task_storage_get)(void *map, struct task_struct *task, void *value,
				       u64 flags) = (void *)156;
static struct task_struct *(*const get_current_task_btf)(void) = (void *)158;
static long (*const for_each_map_elem)(void *map, void *callback, void *ctx, u64 flags) = (void *)164;
static long (*const timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*const timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const timer_start)(struct bpf_timer *timer, u64 ns, u64 flags) = (void *)171;
static long (*const find_vma)(struct task_struct *task, u64 address, void *callback, void *ctx,
			      u64 flags) = (void *)180;
static long (*const strncmp_constant)(const char *text, u32 size, const char *other) = (void *)182;
static void *(*const kptr_xchg)(void *at, void *object) = (void *)194;
static long (*const dynptr_from_mem)(void *data, u32 size, u64 flags,
				     struct bpf_dynptr *to) = (void *)197;
static long (*const ringbuf_reserve_dynptr)(void *ringbuf, u32 size, u64 flags,
					    struct bpf_dynptr *to) = (void *)198;
static void (*const ringbuf_submit_dynptr)(struct bpf_dynptr *record, u64 flags) = (void *)199;
static void (*const ringbuf_discard_dynptr)(struct bpf_dynptr *record, u64 flags) = (void *)200;
static long (*const dynptr_read)(void *to, u32 size, const struct bpf_dynptr *from, u32 off,
				 u64 flags) = (void *)201;
static long (*const dynptr_write)(const struct bpf_dynptr *to, u32 off, void *from, u32 size,
				  u64 flags) = (void *)202;
static void *(*const dynptr_data)(const struct bpf_dynptr *from, u32 off, u32 size) = (void *)203;
static long (*const user_ringbuf_drain)(void *map, void *callback, void *ctx, u64 flags) = (void *)209;

extern struct task_struct *bpf_task_acquire(struct task_struct *task) __ksym;
extern void bpf_task_release(struct task_struct *task) __ksym;
extern struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
extern struct cgroup *bpf_cgroup_acquire(struct cgroup *cgroup) __ksym;
extern void bpf_cgroup_release(struct cgroup *cgroup) __ksym;
extern struct cgroup *bpf_cgroup_from_id(u64 id) __ksym;
extern struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgroup, int level) __ksym;
extern long bpf_task_under_cgroup(struct task_struct *task, struct cgroup *cgroup) __ksym;
extern struct bpf_cpumask *bpf_cpumask_create(void) __ksym;
extern void bpf_cpumask_release(struct bpf_cpumask *mask) __ksym;
extern struct bpf_cpumask *bpf_cpumask_acquire(struct bpf_cpumask *mask) __ksym;
extern void bpf_cpumask_set_cpu(u32 cpu, struct bpf_cpumask *mask) __ksym;
extern bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask) __ksym;
extern u32 bpf_cpumask_first(const struct cpumask *mask) __ksym;
extern void bpf_rcu_read_lock(void) __ksym;
extern void bpf_rcu_read_unlock(void) __ksym;
extern void bpf_preempt_disable(void) __ksym;
extern void bpf_preempt_enable(void) __ksym;
extern void bpf_local_irq_save(unsigned long *flags) __ksym;
extern void bpf_local_irq_restore(unsigned long *flags) __ksym;
extern int bpf_res_spin_lock(struct bpf_res_spin_lock *lock) __ksym;
extern void bpf_res_spin_unlock(struct bpf_res_spin_lock *lock) __ksym;
extern int bpf_res_spin_lock_irqsave(struct bpf_res_spin_lock *lock, unsigned long *flags) __ksym;
extern void bpf_res_spin_unlock_irqrestore(struct bpf_res_spin_lock *lock,
					   unsigned long *flags) __ksym;
extern int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
extern int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
extern void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
extern int bpf_iter_task_new(struct bpf_iter_task *it, struct task_struct *task, u32 flags) __ksym;
extern struct task_struct *bpf_iter_task_next(struct bpf_iter_task *it) __ksym;
extern void bpf_iter_task_destroy(struct bpf_iter_task *it) __ksym;
extern int bpf_iter_task_vma_new(struct bpf_iter_task_vma *it, struct task_struct *task,
				 u64 address) __ksym;
extern struct vm_area_struct *bpf_iter_task_vma_next(struct bpf_iter_task_vma *it) __ksym;
extern void bpf_iter_task_vma_destroy(struct bpf_iter_task_vma *it) __ksym;
extern int bpf_iter_bits_new(struct bpf_iter_bits *it, const u64 *words, u32 count) __ksym;
extern int *bpf_iter_bits_next(struct bpf_iter_bits *it) __ksym;
extern void bpf_iter_bits_destroy(struct bpf_iter_bits *it) __ksym;
extern int bpf_dynptr_from_skb(struct __sk_buff *skb, u64 flags, struct bpf_dynptr *to) __ksym;
extern int bpf_dynptr_from_xdp(struct xdp_md *xdp, u64 flags, struct bpf_dynptr *to) __ksym;
extern void *bpf_dynptr_slice(const struct bpf_dynptr *from, u32 off, void *buffer,
			      u32 size) __ksym;
extern void *bpf_dynptr_slice_rdwr(const struct bpf_dynptr *from, u32 off, void *buffer,
				   u32 size) __ksym;
extern int bpf_dynptr_clone(const struct bpf_dynptr *from, struct bpf_dynptr *to) __ksym;
extern int bpf_dynptr_adjust(const struct bpf_dynptr *at, u32 start, u32 end) __ksym;
extern u32 bpf_dynptr_size(const struct bpf_dynptr *at) __ksym;
extern void *bpf_obj_new_impl(u64 type, void *meta) __ksym;
extern void bpf_obj_drop_impl(void *object, void *meta) __ksym;
extern void *bpf_percpu_obj_new_impl(u64 type, void *meta) __ksym;
extern void bpf_percpu_obj_drop_impl(void *object, void *meta) __ksym;
extern void *bpf_refcount_acquire_impl(void *object, void *meta) __ksym;
extern int bpf_list_push_front_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				    void *meta, u64 off) __ksym;
extern int bpf_list_push_back_impl(struct bpf_list_head *head, struct bpf_list_node *node,
				   void *meta, u64 off) __ksym;
extern struct bpf_list_node *bpf_list_pop_front(struct bpf_list_head *head) __ksym;
extern struct bpf_list_node *bpf_list_front(struct bpf_list_head *head) __ksym;
extern int bpf_rbtree_add_impl(struct bpf_rb_root *root, struct bpf_rb_node *node,
			       bool less(struct bpf_rb_node *, const struct bpf_rb_node *),
			       void *meta, u64 off) __ksym;
extern struct bpf_rb_node *bpf_rbtree_remove(struct bpf_rb_root *root,
					     struct bpf_rb_node *node) __ksym;
extern struct bpf_rb_node *bpf_rbtree_first(struct bpf_rb_root *root) __ksym;
extern void bpf_throw(u64 cookie) __ksym;
extern int bpf_wq_init(struct bpf_wq *wq, void *map, u32 flags) __ksym;
extern int bpf_wq_start(struct bpf_wq *wq, u32 flags) __ksym;
extern int bpf_wq_set_callback_impl(struct bpf_wq *wq, int callback(void *map, int *key, void *value),
				    u32 flags, void *aux) __ksym;
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym;
extern void *bpf_cast_to_kern_ctx(void *object) __ksym;
extern int bpf_copy_from_user_str(void *to, u32 size, const void *from, u64 flags) __ksym;
extern int bpf_strcmp(const char *one, const char *other) __ksym;
