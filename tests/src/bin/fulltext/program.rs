//! The program from its arguments to its exit code.
#![forbid(unsafe_code)]

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use clap::{Parser, ValueEnum};

use crate::answers::Answer;
use crate::settings::{Arguments, SETTINGS, Settings};
use crate::workers::{News, Shop};
use crate::{folder, index};

/// Runs the program, whatever its allocator.
pub(crate) fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has closed it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed too, only the exit code remains.
            let _ = writeln!(io::stderr(), "fulltext: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> io::Result<()> {
    if !arguments.plant.is_empty() && !is_tracked() {
        let remedy = "start the program with DMD=1, or under `about-memory run`";
        return Err(io::Error::other(format!("--plant is for DMD to find: {remedy}")));
    }
    let settings = Settings::load(arguments)?;
    let settings = SETTINGS.get_or_init(|| settings);
    let shop = Arc::new(Shop::new(settings));
    let _reports = shop.report();
    thread::scope(|scope| {
        let _close = shop.start(scope)?;
        build(&shop, settings)?;
        ask(&shop, settings)?;
        report(&settings.arguments)
    })
}

/// Builds the index of the folder in the workers.
fn build(shop: &Shop, settings: &Settings) -> io::Result<()> {
    let begin = Instant::now();
    let (limits, mut files) = (settings.limits, 0);
    folder::walk(&settings.arguments.folder, &settings.skip(), limits.largest_file, &mut |path| {
        files += 1;
        shop.files.push(path);
    })?;
    shop.files.close();
    let mut skipped = 0;
    for _ in 0..limits.workers {
        let Some(News::Built { skipped: more }) = shop.news.pop() else { return Err(lost()) };
        skipped += more;
    }
    index::complete();
    let index = index::read();
    writeln!(
        io::stdout(),
        "indexed {} of {files} files: {:.1} MB, {} words, {} of them distinct, in {:.2} s",
        files - skipped,
        index.text_bytes() as f64 / 1e6,
        index.words(),
        index.terms().words().len(),
        begin.elapsed().as_secs_f64()
    )
}

/// Answers the queries in the workers, and prints the answers in the order of the queries.
fn ask(shop: &Shop, settings: &Settings) -> io::Result<()> {
    let queries = settings.queries();
    for (number, query) in queries.iter().enumerate() {
        shop.queries.push((number, (*query).to_owned()));
    }
    let mut answers: Vec<Option<Arc<Answer>>> = vec![None; queries.len()];
    for _ in &queries {
        match shop.news.pop() {
            Some(News::Answered(number, answer)) => answers[number] = Some(answer),
            Some(News::Failed(number, why)) => {
                return Err(io::Error::other(format!("{}: {why}", queries[number])));
            }
            Some(News::Built { .. }) | None => return Err(lost()),
        }
    }
    let mut out = io::stdout().lock();
    for answer in answers.into_iter().flatten() {
        writeln!(out, "\n{}: {} files", answer.query, answer.found)?;
        for line in &answer.lines {
            writeln!(out, "{:8.3}  {}:{}: {}", line.score, line.path, line.number, line.text)?;
        }
    }
    Ok(())
}

fn lost() -> io::Error {
    io::Error::other("a worker failed, as it says above")
}

/// Plants the requested faults and saves the memory report.
fn report(arguments: &Arguments) -> io::Result<()> {
    if let Some(path) = &arguments.baseline {
        save(path, "after the queries, before faults are planted")?;
    }
    for (number, fault) in arguments.plant.iter().enumerate() {
        if arguments.plant[..number].contains(fault) {
            continue;
        }
        let planted = fault.plant();
        let name = fault.to_possible_value();
        writeln!(
            io::stderr(),
            "planted {}: {} bytes in {} blocks, heap-unclassified {:+}",
            name.as_ref().map_or("a fault", |name| name.get_name()),
            planted.moves.unsigned_abs(),
            planted.blocks,
            planted.moves
        )?;
    }
    if arguments.no_snapshot {
        return Ok(());
    }
    match (&arguments.snapshot, is_tracked()) {
        (Some(path), _) => save(path, "after the queries"),
        (None, true) => save(&temporary(), "after the queries"),
        (None, false) => Ok(()),
    }
}

fn save(path: &Path, moment: &'static str) -> io::Result<()> {
    memreport::Collector::default().moment(moment).snapshot().save(path)?;
    writeln!(io::stderr(), "saved {}", path.display())
}

fn temporary() -> PathBuf {
    std::env::temp_dir().join(format!("fulltext-{}.json.gz", std::process::id()))
}

/// Returns whether `$DMD` turns tracking on.
fn is_tracked() -> bool {
    std::env::var_os("DMD").is_some_and(|wish| !wish.is_empty())
}
