//! Takes snapshots at intervals, and keeps the newest.

use std::collections::VecDeque;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use clap::Args;
use memreport::__private::stamp;

use super::SnapshotArgs;
use crate::command::flags::interval;
use crate::error::Failure;
use crate::input::live::LiveError;

/// Flags of a series of snapshots.
#[derive(Debug, Args)]
pub(crate) struct SeriesArgs {
    /// Take a snapshot now, and then one at each interval, until the program ends or --count is
    /// reached; the time is added to the name of FILE: `heap-20261121-230105-123.json.gz`
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub(crate) every: Option<Duration>,
    /// Stop after N snapshots
    #[arg(long, value_name = "N", requires = "every", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Keep the newest N snapshots
    #[arg(long, value_name = "N", requires = "every", default_value_t = 100,
          value_parser = clap::value_parser!(u32).range(1..))]
    keep: u32,
}

/// Takes snapshots at intervals. Returns whether one of them is incomplete.
///
/// # Errors
/// The first snapshot cannot be taken. Later errors are printed, and the next interval tries again.
pub(crate) fn take(
    args: &SnapshotArgs,
    every: Duration,
    notes: &mut dyn Write,
) -> Result<bool, Failure> {
    take_each(args, every, notes, |path, notes| super::take(args, path, notes))
}

/// Takes snapshots at intervals by `take_one`, which returns whether one is incomplete.
fn take_each(
    args: &SnapshotArgs,
    every: Duration,
    notes: &mut dyn Write,
    mut take_one: impl FnMut(&Path, &mut dyn Write) -> Result<bool, Failure>,
) -> Result<bool, Failure> {
    let SeriesArgs { count, keep, .. } = args.series;
    let mut taken: VecDeque<PathBuf> = VecDeque::new();
    let (mut tried, mut any_incomplete) = (0, false);
    loop {
        let next = Instant::now() + every;
        let path = named(&args.output, SystemTime::now());
        tried += 1;
        match take_one(&path, notes) {
            Ok(is_incomplete) => {
                any_incomplete |= is_incomplete;
                taken.push_back(path);
            }
            Err(error) if taken.is_empty() => return Err(error),
            Err(error) if has_ended(&error) => {
                writeln!(notes, "the program has ended")?;
                break;
            }
            Err(error) => writeln!(notes, "note: {error}; tried again at the next interval")?,
        }
        while taken.len() > usize::try_from(keep).unwrap_or(usize::MAX) {
            if let Some(oldest) = taken.pop_front() {
                // The file may be gone already.
                let _ = fs::remove_file(dmd::dump::beside(&oldest));
                let _ = fs::remove_file(oldest);
            }
        }
        if count.is_some_and(|count| tried >= count) {
            break;
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
    if let (true, Some(first), Some(last)) = (args.dump, taken.front(), taken.back())
        && first != last
    {
        let [first, last] = [first, last].map(|report| dmd::dump::beside(report));
        let (first, last) = (first.display(), last.display());
        writeln!(notes, "what grew: about-memory heap diff {first} {last}")?;
    }
    Ok(any_incomplete)
}

fn has_ended(error: &Failure) -> bool {
    let error = error.downcast_ref::<LiveError>();
    matches!(error, Some(LiveError::NoProcess(_) | LiveError::NotServing(..)))
}

/// Adds a time to the name of a file: `heap.json.gz` becomes `heap-20261121-230105-123.json.gz`.
fn named(file: &Path, time: SystemTime) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".json.gz", ".json", ".gz"];
    let ending = endings.into_iter().find(|ending| name.ends_with(ending)).unwrap_or_default();
    let stem = name.strip_suffix(ending).unwrap_or(&name);
    file.with_file_name(format!("{stem}-{}{ending}", stamp(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_comes_before_the_ending() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_302_065_123);
        for (file, expected) in [
            ("a/heap.json.gz", "a/heap-20261121-230105-123.json.gz"),
            ("heap.gz", "heap-20261121-230105-123.gz"),
            ("heap", "heap-20261121-230105-123"),
        ] {
            assert_eq!(named(Path::new(file), time), Path::new(expected));
        }
    }

    #[derive(clap::Parser)]
    struct Words {
        #[command(flatten)]
        args: SnapshotArgs,
    }

    /// Takes snapshots with these results. Returns the number that were tried, and the notes.
    fn series(
        words: &[&str],
        results: Vec<Result<bool, LiveError>>,
    ) -> (usize, Result<bool, String>, String) {
        let words = [&["snapshot", "4711", "--output", "heap.gz", "--every", "1s"], words].concat();
        let args = <Words as clap::Parser>::try_parse_from(words).unwrap().args;
        let (mut tried, mut notes, mut results) = (0, Vec::new(), results.into_iter());
        let taken = take_each(&args, Duration::from_millis(1), &mut notes, |_, _| {
            tried += 1;
            Ok(results.next().expect("no more are tried")?)
        });
        let taken = taken.map_err(|error| error.to_string());
        (tried, taken, String::from_utf8(notes).unwrap())
    }

    #[test]
    fn only_the_first_snapshot_must_succeed() {
        let busy = || Err(LiveError::NotAllowed(4711));
        let ended = || Err(LiveError::NoProcess(4711));
        let (tried, taken, notes) = series(&[], vec![busy()]);
        assert!(tried == 1 && taken.is_err() && notes.is_empty(), "{notes}");
        let (tried, taken, notes) = series(&[], vec![Ok(false), busy(), Ok(true), ended()]);
        assert_eq!((tried, taken), (4, Ok(true)));
        assert!(notes.contains("; tried again at the next interval\n"), "{notes}");
        assert!(notes.ends_with("the program has ended\n"), "{notes}");
        let (tried, taken, notes) = series(&["--count", "2"], vec![Ok(false), busy()]);
        assert_eq!((tried, taken, notes.lines().count()), (2, Ok(false), 1));
    }
}
