// A kernel whose fields have other sizes and signs, whose arrays are shorter, and
// whose enumerations and bit fields are wider.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct cargo {
	u16 tiny;
	u64 small;
	long long middle;
	u32 large;
	long long debt;
	u64 owner;
	double weight;
	u16 boxes[3];
	struct crate {
		u32 lid;
		u8 side[2];
	} crates[2];
	u64 hidden;
	u8 left;
	short right;
	u8 rest[4];
	u32 last;
} cargo;

struct flags {
	u64 one : 3;
	u8 seven;
	long long signed_five : 33;
	u64 wide : 63;
	short plain : 5;
} flags;

enum colour { RED = 0x1ffffffffll, GREEN = -5, BLUE = 3 } colour;
enum shade { LIGHT = 1, DARK = 0xfffffffff0ull } shade;
enum huge { SMALLEST = -1, LARGEST = 1 } huge;

struct rope {
	struct rope *next;
	enum colour colour;
	u64 length;
	int (*pull)(struct rope *);
	struct sea {
		u32 waves;
	} *sea;
} rope;

union either {
	u64 number;
	u8 bytes[2];
} either;

typedef union either rope_t;
typedef u64 depth_t;
typedef void (*pull_t)(struct rope *, u32);
typedef u64 row_t[5];
rope_t *rope_pointer;
depth_t depth;
pull_t pull;
row_t row;
