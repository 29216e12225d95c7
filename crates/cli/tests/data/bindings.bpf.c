/*
 * Types of maps and global variables that are hard to write in another language.
 *
 * Build:
 *   clang -target bpf -mcpu=v3 -O2 -g -ffile-compilation-dir=. -c bindings.bpf.c && llvm-strip -g bindings.bpf.o
 */
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int __u32;
typedef unsigned long long u64;

#define SEC(name) __attribute__((section(name), used))
#define NUMBER(name, value) int (*name)[value]
#define TYPE(name, type) type *name
#define PACKED __attribute__((packed))

struct bpf_spin_lock {
	__u32 val;
};

enum state { IDLE, BUSY = 7, FAILED = -1 };
enum wide { LARGE = 1ULL << 40, SMALL = 1 };
typedef enum { RED, GREEN } colour;
typedef struct {
	int x, y;
} point;
typedef u8 address[6];

struct key {
	u8 type; /* a keyword of Rust */
	address from;
	union {
		u16 port;
		struct {
			u8 high, low;
		};
	};
	union {
		__u32 v4;
		u64 v6[2];
	} to;
};

struct flow {
	struct bpf_spin_lock lock;
	u16 version : 4, length : 12;
	signed int delta : 5;
	unsigned int flags : 30;
	enum state state;
	_Bool active;
	enum state kind : 6;
	u64 tail : 33;
	struct key *next;
	u64 (*hook)(struct key *key, point where);
	point path[2][3];
	union {
		u16 low : 3;
		u64 all;
	} either;
	char name[16];
	__int128 large;
};

struct PACKED header {
	u8 first;
	u64 second;
	u16 third : 3, fourth : 10;
	__u32 last;
};

struct crate {
	struct header self;
	enum wide wide;
	colour colour;
	float ratio;
};

struct event {
	u64 time;
	colour colour;
};

struct {
	NUMBER(type, 1);
	NUMBER(max_entries, 16);
	TYPE(key, struct key);
	TYPE(value, struct flow);
} flows SEC(".maps");

struct {
	NUMBER(type, 2);
	NUMBER(max_entries, 1);
	TYPE(key, __u32);
	TYPE(value, struct crate);
} loop SEC(".maps");

struct {
	NUMBER(type, 27);
	NUMBER(max_entries, 4096);
} events SEC(".maps");

struct {
	NUMBER(type, 12);
	NUMBER(max_entries, 2);
	TYPE(key, __u32);
	__attribute__((aligned(8))) struct {
		NUMBER(type, 2);
		NUMBER(max_entries, 1);
		TYPE(key, __u32);
		TYPE(value, point);
	} *values[];
} tables SEC(".maps");

const volatile u16 port = 22;
const volatile address mine = { 1, 2, 3 };
static u64 hidden;
u8 step = 3;
struct {
	u8 level;
	u64 since;
} mode = { 1, 2 };
__u32 limit SEC(".data.limits") = 5;
u8 last;
u64 total;
struct event *newest;
u64 *newest_total;

SEC("xdp")
int account(void *ctx)
{
	hidden += step;
	total += hidden + port + mine[1] + mode.since + limit;
	last = total;
	newest = 0;
	newest_total = &total;
	return 2;
}

char license_of_file[] SEC("license") = "Dual MIT/GPL";
