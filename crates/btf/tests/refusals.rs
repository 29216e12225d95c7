//! Refusals of BTF by Linux 6.18, recorded: error number and log. `testkit` compares many
//! more with the running kernel.

use beebox_btf::validate::{FieldFault, Reason, kernel_log, validate};
use beebox_btf::{Array, Btf, Builder, DeclTag, Encoding, Int, Kind, Member, StrOffset, TypeId};

const NONE: StrOffset = StrOffset::EMPTY;

/// Blob that starts with `[1] INT int`.
fn with_int() -> Builder {
    let mut builder = Builder::new();
    let name = builder.string("int");
    builder.int(
        name,
        Int {
            size: 4,
            bits: 32,
            offset: 0,
            encoding: Encoding::SIGNED,
        },
    );
    builder
}

fn member(ty: u32, bit_offset: u32) -> Member {
    Member {
        name: NONE,
        ty: TypeId(ty),
        bit_offset,
        bits: 0,
    }
}

/// Error number, and the last line of the log.
fn refused(blob: &[u8]) -> (i32, String) {
    let refusal = validate(blob, None).expect_err("Linux refuses it");
    let log = String::from_utf8(kernel_log(blob, Some(&refusal))).unwrap();
    let last = log.lines().last().unwrap_or_default();
    (refusal.errno(), last.to_owned())
}

fn refused_with(errno: i32, line: &str, blob: &[u8]) {
    assert_eq!(refused(blob), (errno, line.to_owned()));
}

#[oracle::test]
fn headers_and_sections() {
    let good = with_int().finish();
    assert_eq!(validate(&good, None), Ok(()));
    refused_with(22, "hdr_len not found", &[]);
    refused_with(22, "btf_header not found", &good[..20]);
    refused_with(22, "No data", &good[..24]);
    refused_with(22, "Total section length too long", &good[..good.len() - 1]);
    for (at, errno, message) in [
        (0, 22, "Invalid magic"),
        (2, 524, "Unsupported version"),
        (3, 524, "Unsupported flags"),
        (8, 22, "Unsupported section found"),
        (40, 22, "Invalid string section"),
    ] {
        let mut bad = good.clone();
        bad[at] ^= 1;
        refused_with(errno, message, &bad);
    }
}

/// Loaders read strings that Linux does not accept: they link files and then leave out BTF.
#[oracle::test]
fn blobs_larger_than_linux_accepts_are_read() {
    let mut builder = with_int();
    builder.string("x".repeat(17 << 20));
    let blob = builder.finish();
    let refusal = validate(&blob, None).expect_err("Linux refuses it");
    assert_eq!(refusal.errno(), 7);
    let btf = Btf::parse(&blob[..]).expect("loaders read it");
    assert!(btf.strings().len() > 17 << 20);
}

#[oracle::test]
fn a_whole_log() {
    let mut builder = with_int();
    let name = builder.string("s");
    builder.composite(Kind::Struct, name, 8, &[member(1, 0), member(1, 33)]);
    let blob = builder.finish();
    let refusal = validate(&blob, None).unwrap_err();
    assert_eq!(refusal.reason, Reason::MemberTooLarge);
    let log = String::from_utf8(kernel_log(&blob, Some(&refusal))).unwrap();
    assert_eq!(
        log,
        "magic: 0xeb9f\nversion: 1\nflags: 0x0\nhdr_len: 24\ntype_off: 0\ntype_len: 52\n\
         str_off: 52\nstr_len: 7\nbtf_total_size: 83\n\
         [1] INT int size=4 bits_offset=0 nr_bits=32 encoding=SIGNED\n\
         [2] STRUCT s size=8 vlen=2\n\
         \t(anon) type_id=1 bits_offset=0\n\
         \t(anon) type_id=1 bits_offset=33\n\
         [2] STRUCT s size=8 vlen=2\n\
         \t(anon) type_id=1 bits_offset=33 Member exceeds struct_size\n"
    );
}

#[oracle::test]
fn types_that_contain_themselves() {
    let mut builder = with_int();
    let name = builder.string("s");
    builder.composite(Kind::Struct, name, 4, &[member(2, 0)]);
    let line = "[2] STRUCT s size=4 vlen=1 Loop detected";
    refused_with(17, line, &builder.finish());

    let mut builder = with_int();
    for _ in 0..40 {
        let next = TypeId(builder.next_id().0 + 1);
        builder.reference(Kind::Const, NONE, next);
    }
    builder.reference(Kind::Const, NONE, TypeId(1));
    let line = "[2] CONST (anon) type_id=3 Exceeded max resolving depth:32";
    refused_with(7, line, &builder.finish());
}

#[oracle::test]
fn invalid_members_and_elements() {
    let mut builder = with_int();
    builder.array(Array {
        element: TypeId(3),
        index: TypeId(1),
        count: 2,
    });
    builder.proto(TypeId::VOID, &[]);
    let line = "[2] ARRAY (anon) type_id=3 index_type_id=1 nr_elems=2 Invalid elem";
    refused_with(22, line, &builder.finish());

    let mut builder = with_int();
    let tag = builder.string("user");
    builder.reference(Kind::TypeTag, tag, TypeId(1));
    builder.reference(Kind::Const, NONE, TypeId(2));
    refused_with(22, "Type tags don't precede modifiers", &builder.finish());
}

#[oracle::test]
fn special_fields() {
    let mut builder = with_int();
    let name = builder.string("bpf_list_head");
    let head = builder.composite(Kind::Struct, name, 16, &[]);
    let name = builder.string("owner");
    let owner = builder.composite(Kind::Struct, name, 16, &[member(head.0, 0)]);
    let refusal = validate(&builder.finish(), None).unwrap_err();
    assert_eq!(refusal.reason, Reason::Field(FieldFault::Contains));

    let text = builder.string("contains:owner:nothing");
    let target = owner;
    let component = 0;
    builder.decl_tag(text, DeclTag { target, component });
    let blob = builder.finish();
    let refusal = validate(&blob, None).unwrap_err();
    assert_eq!(refusal.reason, Reason::Field(FieldFault::NoNode));
    assert_eq!(refusal.errno(), 2);
}
