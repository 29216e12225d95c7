/*
 * The smallest program of each frequent refusal. docs/refusals.md is written from the parts between
 * the comments `refusal: LINE`, where a star stands for what differs; `users:` names those that the
 * kernel's own tests have seldom.
 */
#include "kernel.h"

#define bpf_map_lookup_elem map_lookup_elem
#define bpf_map_update_elem map_update_elem
#define bpf_probe_read_kernel probe_read_kernel
#define bpf_ktime_get_ns ktime_get_ns
#define bpf_spin_lock(lock) spin_lock(lock)
#define bpf_spin_unlock(lock) spin_unlock(lock)
#define bpf_skb_load_bytes skb_load_bytes
#define bpf_get_current_task_btf get_current_task_btf
#define bpf_ringbuf_reserve ringbuf_reserve
#define bpf_ringbuf_submit ringbuf_submit
#define bpf_ringbuf_discard ringbuf_discard
#define bpf_copy_from_user copy_from_user
#define bpf_dynptr_read dynptr_read
#define bpf_tail_call tail_call
#define bpf_loop loop
#define bpf_get_prandom_u32 get_prandom_u32
#define bpf_ringbuf_output ringbuf_output
#define bpf_get_current_task get_current_task
#define bpf_obj_new(type) ((type *)bpf_obj_new_impl(type_id(type), NULL))
#define bpf_list_push_front(list, node) bpf_list_push_front_impl(list, node, NULL, 0)
#define private(name) SEC(".data." #name) __attribute__((visibility("hidden"), aligned(8)))
#define bpf_ringbuf_reserve_dynptr ringbuf_reserve_dynptr
#define bpf_ringbuf_submit_dynptr ringbuf_submit_dynptr
#define bpf_dynptr_data dynptr_data
#define bpf_kptr_xchg kptr_xchg
#define bpf_sk_release sk_release
#define bpf_sock sk_socket_full
#define BPF_MAP_TYPE_ARRAY ARRAY
#define BPF_MAP_TYPE_HASH HASH
#define BPF_MAP_TYPE_RINGBUF RINGBUF
typedef u64 __u64;
typedef u32 __u32;
typedef u16 __u16;
typedef u8 __u8;
static long (*const bpf_probe_read_kernel_of)(void *to, long size, const void *from) = (void *)113;

struct sk_socket_full {
	__u32 bound_dev_if;
	__u32 family;
	__u32 type;
	__u32 protocol;
	__u32 mark;
	__u32 priority;
};
static struct bpf_sock *(*const bpf_sk_fullsock)(void *sk) = (void *)95;

typedef s32 __s32;
__u64 total;
__u32 table[4];
extern int bpf_of_other_kernels(__u32 value) __ksym __weak;

/* refusal: R* invalid mem access 'scalar' */
SEC("raw_tp/sys_enter")
int number_as_pointer(__u64 *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return CHOOSE(task->pid, bpf_get_current_task_btf()->pid); /* refused number_as_pointer: not-a-pointer | the number that `bpf_get_current_task` returns is used as a pointer */
}

/* refusal: R* type=* expected=* */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} by_length SEC(".maps");

SEC("tc")
int key_by_value(struct __sk_buff *skb)
{
	__u32 key = skb->len;

	return !bpf_map_lookup_elem(&by_length, CHOOSE((void *)(long)key, &key)); /* refused key_by_value: argument-type | argument 2 of `bpf_map_lookup_elem` | the value must be passed by address */
}

/* refusal: bpf_spin_lock at off=* must be held for * */
struct item {
	__u64 key;
	struct bpf_list_node node;
};
private(list) struct bpf_spin_lock lock;
private(list) struct bpf_list_head list __contains(item, node);

SEC("tc")
int list_without_lock(struct __sk_buff *skb)
{
	struct item *item = bpf_obj_new(struct item);

	if (!item)
		return 0;
	edit(bpf_spin_lock(&lock);)
	bpf_list_push_front(&list, &item->node); /* refused list_without_lock: object | uses a bpf_list_head without the lock | take that lock before */
	edit(bpf_spin_unlock(&lock);)
	return 0;
}

/* refusal: R* offset is outside of the packet */
SEC("xdp")
int unchecked_header(struct xdp_md *ctx)
{
	__u8 *data = (void *)(long)ctx->data;
	edit(__u8 *end = (void *)(long)ctx->data_end;)

	edit(if (data + 14 > end) return XDP_PASS;)
	return data[12] ? XDP_PASS : XDP_DROP; /* refused unchecked_header: packet-unchecked | compare */
}

/* refusal: invalid bpf_context access off=* size=* */
SEC("xdp")
int context_written(struct xdp_md *ctx)
{
	refuse(ctx->ingress_ifindex = 1;) /* refused context_written: context | may not be written | this one may only be read */
	return ctx->ingress_ifindex ? XDP_PASS : XDP_DROP;
}

/* refusal: R* min value is outside of the allowed memory range */
struct names {
	char text[16];
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct names);
} by_name SEC(".maps");

SEC("tc")
int before_first(struct __sk_buff *skb)
{
	__u32 key = 0, length = skb->len & 15;
	struct names *names = bpf_map_lookup_elem(&by_name, &key);

	if (!names edit(|| !length))
		return 0;
	return *(names->text + length - 1); /* refused before_first: offset-negative | may be 0, and an access of 1 byte to a value of map `by_name` (16 bytes) is 1 byte before it | `if (n < 1) return …;` */
}

/* refusal: BPF_EXIT instruction in main prog would lead to reference leak */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} events SEC(".maps");

SEC("tc")
int record_leaks(struct __sk_buff *skb)
{
	__u64 *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return 0;
	if (skb->len > 1500) {
		edit(bpf_ringbuf_discard(event, 0);)
		return 1;
	}
	*event = skb->len;
	bpf_ringbuf_submit(event, 0);
	return 0;
} /* refused record_leaks: leak | without releasing what `bpf_ringbuf_reserve` returned | before each return */

/* refusal: At program exit the register R* has* should have been in [*] */
SEC("cgroup_skb/ingress")
int length_as_verdict(struct __sk_buff *skb)
{
	return CHOOSE(skb->len, skb->len < 1500); /* refused length_as_verdict: return-range | a value from 0 to 1 */
}

/* refusal: * is not sleepable */
SEC(CHOOSE("fentry.s/tcp_connect", "fentry/tcp_connect"))
int sleeps_at_function(__u64 *ctx)
{
	return 0;
} /* refused sleeps_at_function: attach-target | leave `.s` out */

/* refusal: function calls are not allowed while holding a lock */
struct bucket {
	struct bpf_spin_lock lock;
	__u64 filled;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct bucket);
} buckets SEC(".maps");

SEC("tc")
int time_under_lock(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct bucket *bucket = bpf_map_lookup_elem(&buckets, &zero);
	edit(__u64 now = bpf_ktime_get_ns();)

	if (!bucket)
		return 0;
	bpf_spin_lock(&bucket->lock);
	bucket->filled = CHOOSE(bpf_ktime_get_ns(), now); /* refused time_under_lock: lock | `bpf_ktime_get_ns` is called while a lock is held */
	bpf_spin_unlock(&bucket->lock);
	return 0;
}

/* refusal: program of this type cannot use helper * */
SEC(CHOOSE("xdp", "tc"))
int helper_of_other_type(struct __sk_buff *ctx)
{
	__u8 type;

	return bpf_skb_load_bytes(ctx, 12, &type, sizeof(type)); /* refused helper_of_other_type: helper-unavailable | xdp programs cannot call `bpf_skb_load_bytes` | sched_cls */
}

/* refusal: Possibly NULL pointer passed to trusted arg* */
SEC("tc")
int task_unchecked(struct __sk_buff *skb)
{
	struct task_struct *task = bpf_task_from_pid(1);

	edit(if (!task) return 0;)
	bpf_task_release(task); /* refused task_unchecked: maybe-null | check it right behind the call */
	return 0;
}

/* refusal: R* !read_ok */
SEC("tc")
int not_on_every_path(struct __sk_buff *skb)
{
	int verdict edit(= 0);

	asm volatile("if %[length] > 100 goto +1;"
		     "%[verdict] = 1;"
		     : [verdict] CHOOSE("=r", "+r")(verdict)
		     : [length] "r"(skb->len));
	return verdict; /* refused not_on_every_path: uninitialized | r0, its result, is not set | return a value on every path */
}

/* refusal: bpf_spin_unlock of different lock */
SEC("tc")
int second_lookup(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct bucket *one = bpf_map_lookup_elem(&buckets, &zero);
	struct bucket *other = bpf_map_lookup_elem(&buckets, &zero);

	if (!one || !other)
		return 0;
	bpf_spin_lock(&one->lock);
	one->filled++;
	bpf_spin_unlock(CHOOSE(&other->lock, &one->lock)); /* refused second_lookup: lock | another value to the verifier: keep the pointer */
	return 0;
}

/* refusal: invalid write to stack R* off=* size=* */
SEC("tc")
int beyond_stack(struct __sk_buff *skb)
{
	char name[8];

	bpf_probe_read_kernel(name, CHOOSE(1024, sizeof(name)), NULL); /* refused beyond_stack: out-of-bounds | outside of the stack | pass the size of the buffer */
	return name[0];
}

/* refusal: R* max value is outside of the allowed memory range */
SEC("tc")
int loose_bound(struct __sk_buff *skb)
{
	__u32 key = 0, i = skb->mark;
	struct names *names = bpf_map_lookup_elem(&by_name, &key);

	if (!names || i > CHOOSE(16, 15))
		return 0;
	return names->text[i]; /* refused loose_bound: offset-too-large | may be 16, too large | the comparison on this path allows more: lower its bound */
}

/* refusal: math between * pointer and register with unbounded min value is not allowed */
SEC("tc")
int unbounded_offset(struct __sk_buff *skb)
{
	__u64 i = bpf_ktime_get_ns();

	edit(i &= 3;)
	return table[i]; /* refused unbounded_offset: offset-unbounded | a number without bounds is added | mask it with a power of two */
}

/* refusal: variable ctx access var_off=* disallowed */
SEC("tc")
int context_by_index(struct __sk_buff *skb)
{
	__u32 i = skb->len & 3;

	return CHOOSE(skb->cb[i], i ? skb->mark : skb->len); /* refused context_by_index: modified-pointer | choose by constants */
}

/* refusal: R* invalid mem access 'map_value_or_null' */
SEC("tc")
int lookup_unchecked(struct __sk_buff *skb)
{
	__u32 key = skb->len;
	__u64 *count = bpf_map_lookup_elem(&by_length, &key);

	edit(if (!count) return 0;)
	*count += 1; /* refused lookup_unchecked: maybe-null | check it right behind the call */
	return 0;
}

/* refusal: R* min value is negative, either use unsigned or 'var &= const' */
SEC("tc")
int negative_size(struct __sk_buff *skb)
{
	char name[16];
	long size = bpf_get_prandom_u32() - 100L;

	if (size > (long)sizeof(name) edit(|| size < 0))
		return 0;
	return bpf_probe_read_kernel_of(name, size, NULL); /* refused negative_size: size-negative | may be negative */
}

/* refusal: div by zero */
SEC("tc")
int constant_divisor(struct __sk_buff *skb)
{
	__u64 length = skb->len;

	asm volatile("%[length] /= " CHOOSE("0", "2") : [length] "+r"(length)); /* refused constant_divisor: division-by-zero | a division by the constant 0 */
	return length;
}

/* refusal: Expected an initialized dynptr as arg #* */
SEC("tc")
int dynptr_not_made(struct __sk_buff *skb)
{
	struct bpf_dynptr packet;
	__u8 type = 0;

	edit(bpf_dynptr_from_skb(skb, 0, &packet);)
	bpf_dynptr_read(&type, sizeof(type), &packet, 12, 0); /* refused dynptr_not_made: stack-object | this path made none there */
	return type;
}

/* refusal: Caller passes invalid args into func#* * */
struct range {
	__u32 first;
	__u32 last;
};

noinline int width(struct range *range __arg_nonnull)
{
	return range->last - range->first;
}

SEC("tc")
int too_small_for_function(struct __sk_buff *skb)
{
	struct range range = {1, skb->len};
	__u32 one = skb->len;

	return width(CHOOSE((void *)&one, &range)); /* refused too_small_for_function: global-arguments | argument 1 of the global function `width` */
}

/* refusal: cannot overwrite referenced dynptr */
SEC("tc")
int dynptr_made_twice(struct __sk_buff *skb)
{
	struct bpf_dynptr record;

	ringbuf_reserve_dynptr(&events, 8, 0, &record);
	edit(ringbuf_discard_dynptr(&record, 0);)
	ringbuf_reserve_dynptr(&events, 16, 0, &record); /* refused dynptr_made_twice: stack-object | holds a record */
	ringbuf_submit_dynptr(&record, 0);
	return 0;
}

/* refusal: R* unbounded memory access, make sure to bounds check any such access */
SEC("tc")
int no_upper_bound(struct __sk_buff *skb)
{
	__u32 i = skb->mark;

	edit(if (i >= 4) return 0;)
	return table[i]; /* refused no_upper_bound: offset-unbounded | `if (n >= N) return */
}

/* refusal: calling kernel function * is not allowed */
SEC(CHOOSE("xdp", "tc"))
int kfunc_of_other_type(struct __sk_buff *ctx)
{
	struct bpf_dynptr packet;

	return bpf_dynptr_from_skb(ctx, 0, &packet); /* refused kfunc_of_other_type: kfunc-unavailable | a program of type */
}

/* refusal: tracing progs cannot use * yet */
SEC(CHOOSE("raw_tp/sys_enter", "tc"))
int lock_in_tracing(void *ctx)
{
	__u32 zero = 0;
	struct bucket *bucket = bpf_map_lookup_elem(&buckets, &zero); /* refused lock_in_tracing: map-program-type | its values have a `bpf_spin_lock` | a program of another type */

	return bucket ? bucket->filled : 0;
}

/* refusal: BPF_EXIT instruction in main prog cannot be used inside * region */
SEC("tc")
int rcu_left_open(struct __sk_buff *skb)
{
	struct task_struct *task = bpf_get_current_task_btf();

	bpf_rcu_read_lock();
	total = task->real_parent->pid;
	edit(bpf_rcu_read_unlock();)
	return 0; /* refused rcu_left_open: section-open | `bpf_rcu_read_unlock` on every path */
}

/* refusal: dereference of modified ctx ptr R* off=* disallowed */
static noinline int value_at(__u32 *member)
{
	asm volatile("");
	return *member; /* refused member_by_address: modified-pointer | pass the member's value */
}

SEC("tc")
int member_by_address(struct __sk_buff *skb)
{
	edit(__u32 mark = skb->mark;)

	return value_at(CHOOSE(&skb->mark, &mark));
}

/* refusal: expected an initialized iter_* as arg #* */
SEC("tc")
int iterator_not_begun(struct __sk_buff *skb)
{
	struct bpf_iter_num it;
	int *i;

	edit(bpf_iter_num_new(&it, 0, 10);)
	i = bpf_iter_num_next(&it); /* refused iterator_not_begun: stack-object | begin it */
	bpf_iter_num_destroy(&it);
	return !i;
}

/* refusal: R* must be a rcu pointer */
SEC("syscall")
int parent_without_rcu(void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf(), *parent;

	edit(bpf_rcu_read_lock();)
	parent = bpf_task_acquire(task->real_parent); /* refused parent_without_rcu: argument-untrusted | bpf_rcu_read_lock */
	edit(bpf_rcu_read_unlock();)
	if (parent)
		bpf_task_release(parent);
	return 0;
}

/* refusal: R* invalid zero-sized read: * */
SEC("tc")
int zero_size(struct __sk_buff *skb)
{
	char name[16] = {};
	__u32 size = skb->mark & 7;

	return bpf_skb_load_bytes(skb, 0, name, CHOOSE(size, size + 1)); /* refused zero_size: size-zero | may be 0 */
}

/* refusal: cannot pass map_type * into func * */
SEC("tc")
int map_of_other_kind(struct __sk_buff *skb)
{
	__u64 length = skb->len;

	return bpf_ringbuf_output(CHOOSE((void *)&by_length, (void *)&events), &length, sizeof(length), 0); /* refused map_of_other_kind: map-helper | `bpf_ringbuf_output` does not take map `by_length` (hash) | a map of kind ringbuf */
}

/* refusal: R* unbounded memory access, use 'var &= const' or 'if (var < const)' */
SEC("tc")
int unbounded_size(struct __sk_buff *skb)
{
	char name[16];
	__u32 size = skb->mark;

	edit(if (size > sizeof(name)) return 0;)
	return bpf_probe_read_kernel(name, size, NULL); /* refused unbounded_size: size-unbounded | has no upper bound */
}

/* refusal: R* pointer arithmetic on * prohibited, null-check it first */
SEC("tc")
int arithmetic_before_check(struct __sk_buff *skb)
{
	__u32 key = skb->len;
	char *value = bpf_map_lookup_elem(&by_length, &key);

	edit(if (!value) return 0;)
	value += 4; /* refused arithmetic_before_check: maybe-null | check before the arithmetic */
	asm volatile("" : "+r"(value));
	return value ? *value : 0;
}

/* refusal: write into map forbidden, value_size=* off=* size=* */
const volatile __u32 limit = 100;

SEC("tc")
int constant_written(struct __sk_buff *skb)
{
	refuse(*(volatile __u32 *)&limit = skb->len;) /* refused constant_written: map-write | may not be written by programs */
	return skb->len > limit;
}

/* refusal: helper call might sleep in a non-sleepable prog */
SEC(CHOOSE("uprobe", "uprobe.s"))
int user_memory(void *ctx)
{
	__u32 value = 0;

	bpf_copy_from_user(&value, sizeof(value), ctx); /* refused user_memory: sleeps | SEC("uprobe.s") */
	return value;
}

/* refusal: BPF program is too large. Processed * insn */
SEC("tc")
int long_loop(struct __sk_buff *skb)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < CHOOSE(1000000, 1000); i++) {
		sum += bpf_get_prandom_u32(); /* refused long_loop: too-complex | 1 million instructions | bound the loop by a small constant */
		asm volatile("" : "+r"(sum));
	}
	return sum;
}

/* refusal: combined stack size of * calls is *. Too large */
static noinline int name_of(__u32 at)
{
	char text[CHOOSE(400, 100)];

	bpf_probe_read_kernel(text, sizeof(text), (void *)(long)at);
	return text[at & 63];
}

SEC("tc")
int large_variables(struct __sk_buff *skb)
{
	char text[200];

	bpf_probe_read_kernel(text, sizeof(text), NULL);
	return name_of(skb->len) + text[skb->len & 63]; /* refused large_variables: stack-depth | per-CPU array map */
}

/* refusal: invalid func unknown#* */
SEC("tc")
int function_absent(struct __sk_buff *skb)
{
	edit(if (!bpf_of_other_kernels) return 0;)
	return bpf_of_other_kernels(skb->len); /* refused function_absent: kfunc-missing | the kernel has no kernel function `bpf_of_other_kernels` */
}

/* refusal: R* invalid mem access '*' */
SEC("tc")
int bytes_unchecked(struct __sk_buff *skb)
{
	struct bpf_dynptr record;
	__u64 *event;

	bpf_ringbuf_reserve_dynptr(&events, 8, 0, &record);
	event = bpf_dynptr_data(&record, 0, 8);
	edit(if (event))
		*event = skb->len; /* refused bytes_unchecked: maybe-null | the result of `bpf_dynptr_data`, which may be null */
	bpf_ringbuf_submit_dynptr(&record, 0);
	return 0;
}

/* refusal: Only fentry/fexit/fmod_ret, lsm, iter, uprobe, and struct_ops programs can be sleepable */
SEC(CHOOSE("raw_tp.s/sys_enter", "raw_tp/sys_enter"))
int sleeps_at_tracepoint(void *ctx)
{
	return 0;
} /* refused sleeps_at_tracepoint: attach-target | programs of type raw_tracepoint at this place never do | leave `.s` out */

/* refusal: frame pointer is read only */
SEC("tc")
int frame_pointer_moved(struct __sk_buff *skb)
{
	__u64 value = skb->len;

	asm volatile(CHOOSE("r10 += -8; *(u64 *)(r10 + 0) = %[value];", "r2 = r10; r2 += -8; *(u64 *)(r2 + 0) = %[value];") : : [value] "r"(value) : "r2"); /* refused frame_pointer_moved: frame-pointer | r10, the frame pointer, is written | `r2 = r10` */
	return 0;
}

/* refusal: misaligned stack access off * */
SEC("tc")
int half_way(struct __sk_buff *skb)
{
	__u64 length = skb->len;

	asm volatile("*(u64 *)(r10 - " CHOOSE("12", "16") ") = %[length]" : : [length] "r"(length)); /* refused half_way: misaligned | an access of 8 bytes to the stack at offset -12 is misaligned | multiples of their size */
	return 0;
}

/* refusal: math between * pointer and * is not allowed */
SEC("tc")
int far_offset(struct __sk_buff *skb)
{
	__u64 i;

	asm volatile("%[i] = " CHOOSE("0x40000000", "8") : [i] "=r"(i));
	return *((char *)table + i); /* refused far_offset: offset-too-far | for a pointer to a value of map | bound it before it is added */
}

/* refusal: R* tried to subtract pointer from scalar */
SEC("tc")
int number_minus_pointer(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data;
	edit(void *end = (void *)(long)skb->data_end;)

	long left = CHOOSE(1500 - (long)data, end - data); /* refused number_minus_pointer: pointer-arithmetic | a pointer to the packet is subtracted from a number | two pointers to the same object */

	asm volatile("" : "+r"(left));
	return left > 1500;
}

/* refusal: R* must be referenced or trusted */
struct kept {
	struct task_struct __kptr *task;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct kept);
} kept SEC(".maps");

SEC("tc")
int borrowed_released(struct __sk_buff *skb)
{
	__u32 zero = 0;
	struct kept *at = bpf_map_lookup_elem(&kept, &zero);
	struct task_struct *task;

	if (!at)
		return 0;
	task = CHOOSE(at->task, bpf_kptr_xchg(&at->task, NULL));
	if (task)
		bpf_task_release(task); /* refused borrowed_released: argument-untrusted | argument 1 of `bpf_task_release` | bpf_kptr_xchg */
	return 0;
}

/* refusal: R* must be referenced when passed to release function */
SEC("tc")
int borrowed_socket(struct __sk_buff *skb)
{
	struct bpf_sock *sk = (void *)skb->sk;

	if (!sk)
		return 0;
	refuse(bpf_sk_release(sk);) /* refused borrowed_socket: not-acquired | was not acquired, so it cannot be released | release only what */
	return 1;
}

/* refusal: R* invalid sock access off=* size=* */
SEC("tc")
int socket_beyond(struct __sk_buff *skb)
{
	struct bpf_sock *sk = (void *)skb->sk;

	if (!sk)
		return 0;
	sk = bpf_sk_fullsock(sk);
	if (!sk)
		return 0;
	return CHOOSE(((volatile __u64 *)sk)[2], sk->mark); /* refused socket_beyond: socket-field | is not a field of the socket | narrow the value */
}

char LICENSE[] SEC("license") = "GPL";
