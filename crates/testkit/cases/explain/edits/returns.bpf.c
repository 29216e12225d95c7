/* Results of programs and callbacks, exceptions. */
#include "kernel.h"

struct counter {
	u64 count;
	struct bpf_timer timer;
};

struct job {
	u64 count;
	struct bpf_wq work;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct counter);
} others SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct job);
} jobs SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, struct job);
} more SEC(".maps");

struct {
	__uint(type, HASH);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u64);
} table SEC(".maps");

struct {
	__uint(type, USER_RINGBUF);
	__uint(max_entries, 4096);
} commands SEC(".maps");

struct bpf_sock_addr {
	u32 user_family;
	u32 user_ip4;
};

struct bpf_sk_lookup_context {
	u64 cookie;
};

struct bpf_sysctl {
	u32 write;
	u32 file_pos;
};

u32 setting;

static struct counter *counter(void *map)
{
	u32 zero = 0;

	return map_lookup_elem(map, &zero);
}

SEC("cgroup/connect4")
int allows_by_two(struct bpf_sock_addr *ctx)
{
	return CHOOSE(2, 1); /* refused allows_by_two: return-range | this cgroup_sock_addr program returns 2 | a value from 0 to 1 | 1 allows the operation, 0 denies it */
}

SEC("cgroup/connect4")
int denies_by_errno(struct bpf_sock_addr *ctx)
{
	return ctx->user_ip4 ? 1 : CHOOSE(-1, 0); /* refused denies_by_errno: return-range | returns 0xffffffff | 1 allows the operation */
}

SEC("cgroup/recvmsg4")
int denies_received(struct bpf_sock_addr *ctx)
{
	return CHOOSE(0, 1); /* refused denies_received: return-range | returns 0 | 1 on every path | the hook denies nothing */
}

SEC("cgroup_skb/egress")
int verdict_four(struct __sk_buff *ctx)
{
	return CHOOSE(4, 3); /* refused verdict_four: return-range | returns 4 | a value from 0 to 3 | bit 0 lets the packet pass */
}

SEC("cgroup_skb/ingress")
int length_as_verdict(struct __sk_buff *ctx)
{
	return CHOOSE(ctx->len, ctx->len > 0); /* refused length_as_verdict: return-range | this cgroup_skb program may return 0 to 0xffffffff | bound or mask a computed result */
}

SEC("sk_lookup")
int lookup_minus_one(struct bpf_sk_lookup_context *ctx)
{
	return CHOOSE(-1, 1); /* refused lookup_minus_one: return-range | this sk_lookup program returns 0xffffffff | 1 passes (SK_PASS), 0 drops (SK_DROP) */
}

SEC("cgroup/sysctl")
int sysctl_result(struct bpf_sysctl *ctx)
{
	return setting ? CHOOSE(3, 0) : 1; /* refused sysctl_result: return-range | this cgroup_sysctl program returns 3 | 1 allows the operation, 0 denies it */
}

SEC("netfilter")
int netfilter_result(void *ctx)
{
	return CHOOSE(4, 1); /* refused netfilter_result: return-range | this netfilter program returns 4 | 1 accepts the packet (NF_ACCEPT), 0 drops it (NF_DROP) */
}

SEC("cgroup/connect4")
int helper_result(struct bpf_sock_addr *ctx)
{
	u32 zero = 0;
	long error = bpf_map_delete_elem(&table, &zero);

	return CHOOSE(error, !error); /* refused helper_result: return-range | may return any number | r0 still holds the result of `bpf_map_delete_elem` */
}

static long goes_on_by_two(u32 index, void *unused)
{
	return CHOOSE(2, 1); /* refused loop_callback: return-range | the callback returns 2 | a value from 0 to 1 | 0 goes on with the next call, 1 ends them */
}

SEC("tc")
int loop_callback(struct __sk_buff *ctx)
{
	loop(4, goes_on_by_two, NULL, 0);
	return 0;
}

static long each_element(void *map, u32 *key, u64 *value, void *unused)
{
	return CHOOSE(*value, *value > 4); /* refused element_callback: return-range | the callback may return any number | a value from 0 to 1 */
}

SEC("tc")
int element_callback(struct __sk_buff *ctx)
{
	for_each_map_elem(&table, each_element, NULL, 0);
	return 0;
}

static int expired(void *map, u32 *key, struct counter *counter)
{
	counter->count++;
	return CHOOSE(1, 0); /* refused timer_callback: return-range | the callback, which runs later, returns 1 | 0 on every path | nothing reads the result */
}

SEC("tc")
int timer_callback(struct __sk_buff *ctx)
{
	struct counter *c = counter(&counters);

	if (!c)
		return 0;
	timer_init(&c->timer, &counters, 1);
	timer_set_callback(&c->timer, expired);
	return 0;
}

static int expired_plainly(void *map, u32 *key, struct counter *counter)
{
	return 0;
}

SEC("tc")
int timer_of_other_map(struct __sk_buff *ctx)
{
	struct counter *c = counter(&counters);

	if (!c)
		return 0;
	timer_init(&c->timer, CHOOSE((void *)&others, (void *)&counters), 1); /* refused timer_of_other_map: object | argument 2 of `bpf_timer_init` is not the map whose value | pass the map in which the value was looked up */
	timer_set_callback(&c->timer, expired_plainly);
	return 0;
}

SEC("tc")
int timer_elsewhere(struct __sk_buff *ctx)
{
	struct counter *c = counter(&counters);

	if (!c)
		return 0;
	timer_init(CHOOSE((void *)&c->count, &c->timer), &counters, 1); /* refused timer_elsewhere: object | has offset 0, and the `bpf_timer` is at offset 8 | as `&value->member` */
	return 0;
}

static int works(void *map, int *key, void *value)
{
	return CHOOSE(1, 0); /* refused work_callback: return-range | the callback, which runs later, returns 1 */
}

static int works_plainly(void *map, int *key, void *value)
{
	return 0;
}

static inline struct job *job(void)
{
	u32 zero = 0;

	return map_lookup_elem(&jobs, &zero);
}

SEC("tc")
int work_callback(struct __sk_buff *ctx)
{
	struct job *j = job();

	if (!j)
		return 0;
	bpf_wq_init(&j->work, &jobs, 0);
	bpf_wq_set_callback_impl(&j->work, works, 0, NULL);
	return 0;
}

SEC("tc")
int work_of_other_map(struct __sk_buff *ctx)
{
	struct job *j = job();

	if (!j)
		return 0;
	bpf_wq_init(&j->work, CHOOSE((void *)&more, (void *)&jobs), 0); /* refused work_of_other_map: object | argument 2 of `bpf_wq_init` is not the map whose value | pass the map in which the value was looked up */
	return 0;
}

SEC("tc")
int work_without_map(struct __sk_buff *ctx)
{
	struct job *j = job();
	u32 key = 0;

	if (!j)
		return 0;
	bpf_wq_init(&j->work, CHOOSE((void *)&key, (void *)&jobs), 0); /* refused work_without_map: argument-type | argument 2 of `bpf_wq_init` is a pointer to the stack | a map | pass the map by address */
	return 0;
}

SEC("tc")
int work_on_stack(struct __sk_buff *ctx)
{
	struct bpf_wq local = {}, *work = &local;
	edit(struct job *j = job();)

	edit(if (!j) return 0;)
	edit(work = &j->work;)
	bpf_wq_set_callback_impl(work, works_plainly, 0, NULL); /* refused work_on_stack: object | does not point into the value of a map | put the member into the values of a map */
	return 0;
}

SEC("tc")
int work_elsewhere(struct __sk_buff *ctx)
{
	struct job *j = job();

	if (!j)
		return 0;
	bpf_wq_init(CHOOSE((void *)&j->count, &j->work), &jobs, 0); /* refused work_elsewhere: object | has offset 0, and the `bpf_wq` is at offset 8 | the address of the `bpf_wq` */
	return 0;
}

SEC("tc")
int callback_is_a_number(struct __sk_buff *ctx)
{
	struct job *j = job();

	if (!j)
		return 0;
	bpf_wq_set_callback_impl(&j->work, CHOOSE((void *)(u64)1, works_plainly), 0, NULL); /* refused callback_is_a_number: argument-type | argument 2 of `bpf_wq_set_callback_impl` is the number 1 | a function */
	return 0;
}

static long writes_key(void *map, u32 *key, u64 *value, void *unused)
{
	refuse(*key = 1;) /* refused key_written: read-only | a key of map `table` (4 bytes) may only be read here | delete and insert to change it */
	edit(*value = 1;)
	return 0;
}

SEC("tc")
int key_written(struct __sk_buff *ctx)
{
	for_each_map_elem(&table, writes_key, NULL, 0);
	return 0;
}

static long throws(u32 index, void *unused)
{
	refuse(bpf_throw(0);) /* refused thrown_in_callback: exception | `bpf_throw` is called in a function that the kernel calls back | return a value from the callback */
	return 1;
}

SEC("tc")
int thrown_in_callback(struct __sk_buff *ctx)
{
	loop(4, throws, NULL, 0);
	return 0;
}

SEC("tc")
int thrown_with_task(struct __sk_buff *ctx)
{
	struct task_struct *task = bpf_task_from_pid(1);

	if (!task)
		return 0;
	edit(bpf_task_release(task);)
	if (ctx->len > 100)
		bpf_throw(0); /* refused thrown_with_task: leak | `bpf_throw` is called while what `bpf_task_from_pid` returned is not released | call bpf_task_release before `bpf_throw` */
	refuse(bpf_task_release(task);)
	return 0;
}

SEC("cgroup_skb/ingress")
int thrown_value(struct __sk_buff *ctx)
{
	if (ctx->len > 100)
		bpf_throw(CHOOSE(64, 0)); /* refused thrown_value: return-range | `bpf_throw` ends the program, which then returns 64 | a value from 0 to 1 | pass an allowed value to `bpf_throw` */
	return 1;
}

noinline int catches(u64 cookie refuse(, u64 more)) /* refused callback_signature: exception | does not take one number | exactly one parameter, an integer */
{
	return cookie;
}

SEC("tc") __exception_cb(catches)
int callback_signature(struct __sk_buff *ctx)
{
	bpf_throw(0);
	return 0;
}

noinline int catches_rightly(u64 cookie)
{
	return cookie;
}

SEC("tc") __exception_cb(catches_rightly)
int callback_called(struct __sk_buff *ctx)
{
	if (ctx->len > 100)
		bpf_throw(0);
	return CHOOSE(catches_rightly(ctx->len), 0); /* refused callback_called: exception | the program calls its exception callback like another function | a call by `bpf_throw` only */
}

char LICENSE[] SEC("license") = "GPL";
