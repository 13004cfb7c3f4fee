//! Fills sqlite, zstd, openssl and rocksdb, and a map of its own, in a folder that it is given.
//!
//! After `ready PID` it answers each line of its input. `work` replaces some of everything. Then it
//! prints `counted BYTES BLOCKS IN_USE`: the tracker's live bytes and blocks, and glibc's bytes in
//! use.
#![expect(unsafe_code, reason = "asks glibc for its figures")]

use std::collections::HashMap;
use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::sync::Mutex;

use openssl::pkey::Private;
use openssl::rsa::Rsa;
use openssl::ssl::{SslContext, SslMethod};

dmd::global_allocator!();

static TEXTS: Mutex<Option<HashMap<u64, String>>> = Mutex::new(None);

memreport::reporter!("explicit/texts", TEXTS, "The program's own texts.");

/// The libraries of C, with all that they keep.
struct Libraries {
    sqlite: rusqlite::Connection,
    encoders: Vec<zstd::stream::Encoder<'static, Vec<u8>>>,
    keys: Vec<Rsa<Private>>,
    contexts: Vec<SslContext>,
    rocks: rocksdb::DB,
}

impl Libraries {
    fn open(folder: &Path) -> Result<Self, Box<dyn Error>> {
        let sqlite = rusqlite::Connection::open_in_memory()?;
        sqlite.execute_batch("create table texts (number integer primary key, text text)")?;
        let mut options = rocksdb::Options::default();
        options.create_if_missing(true);
        options.set_write_buffer_size(8 << 20);
        let rocks = rocksdb::DB::open(&options, folder.join("rocks"))?;
        let (encoders, keys, contexts) = Default::default();
        Ok(Libraries { sqlite, encoders, keys, contexts, rocks })
    }

    /// Adds to each library, and replaces what the round before added to zstd and openssl.
    fn work(&mut self, round: u64) -> Result<(), Box<dyn Error>> {
        let numbers = || round * 5000..(round + 1) * 5000;
        let text = |number: u64| format!("text {number} of round {round}, {}", number * number);
        {
            let all = self.sqlite.transaction()?;
            let mut insert = all.prepare("insert into texts values (?1, ?2)")?;
            for number in numbers() {
                insert.execute((i64::try_from(number)?, text(number)))?;
            }
            drop(insert);
            all.commit()?;
        }
        self.encoders.clear();
        for level in [1, 3, 9] {
            let mut encoder = zstd::stream::Encoder::new(Vec::new(), level)?;
            for number in numbers() {
                encoder.write_all(text(number).as_bytes())?;
            }
            self.encoders.push(encoder);
        }
        self.keys.clear();
        self.contexts.clear();
        for _ in 0..3 {
            self.keys.push(Rsa::generate(1024)?);
            self.contexts.push(SslContext::builder(SslMethod::tls())?.build());
        }
        for number in numbers() {
            self.rocks.put(number.to_be_bytes(), text(number))?;
        }
        self.rocks.flush()?;
        for number in numbers() {
            let found = self.rocks.get(number.to_be_bytes())?.ok_or("rocksdb lost a key")?;
            assert_eq!(found, text(number).as_bytes(), "what was put is got");
        }
        let mut texts = TEXTS.lock().map_err(|_| "poisoned")?;
        let texts = texts.get_or_insert_default();
        texts.extend(numbers().map(|number| (number, text(number))));
        Ok(())
    }

    /// Returns a sum of what all libraries have, the same in each run.
    fn sum(&self) -> Result<usize, Box<dyn Error>> {
        let rows = self.sqlite.query_row("select sum(length(text)) from texts", (), |row| {
            row.get::<_, i64>(0)
        })?;
        let zipped: usize = self.encoders.iter().map(|encoder| encoder.get_ref().len()).sum();
        let keys: u32 = self.keys.iter().map(|key| key.size()).sum();
        let pairs = self.rocks.iterator(rocksdb::IteratorMode::Start);
        let stored: usize = pairs.map(|pair| pair.map_or(0, |(key, value)| key.len() + value.len())).sum();
        Ok(usize::try_from(rows)? + zipped + usize::try_from(keys)? + self.contexts.len() + stored)
    }
}

/// Prints the tracker's live bytes and blocks, and glibc's bytes in use.
fn print_counters(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let counters = memreport::heap_counters().unwrap_or_default();
    // SAFETY: a plain call.
    let glibc = unsafe { libc::mallinfo2() };
    let (bytes, blocks) = (counters.live_bytes(), counters.live_blocks());
    writeln!(out, "counted {bytes} {blocks} {}", glibc.uordblks + glibc.hblkhd)?;
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("a folder was expected")?;
    memreport::serve()?;
    let mut libraries = Libraries::open(Path::new(&folder))?;
    libraries.work(0)?;
    let (mut round, mut out) = (1, std::io::stdout());
    writeln!(out, "ready {}", std::process::id())?;
    for line in std::io::stdin().lock().lines() {
        if line? == "work" {
            libraries.work(round)?;
            round += 1;
        }
        print_counters(&mut out)?;
    }
    writeln!(out, "end {}", libraries.sum()?)?;
    Ok(())
}
