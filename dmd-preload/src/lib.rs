//! A library that replaces `malloc` in a program that was built without DMD, so that DMD tracks it.
//!
//! `about-memory run -- PROGRAM` preloads it (`LD_PRELOAD`). Read `functions` first: the functions
//! of C, over the tracker. `exports` gives them their names. `next` is the allocator below:
//! glibc's, or another one that would have served the program. `declare` makes the tracker this
//! library's global allocator, too.
//!
//! `attach` does the same for a program that runs already, by overwriting the places (`slots`) from
//! which its modules call `malloc`.
//!
//! `exit` has the functions that end a program without exit handlers.
//!
//! A program whose own file has a `malloc` does not call this library. A program that declares DMD
//! itself tracks itself: this library then passes every call to the program's hooks (`program`), so
//! that it has the blocks of C, too.

mod next;
mod program;
mod declare;
mod functions;
mod exports;
mod slots;
mod attach;
mod counters;
mod exit;
