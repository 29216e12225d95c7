/*
 * Programs that read stack memory which they never wrote, each in another way, and programs that
 * write all that they read. What is read does not change the results: 0 here, anything in Linux.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c unwritten.bpf.c && llvm-strip-19 -g unwritten.bpf.o
 */
typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __noinline __attribute__((noinline))
#define __uint(name, val) int (*name)[val]
#define __type(name, val) typeof(val) *name
/* The compiler takes the memory for written, which it is not. */
#define UNWRITTEN(memory) asm volatile("" : "=m"(memory))
/* Keeps a number. */
#define KEEP(number) asm volatile("" : "+r"(number))

struct __sk_buff {
	u32 len, pkt_type, mark, queue_mapping, protocol, vlan_present, vlan_tci, vlan_proto, priority;
};

struct {
	__uint(type, 2);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64[2]);
} values SEC(".maps");

struct {
	__uint(type, 27);
	__uint(max_entries, 4096);
} ring SEC(".maps");

struct {
	__uint(type, 3);
	__uint(max_entries, 1);
	__uint(key_size, sizeof(u32));
	__uint(value_size, sizeof(u32));
} programs SEC(".maps");

static long (*const map_update)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static void (*const tail_call)(void *context, void *map, u32 index) = (void *)12;
static long (*const probe_read)(void *to, u32 size, const void *from) = (void *)113;
static long (*const probe_read_str)(void *to, u32 size, const void *from) = (void *)115;
static long (*const loop)(u32 iterations, void *callback, void *context, u64 flags) = (void *)181;
static long (*const load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
static long (*const ringbuf_output)(void *ring, void *data, u64 size, u64 flags) = (void *)130;

/* A load. */
SEC("tc") int direct(struct __sk_buff *skb)
{
	u64 word;

	UNWRITTEN(word);
	KEEP(word);
	return 1;
}

/* A load of eight bytes of which four were written. */
SEC("tc") int half(struct __sk_buff *skb)
{
	union {
		u64 word;
		u32 halves[2];
	} both;

	UNWRITTEN(both);
	both.halves[0] = skb->len;
	asm volatile("" ::: "memory");
	KEEP(both.word);
	return 1;
}

/* A store at one index, a load at another: whether they are equal depends on the context. */
SEC("tc") int indexed(struct __sk_buff *skb)
{
	u8 bytes[8];
	u32 to = skb->mark & 7, from = skb->priority & 7;

	UNWRITTEN(bytes);
	KEEP(to);
	KEEP(from);
	((volatile u8 *)bytes)[to] = 3;
	from = ((volatile u8 *)bytes)[from];
	KEEP(from);
	return 1;
}

/* The value of an update has padding. */
SEC("tc") int padding(struct __sk_buff *skb)
{
	struct {
		u32 small;
		u64 large;
	} value;
	u32 key = 0;

	UNWRITTEN(value);
	*(volatile u32 *)&value.small = 1;
	*(volatile u64 *)&value.large = 2;
	map_update(&values, &key, &value, 0);
	return 1;
}

/* A record of a ring buffer. */
SEC("tc") int record(struct __sk_buff *skb)
{
	u64 words[2];

	UNWRITTEN(words);
	*(volatile u64 *)&words[1] = skb->len;
	ringbuf_output(&ring, words, sizeof(words), 0);
	return 1;
}

/* Memory that is read by its address alone. */
SEC("tc") int probe(struct __sk_buff *skb)
{
	u64 from, to = 0;

	UNWRITTEN(from);
	probe_read(&to, sizeof(to), &from);
	KEEP(to);
	return 1;
}

/* Memory of which a helper writes a part: an empty text and its end. */
SEC("tc") int text(struct __sk_buff *skb)
{
	u32 from = 0, read;
	u8 to[16];

	UNWRITTEN(to);
	probe_read_str(to, sizeof(to), &from);
	read = ((volatile u8 *)to)[9];
	KEEP(read);
	return 1;
}

static __noinline u64 word_at(const u64 *word)
{
	u64 found = *(volatile u64 *)word;

	KEEP(found);
	return found;
}

/* A function reads its caller's stack. */
SEC("tc") int callee(struct __sk_buff *skb)
{
	u64 word;

	UNWRITTEN(word);
	word_at(&word);
	return 1;
}

static int sum(u64 index, u64 *words)
{
	u64 word = *(volatile u64 *)words;

	KEEP(word);
	return 0;
}

/* A function that a helper calls does. */
SEC("tc") int callback(struct __sk_buff *skb)
{
	u64 words[2];

	UNWRITTEN(words);
	loop(2, sum, words, 0);
	return 1;
}

/* Of the paths into a loop one writes the word, and the others are pruned behind it. */
SEC("tc") int pruned(struct __sk_buff *skb)
{
	u64 word;
	u32 number = skb->mark;

	UNWRITTEN(word);
	for (u32 round = 0; round < 40; round++) {
		KEEP(number);
		if (number & 1)
			*(volatile u64 *)&word = number;
		number >>= 1;
	}
	if (skb->priority == 1)
		number = *(volatile u64 *)&word;
	KEEP(number);
	return 1;
}

/* A program that a tail call enters. */
SEC("tc") int entered(struct __sk_buff *skb)
{
	u64 word;

	UNWRITTEN(word);
	KEEP(word);
	return 1;
}

SEC("tc") int enters(struct __sk_buff *skb)
{
	tail_call(skb, &programs, 0);
	return 2;
}

/* Everything that is read was written: by stores, a helper, a function, on all paths. */
static __noinline void fill(u64 *words, u32 number)
{
	*(volatile u64 *)&words[0] = number;
	*(volatile u64 *)&words[1] = number;
}

SEC("tc") int written(struct __sk_buff *skb)
{
	u64 words[2], word;
	u8 header[14];
	u32 key = 0, at = skb->mark & 1;

	UNWRITTEN(words);
	fill(words, skb->len);
	map_update(&values, &key, words, 0);
	KEEP(at);
	word = ((volatile u64 *)words)[at];
	KEEP(word);
	word_at(&words[1]);
	loop(2, sum, words, 0);
	ringbuf_output(&ring, words, sizeof(words), 0);
	UNWRITTEN(header);
	if (load_bytes(skb, 0, header, sizeof(header)))
		return 1;
	key = ((volatile u8 *)header)[13];
	KEEP(key);
	for (u32 round = 0; round < 40; round++) {
		u64 each;

		if (at & 1)
			*(volatile u64 *)&each = at;
		else
			*(volatile u64 *)&each = 0;
		at = *(volatile u64 *)&each;
		KEEP(at);
	}
	return 1;
}

char _license[] SEC("license") = "GPL";
