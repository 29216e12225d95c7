//! Prints what libbpf 0.8 makes of objects when it opens them, one line of JSON for each: programs
//! with type, attach type and their own instructions, maps with their definitions. Nothing is loaded.

use std::ffi::{CStr, CString, c_char, c_int};
use std::fmt::Write;
use std::ptr;

use libbpf_sys as bpf;

unsafe extern "C" fn quiet(_: u32, _: *const c_char, _: *mut bpf::__va_list_tag) -> c_int {
    0
}

fn main() {
    unsafe { bpf::libbpf_set_print(Some(quiet)) };
    for path in std::env::args().skip(1) {
        let line = match read(&path) {
            Ok(members) => format!("{{\"file\":{},{members}}}", text(&path)),
            Err(errno) => format!(
                "{{\"file\":{},\"error\":\"error {errno}\",\"programs\":null,\"maps\":null}}",
                text(&path)
            ),
        };
        println!("{line}");
    }
}

fn read(path: &str) -> Result<String, i64> {
    let path = CString::new(path).map_err(|_| -1)?;
    let object = unsafe { bpf::bpf_object__open_file(path.as_ptr(), ptr::null()) };
    let failed = unsafe { bpf::libbpf_get_error(object.cast()) };
    if failed != 0 {
        return Err(i64::from(failed));
    }
    let mut programs = Vec::new();
    let mut program = unsafe { bpf::bpf_object__next_program(object, ptr::null_mut()) };
    while !program.is_null() {
        programs.push(unsafe { describe_program(program) });
        program = unsafe { bpf::bpf_object__next_program(object, program) };
    }
    let mut maps = Vec::new();
    let mut map = unsafe { bpf::bpf_object__next_map(object, ptr::null()) };
    while !map.is_null() {
        maps.push(unsafe { describe_map(map) });
        map = unsafe { bpf::bpf_object__next_map(object, map) };
    }
    programs.sort();
    maps.sort();
    unsafe { bpf::bpf_object__close(object) };
    Ok(format!(
        "\"programs\":[{}],\"maps\":[{}]",
        programs.join(","),
        maps.join(",")
    ))
}

unsafe fn describe_program(program: *mut bpf::bpf_program) -> String {
    unsafe {
        let (name, section) = (
            bpf::bpf_program__name(program),
            bpf::bpf_program__section_name(program),
        );
        let kind = bpf::bpf_program__get_type(program) as u32;
        let attach = bpf::bpf_program__get_expected_attach_type(program);
        let count = bpf::bpf_program__insn_cnt(program) as usize;
        format!(
            "{{\"name\":{},\"section\":{},\"type\":{kind},\"attach\":{attach},\"own_insns\":{count}}}",
            string(name),
            string(section),
        )
    }
}

unsafe fn describe_map(map: *const bpf::bpf_map) -> String {
    unsafe {
        let pin = bpf::bpf_map__get_pin_path(map);
        format!(
            "{{\"name\":{},\"type\":{},\"key_size\":{},\"value_size\":{},\"max_entries\":{},\"flags\":{},\"pinning\":{},\"btf_key\":{},\"btf_value\":{}}}",
            string(bpf::bpf_map__name(map)),
            bpf::bpf_map__type(map) as u32,
            bpf::bpf_map__key_size(map),
            bpf::bpf_map__value_size(map),
            bpf::bpf_map__max_entries(map),
            bpf::bpf_map__map_flags(map),
            u32::from(!pin.is_null()),
            bpf::bpf_map__btf_key_type_id(map),
            bpf::bpf_map__btf_value_type_id(map),
        )
    }
}

unsafe fn string(words: *const c_char) -> String {
    match words.is_null() {
        true => text(""),
        false => text(&unsafe { CStr::from_ptr(words) }.to_string_lossy()),
    }
}

/// A string of JSON.
fn text(words: &str) -> String {
    let mut quoted = String::from("\"");
    for letter in words.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(letter));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}
