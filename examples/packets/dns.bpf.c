/*
 * A DNS parser: reads the question of DNS queries over UDP, counts the names in lower case,
 * and drops queries for names that are blocked, together with all names below them.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c dns.bpf.c && llvm-strip-19 -g dns.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name

enum { MAP_TYPE_HASH = 1, MAP_TYPE_ARRAY = 2, MAP_TYPE_LRU_HASH = 9 };
enum { ETHER_IPV4 = 0x0800, ETHER_IPV6 = 0x86dd, PROTOCOL_UDP = 17, PORT_DNS = 53 };
enum { NAME_MAX = 64, LABELS_MAX = 8 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const map_update_elem)(void *map, const void *key, const void *value,
				     u64 flags) = (void *)2;

/* The register that is compared is the one that is used afterwards. */
#define keep_in_register(variable) asm volatile("" : "+r"(variable))

enum action { ABORTED, DROP, PASS };

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct udp {
	u16 from;
	u16 to;
	u16 length;
	u16 checksum;
};

struct dns {
	u16 id;
	u16 flags;
	u16 questions;
	u16 answers;
	u16 authorities;
	u16 additionals;
};

/* A name with a dot before each label (".example.com"), filled with zeros. */
struct name {
	char text[NAME_MAX];
};

struct {
	__uint(type, MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct name);
	__type(value, u64);
} names SEC(".maps");

/* Blocked names, with the number of queries that were dropped for each. */
struct {
	__uint(type, MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, struct name);
	__type(value, u64);
} blocked SEC(".maps");

enum result { NOT_DNS, QUERY, BLOCKED, TOO_LONG, MALFORMED, RESULTS };

struct {
	__uint(type, MAP_TYPE_ARRAY);
	__uint(max_entries, RESULTS);
	__type(key, u32);
	__type(value, u64);
} results SEC(".maps");

/* The name of a question, and where its labels start. */
struct question {
	struct name name;
	u8 starts[LABELS_MAX];
	u32 labels;
};

static void *find_udp(void *start, void *end)
{
	u16 *type = start + 12;
	u8 *ip = start + 14;

	if ((void *)ip + 40 > end)
		return 0;
	/* Neither options nor fragments: the header is at a fixed place. */
	if (*type == __builtin_bswap16(ETHER_IPV4) && ip[0] == 0x45 && ip[9] == PROTOCOL_UDP &&
	    !(*(u16 *)(ip + 6) & 0xff3f))
		return ip + 20;
	if (*type == __builtin_bswap16(ETHER_IPV6) && ip[6] == PROTOCOL_UDP)
		return ip + 40;
	return 0;
}

/* Copies a name in lower case; lengths of labels are not letters. */
static enum result read_name(u8 *at, void *end, struct name *name)
{
	u32 index;

	for (index = 0; index < NAME_MAX; index++, at++) {
		u8 byte;

		if ((void *)(at + 1) > end)
			return MALFORMED;
		byte = *at;
		if (!byte)
			return index ? QUERY : MALFORMED;
		if (byte >= 'A' && byte <= 'Z')
			byte += 'a' - 'A';
		name->text[index] = byte;
	}
	return TOO_LONG;
}

/*
 * Replaces the lengths of labels by dots. A global function is verified once, for any
 * argument, and not again for each path that leads to it.
 */
__attribute__((noinline)) int split_labels(struct question *question)
{
	u32 at = 0, label;

	if (!question)
		return MALFORMED;
	for (label = 0; label < LABELS_MAX; label++) {
		u8 length;

		keep_in_register(at);
		if (at >= NAME_MAX)
			return MALFORMED;
		length = question->name.text[at];
		if (!length) {
			question->labels = label;
			return QUERY;
		}
		/* A pointer into the message: no query has one in its first name. */
		if (length > 63)
			return MALFORMED;
		question->name.text[at] = '.';
		question->starts[label] = at;
		at += length + 1;
	}
	return TOO_LONG;
}

/* Looks for the name and all names above it among those that are blocked. */
__attribute__((noinline)) int is_blocked(struct question *question)
{
	u32 label, index;

	if (!question)
		return 0;
	for (label = 0; label < LABELS_MAX && label < question->labels; label++) {
		u32 start = question->starts[label];
		struct name suffix = { 0 };
		u64 *dropped;

		for (index = 0; index < NAME_MAX; index++) {
			u32 from = start + index;

			keep_in_register(from);
			if (from >= NAME_MAX)
				break;
			suffix.text[index] = question->name.text[from];
		}
		dropped = map_lookup_elem(&blocked, &suffix);
		if (dropped) {
			__sync_fetch_and_add(dropped, 1);
			return 1;
		}
	}
	return 0;
}

static enum result examine(struct xdp_md *ctx)
{
	void *end = (void *)(long)ctx->data_end;
	struct udp *udp = find_udp((void *)(long)ctx->data, end);
	struct dns *dns = (void *)(udp + 1);
	struct question question = { 0 };
	enum result result;
	u64 *count, one = 1;

	if (!udp || (void *)(udp + 1) > end || udp->to != __builtin_bswap16(PORT_DNS))
		return NOT_DNS;
	if ((void *)(dns + 1) > end || dns->questions != __builtin_bswap16(1) ||
	    dns->flags & 0x80)
		return MALFORMED;
	result = read_name((void *)(dns + 1), end, &question.name);
	if (result == QUERY)
		result = split_labels(&question);
	if (result != QUERY)
		return result;
	if (is_blocked(&question))
		return BLOCKED;
	count = map_lookup_elem(&names, &question.name);
	if (count)
		__sync_fetch_and_add(count, 1);
	else
		map_update_elem(&names, &question.name, &one, 0);
	return QUERY;
}

SEC("xdp")
int dns(struct xdp_md *ctx)
{
	u32 result = examine(ctx);
	u64 *count = map_lookup_elem(&results, &result);

	if (count)
		__sync_fetch_and_add(count, 1);
	return result == BLOCKED ? DROP : PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
