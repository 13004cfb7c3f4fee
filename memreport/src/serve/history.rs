//! Keeps the last snapshots of the program in memory. New ones replace the oldest.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::protocol::Part;
use crate::measure::ops::Ops;
use crate::measure::size_of::MallocSizeOf;
use crate::snapshot::Snapshot;

/// The last snapshots, gzipped, oldest first.
#[derive(Debug)]
pub(super) struct History {
    most: usize,
    kept: Mutex<VecDeque<Vec<u8>>>,
}

impl History {
    pub(super) fn new(most: usize) -> Self {
        History { most: most.max(1), kept: Mutex::default() }
    }

    pub(super) fn keep(&self, snapshot: &Snapshot) -> io::Result<()> {
        let mut bytes = snapshot.to_gzip()?;
        bytes.shrink_to_fit();
        let mut kept = self.kept();
        if kept.len() >= self.most {
            kept.pop_front();
        }
        kept.push_back(bytes);
        Ok(())
    }

    pub(super) fn parts(&self) -> Vec<Part> {
        let part = |bytes: &Vec<u8>| Part { name: "report".into(), bytes: bytes.clone() };
        self.kept().iter().map(part).collect()
    }

    fn kept(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        // Only complete snapshots are pushed under the lock. A panic leaves the list as it was.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl MallocSizeOf for History {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        ops.add(&self.kept);
    }
}
