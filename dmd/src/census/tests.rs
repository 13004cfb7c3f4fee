//! Censuses of known heaps.
