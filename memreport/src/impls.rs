//! What std's types own, a file for each family.

mod sequence;
