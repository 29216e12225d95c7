#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| beebox_fuzz::Target::hold("c-calls", input));
