//! From a dump to answers.
