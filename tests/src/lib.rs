//! What the subject programs of this folder share.

pub mod workload;
