; tcpdump -y EN10MB -d 'port 22' (libpcap 1.10.3)
        ldh     [12]
        jneq    #0x86dd, L10
        ldb     [20]
        jeq     #0x84, L6
        jeq     #0x6, L6
        jneq    #0x11, L23
L6:     ldh     [54]
        jeq     #0x16, L22
        ldh     [56]
        jeq     #0x16, L22, L23
L10:    jneq    #0x800, L23
        ldb     [23]
        jeq     #0x84, L15
        jeq     #0x6, L15
        jneq    #0x11, L23
L15:    ldh     [20]
        jset    #0x1fff, L23
        ldxb    4*([14]&0xf)
        ldh     [x + 14]
        jeq     #0x16, L22
        ldh     [x + 16]
        jneq    #0x16, L23
L22:    ret     #0x40000
L23:    ret     #0x0
