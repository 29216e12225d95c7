; tcpdump -y EN10MB -d 'tcp port 22 and
;   (((ip[2:2] - ((ip[0]&0xf)<<2)) - ((tcp[12]&0xf0)>>2)) != 0)' (libpcap 1.10.3)
        ldh     [12]
        jeq     #0x86dd, L29
        jneq    #0x800, L29
        ldb     [23]
        jneq    #0x6, L29
        ldh     [20]
        jset    #0x1fff, L29
        ldxb    4*([14]&0xf)
        ldh     [x + 14]
        jeq     #0x16, L12
        ldh     [x + 16]
        jneq    #0x16, L29
L12:    ldh     [16]
        st      M[1]
        ldb     [14]
        and     #0xf
        lsh     #2
        tax
        ld      M[1]
        sub     x
        st      M[5]
        ldxb    4*([14]&0xf)
        ldb     [x + 26]
        and     #0xf0
        rsh     #2
        tax
        ld      M[5]
        jeq     x, L29
        ret     #0x40000
L29:    ret     #0x0
