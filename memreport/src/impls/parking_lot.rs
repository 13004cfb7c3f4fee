//! What `parking_lot` has beside locks owns nothing. *Exact.*

use parking_lot::{Condvar, Once};

use super::plain::owns_nothing;

owns_nothing!(Condvar, Once);
