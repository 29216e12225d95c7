/* Functions of the host as kernel functions. */
#pragma once

#ifndef __ksym
#define __ksym __attribute__((section(".ksyms")))
#endif
#ifndef __weak
#define __weak __attribute__((weak))
#endif

extern unsigned long long host_seen(const void *header, unsigned int header__sz, unsigned int length) __weak __ksym;
