//! Reader of the assembly language.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use isa::classic::{Insn, SockFilter};

use super::{RAW_INSN, RET_X};
use crate::text::lexer::{Fault, Kind, LeadingZero, Lexer, Token};
use crate::text::operand;
use crate::text::{Problem, TextPlace};

const ZERO: LeadingZero = LeadingZero::Octal;

/// Mnemonics that are not in the instruction table.
const ALIASES: &[&str] = &["ldi", "ldxi", "jmp", "jne", "jneq", "jlt", "jle"];

/// Operand names, which cannot be labels.
const RESERVED: &[&str] = &["a", "x", "m"];

fn is_mnemonic(word: &str) -> bool {
    operand::is_mnemonic(word) || ALIASES.contains(&word)
}

fn is_label(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    !is_mnemonic(&lower) && !RESERVED.contains(&lower.as_str()) && !word.starts_with('.')
}

/// Field of an instruction that a label sets.
enum Field {
    Jt,
    Jf,
    K,
}

/// A use of a label by instruction `insn`.
struct Use<'a> {
    insn: usize,
    field: Field,
    label: Token<'a>,
}

struct Reader<'a> {
    source: &'a str,
    lexer: Lexer<'a>,
    program: Vec<SockFilter>,
    /// Target and position of each label.
    labels: HashMap<&'a str, (usize, usize)>,
    uses: Vec<Use<'a>>,
}

pub(in crate::text) fn read(source: &str) -> Result<Vec<SockFilter>, Fault> {
    let mut reader = Reader {
        source,
        lexer: Lexer::new(source),
        program: Vec::new(),
        labels: HashMap::new(),
        uses: Vec::new(),
    };
    while reader.lexer.peek().kind != Kind::End {
        reader.labels()?;
        reader.lexer.check_room(reader.program.len())?;
        reader.instruction()?;
    }
    reader.resolve()
}

impl<'a> Reader<'a> {
    /// Reads the labels before an instruction.
    fn labels(&mut self) -> Result<(), Fault> {
        while self.lexer.peek().kind == Kind::Word && is_label(self.lexer.peek().text) {
            let label = self.lexer.take();
            if !self.lexer.take_sign(':') {
                return Err(label.is_not("an instruction or a label with ':'"));
            }
            match self.labels.entry(label.text) {
                Entry::Vacant(entry) => entry.insert((self.program.len(), label.at)),
                Entry::Occupied(entry) => {
                    let (_, at) = *entry.get();
                    let first_line = match TextPlace::in_text(self.source, at) {
                        TextPlace::Text { line, .. } => line,
                        TextPlace::Input | TextPlace::Byte(_) => 0,
                    };
                    let name = label.text.to_owned();
                    let problem = Problem::DuplicateLabel { name, first_line };
                    return Err(Fault {
                        at: label.at,
                        problem,
                    });
                }
            };
        }
        Ok(())
    }

    fn instruction(&mut self) -> Result<(), Fault> {
        let opcode = self.lexer.peek();
        let mnemonic = opcode.text.to_ascii_lowercase();
        if mnemonic == RAW_INSN {
            self.lexer.take();
            return self.raw();
        }
        if opcode.kind != Kind::Word || !is_mnemonic(&mnemonic) {
            return Err(self.lexer.expected("an instruction"));
        }
        self.lexer.take();
        let insn = match mnemonic.as_str() {
            "ja" | "jmp" => {
                self.target(Field::K)?;
                Insn::Goto(0).encode()
            }
            "jne" | "jneq" => return self.branch("jeq", true),
            "jlt" => return self.branch("jge", true),
            "jle" => return self.branch("jgt", true),
            "ldi" => self.immediate(Insn::LoadImm)?,
            "ldxi" => self.immediate(Insn::LoadXImm)?,
            "ldx" if self.lexer.peek().kind == Kind::Number => {
                operand::read(&mut self.lexer, "ldxb")?
            }
            "ret" => self.ret()?,
            _ => {
                let insn = operand::read(&mut self.lexer, &mnemonic)?;
                if let Insn::Jump { .. } = Insn::decode(insn) {
                    return self.targets(insn, false);
                }
                insn
            }
        };
        self.program.push(insn);
        Ok(())
    }

    /// `ret`: the operands of the table, and `x`.
    fn ret(&mut self) -> Result<SockFilter, Fault> {
        let is_register = self.lexer.take_sign('%');
        if self.lexer.take_word("x") {
            return Ok(SockFilter::new(RET_X, 0, 0, 0));
        }
        if is_register && self.lexer.peek().kind != Kind::Word {
            return Err(self.lexer.expected("'a' or 'x' after '%'"));
        }
        operand::read(&mut self.lexer, "ret")
    }

    /// `#k` or `k`.
    fn immediate(&mut self, load: fn(u32) -> Insn) -> Result<SockFilter, Fault> {
        self.lexer.take_sign('#');
        Ok(load(self.lexer.expect_word32("a number", ZERO)?).encode())
    }

    /// An instruction given by its fields.
    fn raw(&mut self) -> Result<(), Fault> {
        let lexer = &mut self.lexer;
        let code = lexer.expect_code(ZERO)?;
        lexer.expect_sign(',')?;
        let jt = lexer.expect_skip("jt", ZERO)?;
        lexer.expect_sign(',')?;
        let jf = lexer.expect_skip("jf", ZERO)?;
        lexer.expect_sign(',')?;
        let k = lexer.expect_word32("k", ZERO)?;
        self.program.push(SockFilter::new(code, jt, jf, k));
        Ok(())
    }

    fn branch(&mut self, mnemonic: &str, inverted: bool) -> Result<(), Fault> {
        let insn = operand::read(&mut self.lexer, mnemonic)?;
        self.targets(insn, inverted)
    }

    /// Reads the labels of a branch: both targets, or one for either outcome.
    fn targets(&mut self, insn: SockFilter, inverted: bool) -> Result<(), Fault> {
        self.lexer.expect_sign(',')?;
        if inverted {
            self.target(Field::Jf)?;
        } else {
            self.target(Field::Jt)?;
            if self.lexer.take_sign(',') {
                self.target(Field::Jf)?;
            }
        }
        self.program.push(insn);
        Ok(())
    }

    fn target(&mut self, field: Field) -> Result<(), Fault> {
        let label = self.lexer.peek();
        if label.kind != Kind::Word || !is_label(label.text) {
            return Err(self.lexer.expected("a label"));
        }
        self.lexer.take();
        let insn = self.program.len();
        self.uses.push(Use { insn, field, label });
        Ok(())
    }

    /// Resolves the labels.
    fn resolve(mut self) -> Result<Vec<SockFilter>, Fault> {
        for Use { insn, field, label } in self.uses {
            let fault = |problem| Fault {
                at: label.at,
                problem,
            };
            let name = || label.text.to_owned();
            let Some(&(target, _)) = self.labels.get(label.text) else {
                return Err(fault(Problem::UnknownLabel { name: name() }));
            };
            let skip = target as i64 - (insn as i64 + 1);
            let near = u8::try_from(skip).map_err(|_| {
                let target = format!("label '{}'", label.text);
                fault(Problem::TargetTooFar { target, skip })
            });
            let raw = &mut self.program[insn];
            match field {
                Field::Jt => raw.jt = near?,
                Field::Jf => raw.jf = near?,
                // Linux reads it as unsigned, so backward jumps are outside the program
                // there; libpcap emits backward jumps.
                Field::K => raw.k = skip as u32,
            }
        }
        Ok(self.program)
    }
}
