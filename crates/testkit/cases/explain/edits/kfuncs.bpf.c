/* Arguments of kernel functions, and trust in pointers. */
#include "kernel.h"

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} numbers SEC(".maps");

extern int bpf_no_such_function(u32 value) __ksym __weak;
extern struct task_struct *bpf_task_from_vpid(s32 pid) __ksym;
extern u64 bpf_get_fsverity_digest(struct file *file, struct bpf_dynptr *digest) __ksym __weak;

SEC("tc")
int copy_on_stack(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;
	struct task_struct copy = {};

	own = bpf_task_acquire(CHOOSE(&copy, task)); /* refused copy_on_stack: argument-type | argument 1 of `bpf_task_acquire` is a pointer to the stack | a copy on the stack is no object of the kernel */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int null_constant(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	struct task_struct *own = bpf_task_acquire(CHOOSE(NULL, task)); /* refused null_constant: not-a-pointer | argument 1 of `bpf_task_acquire` is the constant null | pass an object, or leave out the call */

	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int result_unchecked(struct __sk_buff *ctx)
{
	struct cgroup *cgroup = bpf_cgroup_from_id(1), *up;

	edit(if (!cgroup) return 0;)
	up = bpf_cgroup_ancestor(cgroup, 0); /* refused result_unchecked: maybe-null | argument 1 of `bpf_cgroup_ancestor` is the result of `bpf_cgroup_from_id`, which may be null | check it right behind the call */
	if (up)
		bpf_cgroup_release(up);
	if (cgroup)
		bpf_cgroup_release(cgroup);
	return 0;
}

SEC("tc")
int other_object(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	struct cgroup *cgroup = bpf_cgroup_from_id(1), *own;

	if (!cgroup)
		return 0;
	own = bpf_cgroup_acquire(CHOOSE((struct cgroup *)task, cgroup)); /* refused other_object: argument-type | argument 1 of `bpf_cgroup_acquire` is a pointer to `struct task_struct` | a pointer to a `struct cgroup` | a cast in C changes nothing */
	if (own)
		bpf_cgroup_release(own);
	bpf_cgroup_release(cgroup);
	return 0;
}

SEC("tc")
int number_for_object(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;
	u64 word = ktime_get_ns();

	own = bpf_task_acquire(CHOOSE((void *)word, task)); /* refused number_for_object: argument-type | argument 1 of `bpf_task_acquire` is any number | a number is no pointer to an object */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int map_value_for_object(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;
	u32 zero = 0;
	void *value = map_lookup_elem(&numbers, &zero);

	if (!value)
		return 0;
	own = bpf_task_acquire(CHOOSE(value, task)); /* refused map_value_for_object: argument-type | argument 1 of `bpf_task_acquire` is a pointer to a value of map | memory of the program is no object of the kernel */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("syscall")
int member_untrusted(void *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;

	own = bpf_task_acquire(CHOOSE(task->last_wakee, task)); /* refused member_untrusted: argument-untrusted | argument 1 of `bpf_task_acquire` is a pointer to `struct task_struct` that was read from `struct task_struct`, and may be gone | or pass the object itself | reads it from `struct task_struct` */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("syscall")
int parent_without_rcu(void *ctx)
{
	struct task_struct *task = get_current_task_btf(), *parent, *own;

	edit(bpf_rcu_read_lock();)
	parent = task->real_parent;
	own = bpf_task_acquire(parent); /* refused parent_without_rcu: argument-untrusted | that was read from `struct task_struct` | read the member between bpf_rcu_read_lock and bpf_rcu_read_unlock */
	edit(bpf_rcu_read_unlock();)
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("syscall")
int parent_after_unlock(void *ctx)
{
	struct task_struct *task = get_current_task_btf(), *parent, *own;

	bpf_rcu_read_lock();
	parent = task->real_parent;
	edit(own = bpf_task_acquire(parent);)
	bpf_rcu_read_unlock();
	refuse(own = bpf_task_acquire(parent);) /* refused parent_after_unlock: argument-untrusted | that is valid only until `bpf_rcu_read_unlock` | call `bpf_task_acquire` before `bpf_rcu_read_unlock` | ends the section in which the pointer was valid */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int cast_is_untrusted(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;
	struct task_struct *cast = bpf_rdonly_cast(task, type_id_kernel(struct task_struct));

	own = bpf_task_acquire(CHOOSE(cast, task)); /* refused cast_is_untrusted: argument-untrusted | that a cast made | bpf_rdonly_cast are for reading only */
	if (own)
		bpf_task_release(own);
	return cast->pid;
}

SEC("tc")
int cast_to_number(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	struct task_struct *cast = bpf_rdonly_cast(task, CHOOSE(type_id_kernel(int), type_id_kernel(struct task_struct))); /* refused cast_to_number: argument-type | argument 2 of `bpf_rdonly_cast` | the id of a structure of the kernel's types */

	return cast->pid;
}

SEC("tc")
int moved_pointer(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf(), *own;

	own = bpf_task_acquire(CHOOSE((void *)task + 8, (void *)task)); /* refused moved_pointer: modified-pointer | argument 1 of `bpf_task_acquire`, a pointer to `struct task_struct`, has offset 8 | pass the pointer itself */
	if (own)
		bpf_task_release(own);
	return 0;
}

SEC("tc")
int size_too_large(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u8 buffer[16] = {}, *bytes;

	bpf_dynptr_from_skb(ctx, 0, &packet);
	bytes = bpf_dynptr_slice(&packet, 0, buffer, CHOOSE(4000, 16)); /* refused size_too_large: out-of-bounds | an access of 4000 bytes at fp-32 is outside of the stack | pass the size of the buffer */
	return bytes ? 1 : 0;
}

SEC("tc")
int buffer_is_a_number(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u8 buffer[16] = {}, *bytes;
	u64 word = ktime_get_ns();

	bpf_dynptr_from_skb(ctx, 0, &packet);
	bytes = bpf_dynptr_slice(&packet, 0, CHOOSE((void *)word, (void *)buffer), 16); /* refused buffer_is_a_number: argument-type | argument 3 of `bpf_dynptr_slice` is any number | memory of the program: the stack, a map value, the packet, or a record */
	return bytes ? 1 : 0;
}

SEC("syscall")
int size_unbounded(void *ctx)
{
	static char text[16];
	u64 size = ktime_get_ns();

	edit(if (size > sizeof(text)) return 0;)
	return bpf_copy_from_user_str(text, size, NULL, 0); /* refused size_unbounded: size-unbounded | argument 2 of `bpf_copy_from_user_str`, a size, has no upper bound */
}

SEC("tc")
int context_expected(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;
	u64 words[24] = {};

	bpf_dynptr_from_skb(CHOOSE((void *)words, ctx), 0, &packet); /* refused context_expected: argument-type | argument 1 of `bpf_dynptr_from_skb` is a pointer to the stack | pass the program's own `ctx` */
	return bpf_dynptr_size(&packet);
}

SEC(CHOOSE("xdp", "tc"))
int other_program_type(void *ctx)
{
	struct bpf_dynptr packet;

	bpf_dynptr_from_skb(ctx, 0, &packet); /* refused other_program_type: kfunc-unavailable | xdp programs cannot call the kernel function `bpf_dynptr_from_skb` | a program of type | sched_cls */
	return bpf_dynptr_size(&packet);
}

SEC(CHOOSE("socket", "tc"))
int task_in_socket_filter(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1); /* refused task_in_socket_filter: kfunc-unavailable | socket_filter programs cannot call the kernel function `bpf_task_from_pid` | another program type */

	if (task)
		bpf_task_release(task);
	return 0;
}

SEC("tc")
int kfunc_absent(struct __sk_buff *ctx)
{
	edit(if (!bpf_no_such_function) return 0;)
	return bpf_no_such_function(ctx->len); /* refused kfunc_absent: kfunc-missing | the kernel has no kernel function `bpf_no_such_function` | --module-btf FILE | bpf_ksym_exists(bpf_no_such_function) */
}

SEC("tc")
int string_on_stack(struct __sk_buff *ctx)
{
	char text[4] = "abc";
	static const char constant[] = "abc";

	return strncmp_constant(text, sizeof(text), CHOOSE(text, constant)); /* refused string_on_stack: argument-string | argument 3 of `bpf_strncmp` is not a constant string | .rodata */
}

SEC("tc")
int scalar_expected(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;

	bpf_dynptr_from_skb(ctx, CHOOSE((u64)ctx, 0), &packet); /* refused scalar_expected: argument-type | argument 2 of `bpf_dynptr_from_skb` is a pointer to the context | a number */
	return bpf_dynptr_size(&packet);
}

SEC("tc")
int written_object(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();

	refuse(task->pid = 1;) /* refused written_object: kernel-object | this program may not write to `struct task_struct` | changed by helpers and kernel functions */
	return task->pid;
}

SEC("tc")
int read_into_object(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	char name[16];

	probe_read_kernel(CHOOSE(task->comm, name), sizeof(name), task->comm); /* refused read_into_object: read-only | `struct task_struct` may only be read here | the address of a variable on the stack */
	return 0;
}

SEC("tc")
int too_many_bytes(struct __sk_buff *ctx)
{
	struct task_struct *task = get_current_task_btf();
	static const char init[] = "swapper";

	return strncmp_constant(task->comm, CHOOSE(17, 16), init); /* refused too_many_bytes: kernel-object | access beyond the end of member comm | the size of the access */
}

char LICENSE[] SEC("license") = "GPL";
