/*
 * The first set bit of a word in the packet, by a ladder of halves in a function of its own and
 * by the kernel function bpf_ffs64; once, and 64 times in a loop on rotations of the word.
 *
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c ffs.bpf.c && llvm-strip-19 -g ffs.bpf.o
 */
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto;
	u32 priority, ingress_ifindex, ifindex, tc_index, cb[5], hash, tc_classid, data, data_end;
};

extern u32 bpf_ffs64(u64 value) __attribute__((weak, section(".ksyms")));

/* Index of the lowest set bit of a word that has one. */
static __attribute__((noinline)) u32 ladder(u64 word)
{
	u32 found = 0;

	if ((word & 0xffffffff) == 0) {
		found += 32;
		word >>= 32;
	}
	if ((word & 0xffff) == 0) {
		found += 16;
		word >>= 16;
	}
	if ((word & 0xff) == 0) {
		found += 8;
		word >>= 8;
	}
	if ((word & 0xf) == 0) {
		found += 4;
		word >>= 4;
	}
	if ((word & 0x3) == 0) {
		found += 2;
		word >>= 2;
	}
	if ((word & 0x1) == 0)
		found += 1;
	return found;
}

static inline int word_of(struct __sk_buff *skb, u64 *word)
{
	void *data = (void *)(long)skb->data;
	void *end = (void *)(long)skb->data_end;

	if (data + 8 > end)
		return 0;
	*word = *(u64 *)data;
	return 1;
}

SEC("tc")
int ladder_once(struct __sk_buff *skb)
{
	u64 word;

	return word_of(skb, &word) ? ladder(word) : 99;
}

SEC("tc")
int kfunc_once(struct __sk_buff *skb)
{
	u64 word;

	return word_of(skb, &word) ? bpf_ffs64(word) : 99;
}

SEC("tc")
int ladder_64(struct __sk_buff *skb)
{
	u32 sum = 0;
	u64 word;

	if (!word_of(skb, &word))
		return 99;
	for (int turn = 0; turn < 64; turn++) {
		sum += ladder(word);
		word = word << 1 | word >> 63;
	}
	return sum;
}

SEC("tc")
int kfunc_64(struct __sk_buff *skb)
{
	u32 sum = 0;
	u64 word;

	if (!word_of(skb, &word))
		return 99;
	for (int turn = 0; turn < 64; turn++) {
		sum += bpf_ffs64(word);
		word = word << 1 | word >> 63;
	}
	return sum;
}

/* What costs a run that does nothing else. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	u64 word;

	return word_of(skb, &word) ? (u32)word : 99;
}

char _license[] SEC("license") = "GPL";
