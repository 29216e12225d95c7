// A kernel with several types of one name. Some agree, some have only part of the
// fields, and once one has answered, the others are out.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct cargo___first {
	u64 pad;
	u8 tiny;
	u16 small;
	u32 middle;
} first;

struct cargo___second {
	u64 pad;
	u8 tiny;
	u16 small;
	u32 middle;
	u64 large;
} second;

struct cargo___third {
	u32 before;
	u32 gone;
} third;

struct flags {
	u32 one : 1;
	u32 seven : 7;
} flags;

union rope {
	void *next;
} wrong_kind;

struct rope___a {
	enum colour___a { RED, GREEN } colour;
	u32 length;
} a;

enum colour___b { BLUE = 9 } colour;
enum lost { SOMEWHERE } lost;
