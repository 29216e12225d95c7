/* A program whose verdict depends on global variables. Made by
 * clang-19 -target bpf -mcpu=v3 -O2 -g -c globals.bpf.c */
#define SEC(name) __attribute__((section(name), used))

typedef unsigned char u8;
typedef unsigned int u32;

char license_of_file[] SEC("license") = "GPL";

enum mode { SLOW, FAST };

struct port {
	u32 high;
	union {
		u32 low;
		u8 bytes[4];
	};
};

const volatile u8 limit = 200;
const volatile enum mode mode = SLOW;
const volatile struct {
	u32 version;
	struct port ports[2];
} config = { .version = 1 };

int values[8];

SEC("socket")
int reads(void *ctx)
{
	u32 at = 100;

	if (limit == 7 && mode == FAST && config.ports[1].low == 16)
		at = 1;
	return *(volatile int *)((char *)values + at * 4);
}
