/* section license: it has other flags than in a file before */
#include "../shared.h"

const char terms[] SEC("license") = "GPL";
