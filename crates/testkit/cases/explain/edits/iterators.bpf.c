/* Open-coded iterators. */
#include "kernel.h"

struct {
	__uint(type, ARRAY);
	__uint(max_entries, 16);
	__type(key, u32);
	__type(value, u64);
} sums SEC(".maps");

u64 numbers[8];
struct bpf_iter_num global_iterator;

SEC("tc")
int early_return(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i;

	bpf_iter_num_new(&it, 0, 10);
	while ((i = bpf_iter_num_next(&it))) {
		if (*i == ctx->len) {
			edit(bpf_iter_num_destroy(&it);)
			return 1;
		}
	}
	bpf_iter_num_destroy(&it);
	return 0;
} /* refused early_return: leak | the iterator that `bpf_iter_num_new` began | call bpf_iter_num_destroy before each return | `bpf_iter_num_new` begins the iterator */

SEC("tc")
int never_destroyed(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	u32 sum = 0;
	int *i;

	bpf_iter_num_new(&it, 0, 10);
	while ((i = bpf_iter_num_next(&it)))
		sum++;
	edit(bpf_iter_num_destroy(&it);)
	return sum; /* refused never_destroyed: leak | the path ends with the iterator that `bpf_iter_num_new` began | bpf_iter_num_destroy on every path */
}

SEC("tc")
int not_begun(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i;

	edit(bpf_iter_num_new(&it, 0, 10);)
	i = bpf_iter_num_next(&it); /* refused not_begun: stack-object | is not an iterator: this path made none there | begin it (bpf_iter_…_new) on every path */
	bpf_iter_num_destroy(&it);
	return !i;
}

SEC("tc")
int destroyed_twice(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;

	bpf_iter_num_new(&it, 0, 10);
	bpf_iter_num_next(&it);
	bpf_iter_num_destroy(&it);
	refuse(bpf_iter_num_destroy(&it);) /* refused destroyed_twice: stack-object | is an iterator that `bpf_iter_num_destroy` ended | end it once | `bpf_iter_num_new` makes it | `bpf_iter_num_destroy` ends it */
	return 0;
}

SEC("tc")
int next_after_destroy(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i = NULL;

	bpf_iter_num_new(&it, 0, 10);
	edit(i = bpf_iter_num_next(&it);)
	bpf_iter_num_destroy(&it);
	refuse(i = bpf_iter_num_next(&it);) /* refused next_after_destroy: stack-object | `bpf_iter_num_destroy` ended | use it before `bpf_iter_num_destroy` */
	return !i;
}

SEC("tc")
int begun_twice(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;

	bpf_iter_num_new(&it, 0, 10);
	bpf_iter_num_next(&it);
	edit(bpf_iter_num_destroy(&it);)
	bpf_iter_num_new(&it, 0, 20); /* refused begun_twice: stack-object | is no place for an iterator | end the first one before another is made | `bpf_iter_num_new` makes it */
	bpf_iter_num_destroy(&it);
	return 0;
}

SEC("tc")
int in_a_global(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;

	bpf_iter_num_new(CHOOSE(&global_iterator, &it), 0, 10); /* refused in_a_global: stack-object | does not point to an iterator on the stack | make it a local variable */
	bpf_iter_num_destroy(CHOOSE(&global_iterator, &it));
	return 0;
}

SEC("tc")
int element_unchecked(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i, value = 0;

	bpf_iter_num_new(&it, 0, 10);
	i = bpf_iter_num_next(&it);
	edit(if (i))
	value = *i; /* refused element_unchecked: maybe-null | the result of `bpf_iter_num_next`, which may be null | check it right behind the call */
	bpf_iter_num_destroy(&it);
	return value;
}

SEC("tc")
int bytes_overwritten(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i;

	bpf_iter_num_new(&it, 0, 10);
	refuse(*(volatile u32 *)&it = 0;)
	i = bpf_iter_num_next(&it); /* refused bytes_overwritten: stack-object | an iterator whose bytes a store changed | only calls change it | a store changes some of its bytes */
	bpf_iter_num_destroy(&it);
	return !i;
}

SEC("tc")
int middle_of_one(struct __sk_buff *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *task;

	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, NULL, 0);
	task = bpf_iter_task_next(CHOOSE((void *)&it + 8, &it)); /* refused middle_of_one: stack-object | points into the middle of an iterator | pass the address of the variable, without an offset */
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return !task;
}

SEC("tc")
int index_of_element(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	u64 sum = 0;
	int *i;

	bpf_iter_num_new(&it, 0, CHOOSE(9, 8));
	while ((i = bpf_iter_num_next(&it))) {
		u32 at = *i;

		edit(if (at >= 8) break;)
		sum += numbers[at]; /* refused index_of_element: offset-unbounded | has no upper bound in an access of 8 bytes to a value of map | `if (n >= N) return …;` */
	}
	bpf_iter_num_destroy(&it);
	return sum;
}

SEC("syscall")
int tasks_without_rcu(void *ctx)
{
	struct bpf_iter_task it;
	int count = 0;

	edit(bpf_rcu_read_lock();)
	bpf_iter_task_new(&it, NULL, 0); /* refused tasks_without_rcu: section-not-open | `bpf_iter_task_new` is called outside of a section that `bpf_rcu_read_lock` begins | call `bpf_rcu_read_lock` before, and `bpf_rcu_read_unlock` behind its last use */
	while (bpf_iter_task_next(&it))
		count++;
	bpf_iter_task_destroy(&it);
	edit(bpf_rcu_read_unlock();)
	return count;
}

SEC("syscall")
int unlocked_inside(void *ctx)
{
	struct bpf_iter_task it;
	struct task_struct *task;

	bpf_rcu_read_lock();
	bpf_iter_task_new(&it, NULL, 0);
	refuse(bpf_rcu_read_unlock();)
	refuse(bpf_rcu_read_lock();)
	task = bpf_iter_task_next(&it); /* refused unlocked_inside: stack-object | behind the end of the section in which it was made | call `bpf_rcu_read_unlock` behind the end of the iterator */
	bpf_iter_task_destroy(&it);
	bpf_rcu_read_unlock();
	return !task;
}

static noinline int sum_of(struct bpf_iter_num *it)
{
	int sum = 0, *i;

	while ((i = bpf_iter_num_next(it)))
		sum++;
	return sum;
}

SEC("tc")
int ended_by_no_one(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int sum;

	bpf_iter_num_new(&it, 0, 10);
	sum = sum_of(&it);
	edit(bpf_iter_num_destroy(&it);)
	return sum; /* refused ended_by_no_one: leak | the iterator that `bpf_iter_num_new` began */
}

SEC("tc")
int thrown_inside(struct __sk_buff *ctx)
{
	struct bpf_iter_num it;
	int *i, value = 0;

	bpf_iter_num_new(&it, 0, 10);
	i = bpf_iter_num_next(&it);
	if (i)
		value = *i;
	edit(bpf_iter_num_destroy(&it);)
	if (value > 100)
		bpf_throw(0); /* refused thrown_inside: leak | `bpf_throw` is called inside the iterator that `bpf_iter_num_new` began | bpf_iter_num_destroy */
	refuse(bpf_iter_num_destroy(&it);)
	return value;
}

char LICENSE[] SEC("license") = "GPL";
