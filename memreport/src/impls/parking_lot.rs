//! Measures types of `parking_lot` other than locks, which own nothing. *Exact.*

use parking_lot::{Condvar, Once};

owns_nothing!(Condvar, Once);
