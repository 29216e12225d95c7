/* How long tasks wait for a processor: microseconds from waking up to running, as powers of 2. */
#include "tools.h"

#define SLOTS 20

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, s32);
	__type(value, u64);
} woken SEC(".maps");

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, SLOTS);
	__type(key, u32);
	__type(value, u64);
} latency SEC(".maps");

SEC("tp_btf/sched_wakeup")
int on_wakeup(u64 *ctx)
{
	struct task_struct *task = (void *)ctx[0];
	s32 pid = task->pid;
	u64 now = ktime_get_ns();

	map_update_elem(&woken, &pid, &now, 0);
	return 0;
}

SEC("tp_btf/sched_switch")
int on_switch(u64 *ctx)
{
	struct task_struct *next = (void *)ctx[2];
	s32 pid = next->pid;
	u64 *start = map_lookup_elem(&woken, &pid), *count, waited;
	u32 slot = 0;

	if (!start)
		return 0;
	for (waited = (ktime_get_ns() - *start) / 1000; waited > 1 && slot < SLOTS - 1; waited >>= 1)
		slot++;
	count = map_lookup_elem(&latency, &slot);
	if (count)
		__sync_fetch_and_add(count, 1);
	map_delete_elem(&woken, &pid);
	return 0;
}
