//! Reads a memory report file, Firefox's or ours, as a stream of reports.
