// Types, maps and global variables of firewall.bpf.o. Written by beebox gen rust.

/// Types of keys, values and variables. Every bit pattern is a value of each.
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[rustfmt::skip]
pub mod types {
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct address {
        pub bytes: [u8; 4],
    }

    const _: () = {
        assert!(core::mem::size_of::<address>() == 4);
        assert!(core::mem::offset_of!(address, bytes) == 0);
    };

    beebox::pod! { address { bytes } }

    pub type action = u32;
    pub const ABORTED: action = 0;
    pub const DROP: action = 1;
    pub const PASS: action = 2;

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct sender {
        pub packets: u64,
        pub bytes: u64,
        pub last: action,
    }

    const _: () = {
        assert!(core::mem::size_of::<sender>() == 24);
        assert!(core::mem::offset_of!(sender, packets) == 0);
        assert!(core::mem::offset_of!(sender, bytes) == 8);
        assert!(core::mem::offset_of!(sender, last) == 16);
    };

    beebox::pod! { sender { packets, bytes, last } }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct network {
        pub prefix_length: u32,
        pub address: [u8; 4],
    }

    const _: () = {
        assert!(core::mem::size_of::<network>() == 8);
        assert!(core::mem::offset_of!(network, prefix_length) == 0);
        assert!(core::mem::offset_of!(network, address) == 4);
    };

    beebox::pod! { network { prefix_length, address } }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct rule {
        pub name: [i8; 16],
        pub hits: u64,
    }

    const _: () = {
        assert!(core::mem::size_of::<rule>() == 24);
        assert!(core::mem::offset_of!(rule, name) == 0);
        assert!(core::mem::offset_of!(rule, hits) == 16);
    };

    beebox::pod! { rule { name, hits } }
}

/// Maps by name, with the types of their keys and values.
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[rustfmt::skip]
pub mod maps {
    pub mod senders {
        pub const NAME: &str = "senders";
        pub type Key = super::super::types::address;
        const _: () = assert!(core::mem::size_of::<Key>() == 4);
        pub type Value = super::super::types::sender;
        const _: () = assert!(core::mem::size_of::<Value>() == 24);
    }

    pub mod actions {
        pub const NAME: &str = "actions";
        pub type Key = u32;
        const _: () = assert!(core::mem::size_of::<Key>() == 4);
        pub type Value = u64;
        const _: () = assert!(core::mem::size_of::<Value>() == 8);
    }

    pub mod blocked {
        pub const NAME: &str = "blocked";
        pub type Key = super::super::types::network;
        const _: () = assert!(core::mem::size_of::<Key>() == 8);
        pub type Value = super::super::types::rule;
        const _: () = assert!(core::mem::size_of::<Value>() == 24);
    }

    pub mod open_ports {
        pub const NAME: &str = "open_ports";
        pub type Key = u16;
        const _: () = assert!(core::mem::size_of::<Key>() == 2);
        pub type Value = u64;
        const _: () = assert!(core::mem::size_of::<Value>() == 8);
    }
}

/// Names of programs.
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[rustfmt::skip]
pub mod programs {
    pub const firewall: &str = "firewall";
}

/// Global variables by section: the start of the value of the map `MAP`.
#[allow(dead_code, non_camel_case_types, non_snake_case, non_upper_case_globals)]
#[rustfmt::skip]
pub mod globals {
    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct rodata {
        pub checks_ports: u8,
    }

    const _: () = {
        assert!(core::mem::size_of::<rodata>() >= 1);
        assert!(core::mem::offset_of!(rodata, checks_ports) == 0);
    };

    impl rodata {
        /// Name of the map.
        pub const MAP: &str = "firewall.rodata";
        /// Size of its value in bytes.
        pub const SIZE: usize = 1;
    }

    #[repr(C)]
    #[derive(Clone, Copy)]
    pub struct bss {
        pub refused: u64,
    }

    const _: () = {
        assert!(core::mem::size_of::<bss>() >= 8);
        assert!(core::mem::offset_of!(bss, refused) == 0);
    };

    impl bss {
        /// Name of the map.
        pub const MAP: &str = "firewall.bss";
        /// Size of its value in bytes.
        pub const SIZE: usize = 8;
    }
}
