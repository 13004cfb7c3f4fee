//! Tests of the listener's steps, each without its thread.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::serve::protocol::Part;

/// A listener and its folder, which is removed with this value.
struct Listening {
    listener: Listener,
    folder: PathBuf,
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Listening {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (pid, count) = (std::process::id(), COUNT.fetch_add(1, Relaxed));
        let folder = std::env::temp_dir().join(format!("memreport-listen-{pid}-{count}"));
        std::fs::create_dir_all(&folder).expect("a folder");
        let socket = sys::listen(&folder.join("socket")).expect("a socket");
        let wake = UnixStream::pair().expect("a pair");
        let parts = Parts {
            closed_in_children: sys::close_in_children(&socket).expect("a handler"),
            socket,
            name: "test".to_owned(),
            timeout: Duration::from_secs(5),
            commands: Commands::default(),
            autosave: Autosave::default(),
            wake,
        };
        Listening { listener: Listener::new(parts), folder }
    }

    /// Connects a client, which is not accepted yet.
    fn connect(&self) -> UnixStream {
        UnixStream::connect(self.folder.join("socket")).expect("somebody listens")
    }
}

/// Returns an accepted client and its other end.
fn client(is_welcome: bool) -> (Client, UnixStream) {
    let (stream, other) = UnixStream::pair().expect("a pair");
    stream.set_nonblocking(true).expect("a socket");
    let state = State::Reading(Vec::new());
    (Client { id: 7, stream, is_welcome, since: Instant::now(), state }, other)
}

const READABLE: Ready = Ready { readable: true, writable: false, gone: false };
const WRITABLE: Ready = Ready { readable: false, writable: true, gone: false };
const GONE: Ready = Ready { readable: false, writable: false, gone: true };
const NOTHING: Ready = Ready { readable: false, writable: false, gone: false };

/// Returns all bytes of a reply.
fn bytes(reply: &Reply) -> Vec<u8> {
    let mut bytes = Vec::new();
    while reply.write_from(bytes.len() as u64, &mut bytes).expect("a vector takes all") > 0 {}
    bytes
}

/// Returns a reply of one piece.
fn reply(contents: Vec<u8>) -> Arc<Reply> {
    let part = Part { name: "text".to_owned(), bytes: contents };
    Arc::new(Reply::new(Ok(vec![part.into()])))
}

/// Returns the answer that follows.
fn answer(client: &Client) -> String {
    match &client.state {
        State::Answered(reply, 0) => String::from_utf8_lossy(&bytes(reply)).into_owned(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_clients_that_wait_are_accepted() {
    let mut listening = Listening::new();
    let clients: Vec<_> = (0..3).map(|_| listening.connect()).collect();
    listening.listener.accept_all();
    let accepted: Vec<_> =
        listening.listener.clients.iter().map(|client| (client.id, client.is_welcome)).collect();
    assert_eq!(accepted, [(1, true), (2, true), (3, true)]);
    // The end of the queue is no lack of descriptors.
    assert_eq!(listening.listener.accept_after, None);
    assert!(listening.listener.reserved.is_some());
    drop(clients);
}

#[test]
fn of_too_many_clients_the_slowest_that_does_not_wait_is_disconnected() {
    let mut listening = Listening::new();
    let mut clients: Vec<_> = (0..MAX_CLIENTS).map(|_| listening.connect()).collect();
    listening.listener.accept_all();
    assert_eq!(listening.listener.clients.len(), MAX_CLIENTS);
    listening.listener.clients[0].state = State::Waiting;
    clients.push(listening.connect());
    listening.listener.accept_all();
    let ids: Vec<_> = listening.listener.clients.iter().map(|client| client.id).collect();
    let last = u64::try_from(MAX_CLIENTS).expect("a small number") + 1;
    let expected: Vec<_> = [1].into_iter().chain(3..=last).collect();
    assert_eq!(ids, expected);
    assert_eq!(clients[1].read(&mut [0]).expect("the end"), 0);
}

#[test]
fn a_request_arrives_in_pieces_and_its_answer_leaves_in_pieces() {
    let mut listening = Listening::new();
    let (client, mut other) = client(true);
    // Not a byte has arrived, although the system said so.
    let client = listening.listener.advance_client(client, READABLE).expect("it stays");
    let line = Request::new("ping").line();
    let (first, second) = line.as_bytes().split_at(3);
    other.write_all(first).expect("a socket");
    let client = listening.listener.advance_client(client, READABLE).expect("it stays");
    assert!(matches!(&client.state, State::Reading(received) if received == first));
    other.write_all(second).expect("a socket");
    let mut client = listening.listener.advance_client(client, READABLE).expect("it stays");
    let expected = String::from_utf8_lossy(&bytes(&Reply::new(Ok(Vec::new())))).into_owned();
    assert_eq!(answer(&client), expected);

    let big = reply(vec![b'x'; 4 << 20]);
    client.state = State::Answered(Arc::clone(&big), 0);
    let taken = |client: &Client| match client.state {
        State::Answered(_, taken) => taken,
        _ => 0,
    };
    // Until its buffer is full, although the system says otherwise.
    let mut sent = None;
    while sent != Some(taken(&client)) {
        sent = Some(taken(&client));
        client = listening.listener.advance_client(client, WRITABLE).expect("it stays");
    }
    assert!(sent.is_some_and(|sent| 0 < sent && sent < big.len()), "{sent:?}");
    let client = listening.listener.advance_client(client, NOTHING).expect("it stays");
    let reader = std::thread::spawn(move || {
        let mut received = Vec::new();
        other.read_to_end(&mut received).map(|_| received)
    });
    let mut rest = Some(client);
    while let Some(client) = rest {
        rest = listening.listener.advance_client(client, WRITABLE);
    }
    let received = reader.join().expect("it does not panic").expect("a socket");
    assert!(received == bytes(&big), "{} bytes", received.len());
}

#[test]
fn a_client_that_hangs_up_is_dropped() {
    let mut listening = Listening::new();
    let (silent, other) = client(true);
    drop(other);
    assert!(listening.listener.advance_client(silent, READABLE).is_none());
    for (ready, stays) in [(GONE, false), (NOTHING, true), (READABLE, true)] {
        let (mut waiting, _other) = client(true);
        waiting.state = State::Waiting;
        assert_eq!(listening.listener.advance_client(waiting, ready).is_some(), stays, "{ready:?}");
    }
    let (mut answered, other) = client(true);
    drop(other);
    answered.state = State::Answered(reply(b"answer".to_vec()), 0);
    assert!(listening.listener.advance_client(answered, WRITABLE).is_none());
}

#[test]
fn requests_of_strangers_and_endless_ones_are_refused() {
    let mut listening = Listening::new();
    let (stranger, mut other) = client(false);
    other.write_all(Request::new("ping").line().as_bytes()).expect("a socket");
    let stranger = listening.listener.advance_client(stranger, READABLE).expect("it stays");
    assert!(answer(&stranger).contains("another user's"), "{}", answer(&stranger));

    let (mut endless, mut other) = client(true);
    endless.state = State::Reading(vec![b' '; protocol::LONGEST_REQUEST - 1]);
    other.write_all(b" ").expect("a socket");
    let endless = listening.listener.advance_client(endless, READABLE).expect("it stays");
    assert!(matches!(endless.state, State::Reading(_)));
    other.write_all(b" ").expect("a socket");
    let endless = listening.listener.advance_client(endless, READABLE).expect("it stays");
    assert!(answer(&endless).contains("a request has at most"), "{}", answer(&endless));
}

#[test]
fn a_listener_waits_for_its_clients_and_not_for_descriptors_that_lack() {
    let mut listening = Listening::new();
    let now = Instant::now();
    let (interests, timeout) = listening.listener.interests(now);
    let events: Vec<_> = interests.iter().map(|one| (one.reading, one.writing)).collect();
    assert_eq!((events, timeout), (vec![(true, false), (true, false)], IDLE));

    let states =
        [State::Reading(Vec::new()), State::Waiting, State::Answered(reply(Vec::new()), 0)];
    let (clients, _others): (Vec<_>, Vec<_>) = states
        .into_iter()
        .map(|state| {
            let (client, other) = client(true);
            (Client { state, since: now, ..client }, other)
        })
        .unzip();
    listening.listener.clients = clients;
    listening.listener.accept_after = Some(now + 2 * CLIENT_TIMEOUT);
    let (interests, timeout) = listening.listener.interests(now);
    let events: Vec<_> = interests.iter().map(|one| (one.reading, one.writing)).collect();
    let expected = [(false, false), (true, false), (true, false), (false, false), (false, true)];
    assert_eq!((&events[..], timeout), (&expected[..], CLIENT_TIMEOUT));

    listening.listener.clients.clear();
    listening.listener.accept_after = Some(now);
    let (interests, timeout) = listening.listener.interests(now);
    assert_eq!((interests[0].reading, timeout), (true, Duration::ZERO));
}

#[test]
fn a_request_sets_its_own_time_limit() {
    let table = [
        ("", None),
        ("timeout=2.5", Some(2.5)),
        // The name that older clients send.
        ("patience=1", Some(1.0)),
        ("patience=1 timeout=2", Some(2.0)),
        ("timeout=-1", Some(0.0)),
        ("timeout=1e9", Some(3600.0)),
        ("timeout=soon", None),
    ];
    for (options, expected) in table {
        let options = options.split_whitespace().filter_map(|option| option.split_once('='));
        let request = options
            .fold(Request::new("report"), |request, (name, value)| request.with(name, value));
        let found = requested_timeout(&request).map(|time| time.as_secs_f64());
        assert_eq!(found, expected, "{request:?}");
    }
}
