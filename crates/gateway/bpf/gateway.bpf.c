/*
 * A packet filter with the first matching rule of up to 65,536, at XDP and at tc.
 *
 * Rules are compiled to one array, the table: for each of source address, destination
 * address, protocol, source port and destination port a lookup gives a class, and each class
 * has a bitmap of the rules that match. The first bit of the conjunction of the five bitmaps
 * is the first matching rule. Bitmaps consist of blocks of 512 bits; equal blocks are stored
 * once; a summary has a bit for each word that is not zero. A cache in the table maps the
 * five classes to the rule.
 *
 * `tables` holds the table in an inner map, so that one update of it replaces all rules at
 * once. The numbers of the header are those of crates/gateway/src/layout.rs.
 *
 * Needs no header. Build:
 *   clang-19 -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c gateway.bpf.c && llvm-strip-19 -g gateway.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define SEC(name) __attribute__((section(name), used))
#define __uint(name, value) int (*name)[value]
#define __type(name, value) value *name
#define __array(name, value) value *name[]
#define __weak __attribute__((weak))
#define __ksym __attribute__((section(".ksyms")))
#define inline_always static inline __attribute__((always_inline))

enum { MAP_TYPE_ARRAY = 2, MAP_TYPE_PERCPU_ARRAY = 6, MAP_TYPE_ARRAY_OF_MAPS = 12, MAP_TYPE_RINGBUF = 27 };

static void *(*const map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const redirect)(u32 ifindex, u64 flags) = (void *)23;
static long (*const skb_load_bytes)(const void *skb, u32 offset, void *to, u32 len) = (void *)26;
static long (*const skb_pull_data)(void *skb, u32 len) = (void *)39;
static void *(*const ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const xdp_load_bytes)(void *xdp, u32 offset, void *to, u32 len) = (void *)189;

extern u64 bpf_ffs64(u64 word) __weak __ksym;

/* Verdicts of XDP and tc. */
enum { XDP_DROP = 1, XDP_PASS = 2, TC_ACT_OK = 0, TC_ACT_SHOT = 2 };

struct xdp_md {
	u32 data;
	u32 data_end;
};

struct skb {
	u32 len;
	u32 other[18];
	u32 data;
	u32 data_end;
};

/* The header of a table: numbers of 4 bytes by these indices. Places are in units of 4 bytes
 * unless said otherwise. */
enum header {
	RULES = 1,
	/* Words of a summary, one for 4,096 rules. */
	SUMMARY_WORDS,
	/* Entries of directories of blocks, one for 512 rules. */
	BLOCKS,
	/* First entry of the tries of IPv4 addresses. */
	SOURCE_TRIE,
	DESTINATION_TRIE,
	/* Sorted lower bounds of IPv6 addresses, in units of 8 bytes: upper half, lower half. */
	SOURCE_BOUNDS,
	DESTINATION_BOUNDS,
	/* Their number, and the place of their classes. */
	SOURCE_BOUND_COUNT,
	DESTINATION_BOUND_COUNT,
	SOURCE_BOUND_CLASSES,
	DESTINATION_BOUND_CLASSES,
	/* Classes of protocols, 4 bytes each, by header and protocol, and of ports. */
	PROTOCOLS,
	SOURCE_PORTS,
	DESTINATION_PORTS,
	/* By field: summaries in units of 8 bytes, directories. */
	SUMMARIES,
	DIRECTORIES = SUMMARIES + 5,
	/* Blocks, in units of 8 bytes. */
	BITMAPS = DIRECTORIES + 5,
	/* Actions by rule; 0 is the default, those of other packets follow the last rule. */
	ACTIONS,
	/* Counters of this table begin here. */
	COUNTERS,
	/* The cache in units of 8 bytes, and the bits that choose one of its sets; 0: no cache. */
	CACHE,
	CACHE_SET_BITS,
	/* Bits of the five classes together, and where those of all but the first begin. */
	KEY_BITS,
	KEY_SHIFTS,
};

enum { SOURCE, DESTINATION, PROTOCOL, SOURCE_PORT, DESTINATION_PORT, FIELDS };

/* Values of a protocol. */
enum { PROTOCOL_VALUES = 256 };

/* Kinds of actions: the low 3 bits. The others are an interface index or a rate. */
enum action { PASS, DROP, REDIRECT, COUNT, SAMPLE };

/* The last of the numbers of 8 bytes in a table: one less than a power of two. */
volatile const u64 last_word = 255;
/* Write the rule of each packet to `found`. */
volatile const _Bool reports_rules = 0;

struct table {
	u64 words[256];
};

struct {
	__uint(type, MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct {
		__uint(type, MAP_TYPE_ARRAY);
		__uint(max_entries, 1);
		__uint(key_size, sizeof(u32));
		__uint(value_size, sizeof(struct table));
	});
} tables SEC(".maps");

struct counter {
	u64 packets;
	u64 bytes;
};

struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 6);
	__type(key, u32);
	__type(value, struct counter);
} counters SEC(".maps");

struct {
	__uint(type, MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} found SEC(".maps");

enum { SAMPLE_BYTES = 64 };

struct sample {
	u32 rule;
	u32 length;
	u8 bytes[SAMPLE_BYTES];
};

struct {
	__uint(type, MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 18);
} samples SEC(".maps");

/* The type of the records in `samples`. */
struct sample *unused_sample SEC(".data.types");

/* What rules ask of a packet. */
struct packet {
	u64 source[2];
	u64 destination[2];
	u32 source_port;
	u32 destination_port;
	u8 protocol;
	/* An enum transport_header. */
	u8 header;
	u8 is_ipv6;
};

/* What there is of the header of the protocol: all, not all because the packet ends, or nothing,
 * in a fragment at offset 8 or further behind. */
enum transport_header { WHOLE, CUT, OFFSET8, LATER };

/* The port of packets without ports. */
enum { NO_PORT = 1 << 16 };

enum parsed { IP, NOT_IP, MALFORMED };

enum { ETHER_IPV4 = 0x0800, ETHER_IPV6 = 0x86dd, ETHER_VLAN = 0x8100, ETHER_QINQ = 0x88a8 };

enum { HOP_BY_HOP = 0, ICMP = 1, TCP = 6, UDP = 17, DCCP = 33, ROUTING = 43, FRAGMENT = 44, AUTHENTICATION = 51,
       ICMPV6 = 58, NO_NEXT = 59, DESTINATION_OPTIONS = 60, SCTP = 132, UDP_LITE = 136 };

/* Most headers between those of IPv6 and of the transport. */
enum { MOST_EXTENSIONS = 8 };

struct ether {
	u8 to[6];
	u8 from[6];
	u16 type;
};

struct vlan {
	u16 tag;
	u16 type;
};

struct ipv4 {
	u8 ihl : 4, version : 4;
	u8 tos;
	u16 length;
	u16 id;
	u16 fragment;
	u8 ttl;
	u8 protocol;
	u16 checksum;
	u32 from;
	u32 to;
};

struct ipv6 {
	u8 first[4];
	u16 length;
	u8 next;
	u8 hops;
	u32 from[4];
	u32 to[4];
};

struct extension {
	u8 next;
	u8 length;
	u16 offset;
	u32 id;
};

inline_always u16 swap16(u16 value)
{
	return __builtin_bswap16(value);
}

inline_always u32 swap32(u32 value)
{
	return __builtin_bswap32(value);
}

/* Bytes of the header of a protocol; 0 for those of which nothing is read. */
static const u8 header_bytes[256] = {
	[ICMP] = 8, [TCP] = 20, [UDP] = 8, [DCCP] = 12, [ICMPV6] = 8, [SCTP] = 12, [UDP_LITE] = 8,
};

/* 1 if a is less than b, computed without a branch: the paths of the verifier would multiply. */
inline_always u64 is_less(s64 a, s64 b)
{
	u64 difference = a - b;

	asm volatile("" : "+r"(difference));
	return difference >> 63;
}

/* Reads ports, or type and code of ICMP. The packet has `left` bytes from the transport header on
 * by its own length; what follows belongs to the frame. */
inline_always void read_transport(struct packet *packet, u8 *transport, void *end, s64 left)
{
	s64 there = end - (void *)transport;

	left += (there - left) * is_less(there, left);
	left -= left * is_less(left, 0);
	packet->header = is_less(left, header_bytes[packet->protocol]) * CUT;
	switch (packet->protocol) {
	case TCP:
	case UDP:
	case DCCP:
	case SCTP:
	case UDP_LITE:
		if (left < 4 || (void *)(transport + 4) > end)
			return;
		packet->source_port = swap16(*(u16 *)transport);
		packet->destination_port = swap16(*(u16 *)(transport + 2));
		return;
	case ICMP:
	case ICMPV6:
		if (left < 2 || (void *)(transport + 2) > end)
			return;
		packet->source_port = transport[0];
		packet->destination_port = transport[1];
	}
}

/* The header of a fragment at a position, in units of 8 bytes, that is not 0. */
inline_always u8 header_at(u32 position)
{
	return LATER - is_less(position, 2);
}

/* Bytes of a packet behind an offset. Where it `may_be_long`, a length of 0 is that of a packet
 * which is longer than the field can tell. */
inline_always s64 bytes_left(u32 length, u32 offset, u64 may_be_long)
{
	return length + ((is_less(length, 1) & may_be_long) << 32) - offset;
}

inline_always enum parsed parse_ipv4(struct packet *packet, struct ipv4 *ip, void *end)
{
	u32 length, offset;

	if ((void *)(ip + 1) > end)
		return MALFORMED;
	length = ip->ihl * 4;
	if (ip->version != 4 || length < sizeof(*ip) || (void *)ip + length > end)
		return MALFORMED;
	packet->source[0] = swap32(ip->from);
	packet->destination[0] = swap32(ip->to);
	packet->protocol = ip->protocol;
	offset = swap16(ip->fragment) & 0x1fff;
	if (offset)
		packet->header = header_at(offset);
	else
		read_transport(packet, (void *)ip + length, end,
			       bytes_left(swap16(ip->length), length, 1));
	return IP;
}

inline_always u64 half(const u32 *address)
{
	return (u64)swap32(address[0]) << 32 | swap32(address[1]);
}

inline_always enum parsed parse_ipv6(struct packet *packet, struct ipv6 *ip, void *end)
{
	u32 offset = sizeof(*ip);
	u8 next;
	int i;

	if ((void *)(ip + 1) > end || ip->first[0] >> 4 != 6)
		return MALFORMED;
	packet->is_ipv6 = 1;
	packet->source[0] = half(ip->from);
	packet->source[1] = half(ip->from + 2);
	packet->destination[0] = half(ip->to);
	packet->destination[1] = half(ip->to + 2);
	next = ip->next;
	for (i = 0; i < MOST_EXTENSIONS; i++) {
		struct extension *extension = (void *)ip + offset;

		if (next != HOP_BY_HOP && next != ROUTING && next != DESTINATION_OPTIONS &&
		    next != FRAGMENT && next != AUTHENTICATION) {
			packet->protocol = next;
			/* As a jumbogram (RFC 2675), which states its length in the first extension. */
			read_transport(packet, (void *)extension, end,
				       bytes_left(swap16(ip->length), offset - sizeof(*ip),
						  is_less(ip->next, HOP_BY_HOP + 1)));
			return IP;
		}
		if ((void *)(extension + 1) > end)
			return MALFORMED;
		if (next == FRAGMENT) {
			u32 position = swap16(extension->offset) >> 3;

			next = extension->next;
			if (position) {
				packet->protocol = next;
				packet->header = header_at(position);
				return IP;
			}
			offset += 8;
		} else {
			u32 length = extension->length;

			offset += next == AUTHENTICATION ? (length + 2) * 4 : (length + 1) * 8;
			next = extension->next;
		}
	}
	return MALFORMED;
}

inline_always enum parsed parse(struct packet *packet, void *start, void *end)
{
	struct ether *ether = start;
	void *next = ether + 1;
	u16 type;
	int i;

	if (next > end)
		return NOT_IP;
	type = ether->type;
#pragma unroll
	for (i = 0; i < 2; i++) {
		struct vlan *vlan = next;

		if (type != swap16(ETHER_VLAN) && type != swap16(ETHER_QINQ))
			break;
		next = vlan + 1;
		if (next > end)
			return NOT_IP;
		type = vlan->type;
	}
	if (type == swap16(ETHER_IPV4))
		return parse_ipv4(packet, next, end);
	if (type == swap16(ETHER_IPV6))
		return parse_ipv6(packet, next, end);
	return NOT_IP;
}

/* By the upper 6 bits of its product with a word of one bit: the index of that bit (a de Bruijn
 * sequence: every 6 bits in a row are different). */
static const u64 DE_BRUIJN = 0x03f79d71b4cb0a89;
static const u8 index_of_bit[64] = {
	0, 1, 48, 2, 57, 49, 28, 3, 61, 58, 50, 42, 38, 29, 17, 4,
	62, 55, 59, 36, 53, 51, 43, 22, 45, 39, 33, 30, 24, 18, 12, 5,
	63, 47, 56, 27, 60, 41, 37, 16, 54, 35, 52, 21, 44, 32, 23, 11,
	46, 26, 40, 15, 34, 20, 31, 10, 25, 14, 19, 9, 13, 8, 7, 6,
};

/* Index of the first set bit of a word that is not 0. */
inline_always u32 first_bit(u64 word)
{
	if (&bpf_ffs64)
		return bpf_ffs64(word);
	return index_of_bit[(word & -word) * DE_BRUIJN >> 58];
}

inline_always u64 word_at(struct table *table, u64 last, u64 place)
{
	return table->words[place & last];
}

inline_always u32 number_at(struct table *table, u64 last, u64 place)
{
	return ((u32 *)table)[place & (last * 2 + 1)];
}

inline_always u32 short_at(struct table *table, u64 last, u64 place)
{
	return ((u16 *)table)[place & (last * 4 + 3)];
}

inline_always u32 header(struct table *table, u32 index)
{
	return ((u32 *)table)[index];
}

/* A leaf of a trie has its class below this bit. Other entries have the bits of the address
 * that choose among the following ones in 4 bits, and the place of those. */
enum { IS_LEAF = 1u << 31, MOST_DEPTH = 16 };

inline_always u32 class_of_ipv4(struct table *table, u64 last, u32 root, u64 address)
{
	u32 entry = root;
	int i;

	address <<= 32;
	for (i = 0; i < MOST_DEPTH; i++) {
		u32 bits = entry & 15;

		if (entry & IS_LEAF)
			break;
		entry = number_at(table, last, (entry >> 4) * 2 + (address >> (64 - bits & 63)));
		address <<= bits;
	}
	return entry & ~IS_LEAF;
}

enum { MOST_STEPS = 18 };

inline_always u32 class_of_ipv6(struct table *table, u64 last, u32 bounds, u32 count, u32 classes,
				const u64 *address)
{
	u32 low = 0, i;

	for (i = 0; i < MOST_STEPS; i++) {
		u32 middle = low + count / 2;
		u64 upper, lower;

		if (count < 2)
			break;
		upper = word_at(table, last, bounds + middle * 2);
		lower = word_at(table, last, bounds + middle * 2 + 1);
		if (upper < address[0] || (upper == address[0] && lower <= address[1]))
			low = middle, count -= count / 2;
		else
			count /= 2;
	}
	return number_at(table, last, classes + low) & ~IS_LEAF;
}

/* Classes of ports are in pages behind an index of pages, 2 bytes each. */
enum { PAGE = 64, PAGE_INDEX = NO_PORT / PAGE + 4 };

inline_always u32 class_of_port(struct table *table, u64 last, u64 pages, u32 port)
{
	u64 page = short_at(table, last, pages * 2 + port / PAGE);

	return short_at(table, last, pages * 2 + PAGE_INDEX + page * PAGE + port % PAGE);
}

/* The number of the first matching rule, from 1; 0 if none matches. */
inline_always u32 first_rule(struct table *table, u64 last, const u32 *classes)
{
	u32 summary_words = header(table, SUMMARY_WORDS), blocks = header(table, BLOCKS);
	u32 bitmaps = header(table, BITMAPS);
	u32 summaries[FIELDS], directories[FIELDS];
	u32 group, i;
	u64 left;

#pragma unroll
	for (i = 0; i < FIELDS; i++) {
		summaries[i] = header(table, SUMMARIES + i) + classes[i] * summary_words;
		directories[i] = header(table, DIRECTORIES + i) + classes[i] * blocks;
	}
	/* A word of a summary for 4,096 rules, a bit of it for 64. */
#pragma clang loop unroll(disable)
	for (group = 0; group < 16; group++) {
		if (group >= summary_words)
			return 0;
		left = word_at(table, last, summaries[0] + group) &
		       word_at(table, last, summaries[1] + group) &
		       word_at(table, last, summaries[2] + group) &
		       word_at(table, last, summaries[3] + group) &
		       word_at(table, last, summaries[4] + group);
#pragma clang loop unroll(disable)
		for (i = 0; i < 64; i++) {
			u32 word, block, field;
			u64 rules = ~0ull;

			if (!left)
				break;
			word = group * 64 + first_bit(left);
			left &= left - 1;
#pragma unroll
			for (field = 0; field < FIELDS; field++) {
				block = number_at(table, last, directories[field] + word / 8);
				rules &= word_at(table, last, bitmaps + block * 8 + word % 8);
			}
			if (rules)
				return word * 64 + first_bit(rules) + 1;
		}
	}
	return 0;
}

/* Odd numbers by which keys of the cache are multiplied. */
static const u64 SPREAD = 0x9e3779b97f4a7c15, SPREAD_AGAIN = 0xbf58476d1ce4e5b9;

/* Bits of a rule in an entry of the cache, which is one more than the rule's number. */
enum { RULE_BITS = 17 };

/* The number of the first matching rule, from the cache if it is there. The key of the five
 * classes is permuted; its upper bits choose a set of two entries, the others are compared.
 * Without a cache all keys are 0, and nothing is compared. */
inline_always u32 cached_rule(struct table *table, u64 last, const u32 *classes)
{
	u32 set_bits = header(table, CACHE_SET_BITS), key_bits = header(table, KEY_BITS);
	u64 mask = (1ull << (key_bits & 63)) - 1, key = classes[0];
	u64 first, second, place, tag;
	u32 rule, i;

#pragma unroll
	for (i = 1; i < FIELDS; i++)
		key |= (u64)classes[i] << (header(table, KEY_SHIFTS + i - 1) & 63);
	key = key * SPREAD & mask;
	key ^= key >> (key_bits / 2 & 63);
	key = key * SPREAD_AGAIN & mask;
	place = header(table, CACHE) + (key >> (key_bits - set_bits & 63)) * 2;
	tag = (key & (1ull << (key_bits - set_bits & 63)) - 1) << RULE_BITS;
	first = word_at(table, last, place);
	second = word_at(table, last, place + 1);
	if (set_bits) {
		if ((first ^ tag) - 1 < (1 << RULE_BITS) - 1)
			return (first & ((1 << RULE_BITS) - 1)) - 1;
		if ((second ^ tag) - 1 < (1 << RULE_BITS) - 1)
			return (second & ((1 << RULE_BITS) - 1)) - 1;
	}
	rule = first_rule(table, last, classes);
	table->words[(place + 1) & last] = first;
	table->words[place & last] = tag | (rule + 1);
	return rule;
}

inline_always u32 rule_of(struct table *table, u64 last, const struct packet *packet)
{
	u32 classes[FIELDS];

	if (packet->is_ipv6) {
		classes[SOURCE] = class_of_ipv6(table, last, header(table, SOURCE_BOUNDS),
						header(table, SOURCE_BOUND_COUNT),
						header(table, SOURCE_BOUND_CLASSES), packet->source);
		classes[DESTINATION] = class_of_ipv6(table, last, header(table, DESTINATION_BOUNDS),
						     header(table, DESTINATION_BOUND_COUNT),
						     header(table, DESTINATION_BOUND_CLASSES),
						     packet->destination);
	} else {
		classes[SOURCE] =
			class_of_ipv4(table, last, header(table, SOURCE_TRIE), packet->source[0]);
		classes[DESTINATION] = class_of_ipv4(table, last, header(table, DESTINATION_TRIE),
						     packet->destination[0]);
	}
	classes[PROTOCOL] = number_at(table, last, header(table, PROTOCOLS) + packet->protocol +
						       packet->header * PROTOCOL_VALUES);
	classes[SOURCE_PORT] =
		class_of_port(table, last, header(table, SOURCE_PORTS), packet->source_port);
	classes[DESTINATION_PORT] =
		class_of_port(table, last, header(table, DESTINATION_PORTS), packet->destination_port);
	return cached_rule(table, last, classes);
}

/* What becomes of a packet: the action, and its rule for samples. */
struct verdict {
	u32 action;
	u32 rule;
	u8 is_sampled;
};

/* Finds the rule of a packet and counts it. */
inline_always void judge(struct verdict *verdict, void *start, void *end, u32 length)
{
	struct packet packet = { .source_port = NO_PORT, .destination_port = NO_PORT };
	struct counter *counter;
	struct table *table;
	u32 zero = 0, index, *report;
	u64 last = last_word;
	enum parsed parsed;
	void *inner;

	inner = map_lookup_elem(&tables, &zero);
	if (!inner)
		return;
	table = map_lookup_elem(inner, &zero);
	if (!table)
		return;
	parsed = parse(&packet, start, end);
	if (parsed == IP)
		verdict->rule = rule_of(table, last, &packet);
	else
		verdict->rule = header(table, RULES) + (parsed == NOT_IP ? 1 : 2);
	verdict->action = number_at(table, last, header(table, ACTIONS) + verdict->rule);
	index = header(table, COUNTERS) + verdict->rule;
	counter = map_lookup_elem(&counters, &index);
	if (counter) {
		if ((verdict->action & 7) == SAMPLE) {
			u32 rate = verdict->action >> 3;

			verdict->is_sampled = !rate || counter->packets % rate == 0;
		}
		counter->packets++;
		counter->bytes += length;
	}
	if (reports_rules) {
		report = map_lookup_elem(&found, &zero);
		if (report)
			*report = verdict->rule;
	}
}

inline_always struct sample *new_sample(const struct verdict *verdict, u32 length, u32 *copied)
{
	struct sample *sample = ringbuf_reserve(&samples, sizeof(*sample), 0);

	if (!sample)
		return 0;
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->rule = verdict->rule;
	sample->length = length;
	/* The verifier has to see the bound on the very value that is passed. */
	asm volatile("" : "+r"(length));
	*copied = length < SAMPLE_BYTES ? length : SAMPLE_BYTES;
	asm volatile("" : "+r"(*copied));
	return sample;
}

inline_always int at_xdp(struct xdp_md *ctx)
{
	void *start = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct verdict verdict = { .action = PASS };
	u32 length = end - start;

	/* Computed here: paths of the verifier join only where no packet pointers are left. */
	asm volatile("" : "+r"(length));
	judge(&verdict, start, end, length);
	if (verdict.is_sampled) {
		struct sample *sample;
		u32 copied;

		sample = new_sample(&verdict, length, &copied);
		if (sample) {
			if (copied && copied <= SAMPLE_BYTES)
				xdp_load_bytes(ctx, 0, sample->bytes, copied);
			ringbuf_submit(sample, 0);
		}
	}
	switch (verdict.action & 7) {
	case DROP:
		return XDP_DROP;
	case REDIRECT:
		return redirect(verdict.action >> 3, 0);
	default:
		return XDP_PASS;
	}
}

SEC("xdp")
int gateway_xdp(struct xdp_md *ctx)
{
	return at_xdp(ctx);
}

/* Bytes of headers that tc asks for at once. */
enum { HEADER_BYTES = 128 };

SEC("tc")
int gateway_tc(struct skb *ctx)
{
	struct verdict verdict = { .action = PASS };
	void *start, *end;
	u32 length;

	start = (void *)(long)ctx->data;
	end = (void *)(long)ctx->data_end;
	if (start + HEADER_BYTES > end && ctx->len > end - start) {
		skb_pull_data(ctx, ctx->len < HEADER_BYTES ? ctx->len : HEADER_BYTES);
		start = (void *)(long)ctx->data;
		end = (void *)(long)ctx->data_end;
	}
	length = ctx->len;
	asm volatile("" : "+r"(length));
	judge(&verdict, start, end, length);
	if (verdict.is_sampled) {
		struct sample *sample;
		u32 copied;

		sample = new_sample(&verdict, length, &copied);
		if (sample) {
			if (copied && copied <= SAMPLE_BYTES)
				skb_load_bytes(ctx, 0, sample->bytes, copied);
			ringbuf_submit(sample, 0);
		}
	}
	switch (verdict.action & 7) {
	case DROP:
		return TC_ACT_SHOT;
	case REDIRECT:
		return redirect(verdict.action >> 3, 0);
	default:
		return TC_ACT_OK;
	}
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
