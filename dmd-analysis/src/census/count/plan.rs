//! The plan of a census: its breakdown with a number for each place.

use super::super::breakdown::{Breakdown, missing_name};
use crate::axis::{Axis, Key};

/// A breakdown with a number for each of its places.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) steps: Vec<Step>,
    /// Each axis once: a key that several places need is looked up once.
    pub(super) axes: Vec<Axis>,
}

/// A place of a breakdown. Places within it are numbers of steps.
#[derive(Debug)]
pub(super) enum Step {
    Count,
    /// The greatest number of lines.
    Bucket(usize),
    /// The step of each report state.
    State([usize; 4]),
    Split {
        /// The number of the axis.
        axis: usize,
        then: usize,
        missing: Option<Missing>,
    },
    Several(Vec<One>),
}

/// The group of blocks without a key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Missing {
    pub(super) name: &'static str,
    pub(super) step: usize,
}

/// One of several breakdowns.
#[derive(Debug)]
pub(super) struct One {
    pub(super) name: Key,
    pub(super) step: usize,
}

impl Plan {
    /// Adds the steps of a breakdown, and returns the number of the outermost.
    pub(super) fn add(&mut self, breakdown: &Breakdown) -> usize {
        let step = match breakdown {
            Breakdown::Count(_) => Step::Count,
            Breakdown::Bucket(bucket) => {
                Step::Bucket(usize::try_from(bucket.limit).unwrap_or(usize::MAX))
            }
            Breakdown::State(split) => {
                Step::State([0, 1, 2, 3].map(|state: usize| self.add(&split.of[state])))
            }
            Breakdown::Several(several) => {
                let one =
                    |one: &Breakdown| One { name: Key::text(one.name()), step: self.add(one) };
                Step::Several(several.iter().map(one).collect())
            }
            Breakdown::Split(split) => Step::Split {
                axis: self.axis(&split.axis),
                then: self.add(&split.then),
                missing: missing_name(&split.axis)
                    .map(|name| Missing { name, step: self.add(&split.missing) }),
            },
        };
        self.steps.push(step);
        self.steps.len() - 1
    }

    fn axis(&mut self, axis: &Axis) -> usize {
        self.axes.iter().position(|known| known == axis).unwrap_or_else(|| {
            self.axes.push(axis.clone());
            self.axes.len() - 1
        })
    }
}
