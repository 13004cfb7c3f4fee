//! Tests readers, writers, channels and threads.

use dmd::assert_fully_reported;
use memreport::measure;

use super::{Aligned, owns_blocks, text};

#[test]
fn readers_writers_and_their_errors() {
    use std::io::{BufReader, BufWriter, Cursor, Error, Read, Write};
    let mut reader = BufReader::new(Cursor::new(text(100_000)));
    reader.read_exact(&mut [0; 8192]).unwrap();
    assert_fully_reported!(reader);
    let mut writer = BufWriter::with_capacity(33, Vec::new());
    writer.write_all(&[1; 100]).unwrap();
    assert_fully_reported!(writer);
    assert_fully_reported!((Error::last_os_error(), Error::from(std::io::ErrorKind::NotFound)));
    assert_fully_reported!(Error::other(std::fmt::Error));
    owns_blocks(&Error::other(text(100)), 2);
}

#[test]
fn channels_with_what_owns_nothing() {
    use std::sync::mpsc;
    let (sender, receiver) = mpsc::channel::<u64>();
    assert_fully_reported!((sender.clone(), sender, receiver));
    for messages in [1, 31, 60] {
        let (sender, receiver) = mpsc::channel();
        (0..messages).for_each(|message| sender.send(message).unwrap());
        assert_fully_reported!((receiver, sender));
    }
    let (sender, receiver) = mpsc::sync_channel(50);
    sender.send(Aligned(1)).unwrap();
    assert_fully_reported!((sender.clone(), receiver, sender));
    let (sender, receiver) = mpsc::sync_channel::<u8>(0);
    assert_fully_reported!((receiver, sender));
}

#[test]
fn threads() {
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::Builder::new().name(text(40));
    let handle = thread.spawn(move || stopped.recv().is_err()).expect("threads can be had");
    // The number of blocks depends on the version of std, but one is for the thread's result.
    let thread = measure(handle.thread());
    assert!(thread.bytes >= 40, "{thread:?}");
    assert_eq!(measure(&(handle.thread().clone(), handle.thread().clone())), thread);
    owns_blocks(&handle, thread.blocks + 1);
    drop(stop);
    assert!(handle.join().unwrap());
    owns_blocks(
        &(std::sync::Barrier::new(2), std::sync::Condvar::new(), std::sync::Once::new()),
        0,
    );
}

/// Leaves many pointers to this block in the stack below the caller.
#[inline(never)]
fn fill_stack(block: &[u8; 16]) {
    std::hint::black_box([block; 1000]);
}

#[test]
fn lines_and_halves() {
    use std::io::{Cursor, LineWriter, Read, Write};
    let mut writer = LineWriter::new(Vec::new());
    writer.write_all(b"a line\nand half").unwrap();
    assert_fully_reported!(writer);
    assert_fully_reported!(LineWriter::with_capacity(33, std::io::sink()));
    assert_fully_reported!(LineWriter::with_capacity(0, Vec::<u8>::new()));
    assert_fully_reported!(Cursor::new(text(40)).chain(Cursor::new(text(50))).take(60));
    owns_blocks(&(std::io::stdin(), std::io::empty(), std::io::stdout()), 0);
}

struct Task([u8; 40]);

impl std::task::Wake for Task {
    fn wake(self: std::sync::Arc<Self>) {
        assert_eq!(self.0.len(), 40);
    }
}

#[test]
fn wakers() {
    use std::task::Waker;
    owns_blocks(Waker::noop(), 0);
    let waker = Waker::from(std::sync::Arc::new(Task([1; 40])));
    owns_blocks(&[waker.clone(), waker.clone()], 1);
    waker.wake_by_ref();
    assert_fully_reported!(waker);
}

#[test]
fn threads_of_a_scope() {
    std::thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let handle = scope.spawn(move || stopped.recv().is_err());
        let thread = measure(handle.thread());
        owns_blocks(&handle, thread.blocks + 1);
        drop(stop);
        assert!(handle.join().unwrap());
    });
}

#[test]
fn other_programs() {
    use std::process::{Command, Output};
    // Its path and the list of arguments, but not `argv[0]`. Unused fields keep what the stack
    // contained: here, pointers to a block of another value.
    let another = Box::new([1_u8; 16]);
    for _ in 0..10 {
        fill_stack(&another);
        owns_blocks(&Command::new("true"), 2);
    }
    let mut command = Command::new("/bin/echo");
    command.args(["", "some", "arguments"]).arg(text(100)).current_dir("/");
    owns_blocks(&command, 2 + 4 + 1);
    let mut command = Command::new("/bin/echo");
    let blocks = measure(&command).blocks;
    command.env("NAME", text(40)).env_remove("OTHER");
    // Two names and a value, and the one node that sorts them.
    owns_blocks(&command, blocks + 4);
    let output: Output = Command::new("/bin/echo").arg(text(100)).output().expect("echo is there");
    assert_fully_reported!(output);
}
