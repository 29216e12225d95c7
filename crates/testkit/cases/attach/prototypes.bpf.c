/* Programs that need a type of module fou, and that declare a kernel function of it with another
 * prototype than it has.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c prototypes.bpf.c && llvm-strip-19 -g prototypes.bpf.o
 */
#include "attach.h"

struct __sk_buff {
	u32 len;
};
struct bpf_fou_encap {
	unsigned short sport;
	unsigned short dport;
} __attribute__((preserve_access_index));

int bpf_skb_set_fou_encap(struct __sk_buff *skb, struct bpf_fou_encap *encap, int type) __ksym;
int bpf_skb_get_fou_encap(struct __sk_buff *skb, unsigned long encap) __ksym;
int bpf_skb_get_fou_encap___weak(struct __sk_buff *skb) __ksym __attribute__((weak));

volatile unsigned short port = 6081;

SEC("tc") int sets_port(struct __sk_buff *skb)
{
	struct bpf_fou_encap encap = {.dport = port};

	return bpf_skb_set_fou_encap(skb, &encap, 0);
}

SEC("tc") int gets_number(struct __sk_buff *skb)
{
	return bpf_skb_get_fou_encap(skb, 0);
}

SEC("tc") int gets_nothing(struct __sk_buff *skb)
{
	return bpf_skb_get_fou_encap___weak(skb);
}

char _license[] SEC("license") = "GPL";
