/* Numbers that lack both bounds, and bounds that are too high: the edit names what is enough. */
#include "edits.h"

static long (*const probe_read_user_str)(void *to, u32 size, const void *from) = (void *)114;

u32 words[10];

SEC("tc")
int size_without_bounds(struct __sk_buff *skb)
{
	char text[64];
	u32 size = skb->len;

	if (CHOOSE(0, size == 0 || size > sizeof(text)))
		return 0;
	if (skb_load_bytes(skb, 0, text, size)) /* refused size_without_bounds: size-zero | size == 0 || size > sizeof(buf) */
		return 0;
	return text[0];
}

SEC("raw_tp/sys_enter")
int end_of_text(struct raw_tracepoint *ctx)
{
	char text[16];
	long n = probe_read_user_str(text, sizeof(text), (void *)ctx->args[0]);

	if (CHOOSE(0, n < 0 || n > 15))
		return 0;
	text[n] = 0; /* refused end_of_text: offset-negative | n < 0 | n > N | at most 15 */
	return text[0];
}

SEC("tc")
int index_one_too_far(struct __sk_buff *skb)
{
	u32 n = skb->len;

	if (n > CHOOSE(10, 9))
		n = 0;
	return words[n]; /* refused index_one_too_far: offset-too-large | at most 36 (index 9 of elements of 4 bytes) */
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
