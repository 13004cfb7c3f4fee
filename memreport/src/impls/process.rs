//! Measures handles of other processes. Running ones own nothing, and the output of ended ones is
//! *exact*.
//!
//! A `Command` is a *lower bound*: its texts are counted with the tracker, but not `arg0` and not
//! all nodes of a large changed environment. Without the tracker, the lengths count.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{
    Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitCode, ExitStatus, Output, Stdio,
};

use crate::allocator::words::words_of;
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
        // The command's own words point to the lists of arguments.
        let own = words_of(self).map(core::ptr::without_provenance);
        let lengths = texts().map(<[u8]>::len).sum();
        ops.enclosing_blocks(own.chain(texts().map(<[u8]>::as_ptr)), lengths);
    }
}
