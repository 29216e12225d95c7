/* A socket is looked up, and released on one of two paths. */
#include "explain.h"

SEC("tc")
int socket_leak(struct __sk_buff *skb)
{
	u64 tuple[5] = {};
	void *sk = sk_lookup_tcp(skb, tuple, 12, -1, 0);

	if (!sk)
		return 0;
	if (skb->mark == 7)
		return 2;
	sk_release(sk);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
