//! Every check of the workspace as one command: `cargo xtask ci`, `bench NAME`, `clients NAME`.

#![cfg_attr(
    not(feature = "measure"),
    allow(dead_code, reason = "what only the commands that measure use")
)]

mod failure;
mod scratch;
mod on_path;
mod build;
mod generate;
mod demo;
mod suite;
mod check;
#[cfg(feature = "measure")]
mod bench;
#[cfg(feature = "measure")]
mod stress;
#[cfg(feature = "measure")]
mod foreign;
#[cfg(feature = "measure")]
mod clients;

use std::io::{self, Write};
use std::process::ExitCode;

use check::publish::{api, deny, package, release, semver, workflows};
use check::{ci, features, fuzz, nightly, platforms, sanitize, tidy};

const USAGE: &str = "\
cargo xtask demo [FOLDER]             runs the example program under DMD on a folder of text: by default this repository
cargo xtask pre-commit                fmt, tidy, clippy, tests
cargo xtask ci                        all that CI runs
cargo xtask ci beside-tests           the part of it that runs beside the tests: docs, a build without std, the oldest Rust, models
cargo xtask nightly [WORD…]           all other checks, or those with one of the words in their names: hours
cargo xtask tidy [RULE…]              house rules: unsafe, first-lines, vague-names, openers, phrases, columns, readme, sizes, folders, rooms, inside-rooms, map
cargo xtask bench NAME [--quick]      overhead, stacks, show, analyse, measure, record, retained, tree, scopes, census: a table, then a line of JSON for each figure
cargo xtask bench overhead --only WORD|WORD   the figures with one of the words in their names
cargo xtask bench overhead --rounds N    at most N rounds instead of 31
cargo xtask stress [SECONDS]          threads that load the table of live blocks, for 30 seconds in each mode by default
cargo xtask stress live [SECONDS]     frequent reports from running programs while they allocate
cargo xtask stress log [SECONDS]      the allocation log with four writers and a slow reader, and with a following client
cargo xtask stress hooks [SECONDS]    random operations on several threads, compared with a locked map at every pause
cargo xtask stress exhaustion [SECONDS]   programs that run out of threads' stacks, descriptors, disks and memory, with stopped clients and jumping clocks
cargo xtask stress leaks [N]          N programs with known leaks and N without, by `tree` and LeakSanitizer: 200 by default
cargo xtask stress snapshots [N]      reports of a program that holds the locks of its values half of the time: 1,000 by default
cargo xtask foreign [PROGRAM] [--quick]   figures of programs around crates.io's libraries, beside the truth
cargo xtask foreign c-libraries [--quick]   a program with DMD around sqlite, zstd, openssl and rocksdb: all accounts equal to the byte
cargo xtask foreign stories [NAME]    the figures of docs/case-studies: published crates, unprepared, and after a change of a few lines
cargo xtask foreign costs [PROGRAM] [--rounds N] [--dev]   programs of crates.io that run to their end, over the system's allocator and jemalloc, beside heaptrack: time and instructions
cargo xtask foreign production [MINUTES] [--dev]   a server of crates.io over jemalloc under load, alone, with DMD asleep, in its profile and tracking every block, and with jemalloc's profiler: an hour
cargo xtask suite [N]                 two hundred tests that check their memory, under cargo test and nextest, 5 times each by default
cargo xtask calibrate                 measures the error of size formulas without a tracker, for docs/guide/src/reference/impls.md
cargo xtask sanitize [miri|threads|addresses]   the tracker under Miri, ThreadSanitizer and AddressSanitizer, behind planted defects: minutes
cargo xtask fuzz [SECONDS] [TARGET…]  all that reads bytes from elsewhere, under libFuzzer: 450 seconds for each target by default
cargo xtask mutants [COUNT] [SEED]    defects in a random sample of places, and those that no test finds: hours
cargo xtask mutants again             those that the last sample missed or did not run
cargo xtask mutants sums              the sums of the last sample
cargo xtask features                  memreport's features alone and in pairs: minutes
cargo xtask platforms [NAME…]         the libraries' tests for musl, aarch64 (under QEMU) and Windows (under Wine), compiled for macOS: minutes
cargo xtask api [--bless]             the public items of each library, compared with docs/api
cargo xtask semver [REVISION]         whether the versions allow the changes of public items since the last tag
cargo xtask deny                      licences, sources and versions of all dependencies, as deny.toml allows them
cargo xtask workflows [MODULES]       the workflows of .github, by actionlint
cargo xtask package                   what would be published: its contents, and the guide's first program in a project that depends on it
cargo xtask release [FOLDER] [--twice]   the archive of the program, its manual, completions, library and licences; --twice: built again, and compared
cargo xtask clients [NAME [ARGS]]     snapshot, firefox, browser, prometheus, dmd-py, exports, pprof: checks against real programs
cargo xtask tasks [WORD…] [--with FOLDER] [--bless]   ten tasks of users, by our commands and those of peers: keystrokes and seconds; --bless: into the guide
cargo xtask pictures [FOLDER [--every]]   the pictures of the README and the guide, or into another folder; --every: all views at several widths
cargo xtask clients exports [VIEWER] [--tools DIR]   each export in its own viewer";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let out = &mut io::stdout();
    let result = match words[..] {
        [.., "--help" | "-h"] => writeln!(out, "{USAGE}").map(|()| true).map_err(Into::into),
        ["demo", ref rest @ ..] => demo::run(rest),
        ["pre-commit"] => ci::pre_commit(out),
        ["ci"] => ci::ci(out),
        ["ci", "beside-tests"] => ci::beside_tests(out),
        ["nightly", ref rest @ ..] => nightly::run(rest, out),
        ["tidy", ref rest @ ..] => tidy::run(rest, out),
        ["suite", ref rest @ ..] => suite::run(rest, out),
        ["sanitize", ref rest @ ..] => sanitize::run(rest, out),
        ["fuzz", ref rest @ ..] => fuzz::run(rest, out),
        ["features"] => features::run(out),
        ["package"] => package::run(out),
        ["api", ref rest @ ..] => api::run(rest, out),
        ["semver", ref rest @ ..] => semver::run(rest, out),
        ["deny"] => deny::run(out),
        ["workflows", ref rest @ ..] => workflows::run(rest, out),
        ["platforms", ref rest @ ..] => platforms::run(rest, out),
        ["release", ref rest @ ..] => release::run(rest, out),
        [
            "bench" | "stress" | "foreign" | "calibrate" | "clients" | "pictures" | "tasks"
            | "mutants",
            ..,
        ] => measure(&words, out),
        _ => Err(USAGE.into()),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Standard error may be closed as well; then the error cannot be shown.
            let _ = writeln!(io::stderr(), "{error}");
            ExitCode::from(2)
        }
    }
}

/// Runs a command that measures the workspace's programs.
#[cfg(feature = "measure")]
fn measure(words: &[&str], out: &mut dyn Write) -> Result<bool, failure::Failure> {
    match words {
        ["bench", name, rest @ ..] => bench::run(name, rest, out),
        ["stress", rest @ ..] => stress::run(rest, out),
        ["foreign", rest @ ..] => foreign::run(rest, out),
        ["calibrate"] => bench::calibrate::run(out),
        ["clients", rest @ ..] => clients::run(rest, out),
        ["pictures", rest @ ..] => clients::pictures(rest, out),
        ["tasks", rest @ ..] => foreign::tasks::run(rest, out),
        ["mutants", rest @ ..] => check::mutants::run(rest, out),
        _ => Err(USAGE.into()),
    }
}

/// Runs a command that measures the workspace's programs, in the build of this program that can.
#[cfg(not(feature = "measure"))]
fn measure(words: &[&str], _out: &mut dyn Write) -> Result<bool, failure::Failure> {
    let mut cargo = build::cargo();
    cargo.args(["run", "--quiet", "--package", "xtask", "--"]).args(words);
    Ok(cargo.status()?.success())
}
