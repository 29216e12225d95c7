; A filter with common mistakes: it never looks at the architecture, allows by
; default, compares half of an argument, and its last line is never reached.
        ld [0]                  ; the system call number
        jeq #101, refuse        ; ptrace
        jeq #9, mapping         ; mmap
        ret #0x7fff0000         ; ALLOW
mapping: ld [24]                ; low half of the length
        jgt #0x1000000, refuse
        ret #0x7fff0000
refuse: ret #0x00050001         ; ERRNO(EPERM)
        ret #0
