// A kernel in which types of one name disagree: no answer is safe.

typedef unsigned char u8;
typedef unsigned int u32;

struct cargo___here {
	u8 tiny;
	u32 boxes[6];
} here;

struct cargo___there {
	u32 pad;
	u8 tiny;
	u32 boxes[7];
} there;

struct flags___narrow {
	u32 one : 1;
} narrow;

struct flags___wide {
	u32 one : 2;
} wide;

enum colour___warm { RED = 1 } warm;
enum colour___cold { RED___cold = 2 } cold;
