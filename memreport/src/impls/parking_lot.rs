//! What `parking_lot` has beside locks owns nothing. *Exact.*

use parking_lot::{Condvar, Once};

owns_nothing!(Condvar, Once);
