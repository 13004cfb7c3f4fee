//! Measures handles of other processes. Running ones own nothing, and the output of ended ones is
//! *exact*.
//!
//! A `Command` is a *lower bound*: its texts and their list are counted with the tracker, but not
//! `arg0`, closures, groups, or all nodes of a large changed environment. Without the tracker, the
//! lengths count.

use std::ffi::{CString, OsStr, OsString};
use std::path::Path;
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Output, Stdio,
};

use super::btree;
use crate::tracker::words::words_of;
use crate::{MallocSizeOf, Ops};

owns_nothing!(Child, ChildStdin, ChildStdout, ChildStderr, ExitCode, ExitStatus, Stdio);

impl MallocSizeOf for Output {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        self.stdout.add_size_of_excluding_this(ops);
        self.stderr.add_size_of_excluding_this(ops);
    }
}

impl MallocSizeOf for Command {
    fn add_size_of_excluding_this<'a>(&'a self, ops: &Ops<'a>) {
        let environment = || self.get_envs().flat_map(|(name, value)| [Some(name), value]);
        let texts = || {
            let folder = self.get_current_dir().map(Path::as_os_str);
            let whole = [Some(self.get_program()), folder].into_iter().chain(environment());
            whole.flatten().chain(self.get_args()).map(OsStr::as_encoded_bytes)
        };
        let lengths = texts().map(<[u8]>::len).sum();
        ops.enclosing_blocks(texts().map(<[u8]>::as_ptr), lengths);
        // Std lists `argv[0]` and the arguments as pointers up to a null, older versions also as
        // strings.
        let arguments = self.get_args().len() + 1;
        add_by_fields(ops, self, |length, capacity| {
            (length == arguments + 1).then(|| [capacity.saturating_mul(size_of::<*const u8>()); 2])
        });
        add_by_fields(ops, self, |length, capacity| {
            (length == arguments).then(|| [capacity.saturating_mul(size_of::<CString>()); 2])
        });
        let names = self.get_envs().len();
        add_by_fields(ops, self, |_height, length| {
            (names > 0 && length == names).then(btree::node_sizes::<OsString, Option<OsString>>)
        });
    }
}

/// Counts the block that a field of a command points to: a list or the root of a tree.
///
/// Unused fields may contain any words, even a pointer to another value's block. So the numbers in
/// two neighbouring words must agree with the block. `sizes` receives the smaller one and the
/// greater one, and returns the requested sizes in bytes that the block may have.
fn add_by_fields(
    ops: &Ops<'_>,
    command: &Command,
    sizes: impl Fn(usize, usize) -> Option<[usize; 2]>,
) {
    let words: Vec<usize> = words_of(command).collect();
    for fields in words.windows(3) {
        for (place, &pointer) in fields.iter().enumerate() {
            let (one, other) = (fields[(place + 1) % 3], fields[(place + 2) % 3]);
            let Some(sizes) = sizes(one.min(other), one.max(other)) else { continue };
            let is_it = |offset, requested| offset == 0 && sizes.contains(&requested);
            if ops.block_by_words([pointer], is_it) {
                return;
            }
        }
    }
}
