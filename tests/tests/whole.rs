//! All questions to whole programs that need no allocator of the test's own, in one program: each
//! program of tests takes seconds to build.

mod annotated;
mod attributed;
mod balance;
mod census;
mod contended;
mod dumps;
mod executable;
mod exhaustion;
mod late_start;
mod leaks;
mod live;
mod modes;
mod own_frames;
mod owned;
mod page;
mod peak;
mod programs;
mod record_running;
mod recordings;
mod replaced;
mod retention;
mod run;
mod scans;
mod scopes;
mod security;
mod stacks;
mod steady;
mod suggestions;
mod timeline;
mod unreported;
mod waiting;
mod whole_recordings;
