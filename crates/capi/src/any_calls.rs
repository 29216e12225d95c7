//! Calls of the entry points that bytes choose, for the fuzz target `c-calls`: with null pointers,
//! sizes that do not fit, and handles that are closed or never were. Buffers have exactly the size that
//! a call says, so that AddressSanitizer sees each access behind them.

use std::ffi::{CString, c_int, c_void};
use std::ptr;

use crate::*;

/// What was opened, and the handles that there were, closed ones among them.
struct Calls<'i> {
    input: std::slice::Iter<'i, u8>,
    object: *mut beebox_object,
    runner: *mut beebox_runner,
    reader: *mut beebox_ring_buffer,
    handles: Vec<c_int>,
}

/// A buffer of the caller: null, or as many bytes as it says.
struct Buffer {
    bytes: Vec<u8>,
    is_null: bool,
}

impl Buffer {
    fn pointer(&mut self) -> *mut c_void {
        match self.is_null {
            true => ptr::null_mut(),
            false => self.bytes.as_mut_ptr().cast(),
        }
    }

    fn size(&self) -> usize {
        self.bytes.len()
    }
}

/// Bytes that hold four keys or values of each map of the objects.
const ELEMENT: usize = 8192;

/// Makes the calls that the bytes choose on an object; what they return, for a signature.
#[doc(hidden)]
pub fn any_calls(object: &[u8], input: &[u8]) -> Vec<c_int> {
    let mut calls = Calls {
        input: input.iter(),
        object: ptr::null_mut(),
        runner: ptr::null_mut(),
        reader: ptr::null_mut(),
        handles: vec![-1, 0, 3, c_int::MAX],
    };
    let mut returned = Vec::new();
    while let Some(which) = calls.next() {
        if returned.len() == 64 {
            break;
        }
        returned.push(calls.call(which, object));
    }
    calls.close();
    returned
}

impl Calls<'_> {
    fn next(&mut self) -> Option<u8> {
        self.input.next().copied()
    }

    fn byte(&mut self) -> u8 {
        self.next().unwrap_or_default()
    }

    /// A size: small, or of a few values at limits.
    fn size(&mut self) -> usize {
        match self.byte() {
            small @ 0..=200 => small as usize,
            large => [255, 256, 1514, 4095, 4096, 8192, 65535][large as usize % 7],
        }
    }

    fn buffer(&mut self, size: usize) -> Buffer {
        let fill = self.byte();
        Buffer {
            is_null: fill == 0xff,
            bytes: vec![fill; size],
        }
    }

    fn handle(&mut self) -> c_int {
        let at = self.byte() as usize % self.handles.len();
        self.handles[at]
    }

    fn map(&mut self) -> *mut beebox_map {
        let names = [
            c"open_ports",
            c"senders",
            c"actions",
            c"events",
            c"protocols",
            c"",
        ];
        let name = names[self.byte() as usize % names.len()];
        // SAFETY: the object is null or open, the name a text.
        unsafe { beebox_object__find_map_by_name(self.object, name.as_ptr()) }
    }

    /// The object, or null.
    fn object(&mut self) -> *mut beebox_object {
        match self.byte() {
            0xff => ptr::null_mut(),
            _ => self.object,
        }
    }

    /// Frees what was opened.
    fn close(&mut self) {
        // SAFETY: each is null or open, and not used again.
        unsafe {
            beebox_runner__free(std::mem::replace(&mut self.runner, ptr::null_mut()));
            beebox_ring_buffer__free(std::mem::replace(&mut self.reader, ptr::null_mut()));
            beebox_object__close(std::mem::replace(&mut self.object, ptr::null_mut()));
        }
    }

    /// One call.
    fn call(&mut self, which: u8, object: &[u8]) -> c_int {
        match which % 12 {
            0 => self.open(object),
            1 => self.load(),
            2 => self.set(),
            3 => self.test_run(),
            4 => self.run(),
            5..7 => self.element_by_handle(),
            7..9 => self.element_by_size(),
            9 => self.verify(),
            10 => self.filter(),
            _ => self.records(),
        }
    }

    fn open(&mut self, object: &[u8]) -> c_int {
        let cut = match self.byte() {
            0 => self.size().min(object.len()),
            _ => object.len(),
        };
        // SAFETY: the bytes are there; what was open is closed first.
        unsafe {
            self.close();
            self.object = beebox_object__open_mem(object.as_ptr().cast(), cut, ptr::null());
        }
        c_int::from(!self.object.is_null())
    }

    fn load(&mut self) -> c_int {
        let object = self.object();
        // SAFETY: the object is null or open.
        unsafe {
            let loaded = beebox_object__load(object);
            let program = beebox_object__next_program(object, ptr::null_mut());
            let map = self.map();
            self.handles
                .extend([beebox_program__fd(program), beebox_map__fd(map)]);
            if self.runner.is_null() {
                self.runner = beebox_runner__new(program, u32::from(self.byte() == 9));
            }
            loaded
        }
    }

    fn set(&mut self) -> c_int {
        let (object, which, number) = (self.object(), self.byte(), self.size() as u32);
        let text: Vec<u8> = self.input.by_ref().take(8).copied().collect();
        let text = boundary::text_for_c(text);
        let text: &CString = &text;
        // SAFETY: the object is null or open, the text ends with a zero byte.
        unsafe {
            match which % 9 {
                8 => beebox_object__set_perf_buffers(object, number as usize),
                0 => beebox_object__set_cpus(object, number % 100),
                1 => beebox_object__set_engine(object, text.as_ptr()),
                2 => beebox_object__set_variable(object, text.as_ptr()),
                3 => beebox_object__set_map_memory(object, u64::from(number) << 8),
                4 => beebox_map__set_max_entries(self.map(), number),
                5 => {
                    let program = beebox_object__next_program(object, ptr::null_mut());
                    beebox_program__set_type(program, number % 40)
                }
                6 => beebox_map__reuse_fd(self.map(), self.handle()),
                _ => beebox_object__set_unverified(object),
            }
        }
    }

    fn test_run(&mut self) -> c_int {
        let (in_size, out_size) = (self.size(), self.size());
        let (mut data_in, mut data_out) = (self.buffer(in_size), self.buffer(out_size));
        // Without a size all bytes are written, as in Linux: there must be room.
        if data_out.size() == 0 {
            data_out.is_null = true;
        }
        // SAFETY: zeros are values of all fields.
        let mut fields: bpf_test_run_opts = unsafe { std::mem::zeroed() };
        fields.sz = match self.byte() {
            0 => self.size(),
            _ => size_of::<bpf_test_run_opts>(),
        };
        fields.data_in = data_in.pointer();
        fields.data_size_in = data_in.size() as u32;
        fields.data_out = data_out.pointer();
        fields.data_size_out = data_out.size() as u32;
        match self.byte() {
            0 => fields.ctx_in = data_in.pointer(),
            1 => fields.ctx_size_in = data_in.size() as u32,
            2 => fields.repeat = -1,
            3 => fields.flags = u32::from(self.byte()),
            4 => fields.cpu = u32::from(self.byte()),
            5 => fields.batch_size = 1,
            6 => fields.repeat = c_int::from(self.byte()),
            _ => {}
        }
        // The structure with as many bytes as it says.
        let mut opts = vec![0_usize; fields.sz.max(size_of::<bpf_test_run_opts>()).div_ceil(8)];
        // SAFETY: the vector has room for the fields, and is aligned for them; what they point to lives
        // until the end of the function. Handles are numbers; the runner is null or open.
        unsafe {
            opts.as_mut_ptr().cast::<bpf_test_run_opts>().write(fields);
            let opts = opts.as_mut_ptr().cast();
            match self.byte() {
                0xff => beebox_prog_test_run_opts(self.handle(), ptr::null_mut()),
                0 => beebox_runner__test_run(self.runner, opts),
                _ => beebox_prog_test_run_opts(self.handle(), opts),
            }
        }
    }

    fn run(&mut self) -> c_int {
        let size = self.size();
        let mut packet = self.buffer(size);
        let (mut retval, mut left, mut left_size) = (0, ptr::null(), 0);
        // SAFETY: the runner is null or open, the packet has its size.
        unsafe {
            let (data, size) = (packet.pointer(), packet.size());
            let status = beebox_runner__run(self.runner, data, size, &raw mut retval);
            let after = beebox_runner__packet(self.runner, &raw mut left, &raw mut left_size);
            if after == 0 && left_size > 0 {
                // All of it can be read.
                let left = std::slice::from_raw_parts(left.cast::<u8>(), left_size);
                std::hint::black_box(left.iter().fold(0, |sum: u8, byte| sum ^ byte));
            }
            status
        }
    }

    fn element_by_handle(&mut self) -> c_int {
        let (which, fd) = (self.byte(), self.handle());
        let (mut key, mut value) = (self.buffer(ELEMENT), self.buffer(ELEMENT));
        if self.byte() == 0 {
            value.bytes[..4].copy_from_slice(&self.handle().to_ne_bytes());
        }
        let (key, value) = (key.pointer(), value.pointer());
        let flags = u64::from(self.byte() % 9);
        let mut count = (flags % 5) as u32;
        let count = &raw mut count;
        let opts = bpf_map_batch_opts {
            sz: size_of::<bpf_map_batch_opts>() - usize::from(flags == 7),
            elem_flags: flags / 3,
            flags: u64::from(flags == 8),
        };
        let opts = match flags {
            0..5 => ptr::null(),
            _ => &raw const opts,
        };
        let (mut place, mut next) = (self.buffer(64), self.buffer(64));
        let (place, next) = (place.pointer(), next.pointer());
        // SAFETY: keys and values are as large as four of every map, places as any key.
        unsafe {
            match which % 12 {
                0 => beebox_map_lookup_elem(fd, key, value),
                1 => beebox_map_lookup_elem_flags(fd, key, value, flags),
                2 => beebox_map_update_elem(fd, key, value, flags),
                3 => beebox_map_delete_elem(fd, key),
                4 => beebox_map_lookup_and_delete_elem(fd, key, value),
                5 => beebox_map_get_next_key(fd, key, value),
                6 => beebox_close(fd),
                7 => beebox_map_lookup_batch(fd, place, next, key, value, count, opts),
                8 => beebox_map_lookup_and_delete_batch(fd, place, next, key, value, count, opts),
                9 => beebox_map_update_batch(fd, key, value, count, opts),
                10 => beebox_map_delete_batch(fd, key, count, opts),
                _ => {
                    let inner = beebox_map_create_inner(fd);
                    self.handles.push(inner);
                    inner
                }
            }
        }
    }

    fn element_by_size(&mut self) -> c_int {
        let (which, map) = (self.byte(), self.map());
        let (key_size, value_size) = (self.size() % 64, self.size() % 2048);
        // Often those of the map.
        // SAFETY: the map is null or that of the open object.
        let of_map = unsafe { (beebox_map__key_size(map), beebox_map__value_size(map)) };
        let (key_size, value_size) = match self.byte() % 4 {
            0 => (key_size, value_size),
            _ => (of_map.0 as usize, of_map.1 as usize),
        };
        let (mut key, mut value) = (self.buffer(key_size), self.buffer(value_size));
        let mut next = self.buffer(key_size);
        let (key, value, next) = (key.pointer(), value.pointer(), next.pointer());
        let flags = u64::from(self.byte() % 9);
        // SAFETY: the map is null or that of the open object, the buffers have their sizes.
        unsafe {
            match which % 5 {
                0 => beebox_map__lookup_elem(map, key, key_size, value, value_size, flags),
                1 => beebox_map__update_elem(map, key, key_size, value, value_size, flags),
                2 => beebox_map__delete_elem(map, key, key_size, flags),
                3 => {
                    beebox_map__lookup_and_delete_elem(map, key, key_size, value, value_size, flags)
                }
                _ => beebox_map__get_next_key(map, key, next, key_size),
            }
        }
    }

    fn verify(&mut self) -> c_int {
        let (object, level) = (self.object(), u32::from(self.byte() % 9));
        // SAFETY: the object is null or open; the verification is freed once, and read before.
        unsafe {
            let verification = beebox_object__verify(object, level);
            let verdict = beebox_verification__verdict(verification, usize::from(self.byte() % 3));
            let kind = verdict.as_ref().map_or(-1, |verdict| verdict.kind as c_int);
            beebox_verification__free(verification);
            kind
        }
    }

    fn filter(&mut self) -> c_int {
        let (count, which) = (self.byte() as usize % 16, self.byte());
        let insn = |calls: &mut Self| sock_filter {
            code: u16::from(calls.byte()),
            jt: calls.byte() % 4,
            jf: calls.byte() % 4,
            k: u32::from(calls.byte()),
        };
        let insns: Vec<sock_filter> = (0..count).map(|_| insn(self)).collect();
        let size = self.size();
        let mut packet = self.buffer(size);
        let (mut kept, mut ret) = (0, 0);
        let data = seccomp_data {
            nr: c_int::from(which),
            arch: 0xc000_003e,
            instruction_pointer: 0,
            args: [0; 6],
        };
        // SAFETY: instructions, packet and call are there; filters are freed once.
        unsafe {
            let filter = beebox_filter__new(insns.as_ptr(), count);
            let (bytes, size) = (packet.pointer(), packet.size() as u32);
            let longer = size + u32::from(which % 2) * 9;
            let run = beebox_filter__run(filter, bytes, size, longer, &raw mut kept);
            beebox_filter__free(filter);
            let parsed = beebox_filter__parse(bytes, size as usize);
            beebox_filter__free(parsed);
            let seccomp = beebox_seccomp__new(insns.as_ptr(), count);
            let decided = beebox_seccomp__run(seccomp, &raw const data, &raw mut ret);
            beebox_seccomp__free(seccomp);
            run + decided
        }
    }

    fn records(&mut self) -> c_int {
        unsafe extern "C" fn sum(ctx: *mut c_void, data: *mut c_void, size: usize) -> c_int {
            // SAFETY: the library gives a record with its size; there is no context.
            let record = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size) };
            let sum = record.iter().fold(0_u8, |sum, byte| sum ^ byte);
            c_int::from(sum) - if ctx.is_null() { 200 } else { 0 }
        }
        let function: beebox_ring_buffer_sample_fn = match self.byte() {
            0xff => None,
            _ => Some(sum),
        };
        unsafe extern "C" fn read(_: *mut c_void, _: c_int, data: *mut c_void, size: u32) {
            // SAFETY: the library gives a record with its size.
            let record = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), size as usize) };
            std::hint::black_box(record.iter().fold(0_u8, |sum, byte| sum ^ byte));
        }
        let (fd, pages) = (self.handle(), self.size());
        // SAFETY: the readers are null or open; the functions take a null context.
        unsafe {
            let (none, opts) = (ptr::null_mut(), ptr::null());
            let buffers = beebox_perf_buffer__new(fd, pages, Some(read), None, none, opts);
            beebox_perf_buffer__consume(buffers);
            beebox_perf_buffer__free(buffers);
            if self.reader.is_null() {
                self.reader = beebox_ring_buffer__new(fd, function, ptr::null_mut(), ptr::null());
            } else {
                beebox_ring_buffer__add(self.reader, fd, function, ptr::null_mut());
            }
            beebox_ring_buffer__poll(self.reader, 0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects of the fuzz target.
    const OBJECTS: [&[u8]; 3] = [
        include_bytes!("../../../examples/packets/firewall.bpf.o"),
        include_bytes!("../../../examples/packets/dispatch.bpf.o"),
        include_bytes!("../../../examples/packets/flows.bpf.o"),
    ];

    /// The calls that each input begins with: an object is opened and loaded.
    const OPEN: [u8; 6] = [0, 1, 1, 1, 0, 1];

    #[test]
    fn no_call_is_a_fault_of_beebox() {
        // Numbers of an xorshift generator, from a fixed seed.
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        };
        let (mut accepted, mut refused) = (0, 0);
        for round in 0..150 {
            let mut input = OPEN.to_vec();
            input.extend((0..200).map(|_| next()));
            let returned = any_calls(OBJECTS[round % OBJECTS.len()], &input);
            assert!(
                !returned.contains(&-libc::ENOTRECOVERABLE),
                "round {round}: {returned:?}"
            );
            accepted += returned.iter().filter(|it| **it >= 0).count();
            refused += returned.iter().filter(|it| **it < 0).count();
        }
        assert!(
            accepted > 500 && refused > 500,
            "{accepted} accepted, {refused} refused"
        );
    }
}
