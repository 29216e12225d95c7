//! What runs hand over beside verdicts, in order: printed texts, or records of maps.
//!
//! A little of it is kept in memory, the rest in a temporary file without a name, which goes with
//! the process. So the memory of a run does not depend on the length of its capture.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, Write};

/// Bytes that are kept in memory.
const IN_MEMORY: usize = 1 << 20;

/// Most bytes that are kept.
const MOST_BYTES: u64 = 16 << 30;

/// Bytes of an item in front of its own: packet, map and length.
const HEAD: usize = 16;

/// Items in the order in which they were added.
#[derive(Default)]
pub struct Spool {
    /// The last items.
    memory: Vec<u8>,
    /// Those before.
    file: Option<File>,
    items: u64,
    bytes: u64,
    /// Number of items that were not kept.
    pub lost: u64,
    fault: Option<io::Error>,
}

/// A printed text, or a record.
pub struct SpoolItem {
    /// Number of the packet; 0 if the run was on no capture.
    pub packet: u64,
    /// Number of the map that a record is of.
    pub map: u32,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl Spool {
    /// Adds an item.
    pub fn add(&mut self, packet: u64, map: u32, bytes: &[u8]) {
        let len = (HEAD + bytes.len()) as u64;
        let Ok(stated) = u32::try_from(bytes.len()) else {
            self.lost += 1;
            return;
        };
        if self.bytes + len > MOST_BYTES || self.fault.is_some() {
            self.lost += 1;
            return;
        }
        self.memory.extend_from_slice(&packet.to_le_bytes());
        self.memory.extend_from_slice(&map.to_le_bytes());
        self.memory.extend_from_slice(&stated.to_le_bytes());
        self.memory.extend_from_slice(bytes);
        self.bytes += len;
        self.items += 1;
        if self.memory.len() > IN_MEMORY
            && let Err(error) = self.spill()
        {
            self.fault = Some(error);
        }
    }

    /// Moves the items in memory to the file.
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(unnamed_file()?),
        };
        file.write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }

    /// Number of items that are kept.
    pub fn count(&self) -> u64 {
        self.items
    }

    /// Why the temporary file could not be written, if that is so.
    pub fn fault(&self) -> Option<&io::Error> {
        self.fault.as_ref()
    }

    /// The items that are kept.
    pub fn items(&self) -> impl Iterator<Item = io::Result<SpoolItem>> {
        let file = self.file.as_ref().map(|mut file| {
            let rewound = file.rewind();
            rewound.map(|()| file)
        });
        let (file, mut fault) = match file {
            Some(Err(error)) => (None, Some(error)),
            Some(Ok(file)) => (Some(file), None),
            None => (None, None),
        };
        let before: Box<dyn Read> = match file {
            Some(file) => Box::new(file),
            None => Box::new(io::empty()),
        };
        let mut bytes = BufReader::with_capacity(256 << 10, before.chain(&self.memory[..]));
        (0..self.items).map(move |_| match fault.take() {
            Some(error) => Err(error),
            None => read_item(&mut bytes),
        })
    }
}

fn read_item(from: &mut impl Read) -> io::Result<SpoolItem> {
    let mut head = [0; HEAD];
    from.read_exact(&mut head)?;
    let number = |range: std::ops::Range<usize>| {
        let mut wide = [0; 8];
        wide[..range.len()].copy_from_slice(&head[range]);
        u64::from_le_bytes(wide)
    };
    let mut bytes = vec![0; number(12..16) as usize];
    from.read_exact(&mut bytes)?;
    Ok(SpoolItem {
        packet: number(0..8),
        map: number(8..12) as u32,
        bytes,
    })
}

/// A file of the process alone, which is gone when it ends: on Unix no directory has it.
#[cfg(any(unix, windows))]
fn unnamed_file() -> io::Result<File> {
    for number in 0.. {
        let name = format!(".beebox.{}.{number}.spool", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        #[cfg(windows)]
        {
            use std::os::windows::fs::OpenOptionsExt;
            const FILE_FLAG_DELETE_ON_CLOSE: u32 = 0x0400_0000;
            options
                .share_mode(0)
                .custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
        }
        match options.open(&path) {
            Ok(file) => {
                #[cfg(unix)]
                std::fs::remove_file(&path)?;
                return Ok(file);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    unreachable!("the numbers do not end")
}

/// Other systems have no such files.
#[cfg(not(any(unix, windows)))]
fn unnamed_file() -> io::Result<File> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_back_in_order_out_of_file_and_memory() {
        let mut spool = Spool::default();
        let item = |number: u64| vec![number as u8; (number % 300) as usize];
        const ITEMS: u64 = 20_000;
        for number in 0..ITEMS {
            spool.add(number, number as u32 % 7, &item(number));
        }
        assert!(spool.file.is_some() && !spool.memory.is_empty());
        assert_eq!((spool.count(), spool.lost), (ITEMS, 0));
        assert!(spool.fault().is_none());
        for _ in 0..2 {
            let mut count = 0;
            for (number, read) in (0..).zip(spool.items()) {
                let read = read.unwrap();
                let expected = (number, number as u32 % 7, item(number));
                assert_eq!((read.packet, read.map, read.bytes), expected);
                count += 1;
            }
            assert_eq!(count, ITEMS);
        }
    }
}
