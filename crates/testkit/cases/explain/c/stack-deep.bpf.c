/* Two functions with large buffers, one called by the other. */
#include "explain.h"

static noinline int last(struct __sk_buff *skb, u32 from)
{
	u8 bytes[240];

	if (skb_load_bytes(skb, from, bytes, sizeof(bytes)))
		return 0;
	return bytes[239];
}

SEC("tc")
int stack_deep(struct __sk_buff *skb)
{
	u8 bytes[320];

	if (skb_load_bytes(skb, 0, bytes, sizeof(bytes)))
		return 0;
	return last(skb, bytes[319]) & 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
