/* A program that calls what no kernel has, and one that does not. Made by
 * clang-19 -target bpf -mcpu=v3 -O2 -g -c externs.c */
#define SEC(name) __attribute__((section(name), used))

char license_of_file[] SEC("license") = "GPL";

extern int beebox_absent(void) SEC(".ksyms");

SEC("xdp")
int calls(void *ctx)
{
	return beebox_absent();
}

SEC("xdp")
int plain(void *ctx)
{
	return 2;
}
