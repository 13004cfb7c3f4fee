//! Keeps the amounts of a program's nodes over time.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The number of reports that are kept.
const KEPT: usize = 60;

/// The amounts of each node in the last reports.
#[derive(Debug, Default)]
pub(super) struct History {
    times: VecDeque<Instant>,
    /// Invariant: at most as many amounts as times, the newest last.
    courses: HashMap<String, Vec<f64>>,
}

impl History {
    /// Adds the amounts of a report. Nodes that it lacks are forgotten.
    pub(super) fn add(&mut self, amounts: Vec<(String, f64)>, time: Instant) {
        self.times.push_back(time);
        if self.times.len() > KEPT {
            self.times.pop_front();
        }
        let mut before = std::mem::take(&mut self.courses);
        for (path, amount) in amounts {
            let mut course = before.remove(&path).unwrap_or_default();
            course.push(amount);
            if course.len() > self.times.len() {
                course.remove(0);
            }
            self.courses.insert(path, course);
        }
    }

    /// Returns the amounts of each node, oldest first.
    pub(super) fn courses(&self) -> &HashMap<String, Vec<f64>> {
        &self.courses
    }

    /// Returns the time from the first to the last report.
    pub(super) fn span(&self) -> Duration {
        match (self.times.front(), self.times.back()) {
            (Some(first), Some(last)) => *last - *first,
            _ => Duration::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_amounts_are_kept_and_nodes_that_end_are_forgotten() {
        let mut history = History::default();
        let began = Instant::now();
        for second in 0..70_u32 {
            let mut amounts = vec![("a".to_owned(), f64::from(second))];
            amounts.extend((second < 5).then(|| ("b".to_owned(), 1.0)));
            history.add(amounts, began + Duration::from_secs(second.into()));
        }
        let course = &history.courses()["a"];
        assert_eq!((course.len(), course[0], course[59]), (60, 10.0, 69.0));
        assert!(!history.courses().contains_key("b"));
        assert_eq!(history.span(), Duration::from_secs(59));
    }
}
