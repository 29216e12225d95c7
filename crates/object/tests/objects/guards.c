/*
 * Programs that use what newer kernels have behind a check of the release. Linux refuses unknown
 * opcodes, atomic operations and function references in dead code too.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v4 -O2 -g -ffile-compilation-dir=. -c guards.c && llvm-strip-19 -g guards.o
 */
#define SEC(name) __attribute__((section(name), used))
#define __noinline __attribute__((noinline))
#define HAS(major, minor) (LINUX_KERNEL_VERSION >= ((major) << 16 | (minor) << 8))

extern int LINUX_KERNEL_VERSION __attribute__((section(".kconfig")));

struct __sk_buff {
	unsigned int len, pkt_type, mark;
};

static long (*const loop)(unsigned int iterations, void *callback, void *context, unsigned long long flags) = (void *)181;
static unsigned long long (*const ktime_get_tai_ns)(void) = (void *)208;

unsigned long long number;

static long each(unsigned int index, void *context)
{
	return 0;
}

SEC("tc") int callback(struct __sk_buff *skb)
{
	if (HAS(5, 17))
		loop(3, each, 0, 0);
	return 0;
}

SEC("tc") int atomic(struct __sk_buff *skb)
{
	if (HAS(5, 12))
		return __sync_fetch_and_or(&number, 1);
	return 0;
}

SEC("tc") int signed_load(struct __sk_buff *skb)
{
	if (HAS(6, 6))
		return *(volatile signed char *)&number;
	return 0;
}

SEC("tc") int byte_swap(struct __sk_buff *skb)
{
	if (HAS(6, 6))
		return __builtin_bswap32(*(volatile unsigned int *)&number);
	return 0;
}

static __noinline int swapped(unsigned int value)
{
	return __builtin_bswap32(value);
}

SEC("tc") int in_subprog(struct __sk_buff *skb)
{
	if (HAS(6, 6))
		return swapped(skb->len);
	return 0;
}

SEC("tc") int helper(struct __sk_buff *skb)
{
	if (HAS(6, 1))
		return ktime_get_tai_ns() ? 1 : 2;
	return 0;
}

SEC("tc") int signed_division(struct __sk_buff *skb)
{
	if (HAS(6, 6)) {
		int left = skb->len, right = skb->mark | 1;

		return left / right;
	}
	return 0;
}

SEC("tc") int plain(struct __sk_buff *skb)
{
	return number;
}

char _license[] SEC("license") = "GPL";
