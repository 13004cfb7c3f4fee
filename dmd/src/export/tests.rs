//! One heap in every format.
