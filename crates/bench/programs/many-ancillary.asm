; One of the eight rounds of the benchmark's filter of many ancillary loads: every load
; that needs no walk over headers. A packet of the benchmark passes every test.
        ld  #proto
        jneq #0x0800, drop
        ld  #type
        jeq #4, drop
        ld  #ifidx
        jneq #2, drop
        ld  #hatype
        jneq #1, drop
        ld  #mark
        and #0xff00
        jneq #0x1200, drop
        ld  #queue
        jgt #7, drop
        ld  #rxhash
        jeq #0, drop
        ld  #cpu
        jgt #63, drop
        ld  #vlan_avail
        jneq #1, drop
        ld  #vlan_tci
        and #0x0fff
        jneq #100, drop
        ld  #vlan_tpid
        jneq #0x8100, drop
