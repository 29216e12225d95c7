// Calls as lines of JSON; see harness.c.
#ifndef BEEBOX_PRINT_H
#define BEEBOX_PRINT_H

#include "kernel.h"

// One object a line: a start, keys with values, an end.
void put_start(const char *kind);
void put_end(void);
void put_text(const char *text);
void put_string(const char *key, const char *value);
void put_number(const char *key, unsigned long long value);
void put_bool(const char *key, bool value);
void put_bytes(const char *key, const unsigned char *bytes, size_t size);

// A call; type information whole, or its size and hash only.
void put_call(const struct call *call, bool whole_btf);

// What a program finds in an arena before it runs: libbpf copies it into the mapping.
void put_contents(const struct call *map);

#endif
