// A kernel whose fields stand elsewhere: in another order, deeper, in structures and
// unions without a name, behind modifiers and names of types.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef const volatile u32 stamp;

struct crate___2 {
	u16 paint;
	u16 lid;
	u16 side[5];
};

struct cargo {
	void *const owner;
	struct {
		union {
			struct {
				u8 pad[3];
				u8 tiny;
				stamp middle;
			};
			u64 both;
		};
		u64 large;
	};
	u32 hidden;
	u32 left;
	union {
		struct {
			u16 first;
			u16 small;
		};
		volatile int debt;
	};
	u64 right;
	float weight;
	struct crate___2 crates[3];
	u32 boxes[8];
	u32 gone;
	u32 before;
	u8 rest[];
} cargo;

struct flags {
	u32 plain;
	u32 unused : 9;
	u32 seven : 7;
	u32 one : 1;
	int signed_five : 5;
	u32 more;
	u64 skipped : 11;
	u64 wide : 40;
} flags;

enum colour { BLACK, GREEN, RED, BLUE } colour;
enum shade { DARK = 0xff, LIGHT } shade;
enum huge { LARGEST = 1, SMALLEST = 0xf000000000000000ull } huge;

struct rope {
	int knots;
	struct sea *sea;
	int (*pull)(struct rope *, u32);
	stamp length;
	struct rope *const next;
	enum colour colour;
} rope;

union either {
	u8 bytes[8];
	u64 all;
	u32 number;
} either;

typedef struct rope rope_t;
typedef stamp depth_t;
typedef int (*const pull_t)(struct rope *, stamp);
typedef u32 row_t[4];
rope_t *rope_pointer;
depth_t *depth;
pull_t *pull;
row_t row;
