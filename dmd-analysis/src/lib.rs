//! Reads the dumps and recordings of the heap tracker `dmd`, and answers questions about them.
//!
//! A program that runs under [`dmd`](https://docs.rs/memreport-dmd) writes *dumps*: every live heap
//! block with its size, its allocation stack and its memory reports. It also writes *recordings*:
//! the allocations and frees over time. This crate reads both in another process, together with the
//! dumps of Firefox's DMD, and finds:
//!
//! * **unreported places** (*dark matter*): blocks that no memory reporter covers, by the line and
//!   type that allocated them, with a suggestion for each ([`analysis`]);
//! * **blocks reported twice**, and reports that do not fit the heap;
//! * **censuses**: the live heap grouped by type, stack, reporter, thread, scope or size
//!   ([`census`]);
//! * **retention**: what each block keeps alive, and which paths keep a block alive
//!   ([`retention`]);
//! * **growth**, and files for other viewers: pprof, Firefox Profiler, speedscope, DHAT, massif and
//!   flame graphs ([`heap`], [`export`]).
//!
//! It is the library behind the command `about-memory`. It is pure: no `unsafe`, no global state,
//! and no dependency on the tracker.
//!
//! # Example
//!
//! Prints the largest unreported place of a dump, then counts the heap by state:
//!
//! ```
//! use memreport_analysis::analysis::{Class, ExplainOptions, explain};
//! use memreport_analysis::census::{FileOptions, of_dump};
//! use memreport_analysis::read::read_slice;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let dump = read_slice(
//!         br##"{"version": 5, "invocation": {"dmdEnvVar": "1", "mode": "dark-matter"},
//!             "blockList": [{"req": 4000, "slop": 96, "alloc": "A", "num": 2},
//!                           {"req": 100, "slop": 12, "alloc": "B", "reps": ["C"]}],
//!             "traceTable": {"A": ["D"], "B": ["E"], "C": ["F"]},
//!             "frameTable": {"D": "#00: shop::Cart::add (src/cart.rs:7)",
//!                            "E": "#00: shop::open (src/main.rs:3)",
//!                            "F": "#00: shop::report (src/main.rs:9)"}}"##,
//!     )?;
//!
//!     let explained = explain(&dump, &ExplainOptions::default());
//!     let largest = &explained.places(Class::Unreported)[0];
//!     println!("{} bytes: {}", largest.totals.usable(), largest.site.frames[0]);
//!     assert_eq!(largest.totals.usable(), 8192);
//!     assert_eq!(largest.site.frames[0], "shop::Cart::add (src/cart.rs:7)");
//!
//!     let census = of_dump(&dump, &r#"{"by": "coarseType"}"#.parse()?, &FileOptions::default());
//!     let mut json = Vec::new();
//!     census.write_json(&mut json)?;
//!     let json: serde_json::Value = serde_json::from_slice(&json)?;
//!     assert_eq!(json["unreported"]["bytes"], 8192);
//!     assert_eq!(json["once"]["bytes"], 112);
//!     Ok(())
//! }
//! ```
//!
//! # Cost
//!
//! A dump is read as a stream of JSON, without a tree of values; a block takes 96 bytes in memory.
//! A scan dump of a million blocks (91 MB of text) took 2 s to read on a small virtual machine, 0.4
//! s for a census, 3 s to explain with links between blocks, and 7 s for its tree of dominators,
//! with a high-water mark of 336 MB. Symbols are looked up once per address, by several threads.
//!
//! # Where to go next
//!
//! * [`read`]: the dump in memory. Its types name every field of the file format.
//! * [`symbols::Symboliser`]: functions and lines for the addresses of a dump. Tracked programs
//!   write addresses only; run it before anything that prints stacks or types.
//! * [`recording::read`](recording::read()): a recording, which [`heap`] shows at any time.
//! * [`analysis`], [`census`], [`retention`], [`heap`] and [`export`] each begin with an example.
//!
//! The feature `svg` (off by default) adds flame graphs as images.

pub mod axis;
pub mod read;
pub mod symbols;
pub mod recording;
pub mod analysis;
pub mod retention;
pub mod ownership;
pub mod heap;
pub mod census;
pub mod export;
mod number;
