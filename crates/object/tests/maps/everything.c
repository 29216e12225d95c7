// Maps of every form, variables in every section, and all that can be expected of a
// kernel. Made with
//   clang -target bpf -mcpu=v3 -g -O2 -fdebug-compilation-dir=. -c everything.c
// (LLVM 19, -o everything.o). Nothing of this is ever run.

#define SEC(name) __attribute__((section(name), used))
#define NUMBER(name, value) int(*name)[value]
#define LONG_NUMBER_(name, value, line) enum { long_number_##line = value } name
#define LONG_NUMBER_AT(name, value, line) LONG_NUMBER_(name, value, line)
#define LONG_NUMBER(name, value) LONG_NUMBER_AT(name, value, __LINE__)
#define TYPE(name, type) typeof(type) *name
#define VALUES(type) typeof(type) *values[]
#define weak __attribute__((weak))
#define hidden __attribute__((visibility("hidden")))
#define kconfig __attribute__((section(".kconfig")))
#define ksym __attribute__((section(".ksyms")))
#define arena __attribute__((address_space(1)))

typedef unsigned int u32;
typedef unsigned long long u64;

struct pair {
	u32 first;
	u64 second;
};

// ---- declared maps

struct {
	NUMBER(type, 1);
	NUMBER(max_entries, 100);
	NUMBER(map_flags, 1 | 4);
	NUMBER(numa_node, 3);
	NUMBER(pinning, 1);
	TYPE(key, struct pair);
	TYPE(value, u64);
} typed_hash SEC(".maps");

struct {
	NUMBER(type, 30);
	NUMBER(key_size, 0);
	NUMBER(value_size, 4);
	NUMBER(max_entries, 10);
	LONG_NUMBER(map_extra, 0x300000005);
} long_extra SEC(".maps");

struct {
	NUMBER(type, 27);
	NUMBER(max_entries, 5000);
} ring SEC(".maps");

struct {
	NUMBER(type, 4);
	TYPE(key, u32);
	TYPE(value, u32);
} events SEC(".maps");

struct a_numbers {
	NUMBER(type, 2);
	NUMBER(max_entries, 4);
	TYPE(key, u32);
	TYPE(value, u64);
} inner_one SEC(".maps"), inner_two SEC(".maps");

struct {
	NUMBER(type, 12);
	NUMBER(max_entries, 5);
	TYPE(key, u32);
	VALUES(struct a_numbers);
} outer_array_with_a_long_name SEC(".maps") = {
	.values = {[1] = &inner_one, [4] = &inner_two},
};

int jumper(void *context);

struct {
	NUMBER(type, 3);
	NUMBER(max_entries, 3);
	NUMBER(key_size, 4);
	typeof(int(void *)) *values[];
} programs SEC(".maps") = {
	.values = {[2] = (void *)&jumper},
};

struct {
	NUMBER(type, 33);
	NUMBER(map_flags, 1024);
	NUMBER(max_entries, 2);
	LONG_NUMBER(map_extra, 0x100000000000);
} pages SEC(".maps");

int arena in_arena = 7;

// ---- variables

int counter = 5;
static volatile int own_counter = 6;
u64 zeros[3];
const volatile u32 limit = 9;
const volatile char text[6] SEC(".rodata.texts") = "hello";
hidden int shy SEC(".data.shy") = 1;
struct pair pairs[2] SEC(".data.pairs") = {{1, 2}, {3, 4}};

// ---- what is expected of the kernel

enum libbpf_tristate { TRI_NO, TRI_YES, TRI_MODULE };

extern u32 LINUX_KERNEL_VERSION kconfig;
extern _Bool CONFIG_SWITCH kconfig weak;
extern enum libbpf_tristate CONFIG_THREE kconfig weak;
extern char CONFIG_LETTER kconfig weak;
extern int CONFIG_NUMBER kconfig weak;
extern u64 CONFIG_WIDE kconfig weak;
extern char CONFIG_TEXT[8] kconfig weak;
extern _Bool LINUX_HAS_SOMETHING kconfig weak;

extern const void schedule ksym;
extern const void absent_symbol ksym weak;
extern const int typed_symbol ksym;
extern const int absent_typed_symbol ksym weak;
extern int kernel_function(struct pair *pair, int) ksym;
extern int other_prototype(int number) ksym weak;
extern int flavoured___one(void) ksym;

// ---- tables of functions

struct machine_ops {
	int (*start)(void *self);
	int (*stop)(void *self);
	u32 speed;
	char name[4];
	u64 retired;
};

SEC("struct_ops/start") int start_machine(void *self) { return 0; }
SEC("struct_ops/stop") int stop_machine(void *self) { return 1; }

struct machine_ops machine SEC(".struct_ops.link") = {
	.start = start_machine,
	.stop = stop_machine,
	.speed = 3,
	.name = "abc",
};

struct machine_ops idle_machine SEC("?.struct_ops") = {.start = start_machine};

// ---- programs that use it all

SEC("socket") int jumper(void *context) { return counter++ + own_counter++; }

SEC("socket") int user(void *context)
{
	struct pair pair = {0};
	int sum = LINUX_KERNEL_VERSION + CONFIG_SWITCH + CONFIG_THREE + CONFIG_LETTER;

	sum += CONFIG_NUMBER + CONFIG_WIDE + CONFIG_TEXT[2] + LINUX_HAS_SOMETHING;
	sum += (long)&schedule + (long)&absent_symbol + typed_symbol;
	sum += &absent_typed_symbol ? absent_typed_symbol : 0;
	sum += kernel_function(&pair, 1) + flavoured___one();
	if (other_prototype)
		sum += other_prototype(2);
	sum += in_arena + zeros[1] + limit + text[1] + shy + pairs[1].second;
	return sum;
}

char license_text[] SEC("license") = "GPL";
