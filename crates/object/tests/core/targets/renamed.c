// A kernel whose fields, values and types have other names or are other things.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct cargo {
	u8 tiny_;
	struct {
		u16 value;
	} small;
	u32 Middle;
	u64 *large;
	int debt[2];
	u32 owner;
	u32 weight;
	u32 boxes;
	struct {
		u16 lid;
	} crates;
	struct {
		u32 hidden;
	} inner;
	u8 *rest;
} cargo;

union flags {
	u32 one : 1;
	u32 plain;
} flags;

enum colour { RED___new = 11, GREENISH, BLUE___x___y = 4 } colour;
enum tone { LIGHT, DARK } shade;
typedef int huge;
huge number;

struct line {
	struct line *next;
} line;

struct either {
	u32 number;
	u8 bytes[4];
} either;

struct rope_t {
	int a;
} rope;
typedef struct line *depth_t;
typedef int pull_t(struct line *, u32);
typedef struct line row_t[4];
depth_t depth;
pull_t *pull;
row_t row;
