# A program that jumps through a table of five entries, four of them different. clang 19 knows
# neither the section nor `gotox`:
#   clang -target bpf -c indirect_jump.bpf.s -o indirect_jump.bpf.o
	.section "xdp","ax",@progbits
	.globl by_queue
	.type by_queue,@function
by_queue:
	r3 = *(u32 *)(r1 + 16)
	r0 = 0
	if r3 > 4 goto .Lnone
	r3 <<= 3
	r1 = targets ll
	r1 += r3
	r2 = *(u64 *)(r1 + 0)
	.byte 0x0d, 0x02, 0, 0, 0, 0, 0, 0	# gotox r2
.Laborted:
	r0 = 0
	exit
.Ldrop:
	r0 = 1
	exit
.Lpass:
	r0 = 2
	exit
.Lsent:
	r0 = 3
	goto .Lpass
.Lnone:
	exit
	.size by_queue, .-by_queue

	.section ".jumptables","",@progbits
	.globl targets
	.type targets,@object
targets:
	.quad .Lpass-by_queue
	.quad .Ldrop-by_queue
	.quad .Lsent-by_queue
	.quad .Ldrop-by_queue
	.quad .Laborted-by_queue
	.size targets, .-targets

	.section "license","aw",@progbits
	.asciz "Dual MIT/GPL"
