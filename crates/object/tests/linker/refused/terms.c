/* section license: contents differ from those of an earlier file: make them equal */
#include "../shared.h"

char terms[] SEC("license") = "Dual BSD/GPL";
