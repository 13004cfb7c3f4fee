//! Programs that nobody prepared, over a malloc that counts by itself: it has as many bytes and
//! blocks as the library, and as glibc.

use std::fs;
use std::path::{Path, PathBuf};

use crate::subject::{
    STATES, Scratch, With, assert_same, command, compile, installed, library, output,
};

const STATES_HERE: [&str; 3] = ["", "--mode=live", "--mode=profile --sample-bytes=64K"];

/// Without caches, glibc's own sums contain live blocks only, and a structure of each thread. It
/// takes 16 MiB at once for its heap: otherwise a mapping of the program's, such as the code that
/// Node.js compiles, can lie where the heap would grow, and glibc leaves 32 bytes unused there.
const TUNED: &str =
    "glibc.malloc.tcache_count=0:glibc.malloc.mxfast=0:glibc.malloc.top_pad=16777216";

/// The bytes of that structure, with the word before it.
const OF_THREAD: u64 = 656;

/// The bytes at the start of each further arena that are neither free nor a block: its own
/// structures, of glibc 2.36 on 64 bits.
const OF_ARENA: u64 = 2256;

/// Returns whether these bytes are the structures of some threads and arenas.
fn is_glibcs_own(bytes: u64) -> bool {
    (0..=bytes / OF_ARENA).any(|arenas| (bytes - arenas * OF_ARENA).is_multiple_of(OF_THREAD))
}

/// The numbers of a process at its exit.
#[derive(Debug)]
struct Exit {
    bytes: u64,
    blocks: u64,
    mapped: u64,
    tracked: (u64, u64),
    glibc: u64,
}

fn exits(path: &Path) -> Vec<Exit> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let line = |line: &str| {
        let numbers: Vec<u64> =
            line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let [bytes, blocks, mapped, tracked_bytes, tracked_blocks, glibc] = numbers[..] else {
            panic!("{line}")
        };
        Exit { bytes, blocks, mapped, tracked: (tracked_bytes, tracked_blocks), glibc }
    };
    text.lines().map(line).collect()
}

/// Runs a program without the library, and over the counting malloc in each state. Returns the
/// number of processes whose numbers were compared.
#[track_caller]
#[expect(clippy::print_stdout, reason = "the user must learn which programs were compared")]
fn check(counting: &Path, name: &str, arguments: &[&str]) -> usize {
    let Some(program) = installed(name) else { return 0 };
    if name == "java" && installed("javac").is_none() {
        return 0;
    }
    let scratch = Scratch::new(&format!("counted-{name}"));
    let of = |with| {
        let mut run = command(&program, with);
        run.args(arguments).current_dir(&scratch.0).env("LC_ALL", "C").env("HOME", &scratch.0);
        run
    };
    let bare = output(of(With::Nothing));
    let mut compared = 0;
    for state in STATES_HERE {
        let counted = scratch.join("counted");
        let _ = fs::remove_file(&counted);
        let mut run = of(With::Library(state));
        run.env("LD_PRELOAD", format!("{}:{}", library().display(), counting.display()));
        run.env("COUNTED", &counted).env("GLIBC_TUNABLES", TUNED);
        let done = output(run);
        assert_eq!((done.status, &done.stdout), (bare.status, &bare.stdout), "{name} {state}");
        for exit in exits(&counted) {
            assert_eq!(exit.tracked, (exit.bytes, exit.blocks), "{name} {state}: {exit:?}");
            // Each block has a word before it, and two if it has a mapping of its own.
            let rest = exit.glibc.checked_sub(exit.bytes + 8 * (exit.blocks + exit.mapped));
            assert!(
                rest.is_some_and(|rest| rest < 100_000 && is_glibcs_own(rest)),
                "{name} {state}: {exit:?}, {rest:?} bytes more in glibc"
            );
            compared += 1;
        }
    }
    println!("{name}: {compared} processes");
    compared
}

#[test]
#[ignore = "slow: `cargo xtask ci` runs it"]
fn programs_that_nobody_prepared_are_counted_to_the_byte() {
    let scratch = Scratch::new("counting");
    let options = ["-shared", "-fPIC"];
    let Some(counting) = compile(&scratch, "counting.c", "libcounting.so", &options) else {
        return;
    };
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/subjects/words.cpp");
    let sql = "create table t(a,b); with recursive n(i) as (select 1 union all select i+1 from n where i<20000) \
               insert into t select i, 'row ' || i from n; select sum(a), max(b) from t;";
    let python = "import json, sqlite3; rows = json.loads(json.dumps([{'n': n} for n in range(20000)])); print(len(rows)); exit(7)";
    // The virtual machine compiles the program, whose threads have ended before its exit.
    let java = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/subjects/Words.java");
    let programs: [(&str, &[&str]); 20] = [
        ("/usr/bin/python3", &["-c", python]),
        (
            "perl",
            &[
                "-e",
                "my %h; $h{$_ % 977} .= chr(65 + $_ % 26) for 1..50000; print length $h{5}; exit 3",
            ],
        ),
        ("git", &["init", "-q", "."]),
        ("bash", &["-c", "for ((n = 0; n < 100; n++)); do x=$(/bin/echo $n); done; echo $x"]),
        ("sqlite3", &[":memory:", sql]),
        ("c++", &["-O1", "-S", "-o", "-", source]),
        ("cargo", &["--version"]),
        ("make", &["--version"]),
        (
            "awk",
            &[
                "BEGIN { for (i = 0; i < 50000; i++) a[i % 1000] = a[i % 1000] i; print length(a[7]) }",
            ],
        ),
        ("find", &["/usr/include", "-name", "s*.h", "-newer", "/etc/passwd"]),
        ("sort", &["--parallel=4", "/etc/services"]),
        ("tar", &["-cf", "-", "/etc/services"]),
        ("xz", &["-zkc", "/etc/services"]),
        ("openssl", &["dgst", "-sha256", "/etc/services"]),
        ("jq", &["-n", "[range(20000)] | map({n: .}) | length"]),
        ("tclsh", &["/dev/null"]),
        ("gdb", &["-q", "-batch", "-ex", "print 1+1"]),
        ("java", &[java]),
        ("keytool", &["-list", "-cacerts", "-storepass", "changeit"]),
        ("node", &["-e", "console.log(JSON.stringify([...Array(50000).keys()]).length)"]),
    ];
    let compared: Vec<_> =
        programs.iter().map(|(name, arguments)| check(&counting, name, arguments)).collect();
    let programs = compared.iter().filter(|processes| **processes > 0).count();
    println!("{programs} programs in {} processes", compared.iter().sum::<usize>());
    assert!(programs >= 5, "a system with a compiler has at least some of these");
}

/// Libraries in a namespace of their own have a malloc of their own, which is not the library's.
#[test]
fn namespaces_keep_their_own_malloc() {
    let scratch = Scratch::new("namespaces");
    let Some(program) = compile(&scratch, "namespaces.c", "namespaces", &[]) else { return };
    let options = ["-shared", "-fPIC"];
    let Some(inner) = compile(&scratch, "c_library.c", "libinner.so", &options) else { return };
    let run = |with| {
        let mut program = command(&program, with);
        program.arg::<&PathBuf>(&inner);
        program
    };
    assert_same(run, &STATES);
}
