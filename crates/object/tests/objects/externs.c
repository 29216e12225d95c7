/* What programs need of a kernel: functions, variables, symbols, configuration. */
#include "program.h"

#define KSYM __attribute__((section(".ksyms")))
#define KCONFIG __attribute__((section(".kconfig")))

struct thing {
	u32 id;
};

extern int kernel_function(struct thing *thing) KSYM;
extern int kernel_function___other(struct thing *thing, int more) WEAK KSYM;
extern int no_function(int x) WEAK KSYM;
extern const void symbol KSYM;
extern const void no_symbol WEAK KSYM;
extern struct thing thing KSYM;
extern int no_thing WEAK KSYM;
extern int LINUX_KERNEL_VERSION KCONFIG;
extern u32 CONFIG_HZ KCONFIG;
extern u8 CONFIG_NO WEAK KCONFIG;

SEC("tp_btf/thing")
int needs(u64 *args)
{
	int sum = kernel_function((void *)args[0]);

	if (no_function)
		sum += no_function(sum);
	if (kernel_function___other)
		sum += kernel_function___other((void *)args[0], 1);
	if (&no_symbol)
		sum++;
	if (&no_thing)
		sum += no_thing;
	return sum + ((u64)&symbol & 7) + thing.id + LINUX_KERNEL_VERSION + CONFIG_HZ + CONFIG_NO;
}

SEC("lsm.s/hook")
int hooked(u64 *args)
{
	return 0;
}

SEC("fentry/no_such_function")
int nowhere(u64 *args)
{
	return 0;
}
