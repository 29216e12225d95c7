typedef unsigned int u32; typedef unsigned long long u64;
struct pair { int a; char b; u64 c; };
union word { u32 all; unsigned char bytes[4]; struct { u32 low:3, mid:7, high:22; } parts; };
enum colour { RED, GREEN = 5, BLUE = -1 };
enum big { HUGE = 1ULL << 40, SMALL = 1 };
struct node { struct node *next; const volatile int *restrict p; enum colour c; enum big g; int (*call)(struct pair *, ...); union word w[3]; float f; double d; };
struct node head; static volatile u32 count; const char text[] = "hello";
__attribute__((noinline)) static int add(struct pair *p, u64 x) { return p->a + x + count; }
__attribute__((section("socket"))) int filter(struct node *n) { struct pair p = { .a = n->c }; return add(&p, head.w[1].all + text[0]); }
