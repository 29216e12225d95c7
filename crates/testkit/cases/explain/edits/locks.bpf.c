/* Spin locks and resilient locks. */
#include "kernel.h"

struct account {
	struct bpf_spin_lock lock;
	u32 left;
	u64 changed;
};

struct shared {
	struct bpf_res_spin_lock lock;
	u32 count;
};

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct account);
} accounts SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 2);
	__type(key, u32);
	__type(value, struct shared);
} table SEC(".maps");

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} counts SEC(".maps");

struct {
	__uint(type, PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, u32);
	__type(value, u32);
} programs SEC(".maps");

static struct bpf_spin_lock global __attribute__((section(".data.lock")));
static struct bpf_res_spin_lock first __attribute__((section(".data.first")));
static struct bpf_res_spin_lock second __attribute__((section(".data.second")));

static inline struct account *account(u32 key)
{
	return map_lookup_elem(&accounts, &key);
}

static inline struct shared *shared(u32 key)
{
	return map_lookup_elem(&table, &key);
}

SEC("tc")
int held_at_exit(struct __sk_buff *ctx)
{
	struct account *a = account(0);

	if (!a)
		return 0;
	spin_lock(&a->lock);
	if (a->left < ctx->len) {
		edit(spin_unlock(&a->lock);)
		return 2;
	}
	a->left -= ctx->len;
	spin_unlock(&a->lock);
	return 0;
} /* refused held_at_exit: lock | reaches `exit` while a lock is held | bpf_spin_unlock on every path | error paths included | `bpf_spin_lock` takes the lock that is held */

SEC("tc")
int time_under_lock(struct __sk_buff *ctx)
{
	struct account *a = account(0);
	u64 now = 0;

	if (!a)
		return 0;
	edit(now = ktime_get_ns();)
	spin_lock(&a->lock);
	refuse(now = ktime_get_ns();) /* refused time_under_lock: lock | `bpf_ktime_get_ns` is called while a lock is held | call it before the lock is taken */
	a->changed = now;
	spin_unlock(&a->lock);
	return 0;
}

SEC("tc")
int lookup_under_lock(struct __sk_buff *ctx)
{
	struct account *a = account(0);
	u32 zero = 0, *count = NULL;

	if (!a)
		return 0;
	edit(count = map_lookup_elem(&counts, &zero);)
	spin_lock(&a->lock);
	refuse(count = map_lookup_elem(&counts, &zero);) /* refused lookup_under_lock: lock | `bpf_map_lookup_elem` is called while a lock is held */
	if (count)
		a->left = *count;
	spin_unlock(&a->lock);
	return 0;
}

SEC("tc")
int two_accounts(struct __sk_buff *ctx)
{
	struct account *a = account(0), *b = account(1);

	if (!a || !b)
		return 0;
	spin_lock(&a->lock);
	a->left--;
	edit(spin_unlock(&a->lock);)
	spin_lock(&b->lock); /* refused two_accounts: lock | a second lock is taken while one is held | unlock the first before the second is taken */
	b->left++;
	spin_unlock(&b->lock);
	refuse(spin_unlock(&a->lock);)
	return 0;
}

SEC("tc")
int other_account(struct __sk_buff *ctx)
{
	struct account *a = account(0), *b = account(0);

	if (!a || !b)
		return 0;
	spin_lock(&a->lock);
	a->left--;
	spin_unlock(CHOOSE(&b->lock, &a->lock)); /* refused other_account: lock | not the one held | a second lookup of the same key is another value */
	return b->left;
}

SEC("tc")
int unlocked_twice(struct __sk_buff *ctx)
{
	struct account *a = account(0);

	if (!a)
		return 0;
	spin_lock(&a->lock);
	a->left--;
	spin_unlock(&a->lock);
	refuse(spin_unlock(&a->lock);) /* refused unlocked_twice: lock | a lock is released that is not held | was released before */
	return 0;
}

SEC("tc")
int lock_read(struct __sk_buff *ctx)
{
	struct account *a = account(0);

	if (!a)
		return 0;
	return CHOOSE(a->lock.val, a->left); /* refused lock_read: special-field | where its `bpf_spin_lock` is | locks are only passed to bpf_spin_lock and bpf_spin_unlock */
}

SEC("tc")
int lock_absent(struct __sk_buff *ctx)
{
	u32 zero = 0;
	struct account *a = map_lookup_elem(CHOOSE((void *)&counts, (void *)&accounts), &zero);

	if (!a)
		return 0;
	spin_lock(&a->lock); /* refused lock_absent: map-field | values of map `counts` (array) have no `struct bpf_spin_lock` | put a `struct bpf_spin_lock` in the structure */
	a->left--;
	spin_unlock(&a->lock);
	return 0;
}

SEC("tc")
int lock_beside(struct __sk_buff *ctx)
{
	struct account *a = account(0);

	if (!a)
		return 0;
	spin_lock(CHOOSE((void *)&a->left, &a->lock)); /* refused lock_beside: lock | the argument is not at the offset of a lock | `&value->lock` */
	a->left--;
	spin_unlock(&a->lock);
	return 0;
}

noinline int busy(u32 length)
{
	return length > 1500;
}

SEC("tc")
int global_function_under_lock(struct __sk_buff *ctx)
{
	u32 length = ctx->len, is_busy = 0;

	edit(is_busy = busy(length);)
	spin_lock(&global);
	refuse(is_busy = busy(length);) /* refused global_function_under_lock: lock | `busy` is called while a lock is held | static functions */
	spin_unlock(&global);
	return is_busy;
}

SEC("tc")
int tail_call_under_lock(struct __sk_buff *ctx)
{
	spin_lock(&global);
	edit(spin_unlock(&global);)
	tail_call(ctx, &programs, 0); /* refused tail_call_under_lock: lock | reaches `bpf_tail_call` while a lock is held */
	refuse(spin_unlock(&global);)
	return 0;
}

static long count_one(u32 index, void *unused)
{
	return 0;
}

SEC("tc")
int loop_under_lock(struct __sk_buff *ctx)
{
	spin_lock(&global);
	edit(spin_unlock(&global);)
	loop(4, count_one, NULL, 0); /* refused loop_under_lock: lock | `bpf_loop` is called while a lock is held */
	refuse(spin_unlock(&global);)
	return 0;
}

SEC("tc")
int resilient_held(struct __sk_buff *ctx)
{
	struct shared *s = shared(0);

	if (!s)
		return 0;
	if (bpf_res_spin_lock(&s->lock))
		return 0;
	s->count++;
	edit(bpf_res_spin_unlock(&s->lock);)
	return s->count;
} /* refused resilient_held: lock | reaches `exit` while a lock is held | bpf_res_spin_unlock on every path | `bpf_res_spin_lock` takes the lock */

SEC("tc")
int resilient_again(struct __sk_buff *ctx)
{
	struct shared *s = shared(0);

	if (!s || bpf_res_spin_lock(&s->lock))
		return 0;
	s->count++;
	edit(bpf_res_spin_unlock(&s->lock);)
	if (!bpf_res_spin_lock(&s->lock)) { /* refused resilient_again: object | takes a lock that is held already | free the lock before it is taken again */
		s->count++;
		bpf_res_spin_unlock(&s->lock);
	}
	refuse(bpf_res_spin_unlock(&s->lock);)
	return 0;
}

SEC("tc")
int resilient_order(struct __sk_buff *ctx)
{
	if (bpf_res_spin_lock(&first))
		return 0;
	if (bpf_res_spin_lock(&second)) { /* refused resilient_order: lock | a lock is released before the one that | unlock in the reverse order of locking */
		bpf_res_spin_unlock(&first);
		return 0;
	}
	bpf_res_spin_unlock(CHOOSE(&first, &second));
	bpf_res_spin_unlock(CHOOSE(&second, &first));
	return 0;
}

SEC("tc")
int resilient_other(struct __sk_buff *ctx)
{
	if (bpf_res_spin_lock(&first))
		return 0;
	bpf_res_spin_unlock(CHOOSE(&second, &first)); /* refused resilient_other: lock | not the one held */
	return 0;
}

SEC("tc")
int resilient_on_failure(struct __sk_buff *ctx)
{
	if (bpf_res_spin_lock(&first)) { /* refused resilient_on_failure: lock | a lock is released that is not held */
		refuse(bpf_res_spin_unlock(&first);)
		return 0;
	}
	bpf_res_spin_unlock(&first);
	return 0;
}

SEC("tc")
int resilient_on_stack(struct __sk_buff *ctx)
{
	struct bpf_res_spin_lock local = {};

	if (!bpf_res_spin_lock(CHOOSE(&local, &first))) /* refused resilient_on_stack: object | is neither in the value of a map nor in an allocated object | declare it as a global variable */
		bpf_res_spin_unlock(CHOOSE(&local, &first));
	return 0;
}

SEC("tc")
int interrupts_left_off(struct __sk_buff *ctx)
{
	unsigned long flags;

	if (bpf_res_spin_lock_irqsave(&first, &flags))
		return 0;
	edit(bpf_res_spin_unlock_irqrestore(&first, &flags);)
	return 1;
} /* refused interrupts_left_off: lock | reaches `exit` while a lock is held | bpf_res_spin_unlock_irqrestore on every path */

char LICENSE[] SEC("license") = "GPL";
