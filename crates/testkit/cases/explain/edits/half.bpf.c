/* Numbers of which a comparison sees the low bits alone. */
#include "edits.h"

char cells[64];
u64 words[8];
struct row {
	u64 first, second, third;
} rows[8];

#define NUMBER(name)                                                                               \
	SEC("raw_tp/sys_enter")                                                                    \
	int name(struct raw_tracepoint *ctx)                                                       \
	{                                                                                          \
		u64 n = ctx->args[1];

NUMBER(bytes)
	if (CHOOSE((u32)n, n) >= 64)
		return 0;
	return cells[n]; /* refused bytes: offset-unbounded | the comparison is of the low 32 bits */
}

NUMBER(elements)
	if (CHOOSE((u32)n, n) >= 8)
		return 0;
	return words[n]; /* refused elements: offset-unbounded | the comparison is of the low 32 bits */
}

NUMBER(structures)
	if (CHOOSE((u32)n, n) >= 8)
		return 0;
	return rows[n].second; /* refused structures: offset-unbounded | the comparison is of the low 32 bits */
}

NUMBER(half_word)
	if (CHOOSE((u16)n, n) != 5)
		return 0;
	asm volatile("" : "+r"(n));
	return cells[n]; /* refused half_word: offset-unbounded | the comparison is of the low 16 bits */
}

NUMBER(one_byte)
	if (CHOOSE((u8)n, n) >= 64)
		return 0;
	return cells[n]; /* refused one_byte: offset-unbounded | the comparison is of the low 8 bits */
}

NUMBER(with_sign)
	if (CHOOSE((s32)n < 0 || (s32)n >= 64, n >= 64))
		return 0;
	return cells[n]; /* refused with_sign: offset-unbounded | the comparison is of the low 32 bits */
}

NUMBER(length)
	char text[64];

	if (CHOOSE((u16)n, n) > 64)
		return 0;
	asm volatile("" : "+r"(n));
	((long (*)(void *, u64, const void *))112)(text, n, (void *)ctx->args[0]); /* refused length: size-negative | the comparison is of the low 16 bits */
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
