// Code that makes a compiler use the instruction set: each function one corner
// of it. What is made of it is compared with what llvm-objdump says of it.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef signed char s8;
typedef short s16;
typedef int s32;
typedef long long s64;

#define SECTION(name) __attribute__((section(name), used))
#define ALONE __attribute__((noinline))

static u64 (*clock)(void) = (void *)5;
static u32 (*random)(void) = (void *)7;

struct record {
    u8 a;
    s8 b;
    u16 c;
    s16 d;
    u32 e;
    s32 f;
    u64 g;
    s64 h;
};

struct record table[4];
const char letters[] = "one of the constant strings that a program has";

ALONE static u64 arithmetic(u64 a, u64 b, u32 c, u32 d) {
    a += b * 3;
    a ^= (a << 7) | (b >> 9);
    a -= b / (d | 1);
    a |= b % 10;
    c = c * d + 0x12345678;
    c ^= (c >> 5) & ~d;
    c = c << (d & 31) | c / 7;
    return -a + c % (d + 1);
}

ALONE static s64 signs(s64 a, s32 b, s64 c) {
    a >>= c & 63;
    b >>= 3;
#if __BPF_CPU_VERSION__ >= 4
    a = a / (c | 1) + a % 7;
    b = b / 5 - b % (s32)(c | 1);
#endif
    return a * (s8)b + (s16)c + (s32)a;
}

ALONE static u64 conditions(u64 a, s64 b, u32 c, s32 d) {
    u64 n = 0;
    if (a > 0x7fffffff) n += clock();
    if (a >= (u64)b) n ^= clock();
    if (b < -5) n += clock() * 3;
    if (b <= (s64)n) n -= clock();
    if (c < 100) n |= clock();
    if (c <= (u32)d) n += clock() + 1;
    if (d > -1) n &= clock();
    if (d >= (s32)c) n += clock() + 2;
    if (a & 0x100) n ^= clock() + 3;
    if (a == 77 || b != 78) n += clock() + 4;
    return n;
}

ALONE static u64 fields(struct record *r, u64 value) {
    u64 sum = r->a + r->b + r->c + r->d + r->e + r->f + r->g + r->h;
    r->a = value;
    r->c = 513;
    r->e = value >> 3;
    r->g = -1;
    r->h = value;
    table[value & 3].f = sum;
    return sum + letters[value & 15];
}

ALONE static u64 orders(u16 a, u32 b, u64 c) {
    return __builtin_bswap16(a) + __builtin_bswap32(b) + __builtin_bswap64(c);
}

ALONE static u64 atomics(u64 *p, u32 *q, u64 n) {
    __sync_fetch_and_add(p, n);
    __sync_fetch_and_add(q, n);
#if __BPF_CPU_VERSION__ >= 3
    __sync_fetch_and_or(p, n);
    __sync_fetch_and_and(q, n);
    n += __sync_fetch_and_add(p, 5);
    n += __sync_fetch_and_or(q, 6);
    n ^= __sync_fetch_and_and(p, n);
    n ^= __sync_fetch_and_xor(q, 9);
    n += __sync_lock_test_and_set(p, n);
    n += __sync_val_compare_and_swap(p, n, 12);
    n += __sync_val_compare_and_swap(q, n, 13);
#endif
    return n;
}

ALONE static u32 loops(const u8 *from, u32 count) {
    u32 sum = 1, high = 0;
#pragma clang loop unroll(disable)
    for (u32 i = 0; i < count; i++) {
        sum = (sum + from[i]) % 65521;
        high = (high + sum) % 65521;
    }
    return high << 16 | sum;
}

ALONE static u64 spills(u64 a, u64 b) {
    u64 saved[12];
#pragma clang loop unroll(full)
    for (int i = 0; i < 12; i++) saved[i] = a * (i + 0x100000001) + clock();
#pragma clang loop unroll(full)
    for (int i = 0; i < 12; i++) b = b * 31 ^ saved[i];
    return b;
}

SECTION("second") u64 elsewhere(u64 a) {
    return a * 0x9e3779b97f4a7c15 + random();
}

SECTION("first") u64 entry(struct record *r, u64 n) {
    u64 sum = arithmetic(n, r->g, r->e, r->c);
    sum += signs(n, r->f, r->h);
    sum += conditions(n, r->h, r->e, r->f);
    sum += fields(r, n);
    sum += orders(r->c, r->e, r->g);
    sum += atomics(&r->g, &r->e, n);
    sum += loops((const u8 *)r, n & 15);
    sum += spills(n, sum);
    return sum + elsewhere(n);
}
