/* Types that alone.c is relocated against. Made by
 * clang-19 -target bpf -mcpu=v3 -O2 -g -c moved.c */
struct thing {
	long before[3];
	int moved;
} thing;
