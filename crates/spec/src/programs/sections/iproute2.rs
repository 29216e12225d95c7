//! Section names of iproute2. tc and ip load the section that the command line names, as the type
//! of the command; these are the sections that they take without a name (`classifier`, `action`,
//! and `prog` of `ip link set xdp`), with what programmers append to them, and the names that say
//! the type of the command.

sections! {
    SchedCls {
        prefix "classifier";
        exact "tc";
        target "tc/ingress";
        target "tc/egress";
    }
    SchedAct {
        prefix "action";
    }
    Xdp {
        exact "prog";
        prefix "xdp";
    }
    LwtIn {
        prefix "lwt_in";
    }
    LwtOut {
        prefix "lwt_out";
    }
    LwtXmit {
        prefix "lwt_xmit";
    }
    LwtSeg6local {
        prefix "lwt_seg6local";
    }
}
