// A kernel for everything.c: what it expects, with members in another order, one more
// and one less. Made as everything.o is; only the types of kernel.o matter.

typedef unsigned int u32;
typedef unsigned long long u64;

struct pair {
	u32 first;
	u64 second;
	u64 third;
};

struct machine_ops {
	u32 speed;
	void *owner;
	int (*stop)(void *self);
	char name[4];
	int (*start)(void *self);
};

struct bpf_struct_ops_machine_ops {
	u64 common;
	struct machine_ops data;
} tables;

const int typed_symbol = 1;

int kernel_function(struct pair *pair, int number)
{
	return pair->third + number;
}

int other_prototype(int number, int second)
{
	return number + second;
}

int flavoured(void)
{
	return tables.data.speed + typed_symbol;
}
