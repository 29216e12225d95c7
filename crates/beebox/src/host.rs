//! Macros of functions of the host.

/// A function of your program that BPF programs call as a kernel function or helper:
/// `fn name(parameter: type, …) -> number { … }`, with what it captures.
///
/// It makes a [`HostFunction`](crate::HostFunction) of a typed function: its BTF prototype derives from the
/// Rust types, so that the verifier checks calls of it with the kernel's rules and messages. The function is
/// a closure; what it captures is the host's state. It gets copies of the memory that arguments point to,
/// and what it changes in them is written back when it has returned.
///
/// | in Rust | in C |
/// |---|---|
/// | `bool`, `u8` … `i64` | `_Bool`, `unsigned char` … `long long` |
/// | `&[u8]`, `&mut [u8]` | `const void *name, unsigned int name__sz`; without `const` |
/// | `&CStr` | `const char *name__str`, a constant string |
/// | `&T`, `&mut T` of a number or a [`kfunc_struct!`](crate::kfunc_struct) | `const T *name`, `T *name` |
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use beebox::{Loader, Object, TestRun};
///
/// fn main() -> Result<(), beebox::Error> {
/// #   std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
///     let seen = Arc::new(Mutex::new(Vec::new()));
///     let log = seen.clone();
///     let function = beebox::kfunc! {
///         fn host_seen(header: &[u8], length: u32) -> u64 {
///             let mut seen = log.lock().unwrap();
///             seen.push((header.to_vec(), length));
///             seen.len() as u64
///         }
///     };
///     let object = Object::open("examples/host/host.bpf.o")?;
///     let instance = Loader::default().host_function(function).load(&object)?;
///     let run = instance.program("count")?.test_run(&TestRun::packet(&[7; 64]))?;
///     assert_eq!((run.retval, seen.lock().unwrap().len()), (1, 1));
///     Ok(())
/// }
/// ```
///
/// [`HostFunction::as_helper`](crate::HostFunction::as_helper) gives a function a helper number too: programs
/// call it as `static long (*const name)(…) = (void *)65536;` and need no BTF. The verifier then checks the
/// arguments as those of a helper (`ARG_PTR_TO_MEM` and a size, `ARG_PTR_TO_CONST_STR`).
///
/// ```
/// use beebox::{Loader, Object, TestRun};
///
/// # fn main() -> Result<(), beebox::Error> {
/// # std::env::set_current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).unwrap();
/// let function = beebox::kfunc! {
///     fn host_seen(header: &[u8], length: u32) -> u64 { header.len() as u64 + u64::from(length) }
/// };
/// let object = Object::open("examples/host/helper.bpf.o")?;
/// let instance = Loader::default().host_function(function.as_helper(65536)).load(&object)?;
/// let run = instance.program("count")?.test_run(&TestRun::packet(&[7; 64]))?;
/// assert_eq!(run.retval, 78);
/// # Ok(())
/// # }
/// ```
#[macro_export]
macro_rules! kfunc {
    ($(#[$meta:meta])* fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) $body:block) => {
        $crate::kfunc!(@make $name, [$($parameter: $ty,)*], (), None, $body)
    };
    (
        $(#[$meta:meta])*
        fn $name:ident($($parameter:ident: $ty:ty),* $(,)?) -> $result:ty $body:block
    ) => {
        $crate::kfunc!(
            @make $name, [$($parameter: $ty,)*], $result,
            Some(<$result as $crate::internal::host::Number>::scalar()), $body
        )
    };
    (@make $name:ident, [$($parameter:ident: $ty:ty,)*], $result:ty, $scalar:expr, $body:block) => {{
        let prototype = $crate::internal::host::Prototype {
            name: stringify!($name).to_owned(),
            parameters: vec![$($crate::internal::host::Parameter {
                name: stringify!($parameter).to_owned(),
                argument: <$ty as $crate::internal::host::Argument<'_>>::describe(),
            },)*],
            returns: $scalar,
            flags: $crate::internal::host::KfuncFlags::default(),
            programs: $crate::internal::host::ProgramTypes(u64::MAX),
            helper: None,
        };
        $crate::internal::host::HostFunction::new(
            prototype,
            move |words: [u64; 5], memory: &mut dyn $crate::internal::host::HostMemory| {
                #[allow(unused_mut, unused_variables)]
                let mut words = $crate::internal::host::Words::new(words);
                $(let mut $parameter =
                    <$ty as $crate::internal::host::Argument<'_>>::take(&mut words, memory)?;)*
                let result: $result = {
                    $(let $parameter: $ty = $crate::internal::host::Argument::lend(&mut $parameter);)*
                    (|| -> $result { $body })()
                };
                $(<$ty as $crate::internal::host::Argument<'_>>::put_back($parameter, memory)?;)*
                Some($crate::internal::host::Words::result(result))
            },
        )
    }};
}

/// A structure that arguments of [`kfunc!`](crate::kfunc) may point to: numbers and arrays of
/// numbers, without padding.
///
/// ```
/// beebox::kfunc_struct! {
///     /// What is known of an address.
///     pub struct Entry {
///         pub hits: u64,
///         pub limit: u32,
///         pub name: [u8; 4],
///     }
/// }
/// assert_eq!(Entry::default().hits, 0);
/// ```
#[macro_export]
macro_rules! kfunc_struct {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident {
            $($(#[$field_meta:meta])* $field_visible:vis $field:ident: $ty:ty),* $(,)?
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[repr(C)]
        $visible struct $name {
            $($(#[$field_meta])* $field_visible $field: $ty,)*
        }

        $crate::pod! { $name { $($field),* } }

        const _: () = {
            let size = 0 $(+ <$ty as $crate::Pod>::SIZE)*;
            assert!(size == size_of::<$name>(), "the structure has padding");
        };

        impl $crate::internal::host::Object for $name {
            fn pointee() -> $crate::internal::host::Pointee {
                $crate::internal::host::Pointee::Structure {
                    name: stringify!($name).to_owned(),
                    fields: vec![$($crate::internal::host::field::<$ty>(stringify!($field)),)*],
                }
            }
        }
    };
}
