//! Log of the kernel for BPF_BTF_LOAD: header, each type as it is checked, and the
//! message. It is a function of the blob and the refusal, so validation itself writes no
//! log.

use super::blob::{Blob, RawMember};
use super::reason::{BlobPlace, Form, Pass, Reason, Refusal};
use crate::TypeId;
use crate::kind::Kind;
use crate::wire::{
    Header, IntWord, MAX_TYPE, MEMBER_SIZE, PARAM_SIZE, PLACED_SIZE, RECORD_SIZE, Record,
    VALUE_SIZE, VALUE64_SIZE, word,
};

/// Maximum length of one print in bytes.
const MAX_PRINT: usize = 1023;

/// Log of the kernel at level 1 for a blob that it accepts, or refuses with this refusal.
pub fn kernel_log(bytes: &[u8], refusal: Option<&Refusal>) -> Vec<u8> {
    let mut out = Vec::new();
    let pass = refusal.map(|refusal| refusal.pass);
    if pass != Some(Pass::Header) {
        header(&mut out, bytes);
    }
    if let Ok(blob) = Blob::open(bytes) {
        let mut log = Log { blob, out };
        log.types(refusal);
        out = log.out;
    } else if let Some(refusal) = refusal {
        print(&mut out, refusal.reason.message().as_bytes());
    }
    out
}

/// Appends a print of the kernel, cut to its maximum length (`__btf_verifier_log`,
/// `btf_verifier_log`).
#[doc(alias = "__btf_verifier_log")]
#[doc(alias = "btf_verifier_log")]
fn print(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&text[..text.len().min(MAX_PRINT)]);
}

/// Logs the header (`btf_verifier_log_hdr`).
#[doc(alias = "btf_verifier_log_hdr")]
fn header(out: &mut Vec<u8>, bytes: &[u8]) {
    let stated = word(bytes, 4) as usize;
    let header = Header::read(bytes.get(..stated).unwrap_or(bytes));
    let text = format!(
        "magic: {:#x}\nversion: {}\nflags: {:#x}\nhdr_len: {}\ntype_off: {}\n\
         type_len: {}\nstr_off: {}\nstr_len: {}\nbtf_total_size: {}\n",
        header.magic,
        header.version,
        header.flags,
        header.len,
        header.type_off,
        header.type_len,
        header.str_off,
        header.str_len,
        bytes.len()
    );
    out.extend_from_slice(text.as_bytes());
}

struct Log<'b> {
    blob: Blob<'b>,
    out: Vec<u8>,
}

impl<'b> Log<'b> {
    /// Logs all types up to the refusal, then the message.
    fn types(&mut self, refusal: Option<&Refusal>) {
        let in_records = refusal.filter(|refusal| refusal.pass == Pass::Records);
        let last = in_records.map(|refusal| refusal.place.of());
        let mut at = 0;
        let mut id = TypeId(1);
        while at < self.blob.types.len() {
            if let (Some(refusal), true) = (in_records, last == Some(id)) {
                self.refused_record(id, at, refusal);
                return;
            }
            let record = Record::read(self.blob.types, at);
            let (fixed, each) = record.kind_or_void().tail();
            self.whole_type(id, at);
            if id.0 >= MAX_TYPE {
                self.print("Exceeded max num of types");
            } else {
                self.blob.starts.push(at as u32);
            }
            at += RECORD_SIZE + fixed + each * record.count();
            id.0 += 1;
        }
        match refusal {
            Some(refusal) if refusal.pass == Pass::References => self.refused_reference(refusal),
            Some(refusal) => self.print(refusal.reason.message()),
            None => {}
        }
    }

    fn print(&mut self, text: impl AsRef<[u8]>) {
        print(&mut self.out, text.as_ref());
    }

    /// Logs text with a name that may not be UTF-8.
    fn print_named(&mut self, before: &str, name: u32, after: &str) {
        let name = match name {
            0 => &b"(anon)"[..],
            offset => match self.blob.string(offset) {
                Some(name) => name.as_bytes(),
                None => b"(invalid-name-offset)",
            },
        };
        self.print([before.as_bytes(), name, after.as_bytes()].concat());
    }

    fn refused_record(&mut self, id: TypeId, at: usize, refusal: &Refusal) {
        let reason = refusal.reason;
        let message = reason.message();
        match refusal.place {
            BlobPlace::Blob | BlobPlace::Type(_) => match reason.form() {
                Form::Numbered => self.print(format!("[{id}] {message}")),
                Form::Basic => {
                    self.basic(id, at, "");
                    self.print(format!(" {message}\n"));
                }
                Form::Full => self.line(id, at, &message),
            },
            BlobPlace::Member { index, .. } => {
                self.line(id, at, "");
                self.members(at, index);
                self.member(at, index, None, &message);
            }
            BlobPlace::VarSecinfo { index, .. } => {
                self.line(id, at, "");
                self.placed(at, index);
                match reason {
                    Reason::SectionTooFull => self.line(id, at, &message),
                    _ => self.placed_one(at, index, &message),
                }
            }
            BlobPlace::Value { index, .. } => {
                self.line(id, at, "");
                self.values(at, index);
                match reason {
                    Reason::NameOffset { .. } => self.print(format!("\t{message}")),
                    _ => self.line(id, at, &message),
                }
            }
        }
    }

    fn refused_reference(&mut self, refusal: &Refusal) {
        let message = refusal.reason.message();
        let id = refusal.place.of();
        let Some(&at) = self.blob.starts.get(id.index()) else {
            return;
        };
        let at = at as usize;
        match refusal.place {
            BlobPlace::Member { index, ty, .. } => {
                self.line(id, at, "");
                self.member(at, index, Some(ty), &message);
            }
            BlobPlace::VarSecinfo { index, .. } => {
                self.line(id, at, "");
                self.placed_one(at, index, &message);
            }
            _ => self.line(id, at, &message),
        }
    }

    fn whole_type(&mut self, id: TypeId, at: usize) {
        self.line(id, at, "");
        let record = Record::read(self.blob.types, at);
        match record.kind_or_void() {
            Kind::Struct | Kind::Union => self.members(at, record.count()),
            Kind::Enum | Kind::Enum64 => self.values(at, record.count()),
            Kind::Datasec => self.placed(at, record.count()),
            _ => {}
        }
    }

    fn basic(&mut self, id: TypeId, at: usize, after: &str) {
        let record = Record::read(self.blob.types, at);
        let before = format!("[{id}] {} ", record.kind_or_void().name());
        self.print_named(&before, record.name, after);
    }

    /// Logs the line of a type, with an optional message at its end (`__btf_verifier_log_type`).
    #[doc(alias = "__btf_verifier_log_type")]
    fn line(&mut self, id: TypeId, at: usize, message: &str) {
        self.basic(id, at, " ");
        self.details(at);
        if !message.is_empty() {
            self.print(" ");
            self.print(message);
        }
        self.print("\n");
    }

    /// Logs the fields of a type by its kind (`btf_int_log`, `btf_array_log`, `btf_struct_log`,
    /// `btf_enum_log`, `btf_fwd_type_log`, `btf_ref_type_log`, `btf_var_log`, `btf_datasec_log`,
    /// `btf_float_log`, `btf_decl_tag_log`).
    #[doc(alias = "btf_int_log")]
    #[doc(alias = "btf_array_log")]
    #[doc(alias = "btf_struct_log")]
    #[doc(alias = "btf_enum_log")]
    #[doc(alias = "btf_fwd_type_log")]
    #[doc(alias = "btf_ref_type_log")]
    #[doc(alias = "btf_var_log")]
    #[doc(alias = "btf_datasec_log")]
    #[doc(alias = "btf_float_log")]
    #[doc(alias = "btf_decl_tag_log")]
    fn details(&mut self, at: usize) {
        let record = Record::read(self.blob.types, at);
        let payload = record.payload;
        let tail = self.blob.types.get(at + RECORD_SIZE..).unwrap_or_default();
        let text = match record.kind_or_void() {
            Kind::Int => {
                let data = IntWord(word(tail, 0));
                let encoding = match data.encoding() {
                    0 => "(none)",
                    1 => "SIGNED",
                    2 => "CHAR",
                    4 => "BOOL",
                    _ => "UNKN",
                };
                format!(
                    "size={payload} bits_offset={} nr_bits={} encoding={encoding}",
                    data.offset(),
                    data.bits()
                )
            }
            Kind::Array => format!(
                "type_id={} index_type_id={} nr_elems={}",
                word(tail, 0),
                word(tail, 4),
                word(tail, 8)
            ),
            Kind::Struct | Kind::Union | Kind::Enum | Kind::Enum64 | Kind::Datasec => {
                format!("size={payload} vlen={}", record.count())
            }
            Kind::Fwd if record.flag() => "union".to_owned(),
            Kind::Fwd => "struct".to_owned(),
            Kind::Var => format!("type_id={payload} linkage={}", word(tail, 0)),
            Kind::Float => format!("size={payload}"),
            Kind::DeclTag => format!("type={payload} component_idx={}", word(tail, 0) as i32),
            Kind::FuncProto => return self.prototype(at),
            _ => format!("type_id={payload}"),
        };
        self.print(text);
    }

    /// Logs the parameters of a prototype (`btf_func_proto_log`).
    #[doc(alias = "btf_func_proto_log")]
    fn prototype(&mut self, at: usize) {
        let record = Record::read(self.blob.types, at);
        self.print(format!("return={} args=(", record.payload));
        let count = record.count();
        if count == 0 {
            self.print("void");
        }
        for index in 0..count {
            let from = at + RECORD_SIZE + index * PARAM_SIZE;
            let (name, ty) = (word(self.blob.types, from), word(self.blob.types, from + 4));
            let comma = if index == 0 { "" } else { ", " };
            if ty == 0 && index == count - 1 {
                self.print(format!("{comma}vararg"));
            } else {
                self.print_named(&format!("{comma}{ty} "), name, "");
            }
        }
        self.print(")");
    }

    fn members(&mut self, at: usize, count: usize) {
        for index in 0..count {
            self.member(at, index, None, "");
        }
    }

    /// Logs the line of a member; `ty` replaces its type (`btf_verifier_log_member`).
    #[doc(alias = "btf_verifier_log_member")]
    fn member(&mut self, at: usize, index: usize, ty: Option<TypeId>, message: &str) {
        let from = at + RECORD_SIZE + index * MEMBER_SIZE;
        let member = RawMember::read(self.blob.types, from);
        let ty = ty.unwrap_or(member.ty);
        let place = member.place;
        let after = if Record::read(self.blob.types, at).flag() {
            format!(
                " type_id={ty} bitfield_size={} bits_offset={}",
                place >> 24,
                place & 0x00ff_ffff
            )
        } else {
            format!(" type_id={ty} bits_offset={place}")
        };
        self.print_named("\t", member.name, &after);
        self.end_of_line(message);
    }

    fn end_of_line(&mut self, message: &str) {
        if !message.is_empty() {
            self.print(" ");
            self.print(message);
        }
        self.print("\n");
    }

    fn placed(&mut self, at: usize, count: usize) {
        for index in 0..count {
            self.placed_one(at, index, "");
        }
    }

    /// Logs the line of a variable of a section (`btf_verifier_log_vsi`).
    #[doc(alias = "btf_verifier_log_vsi")]
    fn placed_one(&mut self, at: usize, index: usize, message: &str) {
        let from = at + RECORD_SIZE + index * PLACED_SIZE;
        let [ty, offset, size] = [0, 4, 8].map(|field| word(self.blob.types, from + field));
        self.print(format!("\t type_id={ty} offset={offset} size={size}"));
        self.end_of_line(message);
    }

    fn values(&mut self, at: usize, count: usize) {
        let record = Record::read(self.blob.types, at);
        let is_wide = record.kind_or_void() == Kind::Enum64;
        let each = if is_wide { VALUE64_SIZE } else { VALUE_SIZE };
        for index in 0..count {
            let from = at + RECORD_SIZE + index * each;
            let [name, low, high] = [0, 4, 8].map(|field| word(self.blob.types, from + field));
            let wide = u64::from(high) << 32 | u64::from(low);
            let value = match (is_wide, record.flag()) {
                (true, true) => (wide as i64).to_string(),
                (true, false) => wide.to_string(),
                (false, true) => (low as i32).to_string(),
                (false, false) => low.to_string(),
            };
            self.print_named("\t", name, &format!(" val={value}\n"));
        }
    }
}

impl BlobPlace {
    /// Type that contains the place.
    fn of(self) -> TypeId {
        match self {
            BlobPlace::Blob => TypeId::VOID,
            BlobPlace::Type(of)
            | BlobPlace::Member { of, .. }
            | BlobPlace::VarSecinfo { of, .. }
            | BlobPlace::Value { of, .. } => of,
        }
    }
}
