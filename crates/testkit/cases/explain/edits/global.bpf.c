/* Global functions that cannot be global, and callers that do not fit them. */
#include "edits.h"

struct pair {
	u64 a, b;
};
struct opaque;
typedef int (*callback)(void);

/* The edit of a function that cannot be global */
#define GLOBAL CHOOSE(, static) noinline

GLOBAL void *return_pointer(struct __sk_buff *skb)
{
	asm volatile("");
	return (void *)(long)skb->data; /* refused call_return_pointer: global-signature | `return_pointer` | `void *` | `static` */
}

GLOBAL struct pair *return_struct(struct __sk_buff *skb)
{
	asm volatile("");
	return 0; /* refused call_return_struct: global-signature | `struct pair *` | no number */
}

GLOBAL void return_void(struct __sk_buff *skb)
{
	asm volatile("");
} /* refused call_return_void: global-signature | `void` | no number */

GLOBAL int void_pointer(struct __sk_buff *skb, void *p) /* refused call_void_pointer: global-signature | argument 2 | `void *` | unknown size */
{
	asm volatile("");
	return p != 0;
}

GLOBAL int unknown_struct(struct __sk_buff *skb, struct opaque *p) /* refused call_unknown_struct: global-signature | argument 2 | `struct opaque *` | unknown size */
{
	asm volatile("");
	return p != 0;
}

GLOBAL int function_pointer(struct __sk_buff *skb, callback f) /* refused call_function_pointer: global-signature | argument 2 | unknown size */
{
	asm volatile("" : "+r"(f));
	return f != 0;
}

GLOBAL int by_value(struct __sk_buff *skb, struct pair p) /* refused call_by_value: global-signature | argument 2 | `struct pair` | neither a number nor a pointer */
{
	asm volatile("");
	return p.a;
}

#define CONTEXT CHOOSE(struct pair, struct __sk_buff)
noinline int tagged(CONTEXT *p __attribute__((btf_decl_tag("arg:ctx")))) /* refused call_tagged: global-signature | argument 1 | tagged as the context | `struct __sk_buff *` */
{
	asm volatile("" : "+r"(p));
	return p != 0;
}

/* Functions that fit */
noinline int number(u64 n)
{
	asm volatile("");
	return n;
}
noinline int context(struct __sk_buff *skb)
{
	asm volatile("");
	return skb->len;
}
noinline int memory(struct pair *p)
{
	asm volatile("");
	return p ? p->a : 0;
}

SEC("tc")
int call_return_pointer(struct __sk_buff *skb)
{
	return return_pointer(skb) != 0;
}

SEC("tc")
int call_return_struct(struct __sk_buff *skb)
{
	return return_struct(skb) != 0;
}

SEC("tc")
int call_return_void(struct __sk_buff *skb)
{
	return_void(skb);
	return 0;
}

SEC("tc")
int call_void_pointer(struct __sk_buff *skb)
{
	struct pair p = {};

	return void_pointer(skb, &p);
}

SEC("tc")
int call_unknown_struct(struct __sk_buff *skb)
{
	struct pair p = {};

	return unknown_struct(skb, (void *)&p);
}

SEC("tc")
int call_function_pointer(struct __sk_buff *skb)
{
	return function_pointer(skb, (callback)(long)skb->len);
}

SEC("tc")
int call_by_value(struct __sk_buff *skb)
{
	struct pair p = { 1, skb->len };

	return by_value(skb, p);
}

SEC("tc")
int call_tagged(struct __sk_buff *skb)
{
	return tagged((void *)skb);
}

SEC("tc")
int call_number(struct __sk_buff *skb)
{
	return number(CHOOSE((u64)skb, skb->len)); /* refused call_number: global-arguments | argument 1 of the global function `number` is a pointer to the context | a number */
}

SEC("tc")
int call_context(struct __sk_buff *skb)
{
	struct pair p = {};

	return context(CHOOSE((void *)&p, skb)); /* refused call_context: global-arguments | argument 1 of the global function `context` is a pointer to the stack | the context */
}

SEC("tc")
int call_memory(struct __sk_buff *skb)
{
	CHOOSE(u64, struct pair) half = {};

	return memory((void *)&half); /* refused call_memory: global-arguments | argument 1 of the global function `memory` is a pointer to the stack | memory of 16 bytes */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
