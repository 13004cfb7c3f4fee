//! Unbounded channels of tokio report exactly their heap.
//!
//! They are tested in a process of their own: blocks of their queue are found by the words of the
//! channel, and a word that is no longer in use may name a block of the same size that another test
//! has allocated meanwhile.

use dmd::assert_fully_reported;

dmd::global_allocator!();

#[test]
fn unbounded_channels_report_their_queue() {
    for messages in [0, 1, 31, 60] {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        for message in 0..messages {
            sender.send(message).expect("the receiver lives");
        }
        assert_fully_reported!((receiver, sender));
    }
}
