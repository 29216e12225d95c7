/* Stack slots of which an instruction reads nothing, or a half, behind a jump: from 7.2 on the kernel
 * forgets what is in the rest, and refuses reads of it. */
#define SEC(name) __attribute__((section(name), used))
#define NAKED __attribute__((naked))

typedef unsigned int u32;
typedef unsigned long long u64;

/* A Bloom filter: the prototype of bpf_map_peek_elem says that it writes the value that it reads. */
struct {
	int (*type)[30];
	int (*max_entries)[16];
	u64 *value;
} seen SEC(".maps");

struct {
	int (*type)[1];
	int (*max_entries)[16];
	u64 *key;
	u64 *value;
} counts SEC(".maps");

struct pair {
	u64 first, second;
};

char _license[] SEC("license") = "GPL";

__attribute__((noinline)) int writes(u32 *word)
{
	if (!word)
		return 0;
	*word = 3;
	return 0;
}

__attribute__((noinline)) int ignores(struct pair *pair)
{
	return pair ? 2 : 1;
}

/* A store, a jump, an access of the slot, and on the other side of the jump what is read of it. */
#define PROGRAM(name, store, access, other)                                                     \
	SEC("kprobe") NAKED int name(void)                                                      \
	{                                                                                       \
		asm volatile(store "call 7; if r0 == 0 goto 1f;" access "1: " other "exit;" ::  \
				     [seen] "i"(&seen), [counts] "i"(&counts) : "memory");       \
	}

#define LOW "r0 = *(u32 *)(r10 - 8);"
#define HIGH "r0 = *(u32 *)(r10 - 4);"
#define NONE "r0 = 0;"
#define SEVEN "*(u64 *)(r10 - 8) = 7;"
#define ZERO "*(u64 *)(r10 - 8) = 0;"
#define NUMBER "call 7; *(u64 *)(r10 - 8) = r0;"
#define POINTER "*(u64 *)(r10 - 8) = r1;"
#define PEEK "r1 = %[seen] ll; r2 = r10; r2 += -8; call 89; r0 = 0; exit;"
#define LOOKUP "r1 = %[counts] ll; r2 = r10; r2 += -8; call 1; r0 = 0; exit;"
#define WRITE "r1 = r10; r1 += -4; call writes;"
#define PROBE "r2 = r0; r2 &= 3; r1 = r10; r1 += -4; r3 = 0; call 113;"
#define USE "r2 = *(u32 *)(r10 - 8); r3 = r10; r3 += -64; r3 += r2; *(u8 *)(r3 + 0) = 1; r0 = 0; exit;"

PROGRAM(peek_dead, SEVEN, PEEK, NONE)
PROGRAM(peek_number_low, NUMBER, PEEK, LOW)
PROGRAM(peek_number_high, NUMBER, PEEK, HIGH)
PROGRAM(peek_zero_low, ZERO, PEEK, LOW)
PROGRAM(peek_zero_high, ZERO, PEEK, HIGH)
PROGRAM(peek_seven_low, SEVEN, PEEK, LOW)
PROGRAM(peek_seven_high, SEVEN, PEEK, HIGH)
PROGRAM(peek_pointer_low, POINTER, PEEK, LOW)
PROGRAM(peek_pointer_high, POINTER, PEEK, HIGH)
PROGRAM(peek_spilled_half, "call 7; *(u32 *)(r10 - 8) = r0;", PEEK, LOW)
PROGRAM(lookup_dead, SEVEN, LOOKUP, NONE)
PROGRAM(write_zero, ZERO, WRITE USE, LOW)
PROGRAM(write_seven, SEVEN, WRITE USE, LOW)
PROGRAM(write_number, "call 7; r0 &= 7; *(u64 *)(r10 - 8) = r0;", WRITE USE, LOW)
PROGRAM(probe_zero, ZERO, PROBE USE, LOW)
PROGRAM(probe_seven, SEVEN, PROBE USE, LOW)
PROGRAM(probe_whole, SEVEN, "r2 = 4; r1 = r10; r1 += -4; r3 = 0; call 113;" USE, LOW)
PROGRAM(exchanged, SEVEN, "r6 = r10; r6 += -8; r7 = r6; lock *(u64 *)(r7 + 0) += r6; r0 = 0; exit;", NONE)

SEC("xdp") int passed_on(void *ctx)
{
	struct pair pair = { 7, 8 };

	asm volatile("" ::"r"(&pair) : "memory");
	if (((u32(*)(void))7)() & 1)
		return 1;
	return ignores(&pair);
}
