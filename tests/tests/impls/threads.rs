//! Readers, writers, channels and threads.

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
    // How many blocks there are depends on the version of std; but one is for what the thread will return.
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
