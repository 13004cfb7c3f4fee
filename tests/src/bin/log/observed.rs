//! Checks of the allocation log. Each panics with the difference that it found.

use std::hint::black_box;
use std::num::NonZeroU64;

use dmd::observe::{
    Allocation, AllocationSiteError, AllocationsLog, LogError, MAX_LOG_LENGTH, ObserveError,
    Observer, Sampling,
};
use dmd::{allocation_site, allocation_site_of};

type Failure = Box<dyn std::error::Error>;

/// A size that occurs nowhere else.
const ODD: usize = 4321;

fn of_size(entries: &[Allocation], size: usize) -> usize {
    entries.iter().filter(|entry| entry.requested() == size).count()
}

/// Checks that the log keeps the newest entries, and counts the lost ones.
pub(crate) fn log() -> Result<(), Failure> {
    let mut observer = Observer::start()?;
    observer.set_max_log_length(10)?;
    assert!(!observer.log_overflowed());
    let blocks: Vec<Box<[u8]>> = (0..100).map(|index| boxed(1000 + index)).collect();
    assert!(observer.log_overflowed());
    let log = observer.drain_allocations_log()?;
    let rest = observer.drain_allocations_log()?;
    assert_eq!(rest, AllocationsLog::default(), "it is empty after that");
    assert!(log.overflowed && log.lost >= 90, "{log:?}");
    let sizes: Vec<_> = log.entries.iter().map(Allocation::requested).collect();
    assert!(sizes.iter().copied().eq(1090..1100), "{sizes:?}");
    assert!(!observer.log_overflowed());
    observer.set_tracking(false)?;
    assert_eq!(observer.drain_allocations_log(), Err(LogError::NotTracking));
    assert!(!observer.is_tracking() && !observer.log_overflowed());
    drop(boxed(77));
    observer.set_tracking(true)?;
    assert_eq!(observer.drain_allocations_log()?.entries, [], "it begins anew");
    drop(blocks);
    Ok(())
}

fn boxed(size: usize) -> Box<[u8]> {
    black_box(vec![1_u8; size].into_boxed_slice())
}

/// Checks that sites match the values, or that their absence has a stated reason.
pub(crate) fn sites() -> Result<(), Failure> {
    let early = boxed(ODD);
    assert_eq!(allocation_site(&early[0]), Err(AllocationSiteError::Asleep));
    let observer = Observer::start()?;
    assert_eq!(allocation_site(&early[0]), Err(AllocationSiteError::NotTracked));
    assert_eq!(
        allocation_site(&early),
        Err(AllocationSiteError::NotOnHeap),
        "the box itself is on the stack"
    );
    static STATIC: [u8; 100] = [0; 100];
    assert_eq!(allocation_site(&STATIC[50]), Err(AllocationSiteError::NotOnHeap));
    assert_eq!(allocation_site_of(std::ptr::null::<u8>()), Err(AllocationSiteError::NotOnHeap));

    let before = std::time::Instant::now();
    let value = {
        memreport::scope!("request");
        memreport::scope!("parse");
        boxed(ODD)
    };
    let after = std::time::Instant::now();
    // Moved to another thread and looked up there.
    let moved = vec![value];
    let (site, value) = std::thread::spawn(move || (allocation_site(&moved[0][ODD - 1]), moved))
        .join()
        .map_err(|_| "a thread panicked")?;
    let site = site?;
    assert_eq!((site.requested(), site.address()), (ODD, value[0].as_ptr().addr()));
    assert!(site.usable() >= ODD);
    assert_eq!(site.scopes(), ["request", "parse"]);
    assert_eq!(site.thread(), std::process::id(), "the main thread made it");
    let time = site.time().expect("it was observed");
    assert!(before <= time && time <= after);
    let functions = site.stack().functions();
    assert!(functions.iter().any(|name| name.contains("observed::boxed")), "{functions:?}");

    let address = value[0].as_ptr();
    std::thread::spawn(move || drop(value)).join().map_err(|_| "a thread panicked")?;
    assert_eq!(allocation_site_of(address), Err(AllocationSiteError::Freed));
    drop(observer);
    let late = boxed(ODD + 1);
    assert_eq!(
        allocation_site(&late[0]),
        Err(AllocationSiteError::NotTracked),
        "no observer is left"
    );
    Ok(())
}

/// Checks that the log contains nothing of symbolication.
pub(crate) fn names() -> Result<(), Failure> {
    let mut observer = Observer::start()?;
    let value = boxed(ODD);
    let functions = allocation_site(&value[0])?.stack().functions();
    assert!(functions.iter().any(|name| name.contains("observed::boxed")), "{functions:?}");
    memreport::scope!("named");
    let scoped = boxed(ODD);
    assert_eq!(allocation_site(&scoped[0])?.scopes(), ["named"]);
    let log = observer.drain_allocations_log()?;
    let sizes: Vec<_> = log.entries.iter().map(Allocation::requested).collect();
    assert!(!log.overflowed && sizes == [ODD, ODD], "{} more: {sizes:?}", log.lost);
    Ok(())
}

/// Returns the number of `count` blocks of each size that an observer sees, and the number that it
/// estimates.
fn seen(observer: &mut Observer, size: usize, count: usize) -> Result<(usize, f64), Failure> {
    let _ = observer.drain_allocations_log()?;
    for _ in 0..count {
        drop(boxed(size));
    }
    let log = observer.drain_allocations_log()?;
    assert!(!log.overflowed);
    let of_size = || log.entries.iter().filter(|entry| entry.requested() == size);
    Ok((of_size().count(), of_size().map(Allocation::weight).sum()))
}

/// Fails if the hits are over five standard deviations off, which happens once in two million runs.
fn assert_binomial(seen: usize, count: usize, probability: f64) {
    let (count, found) = (count as f64, seen as f64);
    let spread = (count * probability * (1.0 - probability)).sqrt();
    assert!((found - count * probability).abs() <= 5.0 * spread, "{seen} of {count}");
}

/// Checks that samples follow their probabilities, and that weights make up for the unsampled rest.
pub(crate) fn probabilities() -> Result<(), Failure> {
    const COUNT: usize = 20_000;
    let mut observer = Observer::sampling(Sampling::Blocks(0.0))?;
    observer.set_max_log_length(MAX_LOG_LENGTH)?;
    for too_long in [MAX_LOG_LENGTH + 1, usize::MAX] {
        let refused = observer.set_max_log_length(too_long);
        assert_eq!(refused, Err(ObserveError::LogTooLong(too_long)));
        assert_eq!(observer.max_log_length(), MAX_LOG_LENGTH, "the old length stays");
    }
    assert_eq!(seen(&mut observer, ODD, COUNT)?.0, 0);
    observer.set_allocation_sampling(Sampling::Blocks(1.0))?;
    assert_eq!(seen(&mut observer, ODD, COUNT)?.0, COUNT);
    observer.set_allocation_sampling(Sampling::Blocks(0.05))?;
    let (found, estimate) = seen(&mut observer, ODD, COUNT)?;
    assert_binomial(found, COUNT, 0.05);
    assert!((estimate - found as f64 * 20.0).abs() < 1e-6, "{estimate} for {found}");

    let mean = 20_000;
    let bytes = Sampling::Bytes(NonZeroU64::new(mean).ok_or("not zero")?);
    observer.set_allocation_sampling(bytes)?;
    let usable = allocation_usable(&mut observer)?;
    let (found, _) = seen(&mut observer, ODD, COUNT)?;
    assert_binomial(found, COUNT, 1.0 - (-(usable as f64) / mean as f64).exp());

    for bad in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let refused = observer.set_allocation_sampling(Sampling::Blocks(bad));
        assert!(matches!(refused, Err(ObserveError::InvalidProbability(_))), "{refused:?}");
    }
    assert_eq!(observer.allocation_sampling(), bytes);
    Ok(())
}

/// Returns the usable size of a block of the odd size.
fn allocation_usable(observer: &mut Observer) -> Result<usize, Failure> {
    let before = observer.allocation_sampling();
    observer.set_allocation_sampling(Sampling::ALL)?;
    let block = boxed(ODD);
    let usable = allocation_site(&block[0])?.usable();
    observer.set_allocation_sampling(before)?;
    Ok(usable)
}

/// Checks that each observer has its own log, sampled at the highest rate of all observers.
pub(crate) fn several() -> Result<(), Failure> {
    let mut seldom = Observer::sampling(Sampling::Blocks(0.05))?;
    let (found, _) = seen(&mut seldom, ODD, 4000)?;
    assert_binomial(found, 4000, 0.05);
    let mut keen = Observer::start()?;
    let (found, _) = seen(&mut seldom, ODD, 4000)?;
    assert_eq!(found, 4000, "the greatest probability holds");
    assert_eq!(of_size(&keen.drain_allocations_log()?.entries, ODD), 4000);
    keen.set_max_log_length(10)?;
    for _ in 0..100 {
        drop(boxed(ODD));
    }
    assert!(keen.log_overflowed() && !seldom.log_overflowed());
    assert_eq!(keen.drain_allocations_log()?.entries.len(), 10);
    assert_eq!(of_size(&seldom.drain_allocations_log()?.entries, ODD), 100);
    drop(keen);
    let (found, _) = seen(&mut seldom, ODD, 4000)?;
    assert_binomial(found, 4000, 0.05);
    Ok(())
}
