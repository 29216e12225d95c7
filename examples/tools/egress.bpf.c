/* How much the processes of each control group send. */
#include "tools.h"

struct sent {
	u64 packets;
	u64 bytes;
};

struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct sent);
} sent_by SEC(".maps");

SEC("cgroup_skb/egress")
int count(struct __sk_buff *skb)
{
	u64 cgroup = skb_cgroup_id(skb);
	struct sent first = { .packets = 1, .bytes = skb->len };
	struct sent *sent = map_lookup_elem(&sent_by, &cgroup);

	if (sent) {
		__sync_fetch_and_add(&sent->packets, 1);
		__sync_fetch_and_add(&sent->bytes, skb->len);
	} else {
		map_update_elem(&sent_by, &cgroup, &first, 0);
	}
	return 1;
}
