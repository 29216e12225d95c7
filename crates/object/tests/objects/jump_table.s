# A program that jumps through a table, and a function that has one of its own, as
# later compilers write them. clang 19 knows neither the section nor `gotox`.
	.section "xdp","ax",@progbits
	.globl program
	.type program,@function
program:
	r2 = 1 ll
	call function
	r1 = table_a ll
	r2 = *(u64 *)(r1 + 8)
	.byte 0x0d, 0x02, 0, 0, 0, 0, 0, 0
.La:
	r0 = 1
	exit
.Lb:
	r0 = 2
	exit
	.size program, .-program

	.text
	r0 = 0
	exit
	.globl function
	.type function,@function
function:
	r1 = table_b ll
	.byte 0x0d, 0x01, 0, 0, 0, 0, 0, 0
.Lc:
	r0 = 3
	exit
	.size function, .-function

	.section ".jumptables","",@progbits
	.globl table_a
	.type table_a,@object
table_a:
	.quad .La-program
	.quad .Lb-program
	.size table_a, .-table_a
	.globl table_b
	.type table_b,@object
table_b:
	.quad .Lc-function+16
	.size table_b, .-table_b
