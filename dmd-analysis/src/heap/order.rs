//! The order of a heap's rows, which is the same for the same blocks.

use std::cmp::{Ordering, Reverse};

use super::model::{Heap, HeapFrame, Kind, Row, TextId};

impl Heap {
    /// Sorts the rows, largest first.
    pub(super) fn sort(&mut self) {
        let ranks = self.frame_ranks();
        let mut rows = std::mem::take(&mut self.rows);
        rows.sort_by(|a, b| self.order(a, b, &ranks));
        self.rows = rows;
    }

    /// Returns the rank of each frame in the order of their texts.
    fn frame_ranks(&self) -> Vec<u32> {
        let mut sorted: Vec<(&HeapFrame, usize)> = self.frames.iter().zip(0..).collect();
        let text = |frame: &'_ HeapFrame| (frame.line, frame.inlined);
        sorted.sort_by(|(a, _), (b, _)| {
            (&a.function, &a.file, text(a)).cmp(&(&b.function, &b.file, text(b)))
        });
        let mut ranks = vec![0; sorted.len()];
        for (rank, (_, frame)) in (0..).zip(sorted) {
            ranks[frame] = rank;
        }
        ranks
    }

    /// Compares rows by size, the largest first, and rows of one size by their kinds.
    fn order(&self, a: &Row, b: &Row, ranks: &[u32]) -> Ordering {
        let size = |row: &Row| Reverse((self.amount(row).usable(), self.amount(row).blocks));
        let frames = |row: &Row| {
            self.stacks[row.kind.stack as usize].iter().map(|frame| ranks[*frame as usize])
        };
        let text = |id: Option<TextId>| id.map(|id| self.text(id));
        let rest = |row: &Row| {
            let Kind { class, block_type, thread, scope, span, size, age_ms, .. } = row.kind;
            (class.name(), text(block_type), text(thread), self.scope(scope), span, size, age_ms)
        };
        let reports = |row: &Row| {
            let reports = row.kind.reports.iter();
            let texts = reports.map(|report| (self.text(report.path), text(report.field)));
            texts.collect::<Vec<_>>()
        };
        size(a)
            .cmp(&size(b))
            .then_with(|| frames(a).cmp(frames(b)))
            .then_with(|| rest(a).cmp(&rest(b)))
            .then_with(|| reports(a).cmp(&reports(b)))
    }
}
