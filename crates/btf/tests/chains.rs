//! Types that are chains of hundreds of thousands of references: every operation is linear,
//! or names a limit.

use std::time::Duration;

use beebox_btf::core::Resolver;
use beebox_btf::diff::diff;
use beebox_btf::ext::{CoreKind, CoreSpec};
use beebox_btf::validate::validate;
use beebox_btf::{
    Array, Btf, Builder, CDump, COptions, Encoding, Int, Kind, Member, Param, StrOffset, TypeId,
    dedup, dump_c,
};

/// Types in a chain.
const LENGTH: usize = 100_000;

/// Time for one operation on one blob in an unoptimised build.
const LIMIT: Duration = Duration::from_secs(10);

/// Adds the next type of a chain; the number is its place in it.
type Link = fn(&mut Builder, usize, TypeId) -> TypeId;

fn named(builder: &mut Builder, kind: Kind, number: usize, to: TypeId) -> TypeId {
    let name = builder.string(format!("t{number}"));
    builder.reference(kind, name, to)
}

fn unnamed(builder: &mut Builder, kind: Kind, to: TypeId) -> TypeId {
    let name = builder.string("");
    builder.reference(kind, name, to)
}

fn pointer_or(builder: &mut Builder, number: usize, to: TypeId, other: Link) -> TypeId {
    match number % 2 {
        0 => unnamed(builder, Kind::Ptr, to),
        _ => other(builder, number, to),
    }
}

fn structure(builder: &mut Builder, name: &str, ty: TypeId) -> TypeId {
    let empty = builder.string("m");
    let member = Member {
        name: empty,
        ty,
        bit_offset: 0,
        bits: 0,
    };
    let name = builder.string(name);
    builder.composite(Kind::Struct, name, 4, &[member])
}

const CHAINS: &[(&str, Link)] = &[
    ("typedefs", |builder, number, to| {
        named(builder, Kind::Typedef, number, to)
    }),
    ("pointers", |builder, _, to| unnamed(builder, Kind::Ptr, to)),
    ("qualifiers", |builder, number, to| {
        let kinds = [Kind::Const, Kind::Volatile];
        unnamed(builder, kinds[number % 2], to)
    }),
    ("type tags", |builder, _, to| {
        let name = builder.string("tag");
        builder.reference(Kind::TypeTag, name, to)
    }),
    ("arrays", |builder, _, to| {
        builder.array(Array {
            element: to,
            index: TypeId(1),
            count: 1,
        })
    }),
    ("prototypes that return", |builder, number, to| {
        pointer_or(builder, number, to, |builder, _, to| builder.proto(to, &[]))
    }),
    ("prototypes that take", |builder, number, to| {
        pointer_or(builder, number, to, |builder, _, to| {
            let name = builder.string("");
            builder.proto(TypeId::VOID, &[Param { name, ty: to }])
        })
    }),
    ("pointers to typedefs", |builder, number, to| {
        pointer_or(builder, number, to, |builder, number, to| {
            named(builder, Kind::Typedef, number, to)
        })
    }),
    ("structures", |builder, number, to| {
        structure(builder, &format!("s{number}"), to)
    }),
    ("anonymous structures", |builder, _, to| {
        structure(builder, "", to)
    }),
    ("pointers to structures", |builder, number, to| {
        pointer_or(builder, number, to, |builder, number, to| {
            structure(builder, &format!("s{number}"), to)
        })
    }),
    ("equal structures", |builder, _, _| {
        structure(builder, "same", TypeId(1))
    }),
    ("equal typedefs", |builder, _, _| {
        let name = builder.string("same");
        builder.reference(Kind::Typedef, name, TypeId(1))
    }),
];

/// A chain over `int`, a structure with its end as the type of many members, and typedefs of
/// its end. The access string `0` is in it too.
fn chain(link: Link, length: usize) -> (Vec<u8>, StrOffset) {
    let mut builder = Builder::new();
    let name = builder.string("int");
    let int = Int {
        size: 4,
        bits: 32,
        offset: 0,
        encoding: Encoding::default(),
    };
    let mut end = builder.int(name, int);
    for number in 0..length {
        end = link(&mut builder, number, end);
    }
    let members: Vec<Member> = (0..length as u32 / 30)
        .map(|number| Member {
            name: builder.string(format!("m{number}")),
            ty: end,
            bit_offset: 32 * number,
            bits: 0,
        })
        .collect();
    let name = builder.string("top");
    builder.composite(Kind::Struct, name, 4 * members.len() as u32, &members);
    for number in 0..length / 30 {
        let name = builder.string(format!("end{number}"));
        builder.reference(Kind::Typedef, name, end);
    }
    let access = builder.string("0");
    (builder.finish(), access)
}

/// Processor time of this thread, which other processes do not add to.
fn thread_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = stat.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or(0))
}

/// Runs an operation, which may take so long.
fn timed<T>(chain: &str, what: &str, operation: impl FnOnce() -> T) -> T {
    let began = thread_time();
    let result = operation();
    let took = thread_time() - began;
    assert!(took < LIMIT, "{what} of {chain}: {took:?}");
    if std::env::var_os("BEEBOX_TIMES").is_some() {
        eprintln!("{chain:<24}{what:<12}{took:?}");
    }
    result
}

#[oracle::test]
fn operations_on_long_chains_end_soon() {
    for &(name, link) in CHAINS {
        let (blob, access) = chain(link, LENGTH);
        let btf = timed(name, "parse", || Btf::parse(&blob[..]).expect("a blob"));
        let _ = timed(name, "validate", || validate(&blob, None));
        for sorted in [true, false] {
            let options = COptions {
                sorted,
                ..COptions::default()
            };
            if let Err(error) = timed(name, "C", || dump_c(&btf, &options)) {
                let words = error.to_string();
                let names_limit = words.contains("the limit of") || words.contains("in more than");
                assert!(names_limit, "{words}");
            }
        }
        let ids = || (0..btf.len() as u32).map(TypeId);
        timed(name, "declare", || {
            let mut dump = CDump::new(&btf);
            let some = ids().step_by(10_007);
            some.filter(|id| dump.declare(*id, "x").is_ok()).count()
        });
        timed(name, "sizes", || {
            ids().filter_map(|id| btf.size_of(id)).count()
        });
        timed(name, "modifiers", || {
            ids().filter_map(|id| btf.skip_modifiers(id)).count()
        });
        let _ = timed(name, "dedup", || dedup(&btf, None));
        let _ = timed(name, "diff", || diff(&btf, &btf));
        timed(name, "CO-RE", || {
            let mut resolver = Resolver::new(&btf, &btf);
            let spec = |id| CoreSpec {
                ty: id,
                access,
                kind: CoreKind::TYPE_EXISTS,
            };
            ids()
                .filter(|id| resolver.resolve(&spec(*id)).is_ok())
                .count()
        });
    }
}

#[oracle::test]
fn chains_that_compilers_could_write_are_printed() {
    for &(name, link) in CHAINS {
        let (blob, _) = chain(link, 400);
        let btf = Btf::parse(&blob[..]).expect("a blob");
        let text = dump_c(&btf, &COptions::default());
        let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("end1"), "{name}:\n{text}");
    }
}
