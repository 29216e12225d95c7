/* A function whose argument has no name in BTF, which Linux refuses. Made by
 * clang-19 -target bpf -mcpu=v3 -O2 -g -c unnamed.c */
#define SEC(name) __attribute__((section(name), used))

char license_of_file[] SEC("license") = "GPL";

SEC("xdp")
__attribute__((naked)) int unnamed(void *ctx)
{
	asm volatile("r0 = 2; exit;");
}
