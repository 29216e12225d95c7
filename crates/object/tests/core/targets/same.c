// A kernel with all types as the questions have them.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

struct cargo {
	u8 tiny;
	u16 small;
	u32 middle;
	u64 large;
	int debt;
	void *owner;
	float weight;
	u32 boxes[6];
	struct crate {
		u16 lid;
		u16 side[3];
	} crates[2];
	struct {
		u32 hidden;
		union {
			u32 left;
			u64 right;
		};
	};
	u32 gone;
	u8 rest[];
} cargo;

struct flags {
	u32 one : 1;
	u32 seven : 7;
	int signed_five : 5;
	u64 wide : 40;
	u32 plain;
} flags;

enum colour { RED = 1, GREEN = 5, BLUE = -3 } colour;
enum shade { LIGHT = 1, DARK = 0xfffffff0u } shade;
enum huge { SMALLEST = -0x100000000ll, LARGEST = 0x7000000000000000ll } huge;
enum lost { NOWHERE = 7 } lost;

struct rope {
	struct rope *next;
	enum colour colour;
	volatile const u32 length;
	int (*pull)(struct rope *, u32);
	struct sea *sea;
} rope;

union either {
	u32 number;
	u8 bytes[4];
} either;

typedef struct rope rope_t;
typedef u32 depth_t;
typedef int (*pull_t)(struct rope *, u32);
typedef u32 row_t[4];
rope_t *rope_pointer;
depth_t depth;
pull_t pull;
row_t row;
struct nobody {
	int nothing;
} nobody;
