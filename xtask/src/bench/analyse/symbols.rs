//! The time to symbolicate 100,000 addresses of a program of fifty megabytes with debug
//! information.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;

use super::time;
use crate::build;
use crate::scratch::Scratch;

const ADDRESSES: u64 = 100_000;

/// The largest allowed time, in seconds.
const SECONDS: f64 = 1.0;

pub(crate) fn run(ours: &Path, scratch: &Scratch, out: &mut dyn Write) -> io::Result<bool> {
    let mut command = build::cargo();
    // The dump reader is linked in as well, for a larger program.
    command.args(["build", "--package", "memreport-tests", "--package", "about-memory"]);
    let program = build::executable(&mut command, "fulltext").map_err(io::Error::other)?;
    let bytes = fs::read(&program)?;
    let code = code(&bytes).ok_or_else(|| io::Error::other("the program is no ELF file"))?;
    let path = scratch.0.join("addresses.json");
    fs::write(&path, dump(&program, code))?;
    // The first run reads the file from the disk; the later ones find it in the page cache.
    let mut seconds = f64::MAX;
    for _ in 0..3 {
        let took = time(Command::new(ours).args(["dmd", "--max-frames=1"]).arg(&path))?;
        seconds = seconds.min(took.as_secs_f64());
    }
    writeln!(
        out,
        "symbols: 100,000 addresses of a program of {} MB: {seconds:.3} s (best of 3)",
        bytes.len() / 1_000_000
    )?;
    writeln!(out, r#"{{"bench":"symbols","seconds":{seconds:.3},"target":{SECONDS}}}"#)?;
    Ok(seconds <= SECONDS)
}

/// Returns the start and the size of the first executable segment, in the file's addresses.
fn code(elf: &[u8]) -> Option<(u64, u64)> {
    const EXECUTABLE: u32 = 1;
    let half = |at: usize| Some(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(elf.get(at..at + 4)?.try_into().ok()?));
    let long = |at: usize| Some(u64::from_le_bytes(elf.get(at..at + 8)?.try_into().ok()?));
    let (start, size, count) = (long(32)?, usize::from(half(54)?), usize::from(half(56)?));
    let start = usize::try_from(start).ok()?;
    let mut headers = (0..count).map(|number| start + number * size);
    let header = headers.find(|&at| {
        word(at) == Some(1) && word(at + 4).is_some_and(|flags| flags & EXECUTABLE != 0)
    })?;
    Some((long(header + 16)?, long(header + 40)?))
}

/// Returns a dump with one block and one stack of one frame for each address, spread over the code.
fn dump(program: &Path, (start, size): (u64, u64)) -> String {
    let (mut blocks, mut traces, mut frames) = (String::new(), String::new(), String::new());
    for number in 0..ADDRESSES {
        let comma = if number == 0 { "" } else { "," };
        let address = start + size * number / ADDRESSES + 1;
        let _ = write!(blocks, "{comma}{{\"req\":8,\"alloc\":\"t{number}\"}}");
        let _ = write!(traces, "{comma}\"t{number}\":[\"f{number}\"]");
        let _ = write!(
            frames,
            "{comma}\"f{number}\":\"#00: ???[{} +0x{address:x}]\"",
            program.display()
        );
    }
    format!(
        "{{\"version\":5,\"invocation\":{{\"dmdEnvVar\":null,\"mode\":\"live\"}},\"blockList\":[{blocks}],\
         \"traceTable\":{{{traces}}},\"frameTable\":{{{frames}}}}}"
    )
}
