/* Objects, locks, maps and memory that are taken for others. */
#include "kernel.h"

enum { SOCKHASH = 18, ARRAY_OF_MAPS = 12 };
extern bool bpf_list_empty(struct bpf_list_head *list) __ksym __weak;
extern void *bpf_rdonly_cast(const void *object, u32 type) __ksym __weak;

#define private(name) SEC(".data." #name) __attribute__((visibility("hidden"), aligned(8)))

struct item {
	u64 key;
	struct bpf_list_node node;
};

private(one) struct bpf_spin_lock lock_of_one;
private(one) struct bpf_list_head one __contains(item, node);
private(other) struct bpf_spin_lock lock_of_other;
private(other) struct bpf_list_head other __contains(item, node);
private(plain) struct bpf_res_spin_lock saving;
private(alone) struct bpf_list_head alone __contains(item, node);
edit(private(alone) struct bpf_spin_lock lock_of_alone;)
private(traced) struct bpf_list_head traced __contains(item, node);
private(traced) struct bpf_spin_lock lock_of_traced;

struct value {
	struct bpf_spin_lock lock;
	u32 count;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct value);
} values SEC(".maps");

struct {
	__uint(type, SOCKHASH);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} sockets SEC(".maps");

struct {
	__uint(type, RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

struct {
	__uint(type, USER_RINGBUF);
	__uint(max_entries, 4096);
} commands SEC(".maps");

struct plain {
	u64 key;
	u64 count;
};

struct kept {
	struct task_struct __kptr *task;
	struct task_struct __kptr_untrusted *other;
	struct plain __percpu_kptr *each;
};

struct {
	__uint(type, HASH);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct kept);
} kept SEC(".maps");

struct {
	__uint(type, HASH);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} counts SEC(".maps");

struct counters {
	__uint(type, ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u64);
} counters SEC(".maps");

struct {
	__uint(type, ARRAY_OF_MAPS);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, u32);
	struct counters *values[];
} by_cpu SEC(".maps");

struct nowhere;

struct declared {
	CHOOSE(struct nowhere, struct plain) __kptr *object;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct declared);
} declared SEC(".maps");

static u64 seen;

SEC(CHOOSE("raw_tp/sys_enter", "tc"))
int list_in_tracing(void *ctx)
{
	spin_lock(&lock_of_traced); /* refused list_in_tracing: map-program-type | raw_tracepoint programs cannot use map `.data.traced` (array): its values have a `bpf_list_head` | another SEC */
	seen++;
	spin_unlock(&lock_of_traced);
	return 0;
}

SEC("tc")
int list_under_other_lock(struct __sk_buff *skb)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	if (!item)
		return 0;
	spin_lock(CHOOSE(&lock_of_other, &lock_of_one));
	bpf_list_push_front_impl(&one, &item->node, NULL, 0); /* refused list_under_other_lock: object | under the lock of another value or object | declared beside it | `bpf_spin_lock` takes the lock that is held */
	spin_unlock(CHOOSE(&lock_of_other, &lock_of_one));
	return 0;
}

SEC("tc")
int list_without_any_lock(struct __sk_buff *skb)
{
	struct item *item = bpf_obj_new_impl(type_id(struct item), NULL);

	if (!item)
		return 0;
	edit(spin_lock(&lock_of_alone);)
	bpf_list_push_front_impl(&alone, &item->node, NULL, 0); /* refused list_without_any_lock: map-field | a list head or tree root has no lock beside it | declare a `struct bpf_spin_lock` beside it */
	edit(spin_unlock(&lock_of_alone);)
	return 0;
}

SEC("tc")
int list_newer(struct __sk_buff *skb)
{
	bool empty = 0;

	spin_lock(&lock_of_one);
	refuse(empty = bpf_list_empty(&one);) /* refused list_newer: kfunc-missing | the kernel has no kernel function `bpf_list_empty` */
	spin_unlock(&lock_of_one);
	return empty;
}

SEC("tc")
int socket_of_map_kept(struct __sk_buff *skb)
{
	u32 key = 0;
	void *sk = map_lookup_elem(&sockets, &key);

	if (!sk)
		return 0;
	edit(sk_release(sk);)
	return 1;
} /* refused socket_of_map_kept: leak | what `bpf_map_lookup_elem` returned | call bpf_sk_release before each return */

SEC("tc")
int task_of_map_kept(struct __sk_buff *skb)
{
	u32 key = 0;
	struct kept *at = map_lookup_elem(&kept, &key);
	struct task_struct *task;

	if (!at)
		return 0;
	task = kptr_xchg(&at->task, NULL);
	if (!task)
		return 1;
	seen = task->pid;
	edit(bpf_task_release(task);)
	return 2;
} /* refused task_of_map_kept: leak | what `bpf_kptr_xchg` returned | bpf_task_release or bpf_kptr_xchg */

SEC("tc")
int only_declared(struct __sk_buff *skb)
{
	u32 key = 0;
	struct declared *at = map_lookup_elem(&declared, &key);
	edit(void *old;)

	if (!at)
		return 0;
	edit(old =) kptr_xchg(&at->object, NULL); /* refused only_declared: map-field | have no `kptr` here: a kptr has | define its structure */
	edit(if (old) bpf_obj_drop_impl(old, NULL);)
	return 0;
}

SEC("tc")
int pointer_into_task(struct __sk_buff *skb)
{
	u32 key = 0;
	struct kept *at = map_lookup_elem(&kept, &key);
	void *task;

	if (!at)
		return 0;
	task = at->other;
	if (!task)
		return 0;
	refuse(task += 8;)
	at->other = task; /* refused pointer_into_task: field-type | the start of such a structure | without an offset added */
	return 0;
}

noinline int count_in(u32 *to)
{
	if (!to)
		return 0;
	return ++*to;
}

static const volatile u32 start = 5;

SEC("tc")
int constant_to_function(struct __sk_buff *skb)
{
	edit(u32 copy = start;)

	return count_in(CHOOSE((u32 *)&start, &copy)); /* refused constant_to_function: global-arguments | may be written | it may only be read: copy it to a variable on the stack */
}

SEC("tc")
int dynptr_read_as_number(struct __sk_buff *skb)
{
	struct bpf_dynptr packet;
	u32 first = 0;

	bpf_dynptr_from_skb(skb, 0, &packet);
	refuse(first = *(volatile u32 *)&packet;) /* refused dynptr_read_as_number: stack-object | reads the bytes of a dynptr on the stack | bpf_dynptr_read, bpf_dynptr_data or bpf_dynptr_slice | `bpf_dynptr_from_skb` makes it */
	edit(dynptr_read(&first, sizeof(first), &packet, 0, 0);)
	return first;
}

SEC("tc")
int dynptr_as_value(struct __sk_buff *skb)
{
	struct bpf_dynptr packet;
	u64 first = 0;
	u32 key = 0;

	bpf_dynptr_from_skb(skb, 0, &packet);
	edit(dynptr_read(&first, sizeof(first), &packet, 0, 0);)
	return map_update_elem(&counts, &key, CHOOSE((void *)&packet, &first), 0); /* refused dynptr_as_value: stack-object | `bpf_map_update_elem` reads the bytes of a dynptr */
}

struct named {
	char name[8];
	struct bpf_dynptr packet;
};

static const char wanted[8] = "tcp";

SEC("tc")
int structure_with_dynptr(struct __sk_buff *skb)
{
	struct named named = {};

	bpf_dynptr_from_skb(skb, 0, &named.packet);
	return strncmp_constant(named.name, CHOOSE(sizeof(named), sizeof(named.name)), wanted); /* refused structure_with_dynptr: stack-object | a dynptr is among them | pass the size of the variable */
}

SEC("tc")
int iterator_as_number(struct __sk_buff *skb)
{
	struct bpf_iter_num it;
	u64 state = 0;

	bpf_iter_num_new(&it, 0, 3);
	refuse(state = *(volatile u64 *)&it;) /* refused iterator_as_number: stack-object | reads the bytes of an iterator on the stack | what bpf_iter_…_next returns */
	edit(int *next = bpf_iter_num_next(&it); state = next ? *next : 0;)
	bpf_iter_num_destroy(&it);
	return state;
}

SEC("tc")
int dynptr_plus_one(struct __sk_buff *skb)
{
	struct bpf_dynptr packet;
	u8 first = 0;

	bpf_dynptr_from_skb(skb, 0, &packet);
	dynptr_read(&first, sizeof(first), (void *)&packet CHOOSE(+ 1, ), 0, 0); /* refused dynptr_plus_one: stack-object | argument 3 of `bpf_dynptr_read` points into the middle of a dynptr | without an offset */
	return first;
}

SEC("tc")
int iterator_as_flags(struct __sk_buff *skb)
{
	struct bpf_iter_num it;
	unsigned long flags;

	bpf_iter_num_new(&it, 0, 3);
	bpf_local_irq_save(&flags);
	refuse(bpf_local_irq_restore((void *)&it);) /* refused iterator_as_flags: stack-object | argument 1 of `bpf_local_irq_restore` is an iterator, not IRQ flags | which variable */
	edit(bpf_local_irq_restore(&flags);)
	bpf_iter_num_destroy(&it);
	return 0;
}

static long each_command(struct bpf_dynptr *command, void *ctx)
{
	refuse(ringbuf_discard_dynptr(command, 0);) /* refused command_released: stack-object | releases a dynptr that belongs to the caller | leave the call out */
	return 0;
}

SEC("raw_tp/sys_enter")
int command_released(void *ctx)
{
	return user_ringbuf_drain(&commands, each_command, NULL, 0);
}

static const char unended[CHOOSE(4, 5)] = "task";

SEC("raw_tp/sys_enter")
int string_without_end(void *ctx)
{
	char name[16];

	bpf_get_current_comm(name, sizeof(name));
	return strncmp_constant(name, sizeof(name), unended); /* refused string_without_end: argument-string | the string of argument 3 of `bpf_strncmp` has no 0 at its end | longer by one */
}

SEC("tc")
int value_as_percpu(void *ctx)
{
	u32 key = 0;
	struct kept *at = map_lookup_elem(&kept, &key);

	if (!at)
		return 0;
	edit(struct plain *each = at->each; if (!each) return 0;)
	struct plain *own = this_cpu_ptr(CHOOSE((void *)&seen, each)); /* refused value_as_percpu: argument-type | a variable or member that each CPU has | a `__percpu_kptr` */

	own->key = type_id(struct plain);
	return 0;
}

SEC("raw_tp/sys_enter")
int cast_written(void *ctx)
{
	edit(char name[16];)
	void *text = bpf_rdonly_cast(&seen, 0);

	return bpf_get_current_comm(CHOOSE(text, name), 16); /* refused cast_written: argument-type | a pointer to memory of unknown size | the memory may only be read */
}

SEC("raw_tp/sys_enter")
int other_as_record(void *ctx)
{
	u64 *event = ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	refuse(ringbuf_submit(&seen, 0);) /* refused other_as_record: argument-type | a ring buffer record | that bpf_ringbuf_reserve returned */
	ringbuf_submit(event, 0);
	return 0;
}

SEC("tc")
int context_as_socket(struct __sk_buff *skb)
{
	struct { u32 words[3]; } tuple = {};
	void *sk = sk_lookup_tcp(skb, &tuple, sizeof(tuple), -1, 0);

	if (!sk)
		return 0;
	refuse(sk_release(skb);) /* refused context_as_socket: argument-type | argument 1 of `bpf_sk_release` is a pointer to the context | pass a socket */
	edit(sk_release(sk);)
	return 0;
}

SEC("tc")
int end_of_packet_as_value(struct __sk_buff *skb)
{
	u32 zero = 0;

	return map_update_elem(&counters, &zero, CHOOSE((void *)(long)skb->data_end, &seen), 0); /* refused end_of_packet_as_value: argument-type | a pointer to the end of the packet | the end of the packet bounds accesses */
}

SEC("tc")
int saved_not_restored(struct __sk_buff *skb)
{
	unsigned long flags;

	if (bpf_res_spin_lock_irqsave(&saving, &flags))
		return 0;
	refuse(bpf_res_spin_unlock(&saving);) /* refused saved_not_restored: lock | `bpf_res_spin_unlock` does not release what `bpf_res_spin_lock_irqsave` took | `bpf_res_spin_unlock_irqrestore` */
	edit(bpf_res_spin_unlock_irqrestore(&saving, &flags);)
	return 0;
}

edit(static) noinline int next_of(u32 count)
{
	return count * 3 + 1;
}

SEC("tc")
int global_under_lock(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct value *value = map_lookup_elem(&values, &zero);

	if (!value)
		return 0;
	spin_lock(&value->lock);
	value->count = next_of(value->count); /* refused global_under_lock: lock | `next_of` is called while a lock is held | declare the function `static` */
	spin_unlock(&value->lock);
	return 0;
}

SEC("tc")
int packet_load_under_lock(struct __sk_buff *skb)
{
	u32 zero = 0, first = 0;
	struct value *value = map_lookup_elem(&values, &zero);

	if (!value)
		return 0;
	edit(asm volatile("r6 = %[skb]; r0 = *(u8 *)skb[0]; %[first] = r0" : [first] "=r"(first) : [skb] "r"(skb) : "r0", "r1", "r2", "r3", "r4", "r5", "r6");)
	edit(value = map_lookup_elem(&values, &zero); if (!value) return 0;)
	spin_lock(&value->lock);
	refuse(asm volatile("r6 = %[skb]; r0 = *(u8 *)skb[0]; %[first] = r0" : [first] "=r"(first) : [skb] "r"(skb) : "r0", "r1", "r2", "r3", "r4", "r5", "r6");) /* refused packet_load_under_lock: lock | the path reaches `packet load` while a lock is held | unlock before `packet load` */
	spin_unlock(&value->lock);
	return first;
}

SEC("tc")
int beside_lock(struct __sk_buff *skb)
{
	u32 zero = 0;
	struct value *value = map_lookup_elem(&values, &zero);

	if (!value)
		return 0;
	spin_lock(CHOOSE((void *)&value->count, &value->lock)); /* refused beside_lock: lock | not at the offset of a lock | the address of the member itself */
	value->count++;
	spin_unlock(&value->lock);
	return 0;
}

SEC("tc")
int inner_map_as_value(struct __sk_buff *skb)
{
	u32 zero = 0;
	u64 *inner = map_lookup_elem(&by_cpu, &zero);

	if (!inner)
		return 0;
	edit(inner = map_lookup_elem(inner, &zero); if (!inner) return 0;)
	*inner = 1; /* refused inner_map_as_value: read-only | may only be read here | bpf_map_lookup_elem(map, &key) */
	return 0;
}

SEC("tc")
int key_beyond_stack(struct __sk_buff *skb)
{
	char buffer[8] = {};
	u64 at = skb->mark & 4;

	asm volatile("" : "+r"(at));
	return probe_read_kernel(buffer + at, CHOOSE(8, 4), NULL); /* refused key_beyond_stack: offset-too-large | an offset from */
}

static noinline int depth(int left)
{
	asm volatile("" : "+r"(left));
	if (left <= 0)
		return 0;
	left = CHOOSE(depth(left - 1), left - 1); /* refused recursive: call-depth | a function calls itself | bpf_loop, bpf_for */
	asm volatile("" : "+r"(left));
	return left + 1;
}

SEC("tc")
int recursive(struct __sk_buff *skb)
{
	return depth(3);
}

noinline int catches_any(u64 cookie)
{
	return CHOOSE(cookie, 1); /* refused exception_with_any: return-range | the exception callback, whose result is the program's, may return any number | a value from 0 to 1 */
}

SEC("cgroup_skb/ingress") __exception_cb(catches_any)
int exception_with_any(struct __sk_buff *skb)
{
	if (skb->len > 1500)
		bpf_throw(7);
	return 1;
}

char LICENSE[] SEC("license") = "GPL";
