/* The length of a packet is written. */
#include "explain.h"

SEC("tc")
int context_write(struct __sk_buff *skb)
{
	skb->mark = skb->len;
	skb->len = 64;
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
