//! Ships batches to the store, with a growing pause after each failure.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use super::metrics::Metrics;
use super::spool::{Ready, Spool};
use crate::store::Store;

/// The pause after the first failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The time between two looks at the spool.
const TICK: Duration = Duration::from_millis(200);

/// The pauses between attempts.
#[derive(Debug)]
struct Backoff {
    pause: Duration,
    until: Instant,
}

impl Backoff {
    fn new() -> Self {
        Backoff { pause: FIRST_PAUSE, until: Instant::now() }
    }

    fn succeed(&mut self) {
        *self = Backoff::new();
    }

    /// Doubles the pause. `spread`, from 0 to 255, shortens it by up to a half, so that the agents
    /// of a fleet do not come back at once.
    fn fail(&mut self, spread: u8) {
        let pause = self.pause - self.pause / 512 * u32::from(spread);
        self.until = Instant::now() + pause;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }
}

/// Ships batches until `done` is set, and then once more what is there. The reason of the first of
/// several failures is sent to `reasons`.
pub(super) fn run(
    spool: &Spool,
    store: &Store,
    metrics: &Metrics,
    done: &AtomicBool,
    reasons: &Sender<String>,
) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return;
    };
    let mut backoff = Backoff::new();
    loop {
        let is_last = done.load(Ordering::Acquire);
        if is_last || Instant::now() >= backoff.until {
            match runtime.block_on(ship_all(spool, store, metrics)) {
                Ok(()) => backoff.succeed(),
                Err(Failed(reason)) => {
                    metrics.retries.add(1);
                    if backoff.pause == FIRST_PAUSE || is_last {
                        // Nobody listens when the agent has failed.
                        let _ = reasons.send(reason);
                    }
                    backoff.fail(random_byte());
                }
            }
        }
        if is_last {
            return;
        }
        std::thread::sleep(TICK);
    }
}

/// An attempt that failed for this reason, and will be made again.
struct Failed(String);

impl<E: Error> From<E> for Failed {
    fn from(error: E) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            // Some errors repeat their sources.
            let text = error.to_string();
            if !reason.contains(&text) {
                reason = format!("{reason}: {text}");
            }
            source = error.source();
        }
        Failed(reason)
    }
}

async fn ship_all(spool: &Spool, store: &Store, metrics: &Metrics) -> Result<(), Failed> {
    for batch in spool.batches()? {
        if spool.may_ship(&batch) {
            ship(spool, store, metrics, &batch).await?;
        }
    }
    Ok(())
}

/// Ships the parts of a batch in their order. Parts that were shipped before are gone.
async fn ship(
    spool: &Spool,
    store: &Store,
    metrics: &Metrics,
    batch: &Ready,
) -> Result<(), Failed> {
    for part in &batch.parts {
        let Some(bytes) = spool.read_part(batch, part)? else { continue };
        let length = bytes.len() as u64;
        store.put(&part.path, bytes).await?;
        spool.remove_part(batch, part)?;
        metrics.files.add(1);
        metrics.bytes.add(length);
    }
    Ok(spool.remove_batch(batch)?)
}

fn random_byte() -> u8 {
    let mut byte = [0];
    // Without random numbers the pause is the longest.
    let _ = rustix::rand::getrandom(&mut byte, rustix::rand::GetRandomFlags::NONBLOCK);
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_minute() {
        let mut backoff = Backoff::new();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            pauses.push(backoff.pause.as_millis());
            backoff.fail(255);
            assert!(backoff.until > Instant::now());
        }
        assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        backoff.succeed();
        assert!(backoff.until <= Instant::now());
    }
}
