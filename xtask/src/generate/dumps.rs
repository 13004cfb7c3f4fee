//! Dumps of format 5, both as DMD writes them and with contents that it would not write.

use std::fmt::Write;

use super::random::Random;

/// The size of a generated dump.
pub(crate) struct Shape {
    pub(crate) blocks: u64,
    traces: u64,
    frames: u64,
    /// Largest requested size.
    size: u64,
    strange: bool,
}

impl Shape {
    /// Returns a shape at random, with unusual contents.
    pub(crate) fn any(random: &mut Random) -> Self {
        let blocks = *random.pick(&[1, 2, 5, 20, 100, 1_000, 3_000]);
        let traces = *random.pick(&[1, 3, 20, 1_500]);
        let frames = *random.pick(&[1, 5, 30, 300]);
        let size = *random.pick(&[3, 200, 100_000, 1 << 55]);
        Self { blocks, traces, frames, size, strange: true }
    }

    /// Returns the shape of a large program's dump, with 300,000 block records.
    pub(crate) fn large() -> Self {
        Self { blocks: 300_000, traces: 20_000, frames: 30_000, size: 20_000, strange: false }
    }

    /// Returns a shape with a million blocks.
    pub(crate) fn million() -> Self {
        Self { blocks: 1_000_000, ..Self::large() }
    }
}

/// Returns a dump of `mode`.
pub(crate) fn dump(mode: &str, shape: &Shape, random: &mut Random) -> String {
    let mut text = String::from("{\n \"version\": 5,\n");
    let variable = *random.pick(&["null", "\"1\"", "\"--mode=x --stacks=full\""]);
    let _ = writeln!(text, " \"invocation\": {{\"dmdEnvVar\": {variable}, \"mode\": \"{mode}\"}},");
    if shape.strange && random.percent(20) {
        text.push_str(
            " \"memreport\": {\"version\": 1, \"needs\": [], \"modules\": [], \"wrong\": []},\n",
        );
    }
    text.push_str(" \"blockList\": [");
    let mut address = 0x7f00_0000_0000;
    for at in 0..shape.blocks {
        text.push_str(if at == 0 { "\n  " } else { ",\n  " });
        block(&mut text, mode, shape, &mut address, random);
    }
    text.push_str("\n ],\n \"traceTable\": {");
    for at in 0..shape.traces {
        let frames = if shape.strange { random.below(30) } else { 8 + random.below(17) };
        let keys: Vec<String> = (0..frames).map(|_| frame_key(shape, random)).collect();
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(text, "{comma}\n  \"{}\": [{}]", key(at), keys.join(", "));
    }
    text.push_str("\n },\n \"frameTable\": {");
    for at in 0..shape.frames {
        let comma = if at == 0 { "" } else { "," };
        let _ = write!(
            text,
            "{comma}\n  \"{}\": \"{}\"",
            key(shape.traces + at),
            frame(at, shape, random)
        );
    }
    text.push_str("\n }\n}\n");
    text
}

/// Returns a key in DMD's form: base 32, `A` to `Z`, then `a` to `f`.
fn key(mut number: u64) -> String {
    const DIGITS: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdef";
    let mut digits = Vec::new();
    loop {
        digits.push(char::from(DIGITS[usize::try_from(number % 32).unwrap_or(0)]));
        number /= 32;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

fn trace_key(shape: &Shape, random: &mut Random) -> String {
    // Two draws, so that some stacks have many blocks and most have few.
    let most = 1 + random.below(shape.traces);
    format!("\"{}\"", key(random.below(most)))
}

fn frame_key(shape: &Shape, random: &mut Random) -> String {
    let most = 1 + random.below(shape.frames);
    format!("\"{}\"", key(shape.traces + random.below(most)))
}

fn block(text: &mut String, mode: &str, shape: &Shape, address: &mut u64, random: &mut Random) {
    let req = if random.percent(50) {
        *random.pick(&[0, 8, 16, 24, 100, 4_096])
    } else {
        random.below(shape.size)
    };
    let _ = write!(text, "{{\"req\": {req}");
    let slop = req.wrapping_neg() % 16;
    if slop > 0 {
        let _ = write!(text, ", \"slop\": {slop}");
    }
    if random.percent(if shape.strange { 85 } else { 100 }) {
        let _ = write!(text, ", \"alloc\": {}", trace_key(shape, random));
    }
    if mode == "dark-matter" && random.percent(60) {
        let count = if shape.strange { random.below(5) } else { 1 + random.below(20) / 19 };
        let keys: Vec<String> = (0..count).map(|_| trace_key(shape, random)).collect();
        let _ = write!(text, ", \"reps\": [{}]", keys.join(", "));
    }
    if mode != "scan" && random.percent(30) {
        let low = if shape.strange { 0 } else { 2 };
        let _ = write!(text, ", \"num\": {}", low + random.below(40));
    }
    if mode == "scan" {
        contents(text, req, address, random);
    }
    text.push('}');
}

fn contents(text: &mut String, req: u64, address: &mut u64, random: &mut Random) {
    *address = address.wrapping_add(16 * random.below(4));
    let _ = write!(text, ", \"addr\": \"{address:x}\"");
    let words = (req / 8).min(12);
    if words > 0 && random.percent(80) {
        let word = |random: &mut Random| match random.below(4) {
            0 => 0,
            1 => *address,
            2 => (*address).wrapping_sub(random.below(4_000)),
            _ => random.below(1 << 50),
        };
        let words: Vec<String> = (0..words).map(|_| format!("\"{:x}\"", word(random))).collect();
        let _ = write!(text, ", \"contents\": [{}]", words.join(", "));
    }
    *address = address.wrapping_add(req);
}

/// Returns the text of a frame, in JSON.
fn frame(at: u64, shape: &Shape, random: &mut Random) -> String {
    if !shape.strange {
        return format!(
            "#00: library_{}::module::function_{at} (/home/me/project/src/file_{}.rs:{})",
            at % 50,
            at % 400,
            at % 999
        );
    }
    match random.below(14) {
        0 => "#00: malloc (/src/malloc.c:12)".to_owned(),
        1 => format!("#00: operator new[](unsigned long) (/src/new.cpp:{})", at % 3),
        2 => format!("#00: ???[/usr/lib/libc.so.6 +0x{at:x}]"),
        3 => format!("#00: replace_realloc(void*) [../dmd/DMD.cpp:{}]", at % 5),
        4 => "#00: mozilla::dmd::AllocCallback(void*)".to_owned(),
        5 => format!("#00: f{at} (\\\"quoted\\\"\\\\path\\u00e9é\\t.rs:1)"),
        6 => String::new(),
        7 => "#0".to_owned(),
        8 => "\u{e9}\u{1f600}xyz".to_owned(),
        9 => format!("#00: in_a_malloc_path (/home/calloc/{at}.c:1)"),
        // Some frames have one text under several keys.
        10 => "#00: f1 (same.rs:1)".to_owned(),
        _ => format!("#00: f{at} (file{}.rs:{at})", at % 7),
    }
}
